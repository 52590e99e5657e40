package settleeino

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
)

// stream runs a call whose result comes in chunks. A replay, and whatever else
// isn't a first run, is one chunk.
func stream[T any](ctx context.Context, g *guard, in form[T], input *compose.ToolInput, run func(context.Context, *compose.ToolInput) (*schema.StreamReader[T], error)) (*schema.StreamReader[T], error) {
	if g.tools[input.Name].passes {
		return run(ctx, input)
	}
	under, call, err := g.begin(ctx, input)
	if err != nil {
		return nil, err
	}
	attempt, out, err := g.executor.Begin(under, call)
	if err != nil {
		return nil, err
	}
	if attempt != nil {
		source, err := start(attempt, input, run)
		if err == nil {
			return pass(in, attempt, source), nil
		}
		out = attempt.End(nil, controlFlow(err))
		if _, ok := compose.IsInterruptRerunError(err); ok {
			return nil, err
		}
	}
	if err := g.settings.parked(ctx, out); err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]T{in.answer(in.recorded(out), out)}), nil
}

// start lets the tool begin. A panic of it is an unknown outcome (R27).
func start[T any](attempt *settle.Attempt, input *compose.ToolInput, run func(context.Context, *compose.ToolInput) (*schema.StreamReader[T], error)) (source *schema.StreamReader[T], err error) {
	defer recovered(&err)
	return run(attempt.Context, given(attempt.Context, input))
}

// pass hands the chunks on and records the result at their end, before the
// reader learns of it. A reader that leaves early doesn't end the tool: the
// stream is read to its end all the same, as the attempt of a caller who has
// gone is (R24). The goroutine ends with the tool's stream.
func pass[T any](in form[T], attempt *settle.Attempt, source *schema.StreamReader[T]) *schema.StreamReader[T] {
	reader, writer := schema.Pipe[T](16)
	go func() {
		defer writer.Close()
		defer source.Close()
		chunks, err := drain(source, writer)
		out := end(in, attempt, chunks, err)
		var none T
		switch {
		case endsTheRun(err):
			writer.Send(none, err)
			return
		case err == nil && out.Status == settle.StatusCompleted:
			return
		}
		// An error in a stream ends the agent as one beside it would. Without one,
		// what the chunks say isn't what the ledger has: their transaction was
		// rolled back, for one (R53).
		said := out.ForModel()
		if len(chunks) > 0 {
			said = "\n" + said
		}
		writer.Send(in.says(said), nil)
	}()
	return reader
}

func end[T any](in form[T], attempt *settle.Attempt, chunks []T, err error) settle.Outcome {
	if err != nil {
		return attempt.End(nil, controlFlow(err))
	}
	return attempt.End(in.whole(chunks), nil)
}

// drain reads a stream to its end, and hands on what it reads for as long as
// somebody listens.
func drain[T any](source *schema.StreamReader[T], writer *schema.StreamWriter[T]) (chunks []T, err error) {
	defer recovered(&err)
	for left := false; ; {
		chunk, err := source.Recv()
		if errors.Is(err, io.EOF) {
			return chunks, nil
		}
		if err != nil {
			return chunks, err
		}
		chunks = append(chunks, chunk)
		left = left || writer.Send(chunk, nil)
	}
}

// endsTheRun says of an error that it is eino's own control flow: an interrupt,
// or a run that was cancelled at once.
func endsTheRun(err error) bool {
	_, interrupts := compose.IsInterruptRerunError(err)
	return interrupts || errors.As(err, new(*adk.StreamCanceledError))
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("settleeino: the tool's stream panicked (%T)", p)
	}
}
