package settletest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/settle-go/settle"
)

// ErrLost is the error of an attempt whose request or answer was lost. It proves
// nothing, as a reset connection doesn't.
var ErrLost = errors.New("settletest: the connection was lost")

// ErrRefused is the error of an attempt that found no connection.
var ErrRefused = errors.New("settletest: the connection was refused")

// LoseAnswer returns the tool with its first n attempts broken, over all calls:
// they act, and their answer is lost. The outcome is unknown where the contract
// or a lookup doesn't help.
func LoseAnswer[In, Out any](tool settle.Tool[In, Out], n int) settle.Tool[In, Out] {
	return broken(tool, n, func(ctx context.Context, op settle.Op, in In) error {
		_, err := tool.Do(ctx, op, in)
		if err != nil {
			return err
		}
		return ErrLost
	})
}

// LoseRequest returns the tool with its first n attempts broken, over all calls:
// nothing is done, and nobody can know that. The outcome is unknown as with
// [LoseAnswer]; only the far side knows the difference.
func LoseRequest[In, Out any](tool settle.Tool[In, Out], n int) settle.Tool[In, Out] {
	return broken(tool, n, func(context.Context, settle.Op, In) error { return ErrLost })
}

// Refuse returns the tool with its first n attempts refused, over all calls:
// nothing was sent, and that is certain ([settle.NotSent]).
func Refuse[In, Out any](tool settle.Tool[In, Out], n int) settle.Tool[In, Out] {
	return broken(tool, n, func(context.Context, settle.Op, In) error { return settle.NotSent(ErrRefused) })
}

// broken replaces the first n attempts. Each reads its key, as a handler does
// that sends one: otherwise a Keyed tool would count as Unsafe.
func broken[In, Out any](tool settle.Tool[In, Out], n int, attempt func(context.Context, settle.Op, In) error) settle.Tool[In, Out] {
	whole := tool.Do
	var made atomic.Int64
	tool.Do = func(ctx context.Context, op settle.Op, in In) (Out, error) {
		if made.Add(1) > int64(n) {
			return whole(ctx, op, in)
		}
		_ = op.Key()
		var none Out
		return none, attempt(ctx, op, in)
	}
	return tool
}

// Counter counts what a tool did.
type Counter struct{ attempts, effects atomic.Int64 }

// Attempts is how often Do was entered.
func (c *Counter) Attempts() int { return int(c.attempts.Load()) }

// Effects is how often Do returned without an error.
func (c *Counter) Effects() int { return int(c.effects.Load()) }

// Count returns the tool with its attempts and effects counted. Count first and
// break afterwards, so that the counter sees what is lost:
// LoseAnswer(counted, 1).
func Count[In, Out any](tool settle.Tool[In, Out]) (settle.Tool[In, Out], *Counter) {
	whole, c := tool.Do, &Counter{}
	tool.Do = func(ctx context.Context, op settle.Op, in In) (Out, error) {
		c.attempts.Add(1)
		out, err := whole(ctx, op, in)
		if err == nil {
			c.effects.Add(1)
		}
		return out, err
	}
	return tool, c
}
