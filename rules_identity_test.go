package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Which call is the same.

func TestR06APrincipalIsNeverGuessed(t *testing.T) {
	g := inMemory(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	task := settle.Task{ID: "case-1", Goal: "rules"}
	for name, tc := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"no principal": {settle.WithTask(context.Background(), task), settle.ErrNoPrincipal},
		"no task":      {settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "bot"}), settle.ErrNoTask},
	} {
		out, err := x.Execute(tc.ctx, payCall("A-1", 5))
		if !errors.Is(err, tc.want) || out.Status != "" {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
		if _, err := x.ExecuteAll(tc.ctx, payCall("A-1", 5)); !errors.Is(err, tc.want) {
			t.Errorf("%s, a turn: %v", name, err)
		}
		if _, err := x.Brief(tc.ctx); !errors.Is(err, tc.want) {
			t.Errorf("%s, brief: %v", name, err)
		}
	}
	g.did(p, 0)
}

func TestR06PrincipalsAreComparedByteForByte(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	for i, who := range []settle.Principal{
		{Tenant: "acme", Subject: "bot"}, {Tenant: "Acme", Subject: "bot"}, {Tenant: "acme", Subject: "bot "},
		{Tenant: "acm", Subject: "ebot"}, {Tenant: "acme", Subject: "Bot"}, {Tenant: "аcme", Subject: "bot"},
		{Tenant: "acme\u200b", Subject: "bot"}, {Tenant: "bot", Subject: "acme"},
	} {
		ctx := settle.WithPrincipal(g.ctx, who)
		if out := g.do(ctx, x, payCall("A-1", 5)); out.Status != settle.StatusCompleted || out.Replayed {
			t.Errorf("%d: got %s, replayed %v", i, out.Status, out.Replayed)
		}
	}
	g.did(p, 8)
	if len(p.keys) != 8 {
		t.Errorf("%d keys, want 8", len(p.keys))
	}
}

func TestR12HostileNamesAreRefusedAndNotRepaired(t *testing.T) {
	g := inMemory(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	long := strings.Repeat("ü", 128) // 256 bytes
	for name, tc := range map[string]struct {
		name string
		ok   bool
	}{
		"empty":             {"", false},
		"256 bytes":         {long, true},
		"257 bytes":         {long + "x", false},
		"300 bytes":         {strings.Repeat("x", 300), false},
		"zero byte":         {"a\x00b", false},
		"line end":          {"a\nb", false},
		"delete":            {"a\x7f", false},
		"C1 control":        {"a\u0085b", false},
		"invalid UTF-8":     {"a\xff\xfe", false},
		"cut UTF-8":         {"a\xc3", false},
		"encoded surrogate": {"a\xed\xa0\x80", false},
		"not NFC":           {"cafe\u0301", false},
		"Hangul not NFC":    {"\u1100\u1161", false},
		"NFC":               {"café", true},
		"spaces":            {"  a  ", true},
		"quotes":            {`'; DROP TABLE settle_operation; --`, true},
		"emoji":             {"👩‍🚀", true},
		"replacement":       {"\ufffd", true},
	} {
		set := map[string]func(*settle.Principal, *settle.Task){
			"tenant":  func(p *settle.Principal, _ *settle.Task) { p.Tenant = tc.name },
			"subject": func(p *settle.Principal, _ *settle.Task) { p.Subject = tc.name },
			"task":    func(_ *settle.Principal, t *settle.Task) { t.ID = tc.name },
			"goal":    func(_ *settle.Principal, t *settle.Task) { t.Goal = tc.name },
		}
		for role, change := range set {
			who, what := settle.Principal{Tenant: "acme", Subject: "bot"}, settle.Task{ID: "case-1", Goal: "rules"}
			change(&who, &what)
			ctx := settle.WithTask(settle.WithPrincipal(context.Background(), who), what)
			_, err := x.Execute(ctx, payCall("A-1", 5))
			var wrong *settle.NameError
			if tc.ok && err != nil {
				t.Errorf("%s as %s was refused: %v", name, role, err)
			}
			if !tc.ok && (!errors.As(err, &wrong) || wrong.Name != role) {
				t.Errorf("%s as %s: got %v", name, role, err)
			}
			if err != nil && tc.name != "" && strings.Contains(err.Error(), tc.name) {
				t.Errorf("%s as %s: the error holds the name", name, role)
			}
		}
		call := payCall("A-1", 5)
		call.Node = tc.name
		out := g.do(g.inTask("nodes"), x, call)
		if refused := out.Status == settle.StatusInvalidArguments; tc.name != "" && refused == tc.ok {
			t.Errorf("%s as a node: got %s (%s)", name, out.Status, out.Detail)
		}
	}
}

// Call ids come from providers: they are stored as far as they can be, and decide nothing.
func TestR11CallIDsIdentifyNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	for i, id := range []string{"", "call_0", "call_0", "a\x00b", "\xff\xfe", strings.Repeat("é", 1000)} {
		call := payCall(fmt.Sprintf("A-%d", i), 5)
		call.CallID = id
		out := g.want(x, call, settle.StatusCompleted)
		if out.Replayed {
			t.Errorf("call id %d made two calls one", i)
		}
		if stored := g.row(out).CallID; len(stored) > 256 {
			t.Errorf("%d bytes of a call id were stored", len(stored))
		}
		again := g.want(x, call, settle.StatusCompleted)
		if !again.Replayed || again.PossibleRepeat {
			t.Errorf("call id %d, delivered again: replayed %v, possible repeat %v", i, again.Replayed, again.PossibleRepeat)
		}
		call.CallID = "another"
		if again := g.want(x, call, settle.StatusCompleted); !again.Replayed || !again.PossibleRepeat {
			t.Errorf("call id %d, another one: replayed %v, possible repeat %v (R9)", i, again.Replayed, again.PossibleRepeat)
		}
	}
	g.did(p, 6)
}

