package settle_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/settle-go/settle"
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
		class, _ := point.Attributes.Value("settle.class")
		count[class.AsString()+" "+status.AsString()+" "+replayed.String()] += point.Value
	}
	if want := map[string]int64{"keyed completed false": 5, "keyed completed true": 5}; !maps.Equal(count, want) {
		t.Errorf("the calls are %v, want %v", count, want)
	}
}
