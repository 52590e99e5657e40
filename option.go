package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/settle-go/settle/internal/canonical"
)

// settings are what options set.
type settings struct {
	tools       []AnyTool
	guarded     []AnyTool
	volatile    bool
	redelivery  time.Duration
	limits      canonical.Limits
	resultLimit int
	concurrency int
	log         *slog.Logger
	telemetry   telemetryOptions
	codec       Codec
	policy      func(context.Context, OperatorAction) error
	outbox      bool
	sinks       []Sink
	delivery    time.Duration // how long a sink has for an event
}

// check says which bounds are below zero.
func (s *settings) check() error {
	var wrong []error
	for _, b := range []struct {
		option string
		value  int64
	}{
		{"WithArgumentLimit", int64(s.limits.Bytes)}, {"WithResultLimit", int64(s.resultLimit)},
		{"WithConcurrency", int64(s.concurrency)}, {"WithRedelivery", int64(s.redelivery)},
	} {
		if b.value < 0 {
			wrong = append(wrong, fmt.Errorf("settle: %s is given less than nothing: leave it out for the default", b.option))
		}
	}
	return errors.Join(wrong...)
}

// Option configures [New].
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithTools registers tools that the executor runs itself.
func WithTools(tools ...AnyTool) Option {
	return optionFunc(func(s *settings) { s.tools = append(s.tools, tools...) })
}

// WithGuarded registers contracts for tools that a framework owns and that run
// through [Around]: a [Tool] without Do. A name that isn't registered at all is
// Unsafe, with whole arguments and no lookup (R1).
func WithGuarded(tools ...AnyTool) Option {
	return optionFunc(func(s *settings) { s.guarded = append(s.guarded, tools...) })
}

// Volatile accepts a ledger that doesn't survive the process. Effects are then
// protected from retries and turns but not from restarts (R26).
func Volatile() Option { return optionFunc(func(s *settings) { s.volatile = true }) }

// WithRedelivery says how long after the first delivery the host may deliver a
// call again: the longest retention of its queues. Contracts must remember
// their operations at least that long (R2). Default: 7 days.
func WithRedelivery(d time.Duration) Option {
	return optionFunc(func(s *settings) { s.redelivery = d })
}

// WithArgumentLimit bounds the arguments of a call, in bytes of JSON; a longer
// one is invalid. Default: 1 MiB.
func WithArgumentLimit(bytes int) Option {
	return optionFunc(func(s *settings) { s.limits.Bytes = bytes })
}

// WithResultLimit bounds the results that are stored, in bytes of JSON. Of a
// larger one the reference is kept instead (R47). Default: 4 MiB.
func WithResultLimit(bytes int) Option {
	return optionFunc(func(s *settings) { s.resultLimit = bytes })
}

// WithConcurrency bounds how many operations of one tool recovery works on at
// once in this process (R36). Default: 4.
func WithConcurrency(n int) Option {
	return optionFunc(func(s *settings) { s.concurrency = n })
}

// WithLogger sets the log. It gets references, states, classes and reasons, and
// the stack of a handler that panics; never arguments, results, keys or names
// from the host (R55). Default: [slog.Default].
func WithLogger(l *slog.Logger) Option { return optionFunc(func(s *settings) { s.log = l }) }