var keyForm = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

func TestR11KeysAreOpaqueAndTheSameForEveryAttempt(t *testing.T) {
	g := onFile(t)
	var keys, uuids []string
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		keys, uuids = append(keys, op.Key()), append(uuids, op.UUID().String())
		if op.Attempt() < 3 {
			return paid{}, errors.New("connection reset")
		}
		return act(), nil
	}
	g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusCompleted)
	if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] || uuids[0] != uuids[2] {
		t.Errorf("keys %v, UUIDs %v", keys, uuids)
	}
	if !keyForm.MatchString(keys[0]) || strings.Contains(keys[0], "A-1") {
		t.Errorf("the key is %q", keys[0])
	}
	if uuids[0][14] != '8' {
		t.Errorf("the UUID %s isn't of version 8", uuids[0])
	}
}

func TestR07AnIntentIsTheSameForEveryProcess(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	outs := g.storm(8, func(int) settle.Outcome {
		return g.do(g.ctx, g.executor(p.tool()), payCall("A-1", 5))
	})
	for _, out := range outs {
		g.wantStatus(out, settle.StatusCompleted)
	}
	if len(p.keys) != 1 {
		t.Errorf("%d keys for one intent", len(p.keys))
	}
	g.did(p, 1)
	out := g.do(settle.WithTask(g.ctx, settle.Task{ID: "case-1", Goal: "another"}), g.executor(p.tool()), payCall("A-1", 5))
	if out.Replayed || len(p.keys) != 2 {
		t.Error("another goal is another intent")
	}
}

func TestR08ANodeHasOneSource(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	named := func(order, node string) settle.Call {
		call := payCall(order, 5)
		call.Node = node
		return call
	}
	ctx := g.inTask("host")
	first := g.do(ctx, x, named("A-1", "first payment"))
	g.wantStatus(first, settle.StatusCompleted)
	if row := g.row(first); row.Source != store.FromHost {
		t.Errorf("the node comes from %s", row.Source)
	}
	if again := g.do(ctx, x, named("A-1", "first payment")); !again.Replayed {
		t.Error("the same node ran again")
	}
	g.wantStatus(g.do(ctx, x, named("A-2", "first payment")), settle.StatusConflict)
	if other := g.do(ctx, x, named("A-1", "second payment")); other.Status != settle.StatusCompleted || other.Replayed {
		t.Errorf("another node gave %s", other.Status)
	}
	// Without the host's name the identity fields would name it: another source.
	out := g.do(ctx, x, payCall("A-1", 5))
	g.wantStatus(out, settle.StatusHeld)
	if out.Reason != "contract_changed" {
		t.Errorf("the reason is %q", out.Reason)
	}
	g.did(p, 2)
}

