package settle_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// Names, keys and intents.

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
