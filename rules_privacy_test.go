package settle_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// What is said to nobody: arguments, results, keys, digests and names.

// The canaries stand for what must not leave: each is told to the executor in
// some way and may be found nowhere.
var canaries = map[string]string{
	"tenant": "canary-tenant", "subject": "canary-subject", "task": "canary-task", "goal": "canary-goal", "node": "canary-node",
	"argument": "canary-argument", "note": "canary-note", "result": "canary-result", "resource": "canary-resource",
	"error": "canary-error", "panic": "canary-panic", "reason": "canary-reason", "secret": "canary-secret", "invented tool": "canary-tool",
}

func TestR55NothingLeavesInLogsTracesAndMetrics(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	open := &openSpans{started: map[trace.SpanID]string{}}
	o.traces.RegisterSpanProcessor(open)
	o.mix()

	for _, name := range open.left() {
		t.Errorf("the span %q was never ended (R58)", name)
	}
	exported := o.log.String()
	for _, s := range o.spans.GetSpans() {
		exported += "\n" + s.Name + " " + s.Status.Description + " " + printed(s.Attributes)
		for _, e := range s.Events {
			exported += " " + e.Name + printed(e.Attributes)
		}
		for _, l := range s.Links {
			exported += printed(l.Attributes)
		}
	}
	for name, data := range o.metrics() {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		exported += "\n" + name + string(raw)
	}
	for _, must := range []string{"execute_tool", "settle.replay", "settle.lookup", "settle.operations.open", "panicked", "could not be recorded", "unavailable"} {
		if !strings.Contains(exported, must) {
			t.Errorf("the mix didn't make %q", must)
		}
	}
	forbidden := maps.Clone(canaries)
	for _, e := range g.all() {
		key := fmt.Sprint("of operation ", e.ID)
		for what, b := range map[string][]byte{"fingerprint ": e.Fingerprint[:], "node ": e.Node[:], "slot ": e.Slot[:], "contract ": e.Contract[:],
			"resource key ": e.ResourceKey[:], "unique ": e.Unique[:], "intent digest ": e.Of.Digest[:], "tenant digest ": e.Of.TenantDigest[:], "intent key ": e.Of.Key, "tenant key ": e.Of.TenantKey} {
			if len(bytes.Trim(b, "\x00")) > 0 {
				forbidden[what+key] = hex.EncodeToString(b)
			}
		}
	}
	for _, key := range o.mixed.all {
		forbidden["key "+key] = key
	}
	for what, canary := range forbidden {
		if at := strings.Index(exported, canary); at >= 0 {
			t.Errorf("the %s is exported: …%s…", what, exported[max(at-200, 0):min(at+100, len(exported))])
		}
	}
}

func printed(attributes []attribute.KeyValue) string {
	var b strings.Builder
	for _, a := range attributes {
		fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
	}
	return b.String()
}

// mixedKeys are the keys that handlers read in a mix.
type mixedKeys struct {
	mu  sync.Mutex
	all []string
}

func (m *mixedKeys) add(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, keys...)
}

type mixedArgs struct {
	Order  string `json:"order" settle:"identity"`
	How    string `json:"how"`
	Note   string `json:"note,omitempty" settle:"ignore"`
	Secret string `json:"secret,omitempty" settle:"secret"`
}

type mixedOut struct {
	ID   string `json:"id" settle:"resource"`
	Body string `json:"body"`
}

// mixed is a tool that ends in whatever way it is asked for.
func (o *observed) mixedTool(name string, c settle.Contract) settle.Tool[mixedArgs, mixedOut] {
	c.Timeout = 50 * time.Millisecond
	return settle.Tool[mixedArgs, mixedOut]{
		Name: name, Description: "Everything.", Contract: c,
		Do: func(ctx context.Context, op settle.Op, in mixedArgs) (mixedOut, error) {
			o.mixed.add(op.Key(), op.UUID().String())
			switch in.How {
			case "unknown":
				return mixedOut{}, errors.New(canaries["error"])
			case "not sent":
				return mixedOut{}, settle.NotSent(errors.New(canaries["error"]))
			case "throttled":
				return mixedOut{}, settle.NotSent(errors.New(canaries["error"]), settle.RetryAfter(time.Hour))
			case "rejected":
				return mixedOut{}, settle.Rejected(errors.New(canaries["error"]))
			case "panic":
				panic(canaries["panic"])
			case "slow":
				<-ctx.Done()
				return mixedOut{}, fmt.Errorf("%s: %w", canaries["error"], ctx.Err())
			}
			return mixedOut{canaries["resource"] + in.Order, canaries["result"]}, nil
		},
	}
}