func TestR08IdentityFieldsMustBeThere(t *testing.T) {
	type inner struct {
		ID string `json:"id"`
	}
	type args struct {
		Customer inner `json:"customer"`
	}
	g := onFile(t)
	c := unsafeContract()
	c.Identity = []string{"customer.id"}
	n := 0
	x := g.executor(settle.Tool[args, paid]{Name: "pay", Contract: c, Do: func(context.Context, settle.Op, args) (paid, error) { n++; return paid{}, nil }},
		settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
			Contract: settle.Contract{Identity: []string{"id"}, NoLookup: true}, Do: does[json.RawMessage, json.RawMessage]()})
	for call, want := range map[string]settle.Status{
		`{"customer":{"id":"c-1"}}`: settle.StatusCompleted,
		`{"customer":{"id":null}}`:  settle.StatusInvalidArguments,
		`{"customer":{}}`:           settle.StatusInvalidArguments,
		`{"customer":null}`:         settle.StatusInvalidArguments,
		`{"customer":[]}`:           settle.StatusInvalidArguments,
		`{}`:                        settle.StatusInvalidArguments,
	} {
		if out := g.do(g.ctx, x, rawCall("pay", call)); out.Status != want {
			t.Errorf("%s: got %s (%s), want %s", call, out.Status, out.Detail, want)
		}
	}
	if n != 1 {
		t.Errorf("%d effects", n)
	}
	g.want(x, rawCall("raw", `{"id":null}`), settle.StatusInvalidArguments)
	g.want(x, rawCall("raw", `{}`), settle.StatusInvalidArguments)
	g.want(x, rawCall("raw", `{"id":""}`), settle.StatusCompleted)
}

func TestR08TwoToolsWithEqualArgumentsShareNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool("pay"), p.tool("refund"))
	for _, name := range []string{"pay", "refund"} {
		call := payCall("A-1", 5)
		call.Tool = name
		if out := g.want(x, call, settle.StatusCompleted); out.Replayed {
			t.Errorf("%s replays the other tool", name)
		}
	}
	if len(p.keys) != 2 {
		t.Errorf("%d keys", len(p.keys))
	}
}

func repeatableSay() *say {
	return &say{contract: settle.Contract{Repeatable: true}}
}

func TestR09TheModelAsksForAMeantRepeat(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	x := g.executor(s.tool())
	if schema := string(x.Tools()[0].Schema); !strings.Contains(schema, "settle_occurrence") {
		t.Errorf("the model isn't shown the parameter: %s", schema)
	}
	first := g.want(x, rawCall("say", `{"text":"hello"}`), settle.StatusCompleted)
	replay := g.want(x, rawCall("say", `{"text":"hello","settle_occurrence":null}`), settle.StatusCompleted)
	if !replay.Replayed || replay.Operation != first.Operation || !strings.Contains(replay.ForModel(), "settle_occurrence") {
		t.Errorf("the replay is %s", replay.ForModel())
	}
	second := g.want(x, rawCall("say", `{"text":"hello","settle_occurrence":2}`), settle.StatusCompleted)
	if second.Replayed || second.Operation == first.Operation {
		t.Error("the second occurrence wasn't executed")
	}
	if again := g.want(x, rawCall("say", `{"settle_occurrence":2.0,"text":"hello"}`), settle.StatusCompleted); !again.Replayed || again.Operation != second.Operation {
		t.Error("the second occurrence was executed twice")
	}
	if s.effects.Load() != 2 {
		t.Errorf("%d effects", s.effects.Load())
	}
}

