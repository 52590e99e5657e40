// Example lets a model refund an order and send a voucher, which a person has to
// allow, in two processes. Between them the graph is interrupted and resumed
// from its checkpoint, twice over.
//
//	go run ./tools/eino/example
//
// It needs no key and no service: the model is a script behind eino's real
// client for OpenAI, the payment service an HTTP server on loopback that does
// the refund and loses its first answer, the ledger a file in a temporary folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	einoopenai "github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store/sqlite"
	settleeino "github.com/settle-go/settle/tools/eino"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// script is what the model says: after the second approval, it begins anew.
func script() *scripted.Server {
	return scripted.New(
		scripted.CallTools(
			scripted.Use("refund", `{"order_id":"A-1001","cents":4210,"note":"late parcel"}`),
			scripted.Use("send_voucher", `{"customer":"C-7","text":"Sorry!"}`)),
		scripted.Say("The order is refunded, and the voucher sent."),
		scripted.Say("The order is refunded, and the voucher was sent before."),
		scripted.CallTools(scripted.Use("refund", `{"order_id":"A-1001","cents":2410,"note":"as agreed"}`)),
		scripted.Say("It was refunded before."))
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-eino-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay := farside.NewPayments()
	defer pay.Close()
	pay.Writes.Next(farside.CommitThenDrop()) // the first refund is made, its answer is lost
	model := script()
	defer model.Close()
	h := &host{model: model, pay: farside.NewPaymentsClient(pay.URL()), out: out,
		ledger: filepath.Join(folder, "ledger.db"), checkpoints: checkpoints{kept: map[string][]byte{}}}

	fmt.Fprintln(out, "The first process:")
	if err := h.process(ctx, h.begin); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe second process, with the approval, which is delivered twice:")
	if err := h.process(ctx, h.resume, h.resume); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe third process, which begins anew:")
	if err := h.process(ctx, h.begin); err != nil {
		return err
	}
	made := len(pay.Effects())
	fmt.Fprintf(out, "\nrefunds at the payment service: %d, vouchers sent: %d\n", made, h.vouchers.Load())
	if made != 1 || h.vouchers.Load() != 1 {
		return errors.New("something was done twice, or not at all")
	}
	return nil
}

// host is what the processes have in common.
type host struct {
	model       *scripted.Server
	pay         *farside.PaymentsClient
	out         io.Writer
	ledger      string
	checkpoints checkpoints
	vouchers    atomic.Int32

	asked   string // the interrupt that waits for a person
	briefed bool   // this process has written down its brief
}

// process is the life of one: it opens the ledger, builds the agent, does its work.
func (h *host) process(ctx context.Context, work ...func(context.Context, *adk.Runner) error) (err error) {
	h.briefed = false
	ledger, err := sqlite.Open(ctx, h.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newRefund(h.pay)), settle.WithGuarded(sendVoucher))
	if err != nil {
		return err
	}
	runner, err := h.runner(ctx, ex)
	if err != nil {
		return err
	}
	for _, w := range work {
		if err := w(ctx, runner); err != nil {
			return err
		}
	}
	return ex.Shutdown(ctx)
}

// runner builds the agent. What is settle's in it are the lines with settleeino.
func (h *host) runner(ctx context.Context, ex *settle.Executor) (*adk.Runner, error) {
	chat, err := einoopenai.NewChatModel(ctx, &einoopenai.ChatModelConfig{BaseURL: h.model.URL() + "/v1", APIKey: "none", Model: "scripted"})
	if err != nil {
		return nil, err
	}
	tools, err := settleeino.Tools(ex, []string{"refund"})
	if err != nil {
		return nil, err
	}
	voucher, err := newSendVoucher(func() { h.vouchers.Add(1) })
	if err != nil {
		return nil, err
	}
	config := compose.ToolsNodeConfig{Tools: append(tools, voucher), UnknownToolsHandler: settleeino.NoSuchTool}
	middleware, err := settleeino.Middleware(ctx, ex, config)
	if err != nil {
		return nil, err
	}
	config.ToolCallMiddlewares = append(config.ToolCallMiddlewares, middleware)
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "support", Description: "Supports customers.", Instruction: "You are a support agent. Use the tools.",
		Model:       chat,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: config},
		Handlers:    []adk.ChatModelAgentMiddleware{settleeino.Handler(ex)},
	})
	if err != nil {
		return nil, err
	}
	return adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, CheckPointStore: &h.checkpoints}), nil
}

// begin names principal and task: ids and constants of the host, the same in
// every process that works on the case. They are saved with the checkpoint.
func (h *host) begin(ctx context.Context, runner *adk.Runner) error {
	names := settleeino.SessionValues(settle.Principal{Tenant: "acme", Subject: "support-agent"}, settle.Task{ID: "case-42", Goal: "late-parcel"})
	return h.finish(runner.Query(ctx, "My parcel A-1001 is late.", adk.WithCheckPointID("case-42"), adk.WithSessionValues(names)))
}

// resume delivers the person's approval.
func (h *host) resume(ctx context.Context, runner *adk.Runner) error {
	events, err := runner.ResumeWithParams(ctx, "case-42", &adk.ResumeParams{Targets: map[string]any{h.asked: nil}})
	if err != nil {
		return err
	}
	return h.finish(events)
}

// finish reads a run to its end and writes down what the model was told and
// said in it.
func (h *host) finish(events *adk.AsyncIterator[*adk.AgentEvent]) error {
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			return event.Err
		}
		if event.Action != nil && event.Action.Interrupted != nil {
			at := event.Action.Interrupted.InterruptContexts[0]
			h.asked = at.ID
			h.say("asked", fmt.Sprint(at.Info))
		}
		if event.Output == nil || event.Output.MessageOutput == nil {
			continue
		}
		h.brief()
		m := event.Output.MessageOutput.Message
		for _, c := range m.ToolCalls {
			h.say("model", c.Function.Name+" "+c.Function.Arguments)
		}
		switch {
		case m.Role == schema.Tool:
			h.say("tool", m.Content)
		case m.Content != "":
			h.say("model", m.Content)
		}
	}
	return nil
}

// brief writes down what the newest request to the model began with, once in a
// process.
func (h *host) brief() {
	requests := h.model.Requests()
	m := requests[len(requests)-1].Messages[1]
	if m.Role == scripted.System && !h.briefed {
		h.briefed = true
		h.say("brief", m.Text)
	}
}

// say writes what was said, each line of it behind who said it.
func (h *host) say(who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(h.out, "  %-6s %s\n", who, strings.TrimSuffix(line, "\n"))
		who = ""
	}
}

// checkpoints are those of a host's database.
type checkpoints struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (c *checkpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	saved, ok := c.kept[id]
	return saved, ok, nil
}

func (c *checkpoints) Set(_ context.Context, id string, saved []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[id] = saved
	return nil
}
