package settle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Same key, same meaning; and what is answered before what.

// shaped is a tool whose schema declares formats.
type shapedArgs struct {
	Order  string          `json:"order" settle:"identity"`
	Amount decimal.Decimal `json:"amount"`
	At     *time.Time      `json:"at,omitempty"`
	Ref    *uuid.UUID      `json:"ref,omitempty"`
	Tags   []string        `json:"tags,omitempty"`
	Text   string          `json:"text,omitempty"`
}

func TestR16TheSameMeaningIsTheSameCall(t *testing.T) {
	g := onFile(t)
	n := 0
	x := g.executor(settle.Tool[shapedArgs, paid]{Name: "pay", Contract: unsafeContract(),
		Do: func(context.Context, settle.Op, shapedArgs) (paid, error) { n++; return paid{fmt.Sprint(n)}, nil }})
	pairs := []struct {
		a, b string
		same bool
	}{
		{`{"order":"1","amount":"42.10"}`, `{"amount":"42.1","order":"1"}`, true},
		{`{"order":"2","amount":"1e2"}`, `{"order":"2","amount":"100"}`, true},
		{`{"order":"3","amount":"1"}`, `{"order":"3","amount":"1.0000000000000000000000001"}`, false},
		{`{"order":"4","amount":"9007199254740992"}`, `{"order":"4","amount":"9007199254740993"}`, false},
		{`{"order":"5","amount":"-0"}`, `{"order":"5","amount":"0"}`, true},
		{`{"order":"6","amount":"1","at":"2026-01-01T12:00:00Z"}`, `{"order":"6","amount":"1","at":"2026-01-01T13:00:00.000+01:00"}`, true},
		{`{"order":"7","amount":"1","ref":"0192F7A0-0000-7000-8000-000000000000"}`, `{"order":"7","amount":"1","ref":"0192f7a0-0000-7000-8000-000000000000"}`, true},
		{`{"order":"8","amount":"1","text":null}`, `{"order":"8","amount":"1"}`, true},
		{`{"order":"9","amount":"1","tags":["a","b"]}`, `{"order":"9","amount":"1","tags":["b","a"]}`, false},
		{`{"order":"10","amount":"1","text":"é"}`, `{"order":"10","amount":"1","text":"\u00e9"}`, true},
		{`{"order":"11","amount":"1","text":"é"}`, `{"order":"11","amount":"1","text":"e\u0301"}`, false},
		{`{"order":"12","amount":"1","text":"a"}`, ` { "order" : "12" , "amount":"1","text":"\u0061" } `, true},
		{`{"order":"13","amount":"1","text":"a"}`, `{"order":"13","amount":"1","text":"A"}`, false},
	}
	for _, p := range pairs {
		g.want(x, rawCall("pay", p.a), settle.StatusCompleted)
		second := g.do(g.ctx, x, rawCall("pay", p.b))
		if same := second.Status == settle.StatusCompleted && second.Replayed; same != p.same {
			t.Errorf("%s and %s: %s, replayed %v; want the same call: %v", p.a, p.b, second.Status, second.Replayed, p.same)
		}
	}
	if n != len(pairs) {
		t.Errorf("%d effects, want %d", n, len(pairs))
	}
}

func TestR16NumbersAreExactInRawTools(t *testing.T) {
	g := onFile(t)
	n := 0
	x := g.executor(settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":["number","null","string"]}}}`),
		Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do:       func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) { n++; return nil, nil }})
	for _, group := range [][]string{
		{`{"n":1}`, `{"n":1.0}`, `{"n":1e0}`, `{"n":10e-1}`, `{"n":0.1e1}`},
		{`{"n":9007199254740992}`}, {`{"n":9007199254740993}`, `{"n":9007199254740993.000}`},
		{`{"n":0}`, `{"n":-0}`, `{"n":0e99}`, `{"n":-0.0}`},
		{`{"n":1e10000}`}, {`{"n":1e-10000}`}, {`{"n":null}`}, {`{}`}, {`{"n":"1"}`}, {`{"n":"1.0"}`},
		{`{"n":0.1}`}, {`{"n":0.1000000000000000055511151231257827}`},
	} {
		for i, args := range group {
			out := g.do(g.ctx, x, rawCall("raw", args))
			if out.Status != settle.StatusCompleted || out.Replayed != (i > 0) {
				t.Errorf("%s: %s (%s), replayed %v", args, out.Status, out.Detail, out.Replayed)
			}
		}
	}
	if n != 12 {
		t.Errorf("%d effects, want 12", n)
	}
}