func TestR09OccurrencesCantBeAbused(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	p := &pay{contract: keyedContract()}
	x := g.executor(s.tool(), p.tool())
	g.want(x, rawCall("say", `{"text":"a"}`), settle.StatusCompleted)
	for _, n := range []string{"0", "-1", "1.5", `"2"`, "true", "[]", "1e99", "9223372036854775808", "3", "4", "1000000"} {
		if out := g.do(g.ctx, x, rawCall("say", `{"text":"a","settle_occurrence":`+n+`}`)); out.Status != settle.StatusInvalidArguments {
			t.Errorf("occurrence %s: got %s (%s)", n, out.Status, out.Detail)
		}
	}
	// A tool that isn't Repeatable has no such parameter.
	g.want(x, rawCall("pay", `{"order":"A-1","amount":5,"settle_occurrence":2}`), settle.StatusInvalidArguments)
	for _, n := range []int{-1, math.MinInt, 2, math.MaxInt} {
		call := payCall("A-1", 5)
		call.Occurrence = n
		if out := g.do(g.ctx, x, call); out.Status != settle.StatusInvalidArguments {
			t.Errorf("the host's occurrence %d of a call that was never made: got %s", n, out.Status)
		}
	}
	// The host's word counts before the model's.
	call := rawCall("say", `{"text":"a","settle_occurrence":2}`)
	call.Occurrence = 1
	if out := g.want(x, call, settle.StatusCompleted); !out.Replayed {
		t.Error("the model's occurrence counted before the host's")
	}
	if s.effects.Load() != 1 {
		t.Errorf("%d effects", s.effects.Load())
	}
	g.did(p, 0)
}

