package settleeino_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

// feed is a streaming tool whose chunks the test sends.
func (w *world) feed() (tool.BaseTool, *schema.StreamWriter[string]) {
	reader, writer := schema.Pipe[string](8)
	return must(w)(utils.InferStreamTool("book", "Book a seat.", func(context.Context, bookArgs) (*schema.StreamReader[string], error) {
		w.act("book")
		return reader, nil
	})), writer
}

var oneBooking = schema.AssistantMessage("", []schema.ToolCall{call("1", "book", `{"seat":1}`)})

func (w *world) open(n *compose.ToolsNode) *schema.StreamReader[[]*schema.Message] {
	w.Helper()
	chunks, err := n.Stream(w.ctx, oneBooking)
	if err != nil {
		w.Fatal(err)
	}
	return chunks
}

// The chunks arrive as they come, and the end only when it is recorded.
func TestAStreamIsPassedOnAndRecordedAtItsEnd(t *testing.T) {
	w := newWorld(t)
	seats, writer := w.feed()
	chunks := w.open(w.node(w.guard(w.start(), []tool.BaseTool{seats})))
	for _, want := range []string{"boo", "ked"} {
		writer.Send(want, nil)
		if chunk, err := chunks.Recv(); err != nil || chunk[0].Content != want {
			t.Fatalf("got %v, %v", chunk, err)
		}
		if state := w.rows()[0].State; state != store.Running {
			t.Errorf("the operation is %v before the stream's end", state)
		}
	}
	writer.Close()
	if _, err := chunks.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
	if state := w.rows()[0].State; state != store.Completed {
		t.Errorf("the operation is %v after the stream's end", state)
	}
}

// R24: a reader who leaves is a caller who has gone.
func TestR24AStreamThatNobodyReadsAnyMoreGoesOnToItsEnd(t *testing.T) {
	w := newWorld(t)
	seats, writer := w.feed()
	n := w.node(w.guard(w.start(), []tool.BaseTool{seats}))
	chunks := w.open(n)
	writer.Send("boo", nil)
	if _, err := chunks.Recv(); err != nil {
		t.Fatal(err)
	}
	chunks.Close()
	for range 100 { // more than any buffer on the way
		writer.Send("o", nil)
	}
	writer.Send("ked", nil)
	writer.Close()
	if got := w.say(n, oneBooking.ToolCalls...)[0]; !strings.HasPrefix(got, "[completed, replayed;") || !strings.Contains(got, "ooked") {
		t.Errorf("got %q", got)
	}
	w.wantActs(map[string]int{"book": 1})
}

func TestAStreamThatBreaksIsUnknownAndEndsNothing(t *testing.T) {
	w := newWorld(t)
	seats, writer := w.feed()
	n := w.node(w.guard(w.start(), []tool.BaseTool{seats}))
	writer.Send("boo", nil)
	writer.Send("", errors.New("connection reset"))
	writer.Close()
	if got := w.stream(n, oneBooking.ToolCalls...)[0]; !strings.HasPrefix(got, "boo\n[unknown;") {
		t.Errorf("got %q", got)
	}
	if state := w.rows()[0].State; state != store.Unknown && state != store.Manual {
		t.Errorf("the operation is %v", state)
	}
}

