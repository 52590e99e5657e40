package settle_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// observed is what logs, traces and metrics say of a rig's executors.
type observed struct {
	*rig
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	meters *sdkmetric.MeterProvider
	mu     sync.Mutex
	log    bytes.Buffer
	mixed  mixedKeys
}

func (o *observed) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(b)
}

func observe(g *rig) *observed {
	o := &observed{rig: g, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	o.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans))
	o.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

func (o *observed) executor(options ...settle.Option) *settle.Executor {
	o.Helper()
	log := slog.New(slog.NewJSONHandler(o, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	return o.executorWith(append(options, settle.WithLogger(log), settle.WithTracerProvider(o.traces), settle.WithMeterProvider(o.meters))...)
}

// named are the ended spans whose names begin so.
func (o *observed) named(prefix string) (spans tracetest.SpanStubs) {
	for _, s := range o.spans.GetSpans() {
		if strings.HasPrefix(s.Name, prefix) {
			spans = append(spans, s)
		}
	}
	return spans
}

func (o *observed) metrics() map[string]metricdata.Aggregation {
	o.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &all); err != nil {
		o.Fatal(err)
	}
	found := map[string]metricdata.Aggregation{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

func attributeOf(s tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

func TestR58OneExecutionAndItsReplaysAreOneExecuteToolSpan(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		_ = op.Key()
		if op.Attempt() == 1 {
			return paid{}, errors.New("connection reset")
		}
		return act(), nil
	}
	x := o.executor(settle.WithTools(p.tool()))
	agent, span := o.traces.Tracer("agent").Start(g.ctx, "chat")
	call := payCall("A-1", 5)
	call.CallID = "call_1"
	first := g.do(agent, x, call)
	span.End()
	for range 3 {
		g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	}
	g.want(o.executor(settle.WithTools(p.tool())), payCall("A-1", 5), settle.StatusCompleted)

	executions := o.named("execute_tool")
	if len(executions) != 1 {
		t.Fatalf("%d execute_tool spans, want 1: %v", len(executions), names(o.spans.GetSpans()))
	}
	execution := executions[0]
	for name, want := range map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.type": "function",
		"gen_ai.tool.call.id": "call_1", "settle.operation": first.Operation, "settle.class": "keyed", "settle.status": "completed", "error.type": ""} {
		if got := attributeOf(execution, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if execution.Name != "execute_tool pay" || execution.Parent.SpanID() != span.SpanContext().SpanID() {
		t.Errorf("the span %q isn't a child of the agent's", execution.Name)
	}
	attempts := o.named("settle.attempt")
	if len(attempts) != 2 || attempts[0].Parent.SpanID() != execution.SpanContext.SpanID() || attributeOf(attempts[0], "error.type") != "outcome_unknown" ||
		attributeOf(attempts[1], "settle.attempt.number") != "2" || attributeOf(attempts[1], "error.type") != "" {
		t.Errorf("the attempts' spans are %v", attempts)
	}
	if row := g.row(first); len(row.Trace) != 25 || hex.EncodeToString(row.Trace[16:24]) != execution.SpanContext.SpanID().String() {
		t.Errorf("the ledger keeps the span %x", row.Trace)
	}
	replays := o.named("settle.replay")
	if len(replays) != 4 {
		t.Fatalf("%d replay spans, want 4", len(replays))
	}
	for _, replay := range replays {
		if replay.Name != "settle.replay pay" || len(replay.Links) != 1 || replay.Links[0].SpanContext.SpanID() != execution.SpanContext.SpanID() ||
			replay.Links[0].SpanContext.TraceID() != execution.SpanContext.TraceID() {
			t.Errorf("%q has the links %v", replay.Name, replay.Links)
		}
		if attributeOf(replay, "settle.replayed") != "true" || attributeOf(replay, "gen_ai.operation.name") != "" || attributeOf(replay, "settle.operation") != first.Operation {
			t.Errorf("a replay's attributes are %v", replay.Attributes)
		}
	}
}

func names(spans tracetest.SpanStubs) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

func TestR58WhatDispatchesNothingIsNoExecuteTool(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	s := &say{attempt: func(context.Context, settle.Op) error { return errors.New("connection reset") }}
	p := &pay{contract: keyedContract()}
	p.contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		if strings.Contains(string(a.Args), "forbidden") {
			return errors.New("no")
		}
		return nil
	}
	x := o.executor(settle.WithTools(s.tool(), p.tool()))
	g.want(x, sayCall("a"), settle.StatusUnknown)
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	o.spans.Reset()
	g.want(x, sayCall("b"), settle.StatusHeld)
	g.want(x, payCall("A-1", 6), settle.StatusConflict)
	g.want(x, rawCall("pay", `{"order":"A-1"}`), settle.StatusConflict)
	g.want(x, rawCall("pay", `{"order":"A-2"}`), settle.StatusInvalidArguments)
	g.want(x, payCall("forbidden", 6), settle.StatusDenied)
	g.want(x, rawCall("nothing", `{}`), settle.StatusNoSuchTool)
	g.ledger.next("claim", times(4, down)...)
	g.want(x, payCall("A-3", 6), settle.StatusUnavailable)
	if spans := append(o.named("execute_tool"), o.named("settle.attempt")...); len(spans) != 0 {
		t.Errorf("there are the spans %v", names(spans))
	}
	kinds := map[string]int{}
	for _, s := range o.named("settle.call") {
		kinds[attributeOf(s, "settle.status")+" "+attributeOf(s, "error.type")]++
	}
	want := map[string]int{"held _OTHER": 1, "conflict conflict": 2, "invalid_arguments invalid_arguments": 1, "denied denied": 1, "unavailable ledger_unavailable": 1}
	if !maps.Equal(kinds, want) {
		t.Errorf("the calls' spans are %v, want %v", kinds, want)
	}
}

func TestR58AFrameworksSpanIsJoined(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	p := &pay{contract: keyedContract()}
	x := o.executor(settle.WithTools(p.tool()), settle.WithJoinedSpans())
	run := func() (settle.Outcome, trace.SpanContext) {
		ctx, span := o.traces.Tracer("framework").Start(g.ctx, "execute_tool of the framework's")
		defer span.End()
		return g.do(ctx, x, payCall("A-1", 5)), span.SpanContext()
	}
	first, framework := run()
	run()
	executions := o.named("execute_tool")
	if len(executions) != 2 || o.named("execute_tool pay") != nil {
		t.Errorf("there are %v", names(o.spans.GetSpans()))
	}
	if got := attributeOf(executions[0], "settle.operation"); got != first.Operation {
		t.Errorf("the framework's span has settle.operation %q", got)
	}
	replays := o.named("settle.replay")
	if len(replays) != 1 || len(replays[0].Links) != 1 || replays[0].Links[0].SpanContext.SpanID() != framework.SpanID() {
		t.Errorf("the replay is %v", replays)
	}
}

func TestR58AWorkersAttemptHasItsSpans(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	p := &pay{contract: keyedContract()}
	g.abandonedCall(p, settle.NotSent(errors.New("no route")))
	g.forward(time.Minute)
	x := o.executor(settle.WithTools(p.tool()))
	g.recover(x)
	executions, attempts := o.named("execute_tool pay"), o.named("settle.attempt")
	if len(executions) != 1 || len(attempts) != 1 || attempts[0].Parent.SpanID() != executions[0].SpanContext.SpanID() {
		t.Fatalf("there are %v", names(o.spans.GetSpans()))
	}
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if replays := o.named("settle.replay"); len(replays) != 1 || len(replays[0].Links) != 1 || replays[0].Links[0].SpanContext.SpanID() != executions[0].SpanContext.SpanID() {
		t.Errorf("the replay is %v", replays)
	}
}

// openSpans remembers the spans that have begun and not ended.
type openSpans struct {
	mu      sync.Mutex
	started map[trace.SpanID]string
}

func (o *openSpans) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started[s.SpanContext().SpanID()] = s.Name()
}

func (o *openSpans) OnEnd(s sdktrace.ReadOnlySpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.started, s.SpanContext().SpanID())
}

func (*openSpans) Shutdown(context.Context) error   { return nil }
func (*openSpans) ForceFlush(context.Context) error { return nil }

func (o *openSpans) left() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Values(o.started))
}

