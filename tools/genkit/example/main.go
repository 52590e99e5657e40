// Example lets a model refund an order twice over with genkit, in two processes,
// and counts the refunds at the payment service.
//
//	go run ./tools/genkit/example
//
// It needs no key and no service: the model is a script behind genkit's own
// plugin, the payment service an HTTP server on loopback that does the refund
// and loses its first answer, the ledger a file in a temporary folder.
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

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/openai/openai-go/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
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
	folder, err := os.MkdirTemp("", "settle-genkit-")
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
	ex, err := settle.New(ledger, settle.WithTools(newRefund(p.pay)), settle.WithGuarded(textCustomer))
	if err != nil {
		return err
	}
	g := genkit.Init(ctx, genkit.WithDefaultModel("openai/gpt-4o"), genkit.WithPlugins(&openai.OpenAI{
		APIKey: "none", Opts: []option.RequestOption{option.WithBaseURL(p.model.URL() + "/v1/")}}))
	guard := settlegenkit.New(ex)
	response, err := genkit.Generate(ctx, g,
		ai.WithSystem("You are a support agent. Use the tools."), ai.WithPrompt("My parcel A-1001 is late."),
		ai.WithTools(append(guard.Tools(), newText())...), ai.WithUse(guard))
	if err != nil {
		return err
	}
	if err := p.show(response.History()); err != nil {
		return err
	}
	return ex.Shutdown(ctx)
}

// show writes what the model said, and what it was answered.
func (p process) show(history []*ai.Message) error {
	for _, m := range history {
		if m.Role != ai.RoleModel && m.Role != ai.RoleTool {
			continue
		}
		for _, part := range m.Content {
			said := []byte(part.Text)
			var err error
			who := "model"
			switch {
			case part.IsToolRequest():
				said, err = json.Marshal(part.ToolRequest.Input)
				said = append([]byte(part.ToolRequest.Name+" "), said...)
			case part.IsToolResponse():
				who = ""
				said, err = json.Marshal(part.ToolResponse.Output)
			}
			if err != nil {
				return err
			}
			p.say(who, string(said))
		}
	}
	fmt.Fprintln(p.out)
	return nil
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