func TestR09AnOccurrenceWaitsForTheOneBefore(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 300 * time.Millisecond}}
	entered, release := make(chan struct{}), make(chan struct{})
	p.attempt = func(_ context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Order == "unknown" {
			return paid{}, errors.New("connection reset")
		}
		if p.entered.Load() == 1 {
			close(entered)
			<-release
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	occurrence := func(order string, n int) settle.Call {
		call := payCall(order, 5)
		call.Occurrence = n
		return call
	}
	first := g.background(g.ctx, x, occurrence("A-1", 1))
	after(g, "the first", entered)
	second := g.background(g.ctx, x, occurrence("A-1", 2))
	close(release)
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	if out := after(g, "the second", second); out.Status != settle.StatusCompleted || out.Replayed {
		t.Errorf("the second gave %+v", out)
	}
	g.did(p, 2)

	g.want(x, occurrence("unknown", 1), settle.StatusUnknown)
	out := g.want(x, occurrence("unknown", 2), settle.StatusHeld)
	if out.Reason != "occurrence" || len(out.Related) != 1 {
		t.Errorf("got %+v", out)
	}
}

func TestR10NumbersFollowTheirRules(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	refused := g.want(x, payCall("A-1", 420), settle.StatusFailed)
	// The same call would be refused again: it isn't made.
	if again := g.want(x, payCall("A-1", 420), settle.StatusFailed); !again.Replayed || again.Operation != refused.Operation {
		t.Error("a refused call was made again")
	}
	corrected := g.want(x, payCall("A-1", 42), settle.StatusCompleted)
	if row := g.row(corrected); corrected.Replayed || row.Number != 2 || row.Slot != g.row(refused).Slot {
		t.Errorf("the corrected call is number %d, replayed %v", row.Number, corrected.Replayed)
	}
	// A redelivery of the earlier number finds its own.
	if again := g.want(x, payCall("A-1", 420), settle.StatusFailed); again.Operation != refused.Operation {
		t.Error("the refused call didn't find its own record")
	}
	g.want(x, payCall("A-1", 43), settle.StatusConflict)
	if p.entered.Load() != 2 {
		t.Errorf("%d attempts, want 2", p.entered.Load())
	}
	g.did(p, 1)
}

func TestR10OneOfManyCorrectionsIsMade(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
	g.want(executors[0], payCall("A-1", 420), settle.StatusFailed)
	outs := g.storm(24, func(i int) settle.Outcome {
		return g.do(g.ctx, executors[i%2], payCall("A-1", 1+i%6))
	})
	count := map[settle.Status]int{}
	for _, out := range outs {
		count[out.Status]++
	}
	g.did(p, 1)
	if count[settle.StatusCompleted] != 4 || count[settle.StatusConflict] != 20 {
		t.Errorf("the corrections gave %v, want 4 completed (one and its repeats) and 20 conflicts", count)
	}
}

func TestR10AnExhaustedCallMayBeMadeAgain(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Attempts = 2
	fails := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if fails {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if row := g.row(out); row.State != store.Failed || row.Reason != "exhausted" || row.Attempt != 2 {
		t.Fatalf("it is %s (%s) after %d attempts", row.State, row.Reason, row.Attempt)
	}
	fails = false
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if row := g.row(again); row.Number != 2 || again.Replayed {
		t.Errorf("number %d, replayed %v", row.Number, again.Replayed)
	}
	g.did(p, 1)
}

func TestR10ARetryableOneIsReplacedByItsCaller(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount == 1 {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	first := g.want(x, payCall("A-1", 1), settle.StatusNotDone)
	second := g.want(x, payCall("A-1", 2), settle.StatusCompleted)
	if row := g.row(first); row.State != store.Failed || row.Reason != "replaced" {
		t.Errorf("the replaced one is %s (%s)", row.State, row.Reason)
	}
	if g.row(second).Number != 2 {
		t.Error("the replacement isn't the next number")
	}
	replaced := g.want(x, payCall("A-1", 1), settle.StatusFailed)
	if !replaced.Replayed || !strings.Contains(replaced.ForModel(), "replaced") {
		t.Errorf("the replaced call says %s", replaced.ForModel())
	}
}

func TestR10TheHostReplacesWhatIsSettled(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	replace := func(order string, amount int, reference string) settle.Call {
		call := payCall(order, amount)
		call.Replaces = reference
		return call
	}
	g.want(x, replace("A-1", 5, "0192f7a0-0000-7000-8000-000000000000"), settle.StatusInvalidArguments)
	first := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	second := g.want(x, replace("A-1", 7, first.Operation), settle.StatusCompleted)
	if row := g.row(second); row.Number != 2 || second.Replayed {
		t.Errorf("number %d, replayed %v", row.Number, second.Replayed)
	}
	// Delivered again it finds itself; the first one, in all its forms, too.
	if again := g.want(x, replace("A-1", 7, first.Operation), settle.StatusCompleted); again.Operation != second.Operation {
		t.Error("the replacement was made twice")
	}
	if again := g.want(x, payCall("A-1", 5), settle.StatusCompleted); again.Operation != first.Operation {
		t.Error("the replaced call doesn't find its own record")
	}
	g.want(x, replace("A-1", 9, first.Operation), settle.StatusConflict)
	g.want(x, replace("A-1", 9, "no reference"), settle.StatusInvalidArguments)
	other := g.want(x, payCall("B-1", 5), settle.StatusCompleted)
	g.want(x, replace("A-1", 9, other.Operation), settle.StatusConflict)
	// With the same arguments it is a meant repeat of the same call.
	third := g.want(x, replace("A-1", 7, second.Operation), settle.StatusCompleted)
	if third.Replayed || g.row(third).Number != 3 {
		t.Errorf("got %+v", third)
	}
	if again := g.want(x, replace("A-1", 7, second.Operation), settle.StatusCompleted); again.Operation != third.Operation {
		t.Error("the repeat was made twice")
	}
	if len(p.keys) != 4 {
		t.Errorf("%d keys, want one for each of 4 operations", len(p.keys))
	}
	g.did(p, 4)
}

func TestR10NothingReplacesWhatIsNotSettled(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		return act(), errors.New("connection reset")
	}
	x := g.executor(p.tool())
	first := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	call := payCall("A-1", 7)
	call.Replaces = first.Operation
	g.want(x, call, settle.StatusHeld)
	g.did(p, 1)
}

func TestR14OneOperationOfAUniqueToolInATenant(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.contract.Unique = true
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
	g.want(executors[0], payCall("A-1", 420), settle.StatusFailed)
	done := 0
	for _, out := range g.storm(16, func(i int) settle.Outcome {
		return g.do(g.inTask(fmt.Sprintf("case-%d", i)), executors[i%2], payCall("A-1", 5))
	}) {
		switch {
		case out.Status == settle.StatusCompleted:
			done++
		case out.Status != settle.StatusConflict || out.Reason != "unique":
			t.Errorf("got %s (%s)", out.Status, out.Reason)
		case len(out.Related) > 0 || out.Operation != "":
			t.Errorf("another intent's operation is shown: %+v", out)
		}
	}
	if done != 1 {
		t.Errorf("%d completed", done)
	}
	g.did(p, 1)
	// Another occurrence is a second one all the same, and this intent's own is named.
	ctx := g.inTask("case-x")
	mine := g.do(ctx, executors[0], payCall("B-1", 5))
	call := payCall("B-1", 5)
	call.Occurrence = 2
	out := g.do(ctx, executors[0], call)
	if out.Status != settle.StatusConflict || len(out.Related) != 1 || out.Related[0].Operation != mine.Operation {
		t.Errorf("got %+v", out)
	}
	// Other tenants have their own.
	elsewhere := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"})
	g.wantStatus(g.do(elsewhere, executors[0], payCall("A-1", 5)), settle.StatusCompleted)
}

// abandoned is an operation that a person closed without knowing.
func (g *rig) abandoned(x *settle.Executor, call settle.Call) store.Operation {
	g.Helper()
	out := g.want(x, call, settle.StatusUnknown)
	g.forward(time.Hour)
	g.recover(x)
	row, err := g.ledger.Ledger.Apply(g.ctx, store.Change{Of: g.row(out), To: store.Abandoned, Kind: "decision", Actor: "operator", Reason: "a test's"})
	if err != nil {
		g.Fatal(err)
	}
	return row
}

func TestR09AfterAnAbandonedOneOnlyTheHostRepeats(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	lost := true
	s.attempt = func(context.Context, settle.Op) error {
		if lost {
			return errors.New("connection reset")
		}
		return nil
	}
	x := g.executor(s.tool())
	g.abandoned(x, rawCall("say", `{"text":"a"}`))
	lost = false
	g.want(x, rawCall("say", `{"text":"a"}`), settle.StatusAbandoned)
	out := g.want(x, rawCall("say", `{"text":"a","settle_occurrence":2}`), settle.StatusHeld)
	if out.Reason != "occurrence" {
		t.Errorf("the reason is %q", out.Reason)
	}
	call := rawCall("say", `{"text":"a"}`)
	call.Occurrence = 2
	g.want(x, call, settle.StatusCompleted)
	if s.effects.Load() != 1 {
		t.Errorf("%d effects", s.effects.Load())
	}
}

func TestR10WhatIsAbandonedStaysClosed(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		return act(), errors.New("connection reset")
	}
	x := g.executor(p.tool())
	row := g.abandoned(x, payCall("A-1", 5))
	g.want(x, payCall("A-1", 5), settle.StatusAbandoned)
	g.want(x, payCall("A-1", 6), settle.StatusConflict)
	for _, amount := range []int{5, 6} {
		call := payCall("A-1", amount)
		call.Replaces = row.ID.String()
		out := g.want(x, call, settle.StatusAbandoned)
		if !out.Replayed || !out.Settled() {
			t.Errorf("got %+v", out)
		}
	}
	g.did(p, 1)
}

// A normaliser is the host's function on a model's words.
func TestR16ANormaliserMakesEqualAndMayPanic(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Normalize = map[string]settle.Normalizer{"order": {Name: "upper", Func: func(s string) string {
		if s == "boom" {
			panic("no such order")
		}
		return strings.ToUpper(s)
	}}}
	x := g.executor(p.tool())
	first := g.want(x, payCall("a-1", 5), settle.StatusCompleted)
	if again := g.want(x, payCall("A-1", 5), settle.StatusCompleted); !again.Replayed || again.Operation != first.Operation {
		t.Error("what the normaliser makes equal ran twice")
	}
	for _, turn := range [][]settle.Call{{payCall("boom", 5)}, {payCall("boom", 5), payCall("A-2", 5)}} {
		outs, err := x.ExecuteAll(g.ctx, turn...)
		if err != nil || outs[0].Status != settle.StatusInvalidArguments || strings.Contains(outs[0].ForModel(), "no such order") {
			t.Errorf("got %+v, %v", outs, err)
		}
	}
	g.did(p, 2)
}