func TestTheCountOfOpenOperationsComesBackToNothing(t *testing.T) {
	g := onFile(t)
	o := observe(g)
	p := &pay{contract: keyedContract()}
	x := o.executor(settle.WithTools(p.tool()))
	for i := range 5 {
		g.want(x, payCall(fmt.Sprint("A-", i), 5), settle.StatusCompleted)
		g.want(x, payCall(fmt.Sprint("A-", i), 5), settle.StatusCompleted)
	}
	open, ok := o.metrics()["settle.operations.open"].(metricdata.Sum[int64])
	if !ok || len(open.DataPoints) == 0 {
		t.Fatalf("got %v", open)
	}
	for _, point := range open.DataPoints {
		if point.Value != 0 {
			t.Errorf("%v counts %d", point.Attributes.ToSlice(), point.Value)
		}
	}
	calls, ok := o.metrics()["settle.calls"].(metricdata.Sum[int64])
	if !ok {
		t.Fatal("calls aren't counted")
	}
	count := map[string]int64{}
	for _, point := range calls.DataPoints {
		status, _ := point.Attributes.Value("settle.status")
		replayed, _ := point.Attributes.Value("settle.replayed")
		count[status.AsString()+" "+replayed.String()] += point.Value
	}
	if want := map[string]int64{"completed false": 5, "completed true": 5}; !maps.Equal(count, want) {
		t.Errorf("the calls are %v, want %v", count, want)
	}
}

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
