// Example lets a model refund an order twice over, in two processes and through
// both of OpenAI's APIs, and counts the refunds at the payment service.
//
//	go run ./tools/openai/example
//
// It needs no key and no service: the model is a script behind the SDK's real
// client, the payment service an HTTP server on loopback that does the refund
// and loses its first answer, the ledger a file in a temporary folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settleopenai "github.com/settle-go/settle/tools/openai"
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
		scripted.CallTools(
			scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"late parcel"}`),
			scripted.Use("text_customer", `{"order_id":"A-1001","text":"We refund you."}`)),
		scripted.Say("The order is refunded, and the customer knows."),
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"eight days late!"}`)),
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":2410,"note":"as agreed"}`)),
		scripted.Say("It was refunded before."))
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-openai-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay := farside.NewPayments()
	defer pay.Close()
	pay.Writes.Next(farside.CommitThenDrop()) // the first refund is made, its answer is lost
	model := script()
	defer model.Close()
	a := agent{
		client: openai.NewClient(option.WithBaseURL(model.URL()+"/v1/"), option.WithAPIKey("none")),
		pay:    farside.NewPaymentsClient(pay.URL()), out: out,
	}
	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})

	ledger := filepath.Join(folder, "ledger.db")
	fmt.Fprintln(out, "The first process, over chat completions:")
	if err := a.work(ctx, ledger, a.chat); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe second process, over responses:")
	if err := a.work(ctx, ledger, a.respond); err != nil {
		return err
	}
	made := len(pay.Effects())
	fmt.Fprintf(out, "\nrefunds at the payment service: %d\n", made)
	if made != 1 {
		return fmt.Errorf("the order was refunded %d times instead of once", made)
	}
	return nil
}

// agent is what both processes have in common.
type agent struct {
	client openai.Client
	pay    *farside.PaymentsClient
	out    io.Writer
}

// work is the life of one process.
func (a agent) work(ctx context.Context, file string, loop func(context.Context, *settleopenai.Tools) error) (err error) {
	ledger, err := sqlite.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newRefund(a.pay)), settle.WithGuarded(textCustomer))
	if err != nil {
		return err
	}
	tools, err := settleopenai.New(ex, settleopenai.Guarded{Definition: textDefinition, Run: sendText})
	if err != nil {
		return err
	}
	return errors.Join(loop(ctx, tools), ex.Shutdown(ctx))
}

const instructions, request = "You are a support agent. Use the tools.", "My parcel A-1001 is late."

// chat is the loop over chat completions.
func (a agent) chat(ctx context.Context, tools *settleopenai.Tools) error {
	messages, err := tools.BeginChat(ctx, openai.SystemMessage(instructions), openai.UserMessage(request))
	if err != nil {
		return err
	}
	params := openai.ChatCompletionNewParams{Model: "scripted", Messages: messages, Tools: tools.ForChat()}
	for {
		completion, err := a.client.Chat.Completions.New(ctx, params)
		if err != nil {
			return err
		}
		choice := completion.Choices[0]
		params.Messages = append(params.Messages, choice.Message.ToParam())
		results, err := tools.AnswerChat(ctx, choice)
		if err != nil {
			return err
		}
		if len(results) == 0 {
			a.say("model", choice.Message.Content)
			return nil
		}
		for i, call := range choice.Message.ToolCalls {
			a.say("model", call.Function.Name+" "+call.Function.Arguments)
			a.say("", results[i].OfTool.Content.OfString.Value)
		}
		params.Messages = append(params.Messages, results...)
	}
}

// respond is the loop over responses.
func (a agent) respond(ctx context.Context, tools *settleopenai.Tools) error {
	input, err := tools.BeginResponse(ctx, responses.ResponseInputItemParamOfMessage(request, responses.EasyInputMessageRoleUser))
	if err != nil {
		return err
	}
	a.say("brief", input[0].OfMessage.Content.OfString.Value)
	params := responses.ResponseNewParams{Model: "scripted", Instructions: openai.String(instructions), Tools: tools.ForResponses()}
	for {
		params.Input.OfInputItemList = input
		response, err := a.client.Responses.New(ctx, params)
		if err != nil {
			return err
		}
		if input, err = tools.AnswerResponse(ctx, *response); err != nil {
			return err
		}
		if len(input) == 0 {
			a.say("model", response.OutputText())
			return nil
		}
		for i, item := range response.Output {
			a.say("model", item.Name+" "+item.Arguments.OfString)
			a.say("", input[i].OfFunctionCallOutput.Output.OfString.Value)
		}
		params.PreviousResponseID = openai.String(response.ID)
	}
}

// say writes what was said, each line of it behind who said it.
func (a agent) say(who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(a.out, "  %-6s %s\n", who, strings.TrimSuffix(line, "\n"))
		who = ""
	}
}
