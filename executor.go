package settle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// Executor runs tool calls to a known outcome. It is safe for concurrent use;
// one per process is enough. Its memory doesn't grow with the operations run.
type Executor struct {
	ledger store.Ledger
	// watched is the ledger as the host gave it, for what it offers beside.
	watched  store.Ledger
	tools    map[string]*binding
	byKey    map[string]*binding // by the name that operations are keyed by
	order    []*binding
	settings settings
	log      *slog.Logger
	signals  *signals

	// run is this process incarnation (R30).
	run uuid.UUID

	intents *bounded[intentName, knownIntent]
	// seen are slots that were claimed or met here: a hint that the row exists.
	seen *bounded[store.Digest, struct{}]
	// known are tools whose identity definition was accepted in an intent here.
	known *bounded[knownTool, store.Digest]
	// told are completed operations that this process told its callers of (R30).
	told    *bounded[uuid.UUID, struct{}]
	schemas *bounded[string, *schema.Schema]

	mu     sync.Mutex
	closed bool
	live   map[uuid.UUID]*job
	// work counts what has to end before Shutdown returns.
	work    sync.WaitGroup
	closing chan struct{}
	// announced has an element while the outbox may have something new from here.
	announced chan struct{}
	offers    *offers
	renewer   renewer
	crew      *crew
	lanes     *lanes
}

// intentName is what names an intent (R7).
type intentName struct {
	principal Principal
	task      Task
}

// knownIntent is an intent's row and when it was read. It is read again in time
// to see that somebody closed it (R52).
type knownIntent struct {
	store.Intent
	read time.Time
}

// rereadIntent is well within the time for which a closed intent keeps what
// stands in the way of a claim.
const rereadIntent = store.ClosedGrace / 24

type knownTool struct {
	intent uuid.UUID
	tool   string
}

// The bounds of an executor's memory, in entries.
const (
	rememberIntents = 4096
	rememberSlots   = 1 << 15
	rememberTools   = 1 << 14
	rememberTold    = 1 << 14
	rememberSchemas = 1024
)

// New builds an executor on a ledger. The error joins everything that is wrong
// with the tools' contracts (R2), each as a [*ToolError].
func New(ledger store.Ledger, options ...Option) (*Executor, error) {
	if isNil(ledger) {
		return nil, errors.New("settle: New needs a ledger: sqlite.Open, postgres.New or memory.New make one")
	}
	s := settings{redelivery: 7 * 24 * time.Hour, resultLimit: 4 << 20, concurrency: 4, delivery: deliveryTimeout}
	for i, o := range options {
		if o == nil {
			return nil, fmt.Errorf("settle: option %d of New is nil: leave it out", i+1)
		}
		o.apply(&s)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	x := &Executor{
		ledger: ledger, watched: ledger, settings: s, log: s.log, run: uuid.New(),
		tools: map[string]*binding{}, byKey: map[string]*binding{},
		intents: newBounded[intentName, knownIntent](rememberIntents),
		seen:    newBounded[store.Digest, struct{}](rememberSlots),
		known:   newBounded[knownTool, store.Digest](rememberTools),
		told:    newBounded[uuid.UUID, struct{}](rememberTold),
		schemas: newBounded[string, *schema.Schema](rememberSchemas),
		live:    map[uuid.UUID]*job{}, closing: make(chan struct{}), announced: make(chan struct{}, 1),
	}
	if _, ok := ledger.(store.Outbox); s.outbox && !ok {
		return nil, fmt.Errorf("settle: WithOutbox: a ledger %q has no outbox (R54)", ledger.Info().Name)
	}
	if s.codec != nil {
		x.ledger = sealedLedger{Ledger: ledger, codec: s.codec}
	}
	if x.log == nil {
		x.log = slog.Default()
	}
	x.renewer.executor, x.crew, x.lanes = x, newCrew(x.closing), newLanes(s.concurrency)
	x.offers = newOffers()
	var err error
	if x.signals, err = newSignals(s.telemetry, ledger.Info().Name); err != nil {
		return nil, err
	}
	if err := errors.Join(x.register(s.tools, true), x.register(s.guarded, false)); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *Executor) register(tools []AnyTool, own bool) error {
	var problems []error
	for _, t := range tools {
		b, err := bind(t, x.settings.redelivery)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, x.add(b, own))
	}
	return errors.Join(problems...)
}

