package settleanthropic_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

// world is a model, the SDK's client on it, a ledger and a far side.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	pay    *farside.Payments
	notes  atomic.Int32
	model  *scripted.Server
	client anthropic.Client
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), pay: farside.NewPayments(), model: scripted.New(turns...)}
	t.Cleanup(w.pay.Close)
	t.Cleanup(w.model.Close)
	w.client = anthropic.NewClient(option.WithBaseURL(w.model.URL()), option.WithAPIKey("none"))
	w.ctx = settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
	w.ctx = settle.WithTask(w.ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	return w
}

// start is a process: a new executor on the ledger, with the tools of its loop.
func (w *world) start(own []settleanthropic.Guarded, options ...settle.Option) *settleanthropic.Tools {
	w.Helper()
	options = append(options, settle.WithTools(w.refund(), w.note()), settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))
	x, err := settle.New(w.ledger, options...)
	if err != nil {
		w.Fatal(err)
	}
	tools, err := settleanthropic.New(x, own...)
	if err != nil {
		w.Fatal(err)
	}
	return tools
}

type refundArgs struct {
	Order int64  `json:"order" settle:"identity"`
	Cents int64  `json:"cents"`
	Note  string `json:"note,omitempty" settle:"ignore"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is Keyed, and its far side can be asked.
func (w *world) refund() settle.AnyTool {
	client := farside.NewPaymentsClient(w.pay.URL())
	return settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "Refund an order.",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			r, err := client.Refund(ctx, op.Key(), strconv.FormatInt(in.Order, 10), strconv.FormatInt(in.Cents, 10))
			return refunded{r.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[refunded], _ refundArgs) (settle.Evidence, error) {
			found, err := client.FindByKey(ctx, q.Key())
			if err != nil || len(found) == 0 {
				return q.NotHappened(), err
			}
			return q.Happened(found[0].ID, refunded{found[0].ID}), nil
		},
	}
}

// note is Unsafe, all of its arguments identify a call, and nobody can be asked.
func (w *world) note() settle.AnyTool {
	type args struct {
		Text *string `json:"text,omitempty"`
	}
	return settle.Tool[args, string]{
		Name: "note", Description: "Write a note.",
		Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(context.Context, settle.Op, args) (string, error) {
			w.notes.Add(1)
			return "noted", nil
		},
	}
}

// effects is how often the far sides truly acted.
func (w *world) effects() int { return len(w.pay.Effects()) + int(w.notes.Load()) }

func (w *world) wantEffects(want int) {
	w.Helper()
	if got := w.effects(); got != want {
		w.Errorf("the far sides acted %d times, want %d", got, want)
	}
}

// rows is what the ledger holds.
func (w *world) rows() []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(w.ctx, store.Filter{Tenant: "acme"})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

// results are the tool results at the end of the n-th request to the model.
func (w *world) results(n int) []scripted.Message {
	w.Helper()
	requests := w.model.Requests()
	if len(requests) <= n {
		w.Fatalf("the model was asked %d times, want more than %d", len(requests), n)
	}
	return requests[n].Results()
}

// loop is an agent's loop to its end: it returns what the model says last.
type loop struct {
	run func(w *world, tools *settleanthropic.Tools) (string, error)
	// exact says that a tool is given what the model sent. The SDK's runner
	// decodes it, and answers unknown names by itself.
	exact bool
}

// loops are the ways in which the SDK's users write one. Nothing in them is
// settle's but the lines with tools.
var loops = map[string]loop{
	"messages": {messages, true}, "messages streamed": {messagesStreamed, true},
	"beta": {beta, true}, "beta streamed": {betaStreamed, true},
	"runner": {runner, false}, "runner streamed": {runnerStreamed, false}, "runner on a thread": {runnerOnThread, false},
}

const (
	question     = "Where is my parcel?"
	instructions = "You support."
)

func messages(w *world, tools *settleanthropic.Tools) (string, error) {
	return messagesWith(w, tools, func(params anthropic.MessageNewParams) (*anthropic.Message, error) {
		return w.client.Messages.New(w.ctx, params)
	})
}

func messagesStreamed(w *world, tools *settleanthropic.Tools) (string, error) {
	return messagesWith(w, tools, func(params anthropic.MessageNewParams) (*anthropic.Message, error) {
		stream := w.client.Messages.NewStreaming(w.ctx, params)
		defer stream.Close()
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				return nil, err
			}
		}
		return &whole, stream.Err()
	})
}

func messagesWith(w *world, tools *settleanthropic.Tools, ask func(anthropic.MessageNewParams) (*anthropic.Message, error)) (string, error) {
	system, err := tools.System(w.ctx, anthropic.TextBlockParam{Text: instructions})
	if err != nil {
		return "", err
	}
	params := anthropic.MessageNewParams{Model: "scripted", MaxTokens: 1024, System: system, Tools: tools.ForMessages(),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))}}
	for {
		message, err := ask(params)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam())
		results, err := tools.Answer(w.ctx, *message)
		if err != nil {
			return "", err
		}
		if len(results) == 0 {
			return message.Content[0].Text, nil
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
	}
}

func beta(w *world, tools *settleanthropic.Tools) (string, error) {
	return betaWith(w, tools, func(params anthropic.BetaMessageNewParams) (*anthropic.BetaMessage, error) {
		return w.client.Beta.Messages.New(w.ctx, params)
	})
}

func betaStreamed(w *world, tools *settleanthropic.Tools) (string, error) {
	return betaWith(w, tools, func(params anthropic.BetaMessageNewParams) (*anthropic.BetaMessage, error) {
		stream := w.client.Beta.Messages.NewStreaming(w.ctx, params)
		defer stream.Close()
		var whole anthropic.BetaMessage
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				return nil, err
			}
		}
		return &whole, stream.Err()
	})
}

func betaWith(w *world, tools *settleanthropic.Tools, ask func(anthropic.BetaMessageNewParams) (*anthropic.BetaMessage, error)) (string, error) {
	params, err := betaParams(w, tools)
	if err != nil {
		return "", err
	}
	params.Tools = tools.ForBeta()
	for {
		message, err := ask(params)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam())
		results, err := tools.AnswerBeta(w.ctx, *message)
		if err != nil {
			return "", err
		}
		if len(results) == 0 {
			return message.Content[0].Text, nil
		}
		params.Messages = append(params.Messages, anthropic.NewBetaUserMessage(results...))
	}
}

func betaParams(w *world, tools *settleanthropic.Tools) (anthropic.BetaMessageNewParams, error) {
	system, err := tools.BetaSystem(w.ctx, anthropic.BetaTextBlockParam{Text: instructions})
	return anthropic.BetaMessageNewParams{Model: "scripted", MaxTokens: 1024, System: system,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(question))}}, err
}

// runnerParams have no thread: the scripted model keeps none.
func runnerParams(w *world, tools *settleanthropic.Tools) (anthropic.BetaToolRunnerParams, error) {
	params, err := betaParams(w, tools)
	return anthropic.BetaToolRunnerParams{BetaMessageNewParams: params, DisableThread: true}, err
}

func runner(w *world, tools *settleanthropic.Tools) (string, error) {
	params, err := runnerParams(w, tools)
	if err != nil {
		return "", err
	}
	message, err := w.client.Beta.Messages.NewToolRunner(tools.BetaTools(), params).RunToCompletion(w.ctx)
	if err != nil {
		return "", err
	}
	return message.Content[0].Text, nil
}

func runnerStreamed(w *world, tools *settleanthropic.Tools) (string, error) {
	params, err := runnerParams(w, tools)
	if err != nil {
		return "", err
	}
	r := w.client.Beta.Messages.NewToolRunnerStreaming(tools.BetaTools(), params)
	for events, err := range r.AllStreaming(w.ctx) {
		if err != nil {
			return "", err
		}
		for _, err := range events {
			if err != nil {
				return "", err
			}
		}
	}
	return r.LastMessage().Content[0].Text, nil
}

func runnerOnThread(w *world, tools *settleanthropic.Tools) (string, error) {
	params, err := runnerParams(w, tools)
	if err != nil {
		return "", err
	}
	params.DisableThread = false
	r := w.client.Beta.Messages.NewToolRunner(tools.BetaTools(), params, option.WithMiddleware((&threads{}).serve))
	message, err := r.RunToCompletion(w.ctx)
	if err != nil {
		return "", err
	}
	return message.Content[0].Text, nil
}

// messageOf is a message as the API sends it.
func messageOf(t *testing.T, stopReason, content string) anthropic.Message {
	t.Helper()
	var m anthropic.Message
	if err := json.Unmarshal([]byte(`{"id":"m","type":"message","role":"assistant","stop_reason":`+stopReason+`,"content":[`+content+`]}`), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// call is one tool call in a message.
func call(id, name, args string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":` + args + `}`
}

// turn is a message with the calls.
func turn(t *testing.T, calls ...string) anthropic.Message {
	t.Helper()
	return messageOf(t, `"tool_use"`, strings.Join(calls, ","))
}

// answers are the texts of tool results, none of which may be an error.
func answers(t *testing.T, results []anthropic.ContentBlockParamUnion) []string {
	t.Helper()
	var all []string
	for _, r := range results {
		if r.OfToolResult == nil || r.OfToolResult.IsError.Value {
			t.Fatalf("got a block that is no result: %+v", r)
		}
		all = append(all, r.OfToolResult.Content[0].OfText.Text)
	}
	return all
}
