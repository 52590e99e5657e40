package settle

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/settle-go/settle/store"
)

// scopeName names the library in traces and metrics.
const scopeName = "github.com/settle-go/settle"

// telemetryOptions are what the host sets.
type telemetryOptions struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	// joined says that the framework opens its own execute_tool spans.
	joined bool
}

// WithTracerProvider sets where spans go. Default: the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(s *settings) { s.telemetry.tracers = p })
}

// WithMeterProvider sets where metrics go. Default: the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(s *settings) { s.telemetry.meters = p })
}

// WithJoinedSpans says that the framework opens an execute_tool span around
// each call itself: settle's attributes go onto that one instead of a second.
func WithJoinedSpans() Option { return optionFunc(func(s *settings) { s.telemetry.joined = true }) }

// signals is the one place that knows the names of spans, attributes and
// metrics. None of them holds an argument, a result, a key, a digest or a name
// from the host (R55).
type signals struct {
	tracer trace.Tracer
	joined bool
	ledger attribute.KeyValue
	// classes are those of the executor's tools, by name; fixed once it is built.
	classes map[string]Class

	duration, ledgerDuration           metric.Float64Histogram
	caseAge, eventAge                  metric.Float64Histogram
	calls, lookups, leases             metric.Int64Counter
	repeats, duplicates, compensations metric.Int64Counter
	open                               metric.Int64UpDownCounter
}

// newSignals makes the instruments. Errors of the meter are the host's
// misconfiguration.
func newSignals(o telemetryOptions, ledger string) (*signals, error) {
	if o.tracers == nil {
		o.tracers = otel.GetTracerProvider()
	}
	if o.meters == nil {
		o.meters = otel.GetMeterProvider()
	}
	m := o.meters.Meter(scopeName)
	s := &signals{tracer: o.tracers.Tracer(scopeName), joined: o.joined, ledger: attribute.String("settle.ledger", ledger), classes: map[string]Class{}}
	var err error
	counter := func(name, description string) metric.Int64Counter {
		c, e := m.Int64Counter(name, metric.WithDescription(description))
		if e != nil {
			err = e
		}
		return c
	}
	histogram := func(name, description string) metric.Float64Histogram {
		h, e := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description))
		if e != nil {
			err = e
		}
		return h
	}
	s.duration = histogram("gen_ai.execute_tool.duration", "Duration of tool executions")
	s.ledgerDuration = histogram("settle.ledger.duration", "Duration of ledger calls")
	s.caseAge = histogram("settle.case.age", "Age of cases when they were decided")
	s.eventAge = histogram("settle.event.age", "Age of events when they were offered to the sinks, by what became of it")
	s.calls = counter("settle.calls", "Calls by outcome")
	s.lookups = counter("settle.lookups", "Lookups by verdict")
	s.leases = counter("settle.lease.expired", "Leases that ended without a word of the attempt")
	s.repeats = counter("settle.repeats.possible", "Replays to another call id than the first execution's")
	s.compensations = counter("settle.compensations", "Compensations by outcome")
	s.duplicates = counter("settle.duplicates.accepted", "Retries that AcceptDuplicates allowed")
	open, e := m.Int64UpDownCounter("settle.operations.open", metric.WithDescription("Unsettled operations, as moved by this process"))
	if e != nil {
		err = e
	}
	s.open = open
	return s, err
}

func toolAttribute(name string) attribute.KeyValue { return attribute.String("gen_ai.tool.name", name) }

// adder is a counter that goes up, or up and down.
type adder interface {
	Enabled(ctx context.Context) bool
	Add(ctx context.Context, n int64, options ...metric.AddOption)
}

// add counts. A set of attributes costs more than what it describes, so it is
// only made where somebody reads it; record and note do the same.
func add(ctx context.Context, c adder, n int64, attributes ...attribute.KeyValue) {
	if c.Enabled(ctx) {
		c.Add(ctx, n, metric.WithAttributes(append([]attribute.KeyValue(nil), attributes...)...))
	}
}

// record measures a time.
func record(ctx context.Context, h metric.Float64Histogram, d time.Duration, attributes ...attribute.KeyValue) {
	if h.Enabled(ctx) {
		h.Record(ctx, d.Seconds(), metric.WithAttributes(append([]attribute.KeyValue(nil), attributes...)...))
	}
}

// note adds attributes to a span.
func note(span trace.Span, attributes ...attribute.KeyValue) {
	if span.IsRecording() {
		span.SetAttributes(append([]attribute.KeyValue(nil), attributes...)...)
	}
}

// spanStart is how the span of each call of a tool begins.
type spanStart struct {
	name    string
	options []trace.SpanStartOption
}

func newSpanStart(tool string, class Class) spanStart {
	return spanStart{"execute_tool " + tool, []trace.SpanStartOption{
		trace.WithAttributes(toolAttribute(tool), attribute.String("settle.class", class.String())), trace.WithSpanKind(trace.SpanKindInternal)}}
}

