package settle

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// prepare does all that comes before the ledger is asked for this operation:
// the intent, the identity, today's schema, the host's permission.
func (f *flow) prepare(ctx context.Context) {
	if f.owner != uuid.Nil || f.early != nil {
		return
	}
	f.owner, f.waitUntil = uuid.New(), time.Now().Add(f.patience())
	if ctx.Err() != nil {
		f.end(f.unavailable(errCallerGone))
		return
	}
	intent, err := f.findIntent(ctx)
	if err != nil {
		f.end(f.unavailable(leftBehind(ctx, err)))
		return
	}
	if intent.Version != derivationVersion {
		f.end(f.x.signals.counted(Outcome{Status: StatusUnavailable, Tool: f.tool.name, Reason: reasonNewerVersion,
			Detail: "the intent was begun by another version of settle; upgrade this program"}))
		return
	}
	if err := f.identify(intent); err != nil {
		f.end(f.x.invalid(f.tool, err))
		return
	}
	if !intent.ClosedAt.IsZero() {
		f.end(f.x.signals.counted(f.bare(StatusExpired, "intent_closed")))
		return
	}
	f.invalid = f.validate(f.x)
	f.denied = f.x.authorize(ctx, f.request, "", "attempt") != nil
}

func (f *flow) end(out Outcome) { f.early = &out }

// bare is an outcome of this call without an operation.
func (f *flow) bare(s Status, reason string) Outcome {
	return Outcome{Status: s, Tool: f.tool.name, Reason: reason, repeatable: f.tool.contract.Repeatable}
}

func (f *flow) unavailable(err error) Outcome {
	out := f.bare(StatusUnavailable, "ledger")
	if out.err = err; errors.Is(err, errCallerGone) {
		out.Reason = reasonCallerGone
	}
	if err != errCallerGone { //nolint:errorlint // alone it is no word on the ledger
		f.x.log.Warn("settle: the ledger is unavailable", "tool", f.tool.name, "error", err)
	}
	return f.x.signals.counted(out)
}

// errCallerGone ends a call whose context ended before anything was claimed.
var errCallerGone = errors.New("settle: the caller had gone before anything was begun")

// leftBehind says of an error of the ledger that the caller has gone, where it has.
// It is then known that nothing was written and that nobody waits for more.
func leftBehind(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, errCallerGone) {
		return err
	}
	return &store.UnwrittenError{Err: errors.Join(errCallerGone, err)}
}

// validate decodes the arguments as today's schema wants them. What it finds is
// an answer only where the ledger has no other (R18).
func (f *flow) validate(x *Executor) error {
	s, value, args := f.tool.schema, f.value, f.args
	own, err := f.frameworksSchema(x)
	if s == nil {
		if err != nil {
			f.x.log.Error("settle: a framework's schema can't be used, so that no call of its tool is made; repair the schema, or give the contract one", "tool", f.tool.name, "error", err)
			return &invalidError{unreadable: true, reason: "the framework's schema of this tool can't be used: " + err.Error()}
		}
		s = own
		if f.keeps { // and may require it, as strict modes do
			value, _ = canonical.Parse(f.call.Args, x.settings.limits) // it was read before
			args = value.AppendJSON(nil)
		}
	}
	if s != nil && !s.Fits(value) {
		if err := s.Validate(args); err != nil {
			return invalidArguments(err)
		}
	}
	if f.in, err = f.tool.admitted(f.args); err != nil {
		return invalidArguments(err)
	}
	return nil
}

// frameworksSchema is the schema that came with the call, nil where it isn't
// wanted. It says whether the framework's tool takes the occurrence too.
func (f *flow) frameworksSchema(x *Executor) (*schema.Schema, error) {
	if len(f.call.Schema) == 0 || f.tool.schema != nil && !f.stripped {
		return nil, nil
	}
	s, err := x.schemaOf(f.call.Schema)
	if err == nil && f.stripped {
		_, f.keeps = s.Field(occurrenceParameter)
	}
	return s, err
}

// schemaOf parses a schema that comes with calls, and remembers it.
func (x *Executor) schemaOf(raw []byte) (*schema.Schema, error) {
	if s, ok := x.schemas.get(string(raw)); ok {
		return s, nil
	}
	s, err := schema.ParseForeign(raw)
	if err == nil {
		x.schemas.set(string(raw), s)
	}
	return s, err
}

// findIntent is the intent of the caller's task, or the one that the original of
// a compensation belongs to.
func (f *flow) findIntent(ctx context.Context) (store.Intent, error) {
	if f.original != nil {
		return f.original.Of, nil
	}
	return f.x.intentOf(ctx, f.principal, f.taskName)
}
