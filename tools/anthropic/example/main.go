// Example lets a model refund an order and have it fetched by a courier, in two
// processes: first in a loop over messages, then in the SDK's tool runner. The
// payment service loses an answer, and the model's API fails after the tools ran,
// so that the runner runs them again.
//
//	go run ./tools/anthropic/example
//
// It needs no key and no service: the model is a script behind the SDK's real
// client, the far sides are HTTP servers on loopback that count what they truly
// did, the ledger is a file in a temporary folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// script is what the model says. Its API fails once, with the status that
// Anthropic's has where it is overloaded.
func script() *scripted.Server {
	return scripted.New(
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"late parcel"}`)),
		scripted.Say("The order is refunded."),
		scripted.CallTools(
			scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"eight days late!"}`),
			scripted.Use("order_courier", `{"order_id":"A-1001"}`)),
		scripted.Fail(529),
		scripted.Say("It was refunded before, and a courier is ordered."))
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-anthropic-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay, couriers, model := farside.NewPayments(), farside.NewTickets(), script()
	defer pay.Close()
	defer couriers.Close()
	defer model.Close()
	pay.Writes.Next(farside.CommitThenDrop()) // the first refund is made, its answer is lost
	a := agent{
		// The client's own retries of the API are harmless. They are off here, so
		// that the runner meets the failure.
		client: anthropic.NewClient(option.WithBaseURL(model.URL()), option.WithAPIKey("none"), option.WithMaxRetries(0)),
		pay:    farside.NewPaymentsClient(pay.URL()), couriers: farside.NewTicketsClient(couriers.URL()), out: out,
	}
	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})

	ledger := filepath.Join(folder, "ledger.db")
	fmt.Fprintln(out, "The first process, a loop over messages:")
	if err := a.work(ctx, ledger, a.converse); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe second process, the SDK's tool runner:")
	if err := a.work(ctx, ledger, a.runTools); err != nil {
		return err
	}
	refunds, orders := len(pay.Effects()), len(couriers.Effects())
	fmt.Fprintf(out, "\nrefunds at the payment service: %d, couriers ordered: %d\n", refunds, orders)
	if refunds != 1 || orders != 1 {
		return errors.New("something was done twice or not at all")
	}
	return nil
}

// agent is what both processes have in common.
type agent struct {
	client   anthropic.Client
	pay      *farside.PaymentsClient
	couriers *farside.TicketsClient
	out      io.Writer
}

// work is the life of one process.
func (a agent) work(ctx context.Context, file string, loop func(context.Context, *settle.Executor) error) (err error) {
	ledger, err := sqlite.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newRefund(a.pay)), settle.WithGuarded(orderCourier))
	if err != nil {
		return err
	}
	return errors.Join(loop(ctx, ex), ex.Shutdown(ctx))
}

const instructions, request = "You are a support agent. Use the tools.", "My parcel A-1001 is late."

// converse is the loop over messages.
func (a agent) converse(ctx context.Context, ex *settle.Executor) error {
	tools, err := settleanthropic.New(ex)
	if err != nil {
		return err
	}
	system, err := tools.System(ctx, anthropic.TextBlockParam{Text: instructions})
	if err != nil {
		return err
	}
	params := anthropic.MessageNewParams{Model: "scripted", MaxTokens: 1024, System: system, Tools: tools.ForMessages(),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(request))}}
	for {
		message, err := a.client.Messages.New(ctx, params)
		if err != nil {
			return err
		}
		params.Messages = append(params.Messages, message.ToParam())
		results, err := tools.Answer(ctx, *message)
		if err != nil {
			return err
		}
		if len(results) == 0 {
			a.say("model", message.Content[0].Text)
			return nil
		}
		for i, block := range message.Content {
			a.say("model", block.Name+" "+string(block.Input))
			a.say("", results[i].OfToolResult.Content[0].OfText.Text)
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
	}
}

// runTools is the SDK's runner, with the executor's tools and one that existed before.
func (a agent) runTools(ctx context.Context, ex *settle.Executor) error {
	tools, err := settleanthropic.New(ex)
	if err != nil {
		return err
	}
	courier, err := newOrderCourier(a.couriers)
	if err != nil {
		return err
	}
	guarded, err := settleanthropic.Guard(ex, courier)
	if err != nil {
		return err
	}
	system, err := tools.BetaSystem(ctx, anthropic.BetaTextBlockParam{Text: instructions})
	if err != nil {
		return err
	}
	a.say("brief", system[1].Text)
	params := anthropic.BetaToolRunnerParams{
		DisableThread: true, // the scripted model keeps none
		BetaMessageNewParams: anthropic.BetaMessageNewParams{Model: "scripted", MaxTokens: 1024, System: system,
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(request))}},
	}
	runner := a.client.Beta.Messages.NewToolRunner(append(tools.BetaTools(), guarded...), params)
	for {
		message, err := runner.NextMessage(ctx)
		if overloaded(err) {
			a.say("API", "529 overloaded, after the tools ran")
			runner.Params.Messages = settleanthropic.Rewind(runner.Params.Messages)
			message, err = runner.NextMessage(ctx)
		}
		if err != nil || message == nil {
			return err
		}
		a.sayResults(runner.Messages())
		for _, block := range message.Content {
			a.say("model", strings.TrimSpace(block.Text+block.Name+" "+string(block.Input)))
		}
	}
}

func overloaded(err error) bool {
	var api *anthropic.Error
	return errors.As(err, &api) && api.StatusCode == 529
}

// sayResults writes what the model was told with the last request.
func (a agent) sayResults(history []anthropic.BetaMessageParam) {
	for _, block := range history[len(history)-2].OfUser.Content {
		if block.OfToolResult == nil {
			continue
		}
		for _, content := range block.OfToolResult.Content {
			a.say("", content.OfText.Text)
		}
	}
}

// say writes what was said, each line of it behind who said it.
func (a agent) say(who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(a.out, "  %-6s %s\n", who, strings.TrimSuffix(line, "\n"))
		who = ""
	}
}
