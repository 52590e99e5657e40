package settleadk

import (
	"errors"
	"iter"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool/toolutils"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/given"
)

// guardedStream is a streaming tool with the executor before it.
type guardedStream struct {
	streaming
	guard *guard
}

func (t *guardedStream) tellsModel() bool { return true }

// ProcessRequest shows the tool to a model.
func (t *guardedStream) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, t)
}

// RunStream runs the tool through the executor.
func (t *guardedStream) RunStream(ctx agent.Context, args any) iter.Seq2[string, error] {
	return t.guard.stream(ctx, t.streaming, args)
}

// guardedBoth is a tool that can be run either way.
type guardedBoth struct {
	*guarded
	stream streaming
}

// ProcessRequest shows the tool to a model.
func (t *guardedBoth) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, t)
}

// RunStream runs the tool through the executor.
func (t *guardedBoth) RunStream(ctx agent.Context, args any) iter.Seq2[string, error] {
	return t.guard.stream(ctx, t.stream, args)
}

var (
	errClosedEarly = errors.New("settleadk: the stream was closed before its end")
	errNotEnded    = errors.New("settleadk: the stream ended neither with its last chunk nor with an error")
)

// stream claims the call, passes the tool's chunks on, and records their whole
// at the end. What is answered from the record comes as one chunk.
func (g *guard) stream(ctx agent.Context, t streaming, args any) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		call, err := callOf(ctx, t.Name(), t.Declaration(), args)
		if err != nil {
			yield("", err)
			return
		}
		scoped, err := g.scope(ctx)
		if err != nil {
			yield("", err)
			return
		}
		attempt, out, err := g.executor.Begin(scoped, call)
		switch {
		case err != nil:
			yield("", err)
		case attempt == nil:
			yield(chunk(out), nil)
		default:
			g.tee(ctx, attempt, t, given.Members(attempt.Context, call.Args, args), yield)
		}
	}
}

// tee runs a begun attempt. A tool that panics leaves an unknown outcome.
func (g *guard) tee(ctx agent.Context, attempt *settle.Attempt, t streaming, args any, yield func(string, error) bool) {
	defer attempt.End(nil, errNotEnded)
	actions := copyOf(ctx.Actions())
	var whole strings.Builder
	var failed error
	for piece, err := range t.RunStream(within(ctx, attempt.Context, t.Name(), actions), args) {
		if err != nil {
			failed = err
			break
		}
		whole.WriteString(piece)
		if !yield(piece, nil) {
			attempt.End(nil, errClosedEarly)
			return
		}
	}
	*ctx.Actions() = *actions
	known := controlFlow(ctx, nil, failed, actions)
	out := attempt.End(whole.String(), known)
	switch {
	case known == nil && out.Status == settle.StatusCompleted:
	case known == failed: //nolint:errorlint // whether it was marked
		yield(chunk(out), nil)
	case failed != nil:
		yield("", failed)
	}
}

// chunk is an outcome as one piece of a stream: for a replay the words of the
// tool, behind a line that says so.
func chunk(out settle.Outcome) string {
	said, err := settle.Decode[string](out)
	if err != nil {
		return out.ForModel()
	}
	out.Result = nil // it follows
	return out.ForModel() + "\n" + said
}
