package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

// Who acts, and for what: names of the host, never of the model.
var (
	principal = settle.Principal{Tenant: "acme", Subject: "support-agent"}
	task      = settle.Task{ID: "case-42", Goal: "late-parcel"}
)

// instructions are the agent's system prompt.
const instructions = "You are a support agent. Use the tools. Then say what was done."

// workerOptions are what the parent process tells a worker.
type workerOptions struct {
	guarded       bool
	ledger, model string
	far           addresses
}

func (o *workerOptions) flags() *flag.FlagSet {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	f.BoolVar(&o.guarded, "guarded", false, "run the tools through settle")
	f.StringVar(&o.ledger, "ledger", "", "file of the ledger")
	f.StringVar(&o.model, "model", "", "address of the model")
	f.StringVar(&o.far.pay, "pay", "", "address of the payment API")
	f.StringVar(&o.far.desk, "desk", "", "address of the ticket system")
	f.StringVar(&o.far.relay, "relay", "", "address of the mail relay")
	return f
}

// worker is the agent: a loop between a model and its tools.
type worker struct {
	ledger    store.Ledger
	executor  *settle.Executor
	functions functions // the tools without settle; nil where settle runs them
	chat      chat
	page      page
}

// work is the whole life of the child process.
func work(ctx context.Context, args []string, out io.Writer) (err error) {
	var o workerOptions
	if err := o.flags().Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	ledger, err := sqlite.Open(ctx, o.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	pay, desk, relay := o.far.clients()
	executor, err := settle.New(ledger, settle.WithTools(NewRefund(pay), NewOpenTicket(desk), NewSendMail(relay)))
	if err != nil {
		return err
	}
	w := worker{ledger: ledger, executor: executor, chat: newChat(o.model, executor.Tools()), page: page{out}}
	if !o.guarded {
		w.functions = newFunctions(o.far) // the executor only describes the tools, then
	}

	// Recovery runs beside the loop and settles what a dead worker left.
	var recovery sync.WaitGroup
	recovering, stop := context.WithCancel(ctx)
	recovery.Go(func() { _ = executor.Run(recovering) })
	defer recovery.Wait()
	defer stop()

	ctx = settle.WithTask(settle.WithPrincipal(ctx, principal), task)
	return errors.Join(w.converse(ctx), executor.Shutdown(ctx))
}

// converse is the agent loop: ask the model, run the tools that it calls, tell
// it what came of that.
func (w *worker) converse(ctx context.Context) error {
	conversation, err := w.begin(ctx)
	if err != nil {
		return err
	}
	for {
		reply, err := w.chat.next(ctx, conversation)
		if err != nil {
			return err
		}
		conversation = append(conversation, reply)
		for _, call := range reply.ToolCalls {
			w.page.line("model", call.Function.Name+" "+call.Function.Arguments)
			result, err := w.run(ctx, call)
			if err != nil {
				return err
			}
			w.page.text("", result)
			conversation = append(conversation, message{Role: "tool", ToolCallID: call.ID, Content: result})
		}
		if len(reply.ToolCalls) > 0 {
			continue
		}
		w.page.line("model", reply.Content)
		news, err := w.news(ctx)
		if err != nil || news == "" {
			return err
		}
		conversation = append(conversation, message{Role: "user", Content: news})
	}
}

// run runs one tool call and returns what the model is told. Here is all that
// settle changes in an agent loop.
func (w *worker) run(ctx context.Context, call toolCall) (string, error) {
	name, args := call.Function.Name, json.RawMessage(call.Function.Arguments)
	if w.functions != nil {
		return w.functions.call(ctx, name, args), nil
	}
	outcome, err := w.executor.Execute(ctx, settle.Call{Tool: name, Args: args, CallID: call.ID})
	return outcome.ForModel(), err
}

// begin is the conversation before the model's first turn. After a restart that
// includes what the task has done already, which nobody else remembers.
func (w *worker) begin(ctx context.Context) ([]message, error) {
	conversation := []message{{Role: "system", Content: instructions}}
	brief, err := w.executor.Brief(ctx)
	if err != nil {
		return nil, err
	}
	if brief != "" {
		w.page.text("brief", brief)
		conversation = append(conversation, message{Role: "system", Content: brief})
	}
	return append(conversation, message{Role: "user", Content: request}), nil
}

// news waits until the task has nothing open that settles without a person, and
// says how it stands then. It is empty where nothing was open.
func (w *worker) news(ctx context.Context) (string, error) {
	open, err := w.open(ctx)
	if err != nil || open == 0 {
		return "", err
	}
	w.page.line("waits", "for recovery: the dead worker's attempt has a lease of some ten seconds")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for open > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", errors.New("operations stay open for too long: recovery should have settled them")
		}
		if open, err = w.open(ctx); err != nil {
			return "", err
		}
	}
	news, err := w.executor.Brief(ctx)
	w.page.text("news", news)
	return news, err
}

// open counts the operations that the machine hasn't brought to rest.
func (w *worker) open(ctx context.Context) (int, error) {
	found, err := w.ledger.List(ctx, store.Filter{Tenant: principal.Tenant,
		States: []store.State{store.Running, store.Retryable, store.Unknown}})
	return len(found), err
}