// callSpan is the span of one call. It is opened before the claim, so that the
// ledger has its ids from the first attempt on (R58), and named by what became
// of the call: execute_tool where something was dispatched, settle.replay where
// the record answered, settle.call for everything else.
type callSpan struct {
	s     *signals
	ctx   context.Context
	span  trace.Span
	tool  string
	began time.Time
	// own says that it isn't the framework's, which names and ends its own.
	own bool
	// dispatched and replayed say what became of the call; a dispatched one is
	// ended by its job.
	dispatched, replayed bool
}

// call opens the span of a call, or joins the framework's.
func (s *signals) call(ctx context.Context, b *binding) *callSpan {
	c := &callSpan{s: s, tool: b.name, began: time.Now()}
	if current := trace.SpanFromContext(ctx); s.joined && current.SpanContext().IsValid() {
		note(current, attribute.String("settle.class", b.contract.Class.String()))
		c.ctx, c.span = ctx, current
		return c
	}
	c.own = true
	c.ctx, c.span = s.tracer.Start(ctx, b.span.name, b.span.options...)
	return c
}

// dispatch makes the span that of an execution; end has to follow.
func (c *callSpan) dispatch(j *job) {
	c.dispatched = true
	if !c.span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{attribute.String("gen_ai.tool.type", "function"), attribute.String("settle.operation", j.row.ID.String())}
	if c.own {
		attributes = append(attributes, attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	if id := j.r.call.CallID; id != "" {
		attributes = append(attributes, attribute.String("gen_ai.tool.call.id", id))
	}
	c.span.SetAttributes(attributes...)
}

// end ends the span of an execution.
func (c *callSpan) end(out Outcome) {
	took := time.Since(c.began)
	tool, function := toolAttribute(c.tool), attribute.String("gen_ai.tool.type", "function")
	if kind := c.outcome(out); kind != "" {
		record(c.ctx, c.s.duration, took, tool, function, attribute.String("error.type", kind))
	} else {
		record(c.ctx, c.s.duration, took, tool, function)
	}
	if out.Status == StatusManual {
		c.span.AddEvent("settle.parked")
	}
	if c.own {
		c.span.End()
	}
}

// outcome writes an outcome onto the span and returns its error.type.
func (c *callSpan) outcome(out Outcome) string {
	note(c.span, attribute.String("settle.status", string(out.Status)))
	kind := errorType(out)
	if kind != "" {
		note(c.span, attribute.String("error.type", kind))
		if c.own {
			c.span.SetStatus(codes.Error, kind)
		}
	}
	return kind
}

// answered ends the span of a call for which nothing was dispatched.
func (c *callSpan) answered(out Outcome) {
	if c.dispatched || !c.own {
		return
	}
	if !c.replayed {
		c.span.SetName("settle.call " + c.tool)
		c.outcome(out)
	}
	c.span.End()
}

// errorType maps an outcome to the vocabulary of error.type.
func errorType(out Outcome) string {
	switch out.Status {
	case StatusCompleted, StatusSuperseded, StatusInProgress:
		return ""
	case StatusUnknown, StatusManual, StatusAbandoned:
		return "outcome_unknown"
	case StatusConflict:
		return "conflict"
	case StatusAwaitingApproval:
		return "approval_required"
	case StatusDenied:
		return "denied"
	case StatusFailed:
		return "rejected"
	case StatusInvalidArguments:
		return "invalid_arguments"
	case StatusUnavailable:
		if out.Reason != reasonCallerGone {
			return "ledger_unavailable"
		}
	}
	if out.Reason == reasonThrottled {
		return "throttled"
	}
	return "_OTHER"
}

// attemptSpan is the child span of one attempt.
type attemptSpan struct{ span trace.Span }

// attempt opens it. Without a trace there is no SDK, and nothing to open.
func (s *signals) attempt(ctx context.Context, j *job) (context.Context, attemptSpan) {
	if !j.span.span.SpanContext().IsValid() {
		return ctx, attemptSpan{noop.Span{}}
	}
	ctx, span := s.tracer.Start(ctx, "settle.attempt")
	if span.IsRecording() {
		note(span, attribute.Int("settle.attempt.number", j.row.Attempt), attribute.String("settle.operation", j.row.ID.String()))
	}
	return ctx, attemptSpan{span}
}

func (a attemptSpan) end(end ending) {
	note(a.span, attribute.String("settle.attempt.effect", end.effect.String()))
	if end.effect != effectHappened {
		kind := "outcome_unknown"
		switch {
		case end.effect == effectRejected:
			kind = "rejected"
		case end.atWork:
			kind = "timeout"
		case end.wait > 0:
			kind = "throttled"
		case end.effect == effectNotSent, end.effect == effectInterrupted:
			kind = "_OTHER"
		}
		note(a.span, attribute.String("error.type", kind))
	}
	a.span.End()
}

// lookupSpan is the span of one lookup.
type lookupSpan struct {
	s    *signals
	ctx  context.Context
	span trace.Span
	tool string
}

func (s *signals) lookup(ctx context.Context, b *binding, row store.Operation) (context.Context, lookupSpan) {
	ctx, span := s.tracer.Start(ctx, "settle.lookup "+b.name, trace.WithAttributes(toolAttribute(b.name),
		attribute.String("settle.operation", row.ID.String()), attribute.String("settle.class", row.Class.String())))
	return ctx, lookupSpan{s, ctx, span, b.name}
}

func (l lookupSpan) end(verdict string) {
	note(l.span, attribute.String("settle.verdict", verdict))
	add(l.ctx, l.s.lookups, 1, toolAttribute(l.tool), attribute.String("settle.verdict", verdict))
	l.span.End()
}

// replayed reports an answer from the record: a span linked to that of the first
// execution, and no execute_tool.
func (s *signals) replayed(ctx context.Context, r *request, row store.Operation, out Outcome) Outcome {
	span, opened := trace.Span(nil), r.span != nil && r.span.own
	if opened {
		span, r.span.replayed = r.span.span, true
		span.SetName("settle.replay " + r.tool.name)
	} else {
		_, span = s.tracer.Start(ctx, "settle.replay "+r.tool.name, trace.WithAttributes(toolAttribute(r.tool.name)))
		defer span.End()
	}
	note(span, attribute.String("settle.operation", out.Operation), attribute.String("settle.class", row.Class.String()),
		attribute.String("settle.status", string(out.Status)), attribute.Bool("settle.replayed", out.Replayed))
	if link, ok := spanLink(row.Trace); ok {
		span.AddLink(link)
	}
	if out.PossibleRepeat {
		add(ctx, s.repeats, 1, toolAttribute(r.tool.name))
	}
	return s.counted(out)
}

// counted counts a call by its outcome. The class of a name that isn't declared is
// the zero one, Unsafe (R1).
func (s *signals) counted(out Outcome) Outcome {
	add(context.Background(), s.calls, 1, toolAttribute(knownOnly(out)), attribute.String("settle.class", s.classes[out.Tool].String()),
		attribute.String("settle.status", string(out.Status)), attribute.Bool("settle.replayed", out.Replayed))
	return out
}

// knownOnly keeps a model's invented names out of the metrics.
func knownOnly(out Outcome) string {
	if out.Status == StatusNoSuchTool {
		return "unknown"
	}
	return out.Tool
}

func (s *signals) duplicate(b *binding) {
	add(context.Background(), s.duplicates, 1, toolAttribute(b.name))
}

func (s *signals) expired(row store.Operation) {
	add(context.Background(), s.leases, 1, toolAttribute(row.Tool))
}

// opened counts an operation that this process recorded.
func (s *signals) opened(tool string, state store.State) { s.stands(tool, state, 1) }

func (s *signals) stands(tool string, state store.State, n int64) {
	if !state.Settled() {
		add(context.Background(), s.open, n, toolAttribute(tool), attribute.String("settle.state", state.String()))
	}
}

// moved keeps the count of open operations by state.
func (s *signals) moved(tool string, from, to store.State) {
	if from != to {
		s.stands(tool, from, -1)
		s.stands(tool, to, 1)
	}
}

// decided opens a root span for a person's decision, linked to the operation's.
func (s *signals) decided(ctx context.Context, c *opened, d Decision) {
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(toolAttribute(c.entry.Tool),
		attribute.String("settle.operation", d.Operation), attribute.String("settle.decision", string(d.Kind)))}
	if link, ok := spanLink(c.entry.Trace); ok {
		options = append(options, trace.WithLinks(link))
	}
	_, span := s.tracer.Start(ctx, "settle.decide "+c.entry.Tool, options...)
	span.End()
	s.caseAge.Record(ctx, c.entry.Read.Sub(c.file.OpenedAt).Seconds(), metric.WithAttributes(toolAttribute(c.entry.Tool),
		attribute.String("settle.reason", c.file.Reason), attribute.String("settle.decision", string(d.Kind))))
}

// delivery measures how old an event was when it was fetched to be delivered: by
// the ledger's clock alone, from which its lease was counted.
func (s *signals) delivery(ctx context.Context, o *store.Outgoing, outcome string) {
	record(ctx, s.eventAge, max(0, o.DueAt.Add(-relayLease).Sub(o.At)), attribute.String("settle.delivery", outcome))
}

// compensated counts a compensation by its outcome.
func (s *signals) compensated(b *binding, out Outcome) {
	s.compensations.Add(context.Background(), 1, metric.WithAttributes(toolAttribute(b.name), attribute.String("settle.status", string(out.Status))))
}

// spanContext packs the ids of the current span for the ledger.
func spanContext(ctx context.Context) []byte {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	traceID, spanID := sc.TraceID(), sc.SpanID()
	return append(append(traceID[:], spanID[:]...), byte(sc.TraceFlags()))
}

// spanLink is the inverse of spanContext.
func spanLink(packed []byte) (trace.Link, bool) {
	if len(packed) != 25 {
		return trace.Link{}, false
	}
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(packed[24]), Remote: true}
	copy(c.TraceID[:], packed[:16])
	copy(c.SpanID[:], packed[16:24])
	sc := trace.NewSpanContext(c)
	return trace.Link{SpanContext: sc}, sc.IsValid()
}
