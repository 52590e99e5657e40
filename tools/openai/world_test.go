package settleopenai_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settleopenai "github.com/settle-go/settle/tools/openai"
)

// world is a model, the SDK's client on it, a ledger and a far side.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	pay    *farside.Payments
	notes  atomic.Int32
	model  *scripted.Server
	client openai.Client
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), pay: farside.NewPayments(), model: scripted.New(turns...)}
	t.Cleanup(w.pay.Close)
	t.Cleanup(w.model.Close)
	w.client = openai.NewClient(option.WithBaseURL(w.model.URL()+"/v1/"), option.WithAPIKey("none"))
	w.ctx = settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
	w.ctx = settle.WithTask(w.ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	return w
}

// start is a process: a new executor on the ledger, with the tools of its loop.
func (w *world) start(own []settleopenai.Guarded, options ...settle.Option) *settleopenai.Tools {
	w.Helper()
	options = append(options, settle.WithTools(w.refund(), w.note()), settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))
	x, err := settle.New(w.ledger, options...)
	if err != nil {
		w.Fatal(err)
	}
	tools, err := settleopenai.New(x, own...)
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
type loop func(w *world, tools *settleopenai.Tools) (string, error)

// loops are the ways in which the SDK's users write one. Nothing in them is
// settle's but the lines with tools.
var loops = map[string]loop{"chat": chat, "chat streamed": chatStreamed, "responses": respond, "responses streamed": respondStreamed}

const question = "Where is my parcel?"

func chat(w *world, tools *settleopenai.Tools) (string, error) {
	return chatWith(w, tools, func(params openai.ChatCompletionNewParams) (openai.ChatCompletionChoice, error) {
		completion, err := w.client.Chat.Completions.New(w.ctx, params)
		if err != nil {
			return openai.ChatCompletionChoice{}, err
		}
		return completion.Choices[0], nil
	})
}

func chatStreamed(w *world, tools *settleopenai.Tools) (string, error) {
	return chatWith(w, tools, func(params openai.ChatCompletionNewParams) (openai.ChatCompletionChoice, error) {
		stream := w.client.Chat.Completions.NewStreaming(w.ctx, params)
		defer stream.Close()
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			if !whole.AddChunk(stream.Current()) {
				return openai.ChatCompletionChoice{}, errors.New("the accumulator refused a chunk")
			}
		}
		if err := stream.Err(); err != nil {
			return openai.ChatCompletionChoice{}, err
		}
		return whole.Choices[0], nil
	})
}

func chatWith(w *world, tools *settleopenai.Tools, ask func(openai.ChatCompletionNewParams) (openai.ChatCompletionChoice, error)) (string, error) {
	messages, err := tools.BeginChat(w.ctx, openai.SystemMessage("You support."), openai.UserMessage(question))
	if err != nil {
		return "", err
	}
	params := openai.ChatCompletionNewParams{Model: "scripted", Messages: messages, Tools: tools.ForChat()}
	for {
		choice, err := ask(params)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, choice.Message.ToParam())
		results, err := tools.AnswerChat(w.ctx, choice)
		if err != nil {
			return "", err
		}
		if len(results) == 0 {
			return choice.Message.Content, nil
		}
		params.Messages = append(params.Messages, results...)
	}
}

func respond(w *world, tools *settleopenai.Tools) (string, error) {
	return respondWith(w, tools, func(params responses.ResponseNewParams) (*responses.Response, error) {
		return w.client.Responses.New(w.ctx, params)
	})
}

func respondStreamed(w *world, tools *settleopenai.Tools) (string, error) {
	return respondWith(w, tools, func(params responses.ResponseNewParams) (*responses.Response, error) {
		stream := w.client.Responses.NewStreaming(w.ctx, params)
		defer stream.Close()
		var last responses.Response
		for stream.Next() {
			last = stream.Current().Response
		}
		return &last, stream.Err()
	})
}

func respondWith(w *world, tools *settleopenai.Tools, ask func(responses.ResponseNewParams) (*responses.Response, error)) (string, error) {
	input, err := tools.BeginResponse(w.ctx, responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser))
	if err != nil {
		return "", err
	}
	params := responses.ResponseNewParams{Model: "scripted", Tools: tools.ForResponses(), Instructions: openai.String("You support.")}
	for {
		params.Input.OfInputItemList = input
		response, err := ask(params)
		if err != nil {
			return "", err
		}
		if input, err = tools.AnswerResponse(w.ctx, *response); err != nil {
			return "", err
		}
		if len(input) == 0 {
			return response.OutputText(), nil
		}
		params.PreviousResponseID = openai.String(response.ID)
	}
}

// choiceOf is an assistant's message as the API sends it.
func choiceOf(t *testing.T, choice string) openai.ChatCompletionChoice {
	t.Helper()
	var c openai.ChatCompletionChoice
	if err := json.Unmarshal([]byte(choice), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// call is one function call in a choice.
func call(id, name, args string) string {
	quoted, _ := json.Marshal(args) // a string always marshals
	return `{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` + string(quoted) + `}}`
}

// turn is a choice with the calls.
func turn(t *testing.T, calls ...string) openai.ChatCompletionChoice {
	t.Helper()
	all := ""
	for i, c := range calls {
		if i > 0 {
			all += ","
		}
		all += c
	}
	return choiceOf(t, `{"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[`+all+`]}}`)
}

// answers are the texts of tool messages.
func answers(t *testing.T, results []openai.ChatCompletionMessageParamUnion) []string {
	t.Helper()
	var all []string
	for _, r := range results {
		if r.OfTool == nil {
			t.Fatalf("got a message that is no tool message: %+v", r)
		}
		all = append(all, r.OfTool.Content.OfString.Value)
	}
	return all
}