// encoding/json takes ORDER for order, and the last of them counts.
func TestR16AnIdentityFieldInTwoCasesIsRefused(t *testing.T) {
	g := onFile(t)
	var acted []string
	raw := func(name, schema string, identity ...string) settle.AnyTool {
		return settle.RawTool{Name: name, Schema: json.RawMessage(schema), Contract: settle.Contract{Identity: identity, NoLookup: true},
			Do: func(_ context.Context, _ settle.Op, args json.RawMessage) (json.RawMessage, error) {
				acted = append(acted, string(args))
				return nil, nil
			}}
	}
	x := g.executor(
		raw("open", `{"type":"object","required":["order"],"properties":{"order":{"type":"string"}}}`, "order"),
		raw("nested", `{"type":"object","required":["of"],"properties":{"of":{"type":"object"}}}`, "of.order"),
		raw("declared", `{"type":"object","required":["order"],"properties":{"order":{"type":"string"},"Order":{"type":"string"}}}`, "order"))
	for _, c := range [][2]string{
		{"open", `{"order":"A","ORDER":"B"}`}, {"open", `{"Order":"B","order":"A"}`}, {"open", `{"order":"A","\u006frdeR":"B"}`},
		{"nested", `{"of":{"order":"A","oRder":"B"}}`}, {"nested", `{"of":{"order":"A"},"OF":{"order":"B"}}`},
		{"declared", `{"order":"A","ORDER":"B"}`},
	} {
		if out := g.do(g.ctx, x, rawCall(c[0], c[1])); out.Status != settle.StatusInvalidArguments || len(out.Fields) != 1 {
			t.Errorf("%s %s: got %s, fields %v", c[0], c[1], out.Status, out.Fields)
		}
	}
	if len(acted) > 0 || len(g.all()) > 0 {
		t.Fatalf("acted on %v", acted)
	}
	for _, c := range [][2]string{{"open", `{"order":"A","orders":"B","NOTE":"x","note":"y"}`}, {"nested", `{"of":{"order":"A"},"ORDER":"B"}`}, {"declared", `{"order":"A","Order":"B"}`}} {
		if out := g.do(g.ctx, x, rawCall(c[0], c[1])); out.Status != settle.StatusCompleted {
			t.Errorf("%s %s: got %s (%s)", c[0], c[1], out.Status, out.Detail)
		}
	}
}