// What a tool said stands only with the record of it: the model is told where it doesn't.
func TestR53AStreamWhoseTransactionIsRolledBackIsToldSo(t *testing.T) {
	w := newWorld(t)
	ledger, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	w.ledger = ledger
	book := must(w)(utils.InferStreamTool("book", "Book a seat.", func(ctx context.Context, _ bookArgs) (*schema.StreamReader[string], error) {
		tx, _ := sqlite.Tx(ctx)
		_, err := tx.ExecContext(ctx, "ROLLBACK") // as a constraint does that is checked at the commit
		return schema.StreamReaderFromArray([]string{"booked"}), err
	}))
	x := w.start(settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{
		Class: settle.Transactional, Identity: []string{"seat"}}}))
	if got := w.stream(w.node(w.guard(x, []tool.BaseTool{book})), oneBooking.ToolCalls...)[0]; !strings.HasPrefix(got, "booked\n[not_done") {
		t.Errorf("got %q", got)
	}
	if err := x.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStreamThatIsRejectedHadNoEffect(t *testing.T) {
	w := newWorld(t)
	seats, writer := w.feed()
	n := w.node(w.guard(w.start(), []tool.BaseTool{seats}))
	writer.Send("", settle.Rejected(errors.New("sold out")))
	writer.Close()
	if got := w.stream(n, oneBooking.ToolCalls...)[0]; !strings.HasPrefix(got, "[failed;") {
		t.Errorf("got %q", got)
	}
}

func TestR27AStreamThatPanicsIsUnknown(t *testing.T) {
	w := newWorld(t)
	seats := must(w)(utils.InferStreamTool("book", "", func(context.Context, bookArgs) (*schema.StreamReader[string], error) {
		return schema.StreamReaderWithConvert(schema.StreamReaderFromArray([]string{"x"}), func(string) (string, error) { panic("seat map") }), nil
	}))
	if got := w.stream(w.node(w.guard(w.start(), []tool.BaseTool{seats})), oneBooking.ToolCalls...)[0]; !strings.HasPrefix(got, "[unknown;") {
		t.Errorf("got %q", got)
	}
}

// An interrupt in the middle of a stream stays one where eino reads it whole.
func TestAnInterruptInAStreamPassesThrough(t *testing.T) {
	w := newWorld(t)
	ask := must(w)(utils.InferStreamTool("book", "", func(ctx context.Context, _ bookArgs) (*schema.StreamReader[string], error) {
		reader, writer := schema.Pipe[string](2)
		writer.Send("which", nil)
		writer.Send("", tool.Interrupt(ctx, "which seat?"))
		writer.Close()
		return reader, nil
	}))
	_, err := w.node(w.guard(w.start(), []tool.BaseTool{ask})).Invoke(w.ctx, oneBooking)
	if _, ok := compose.IsInterruptRerunError(err); !ok {
		t.Errorf("got %v", err)
	}
	if row := w.rows()[0]; row.State != store.Retryable || row.Reason != "interrupted" {
		t.Errorf("the operation is %v, %s", row.State, row.Reason)
	}
}

// The ADK cuts a tool's stream off where a run is cancelled at once, and wants
// to see that it did.
func TestACancelledRunCutsAStreamOffAndItsOutcomeIsUnknown(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("book", `{"seat":1}`)))
	book, writer := w.feed()
	defer writer.Close()
	runner := w.adkRunner(w.start(), w.guard(w.start(), []tool.BaseTool{book}), nil, true)
	option, cancel := adk.WithCancel()
	events := runner.Run(w.ctx, question, option)
	writer.Send("boo", nil)
	var failures error
	for {
		event, ok := events.Next()
		if !ok {
			break
		}
		failures = errors.Join(failures, event.Err)
		if event.Output == nil || event.Output.MessageOutput == nil || event.Output.MessageOutput.Role != schema.Tool {
			continue
		}
		chunks := event.Output.MessageOutput.MessageStream
		if chunk, err := chunks.Recv(); err != nil || chunk.Content != "boo" {
			t.Fatalf("got %v, %v", chunk, err)
		}
		if handle, ok := cancel(adk.WithAgentCancelMode(adk.CancelImmediate)); !ok {
			t.Fatal(handle)
		}
		_, err := chunks.Recv()
		failures = errors.Join(failures, err)
	}
	if !errors.As(failures, new(*adk.StreamCanceledError)) {
		t.Errorf("the run ended with %v", failures)
	}
	if state := w.rows()[0].State; state != store.Unknown && state != store.Manual {
		t.Errorf("the operation is %v", state)
	}
}
