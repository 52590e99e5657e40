// Example lets an agent of adk refund an order twice over, in two processes, and
// counts the refunds at the payment service.
//
//	go run ./tools/adk/example
//
// It needs no key and no service: the model is a script behind HTTP, the payment
// service an HTTP server on loopback that does the refund and loses its first
// answer, the ledger a file in a temporary folder. The sessions are in memory,
// so that the second process knows nothing of the first but what the ledger does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settleadk "github.com/settle-go/settle/tools/adk"
	"github.com/settle-go/settle/tools/adk/example/chatmodel"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// script is what the model says: the second process begins anew, in other words
// and with another amount.
func script() *scripted.Server {
	return scripted.New(
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"late parcel"}`)),
		scripted.CallTools(scripted.Use("text_customer", `{"order_id":"A-1001","text":"We refund you."}`)),
		scripted.Say("The order is refunded, and the customer knows."),
		scripted.CallTools(scripted.Use("text_customer", `{"order_id":"A-1001","text":"You get your money back."}`)),
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":2410,"note":"as agreed"}`)),
		scripted.Say("It was refunded before."))
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-adk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay := farside.NewPayments()
	defer pay.Close()
	pay.Writes.Next(farside.CommitThenDrop()) // the first refund is made, its answer is lost
	model := script()
	defer model.Close()
	p := process{model: model, pay: farside.NewPaymentsClient(pay.URL()), out: out, ledger: filepath.Join(folder, "ledger.db")}
	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	for _, name := range []string{"first", "second"} {
		fmt.Fprintf(out, "The %s process:\n", name)
		if err := p.work(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "What the second process's model was told first:")
	p.brief(model.Requests()[3])
	made := len(pay.Effects())
	fmt.Fprintf(out, "refunds at the payment service: %d\n", made)
	if made != 1 {
		return fmt.Errorf("the order was refunded %d times instead of once", made)
	}
	return nil
}

// process is what both processes have in common.
type process struct {
	model  *scripted.Server
	pay    *farside.PaymentsClient
	out    io.Writer
	ledger string
}

// work is the life of one process.
func (p process) work(ctx context.Context) (err error) {
	ledger, err := sqlite.Open(ctx, p.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newRefund(p.pay)), settle.WithGuarded(textCustomer), settle.WithJoinedSpans())
	if err != nil {
		return err
	}
	guard, err := settleadk.Plugin(ex)
	if err != nil {
		return err
	}
	text, err := newText()
	if err != nil {
		return err
	}
	tools, err := settleadk.Tools(ex, nil)
	if err != nil {
		return err
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "support", Model: chatmodel.New(p.model.URL()), Instruction: "You are a support agent. Use the tools.",
		Tools: append(tools, text),
	})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "support", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}}})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, "ada", "session", genai.NewContentFromText("My parcel A-1001 is late.", "user"), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		p.show(event.Content)
	}
	return ex.Shutdown(ctx)
}

// show writes what the model said, and what it was answered.
func (p process) show(c *genai.Content) {
	if c == nil {
		return
	}
	for _, part := range c.Parts {
		switch {
		case part.FunctionCall != nil:
			p.say("model", part.FunctionCall.Name+" "+text(part.FunctionCall.Args))
		case part.FunctionResponse != nil:
			p.say("", text(part.FunctionResponse.Response))
		default:
			p.say("model", part.Text+"\n")
		}
	}
}

func text(m map[string]any) string {
	said, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// brief writes what stands behind the instructions of a request.
func (p process) brief(r scripted.Request) {
	for _, m := range r.Messages {
		if _, brief, ok := strings.Cut(m.Text, "Done already"); ok && m.Role == scripted.System {
			fmt.Fprintln(p.out, "Done already"+brief)
		}
	}
}

// say writes what was said behind who said it.
func (p process) say(who, said string) {
	fmt.Fprintf(p.out, "  %-6s %s\n", who, strings.ReplaceAll(said, `\"`, `'`))
}
