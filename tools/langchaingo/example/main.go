// Example lets a model refund an order and text the customer. The model's API
// fails after both, the whole run begins anew in another process, and counts
// show what was done.
//
//	go run ./tools/langchaingo/example
//
// It needs no key and no service: the model is a script behind langchaingo's
// real client for OpenAI, the payment service an HTTP server on loopback that
// does the refund and loses its first answer, the ledger a file in a temporary
// folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settlelangchaingo "github.com/settle-go/settle/tools/langchaingo"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// script is what the model says: the second process begins anew, in other words.
func script() *scripted.Server {
	argument := func(input string) map[string]string { return map[string]string{"__arg1": input} }
	return scripted.New(
		scripted.CallTools(
			scripted.Use("refund", argument(`{"order_id":"A-1001","cents":4210,"note":"late parcel"}`)),
			scripted.Use("text_customer", argument(`{"order_id":"A-1001","text":"We refund you."}`))),
		scripted.Fail(503),
		scripted.CallTools(scripted.Use("refund", argument(`{"order_id":"A-1001","cents":4210,"note":"eight days late!"}`))),
		scripted.CallTools(scripted.Use("text_customer", argument(`{"order_id":"A-1001","text":"Your refund is on its way."}`))),
		scripted.Say("It was refunded before, and the customer knows."))
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-langchaingo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay := farside.NewPayments()
	defer pay.Close()
	pay.Writes.Next(farside.CommitThenDrop()) // the first refund is made, its answer is lost
	model := script()
	defer model.Close()
	h := &host{model: model, pay: farside.NewPaymentsClient(pay.URL()), out: out, ledger: filepath.Join(folder, "ledger.db")}
	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})

	fmt.Fprintln(out, "The first process:")
	if err := h.process(ctx); err == nil {
		return errors.New("expected the model to fail")
	}
	fmt.Fprintln(out, "  The model's API fails, and the steps are lost.")
	fmt.Fprintln(out, "\nThe second process:")
	if err := h.process(ctx); err != nil {
		return err
	}
	made := len(pay.Effects())
	fmt.Fprintf(out, "\nrefunds at the payment service: %d, texts sent: %d\n", made, h.texts)
	if made != 1 || h.texts != 1 {
		return errors.New("something was done twice, or not at all")
	}
	return nil
}

// host is what both processes have in common.
type host struct {
	model  *scripted.Server
	pay    *farside.PaymentsClient
	out    io.Writer
	ledger string
	texts  int
	shown  int // requests to the model that were written out
}

// process is the life of one.
func (h *host) process(ctx context.Context) (err error) {
	ledger, err := sqlite.Open(ctx, h.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newRefund(h.pay)), settle.WithGuarded(textContract))
	if err != nil {
		return err
	}
	agent, err := h.agent(ex)
	if err != nil {
		return err
	}
	said, err := chains.Run(ctx, settlelangchaingo.Chain(ex, agents.NewExecutor(agent)), "My parcel A-1001 is late.")
	h.show()
	if err != nil {
		return errors.Join(err, ex.Shutdown(ctx))
	}
	h.say("model", said)
	return ex.Shutdown(ctx)
}

func (h *host) agent(ex *settle.Executor) (agents.Agent, error) {
	llm, err := openai.New(openai.WithBaseURL(h.model.URL()+"/v1"), openai.WithToken("none"), openai.WithModel("scripted"))
	if err != nil {
		return nil, err
	}
	tools, err := settlelangchaingo.Tools(ex, []string{"refund"})
	if err != nil {
		return nil, err
	}
	guarded, err := settlelangchaingo.Guard(ex, settlelangchaingo.Guarded{Tool: textCustomer{func() { h.texts++ }}, Schema: textSchema})
	if err != nil {
		return nil, err
	}
	return agents.NewOpenAIFunctionsAgent(llm, append(tools, guarded...)), nil
}

// show writes down what the model was told since: the newest request of a
// process holds all of it.
func (h *host) show() {
	requests := h.model.Requests()[h.shown:]
	h.shown += len(requests)
	for _, m := range requests[len(requests)-1].Messages {
		switch m.Role {
		case scripted.User:
			h.say("user", m.Text)
		case scripted.Assistant:
			h.say("model", m.Calls[0].Name+" "+string(m.Calls[0].Args))
		case scripted.ToolRole:
			h.say("", m.Text)
		}
	}
}

// say writes what was said, each line of it behind who said it.
func (h *host) say(who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintln(h.out, strings.TrimRight(fmt.Sprintf("  %-6s %s", who, line), " \n"))
		who = ""
	}
}