func TestR16WhatTwoReadersMightReadDifferentlyIsRefused(t *testing.T) {
	g := onFile(t)
	s := &say{}
	x := g.executor(s.tool())
	canary := "canary4711"
	for name, args := range map[string]string{
		"twice":                `{"text":"canary4711","text":"b"}`,
		"twice, escaped":       `{"text":"canary4711","\u0074ext":"b"}`,
		"invalid UTF-8":        "{\"text\":\"canary4711\xff\"}",
		"overlong":             "{\"text\":\"canary4711\xc0\x80\"}",
		"lone surrogate":       `{"text":"canary4711\ud800"}`,
		"reversed surrogates":  `{"text":"canary4711\udc00\ud800"}`,
		"control character":    "{\"text\":\"canary4711\n\"}",
		"mark":                 "\ufeff{\"text\":\"canary4711\"}",
		"trailing":             `{"text":"canary4711"}{}`,
		"cut":                  `{"text":"canary4711`,
		"no object":            `"canary4711"`,
		"null":                 `null`,
		"an array":             `["canary4711"]`,
		"huge exponent":        `{"text":1e10001}`,
		"many digits":          `{"text":1` + strings.Repeat("0", 1000) + `}`,
		"deep":                 `{"text":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"many values":          `{"text":[` + strings.Repeat("1,", 10_000) + `1]}`,
		"long":                 `{"text":"` + strings.Repeat("x", 1<<20) + `"}`,
		"unknown field":        `{"text":"a","canary4711":1}`,
		"unknown, nested name": `{"text":{"canary4711":1}}`,
		"wrong type":           `{"text":4711}`,
		"missing":              `{}`,
	} {
		out := g.do(g.ctx, x, rawCall("say", args))
		if out.Status != settle.StatusInvalidArguments {
			t.Errorf("%s: got %s", name, out.Status)
		}
		if strings.Contains(out.ForModel(), canary) || len(out.ForModel()) > 1000 {
			t.Errorf("%s: the text quotes the arguments: %s", name, out.ForModel())
		}
	}
	if len(g.all()) != 0 || s.effects.Load() != 0 {
		t.Error("something was claimed")
	}
}

func TestR16TheHostBoundsArguments(t *testing.T) {
	g := inMemory(t)
	s := &say{}
	x := g.executorWith(settle.WithTools(s.tool()), settle.WithArgumentLimit(64))
	g.want(x, sayCall(strings.Repeat("x", 40)), settle.StatusCompleted)
	g.want(x, sayCall(strings.Repeat("x", 70)), settle.StatusInvalidArguments)
}

func TestR15WhatIsIgnoredStaysOut(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	g.want(x, rawCall("pay", `{"order":"A-1","amount":5,"note":"first"}`), settle.StatusCompleted)
	for _, args := range []string{`{"order":"A-1","amount":5,"note":"second"}`, `{"order":"A-1","amount":5}`, `{"order":"A-1","amount":5,"note":null}`} {
		if out := g.want(x, rawCall("pay", args), settle.StatusCompleted); !out.Replayed {
			t.Errorf("%s ran again", args)
		}
	}
	g.did(p, 1)
}

func TestR15FingerprintsAreKeyedPerTenantAndStoredWithTheClaim(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		if row := g.all()[len(g.all())-1]; row.Fingerprint == [32]byte{} || len(row.Fields) == 0 {
			t.Error("the attempt began before the fingerprint was stored")
		}
		return paid{}, nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.do(settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"}), x, payCall("A-1", 5))
	g.do(g.inTask("case-2"), x, payCall("A-1", 5))
	rows := g.all()
	if rows[0].Fingerprint == rows[1].Fingerprint || rows[0].Node == rows[1].Node {
		t.Error("two tenants share digests")
	}
	if rows[0].Fingerprint != rows[2].Fingerprint || rows[0].Slot == rows[2].Slot {
		t.Error("two intents of a tenant have different fingerprints, or share a slot")
	}
}

func TestR15SecretsCountButAreNotStored(t *testing.T) {
	type args struct {
		Order string `json:"order" settle:"identity"`
		Card  string `json:"card" settle:"secret"`
	}
	g := onFile(t)
	n := 0
	x := g.executor(settle.Tool[args, paid]{Name: "pay", Contract: keyedContract(),
		Do: func(_ context.Context, op settle.Op, in args) (paid, error) {
			_ = op.Key()
			if n++; in.Card != "4111111111111111" {
				t.Errorf("an attempt got the card %q", in.Card)
			}
			return paid{"p"}, nil
		}})
	out := g.want(x, rawCall("pay", `{"order":"A-1","card":"4111111111111111"}`), settle.StatusCompleted)
	if row := g.row(out); strings.Contains(string(row.Arguments), "4111") || !strings.Contains(string(row.Arguments), "A-1") {
		t.Errorf("stored: %s", row.Arguments)
	}
	conflict := g.want(x, rawCall("pay", `{"order":"A-1","card":"4222222222222222"}`), settle.StatusConflict)
	if !slices.Equal(conflict.Fields, []string{"card"}) {
		t.Errorf("the fields that differ are %v", conflict.Fields)
	}
	if n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestR17AConflictChangesNothingAndShowsNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	done := g.want(x, payCall("A-1", 471147114711), settle.StatusCompleted)
	before, journal := g.row(done), g.kinds(g.row(done))
	for _, out := range g.storm(32, func(i int) settle.Outcome { return g.do(g.ctx, x, payCall("A-1", 900090009000+i)) }) {
		if out.Status != settle.StatusConflict || !slices.Equal(out.Fields, []string{"amount"}) || out.Operation != done.Operation || len(out.Result) > 0 {
			t.Errorf("got %+v", out)
		}
		if text := out.ForModel(); strings.Contains(text, "47114711") || strings.Contains(text, "90009000") {
			t.Errorf("the text shows arguments: %s", text)
		}
	}
	after := g.row(done)
	after.Read = before.Read
	if fmt.Sprint(before) != fmt.Sprint(after) || !slices.Equal(journal, g.kinds(after)) {
		t.Error("the row or its journal changed")
	}
	g.did(p, 1)
}

func TestR17AConflictNamesFieldsOfTheSchemaOnly(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("raw", settle.Contract{Identity: []string{"id"}, NoLookup: true})))
	run := func(args string) settle.Outcome {
		_, out, err := settle.Around(g.ctx, x, rawCall("raw", args), func(context.Context) (string, error) { return "", nil })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	g.wantStatus(run(`{"id":1,"a":1,"b":2,"c":3}`), settle.StatusCompleted)
	if out := run(`{"id":1,"a":2,"c":3,"d":4}`); !slices.Equal(out.Fields, []string{"a", "b", "d"}) {
		t.Errorf("the fields that differ are %v", out.Fields)
	}
}

func TestR17ASecondCallerWaitsAndThenHears(t *testing.T) {
	g := onFile(t)
	entered, release := make(chan struct{}), make(chan struct{})
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 400 * time.Millisecond}}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Order == "slow" {
			close(entered)
			<-release
		}
		return act(), nil
	}
	x, elsewhere := g.executor(p.tool()), g.executor(p.tool())
	first := g.background(g.ctx, x, payCall("slow", 5))
	after(g, "the first", entered)
	ctx, cancel := context.WithTimeout(g.ctx, 20*time.Millisecond)
	defer cancel()
	g.wantStatus(g.do(ctx, x, payCall("slow", 5)), settle.StatusInProgress)
	g.wantStatus(g.do(ctx, elsewhere, payCall("slow", 5)), settle.StatusUnavailable) // a caller that has gone
	began := time.Now()
	if out := g.do(g.ctx, elsewhere, payCall("slow", 5)); out.Status != settle.StatusInProgress {
		t.Errorf("got %s", out.Status)
	}
	if waited := time.Since(began); waited < 300*time.Millisecond || waited > 5*time.Second {
		t.Errorf("it waited %v; the contract's timeout is 400 ms", waited)
	}
	second := g.background(g.ctx, elsewhere, payCall("slow", 5))
	close(release)
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	if out := after(g, "the second", second); out.Status != settle.StatusCompleted || !out.Replayed {
		t.Errorf("the second got %s, replayed %v", out.Status, out.Replayed)
	}
	g.did(p, 1)
}

func TestR18TheLedgerAnswersBeforeTheSchema(t *testing.T) {
	type before struct {
		Order string `json:"order" settle:"identity"`
	}
	type now struct {
		Order  string `json:"order" settle:"identity"`
		Reason string `json:"reason"`
	}
	g := onFile(t)
	old := g.executor(settle.Tool[before, paid]{Name: "pay", Contract: unsafeContract(),
		Do: func(context.Context, settle.Op, before) (paid, error) { return paid{"p-1"}, nil }})
	g.want(old, rawCall("pay", `{"order":"A-1"}`), settle.StatusCompleted)
	x := g.executor(settle.Tool[now, paid]{Name: "pay", Contract: unsafeContract(), Do: does[now, paid]()})
	out := g.want(x, rawCall("pay", `{"order":"A-1"}`), settle.StatusCompleted)
	if !out.Replayed || out.Resource != "p-1" {
		t.Errorf("got %+v", out)
	}
	g.want(x, rawCall("pay", `{"order":"A-2"}`), settle.StatusInvalidArguments)
	// What is recorded is a conflict before it is invalid.
	g.want(x, rawCall("pay", `{"order":"A-1","reason":7}`), settle.StatusConflict)
}

func TestR18InvalidComesBeforeDeniedAndThatBeforeHeld(t *testing.T) {
	g := onFile(t)
	s := &say{}
	allowed := true
	s.contract.Authorize = func(context.Context, settle.Authorization) error {
		if allowed {
			return nil
		}
		return fmt.Errorf("no")
	}
	s.attempt = func(context.Context, settle.Op) error { return fmt.Errorf("connection reset") }
	x := g.executor(s.tool())
	g.want(x, sayCall("a"), settle.StatusUnknown)
	g.want(x, sayCall("b"), settle.StatusHeld)
	allowed = false
	g.want(x, rawCall("say", `{"text":1}`), settle.StatusInvalidArguments)
	g.want(x, sayCall("b"), settle.StatusDenied)
	g.want(x, sayCall("a"), settle.StatusUnknown)
}

func TestR15UpstreamResourcesAndArgumentsNeverMeet(t *testing.T) {
	// The names under which upstream resources enter can't be an argument's:
	// NUL may be escaped in JSON, and is then part of the name.
	g := onFile(t)
	n := 0
	x := g.executor(settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object"}`), Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) { n++; return nil, nil }})
	a := g.want(x, rawCall("raw", `{"\u0000after pay":"p-1"}`), settle.StatusCompleted)
	b := g.want(x, rawCall("raw", `{}`), settle.StatusCompleted)
	if n != 2 || g.row(a).Fingerprint == g.row(b).Fingerprint {
		t.Errorf("%d effects", n)
	}
	if row := g.row(a); row.State != store.Completed {
		t.Errorf("it is %s", row.State)
	}
}