// mix makes calls that end in every way, on a ledger that fails in some.
func (o *observed) mix() {
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: canaries["tenant"], Subject: canaries["subject"]})
	ctx = settle.WithTask(ctx, settle.Task{ID: canaries["task"], Goal: canaries["goal"]})
	looked := o.mixedTool("looked", settle.Contract{})
	looked.Lookup = func(_ context.Context, q settle.Query[mixedOut], in mixedArgs) (settle.Evidence, error) {
		switch in.Note {
		case "panic":
			panic(canaries["panic"])
		case "error":
			return settle.Evidence{}, errors.New(canaries["error"])
		case "several":
			return q.Several(canaries["reason"]), nil
		}
		return q.Happened(canaries["resource"], mixedOut{canaries["resource"], canaries["result"]}).ByAttribute(time.Time{}), nil
	}
	denying := o.mixedTool("denied", settle.Contract{NoLookup: true})
	denying.Contract.Authorize = func(context.Context, settle.Authorization) error { panic(canaries["panic"]) }
	x := o.executor(settle.WithTools(
		o.mixedTool("unsafe", settle.Contract{NoLookup: true}), looked, denying,
		o.mixedTool("keyed", settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true}),
		o.mixedTool("idempotent", settle.Contract{Class: settle.Idempotent}), o.mixedTool("read", settle.Contract{Class: settle.Read}),
		o.mixedTool("unique", settle.Contract{NoLookup: true, Unique: true})))
	order := 0
	var group sync.WaitGroup
	for _, tool := range []string{"unsafe", "keyed", "idempotent", "read", "looked", "unique", "denied"} {
		for _, how := range []string{"done", "unknown", "not sent", "throttled", "rejected", "panic", "slow"} {
			order++
			args := func(how, note string) json.RawMessage {
				return fmt.Appendf(nil, `{"order":"%s-%d","how":%q,"note":%q,"secret":%q}`, canaries["argument"], order, how, note, canaries["secret"])
			}
			note := []string{"panic", "error", "several", canaries["note"]}[order%4]
			call, other := settle.Call{Tool: tool, Args: args(how, note)}, settle.Call{Tool: tool, Args: args("other", note)}
			group.Go(func() {
				for _, c := range []settle.Call{call, call, other} {
					o.do(ctx, x, c)
				}
			})
			group.Go(func() {
				o.do(settle.WithTask(ctx, settle.Task{ID: canaries["task"] + "2", Goal: canaries["goal"]}), x, call)
			})
		}
	}
	group.Wait()
	o.do(ctx, x, settle.Call{Tool: canaries["invented tool"]})
	broken := settle.Call{Tool: "keyed", Args: json.RawMessage(`{"order":"` + canaries["argument"] + `","` + canaries["argument"] + `":1}`)}
	o.do(ctx, x, broken)
	broken.Args = json.RawMessage(`{"order":"` + canaries["argument"])
	o.do(ctx, x, broken)
	named := settle.Call{Tool: "unsafe", Node: canaries["node"], Args: json.RawMessage(`{"order":"x","how":"done"}`)}
	o.do(settle.WithTask(ctx, settle.Task{ID: canaries["task"] + "3", Goal: canaries["goal"]}), x, named)
	for _, fault := range []struct {
		method string
		plan   plan
		n      int
	}{{"claim", down, 4}, {"claim", lostAnswer, 1}, {"apply", lostAnswer, 1}, {"apply", down, 6}, {"take", down, 1}, {"intent", lostRequest, 4}, {"audit", down, 1}} {
		order++
		o.ledger.next(fault.method, times(fault.n, fault.plan)...)
		call := settle.Call{Tool: "unsafe", Args: fmt.Appendf(nil, `{"order":"%s-%d","how":"done"}`, canaries["argument"], order)}
		o.do(settle.WithTask(ctx, settle.Task{ID: canaries["task"] + fault.method, Goal: canaries["goal"]}), x, call)
		call.Args = fmt.Appendf(nil, `{"order":"%s-%d","how":"other"}`, canaries["argument"], order)
		o.do(settle.WithTask(ctx, settle.Task{ID: canaries["task"] + fault.method, Goal: canaries["goal"]}), x, call)
		_, _ = x.Recover(ctx) //nolint:errcheck // "take" fails on purpose
	}
	for range 3 {
		o.forward(26 * time.Hour)
		_, _ = x.Recover(ctx) //nolint:errcheck // as above
	}
	for _, e := range o.all() {
		if _, err := x.Get(ctx, e.ID.String()); err != nil && !errors.Is(err, store.ErrNotFound) {
			o.Error(err)
		}
	}
	if _, err := x.Brief(ctx); err != nil {
		o.Error(err)
	}
	if err := x.Shutdown(ctx); err != nil {
		o.Error(err)
	}
}