func (x *Executor) add(b *binding, own bool) error {
	if own && !b.hasDo {
		return &ToolError{b.name, errors.New("it has no Do: give it one, or register it with WithGuarded if a framework runs it")}
	}
	if !own && b.hasDo {
		return &ToolError{b.name, errors.New("it has a Do of its own: register it with WithTools, or leave Do out if a framework runs it")}
	}
	if b.contract.hasEffects() && !x.ledger.Info().Durable && !x.settings.volatile {
		return &ToolError{b.name, fmt.Errorf("it has side effects and a ledger %q doesn't survive the process: open a durable one, or accept that with settle.Volatile (R26)", x.ledger.Info().Name)}
	}
	if _, ok := x.watched.(store.Transactor); b.contract.Class == Transactional && !ok {
		return &ToolError{b.name, fmt.Errorf("it is transactional and a ledger %q has no transactions to share: use store/postgres or store/sqlite (R53)", x.ledger.Info().Name)}
	}
	for _, name := range append([]string{b.name}, b.formerly...) {
		if _, taken := x.tools[name]; taken {
			return &ToolError{b.name, fmt.Errorf("another tool has or had the name %q", name)}
		}
	}
	for _, name := range append([]string{b.name}, b.formerly...) {
		x.tools[name] = b
	}
	x.index(b)
	x.order = append(x.order, b)
	for _, step := range b.steps {
		if err := x.addStep(step); err != nil {
			return err
		}
	}
	return nil
}

// addStep registers a composite's step for recovery; it isn't offered to the model.
func (x *Executor) addStep(step *binding) error {
	known, ok := x.byKey[step.identity]
	if ok && known.digest != step.digest {
		return &ToolError{step.name, errors.New("another tool has the name, with another identity definition")}
	}
	if known == nil {
		x.index(step)
	}
	return nil
}

// index makes a tool and its compensation known by the name that operations are
// keyed by.
func (x *Executor) index(b *binding) {
	b.sealed, b.resultLimit = x.settings.codec != nil, x.settings.resultLimit
	x.byKey[b.identity] = b
	x.signals.classes[b.name] = b.contract.Class
	if b.undo != nil {
		x.index(b.undo)
	}
}

// Declaration is a tool as a model is shown it.
type Declaration struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments.
	Schema json.RawMessage
	// Strict says that the schema may be sent to a provider's strict mode.
	Strict bool
	Class  Class
	// Guarded says that a framework runs the tool ([WithGuarded]): Execute doesn't.
	Guarded bool
}

// Tools returns what the model is shown, in the order of registration.
func (x *Executor) Tools() []Declaration {
	var all []Declaration
	for _, b := range x.order {
		d := Declaration{Name: b.name, Description: b.description, Class: b.contract.Class, Guarded: !b.hasDo}
		if b.schema != nil {
			d.Schema, d.Strict = slices.Clone(b.offered), b.schema.Strict
		}
		all = append(all, d)
	}
	return all
}

// Execute runs one tool call to an outcome, or says why it can't. It returns an
// error only for mistakes of the host: [ErrNoPrincipal], [ErrNoTask], a
// [*NameError], [ErrShutdown]. Nothing was done then. Everything else, from an
// unknown tool to a ledger that is down, is an outcome.
func (x *Executor) Execute(ctx context.Context, call Call) (Outcome, error) {
	outs, err := x.execute(ctx, []Call{call}, nil)
	if err != nil {
		return Outcome{}, err
	}
	return outs[0], nil
}

// ExecuteAll runs the parallel calls of one model turn. Their claims go to the
// ledger together, in one round trip and one commit; the calls then run at the
// same time. Calls of one turn don't hold one another (R30). The outcomes are in
// the order of the calls.
func (x *Executor) ExecuteAll(ctx context.Context, calls ...Call) ([]Outcome, error) {
	return x.execute(ctx, calls, nil)
}

// guard is what runs in place of a tool's own Do; once says that it can't be
// entered again within the call.
type guard struct {
	run  runner
	once bool
}

// execute is the one way in. around, if given, comes with a single call.
func (x *Executor) execute(ctx context.Context, calls []Call, around *guard) ([]Outcome, error) {
	p, t, err := scope(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.enter(); err != nil {
		return nil, err
	}
	defer x.work.Done()
	outs := make([]Outcome, len(calls))
	requests := make([]*request, len(calls))
	batch := uuid.Nil
	if len(calls) > 1 {
		batch = uuid.New()
	}
	for i, call := range calls {
		if requests[i], outs[i] = x.newCall(call, p, t, around); requests[i] != nil {
			requests[i].batch = batch
		}
	}
	x.runAll(ctx, requests, outs)
	return outs, nil
}

// runner is what runs an attempt.
type runner func(ctx context.Context, op Op, in any) (any, error)

// newCall finds the tool and reads the arguments. A nil request comes with the
// outcome that ends the call.
func (x *Executor) newCall(call Call, p Principal, t Task, around *guard) (*request, Outcome) {
	tool, ok := x.tools[call.Tool]
	switch {
	case !ok && around == nil, ok && around == nil && !tool.hasDo:
		return nil, x.noSuchTool(call.Tool)
	case !ok:
		var err error
		if tool, err = undeclared(call.Tool, x.settings.redelivery); err != nil {
			return nil, x.noSuchTool("")
		}
	}
	r, err := newRequest(tool, call, p, t, x.settings.limits)
	if err != nil {
		return nil, x.invalid(tool, err)
	}
	r.run = tool.do
	if around != nil {
		r.run, r.once = around.run, around.once
		// The tool may still read them when the caller, who has gone, uses its buffer
		// for something else (R24).
		r.call.Args = bytes.Clone(r.call.Args)
	}
	return r, Outcome{}
}

// runAll runs requests side by side, with their claims made together.
func (x *Executor) runAll(ctx context.Context, requests []*request, outs []Outcome) {
	flows := make([]*flow, 0, len(requests))
	for i, r := range requests {
		if r != nil {
			flows = append(flows, &flow{x: x, request: r, index: i})
		}
	}
	if len(flows) == 1 {
		f := flows[0]
		outs[f.index] = f.go1(ctx)
		return
	}
	x.claimTogether(ctx, flows)
	var group sync.WaitGroup
	var started []*flow // which are only waited for
	for _, f := range flows {
		if f.job != nil {
			started = append(started, f)
			continue
		}
		group.Add(1)
		x.crew.run(func() {
			defer group.Done()
			defer func() {
				if outs[f.index].Status == "" {
					outs[f.index] = x.gone(f.tool.name)
				}
			}()
			outs[f.index] = f.go1(ctx)
		})
	}
	for _, f := range started {
		outs[f.index] = f.go1(ctx)
	}
	group.Wait()
}

// enter counts a call in, unless the executor is shut down.
func (x *Executor) enter() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrShutdown
	}
	x.work.Add(1)
	return nil
}

// Shutdown takes no new calls and waits until what runs has ended and is
// recorded, or until the context ends: what then still runs keeps its lease and
// moment in the ledger, and another process settles it (R37, R38). A ledger that
// can't be reached is tried for as long. It stays open; it is the host's.
func (x *Executor) Shutdown(ctx context.Context) error {
	x.mu.Lock()
	if !x.closed {
		x.closed = true
		close(x.closing)
	}
	x.mu.Unlock()
	done := make(chan struct{})
	go func() { x.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("settle: shutdown: attempts are still at work, or aren't recorded yet; their operations keep their leases and are settled by recovery: %w", ctx.Err())
	}
}

func (x *Executor) noSuchTool(name string) Outcome {
	return x.signals.counted(Outcome{Status: StatusNoSuchTool, Tool: name})
}

// gone ends a call whose goroutine a function of the host's has ended. Only what
// reads the arguments runs there, which is before anything is claimed.
func (x *Executor) gone(tool string) Outcome {
	return x.invalid(&binding{name: tool}, &invalidError{reason: unreadableArguments, cause: errGone})
}

// unreadableArguments is all that a model can do something about where a decoder failed.
const unreadableArguments = "the tool can't read them"

func (x *Executor) invalid(tool *binding, err error) Outcome {
	if misbehaved(err) {
		x.log.Error("settle: a function of the host's panicked or didn't return while it read arguments, which counts as invalid ones", "tool", tool.name)
	}
	out := Outcome{Status: StatusInvalidArguments, Tool: tool.name, Detail: err.Error()}
	var invalid *invalidError
	if errors.As(err, &invalid) {
		if out.Fields = invalid.fields; invalid.unreadable {
			out.Reason = reasonSchema
		}
	}
	return x.signals.counted(out)
}
