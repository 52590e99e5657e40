package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	adkagent "google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleadk "github.com/settle-go/settle/tools/adk"
	"github.com/settle-go/settle/tools/adk/example/chatmodel"
)

func adkRunner() []situation {
	return []situation{
		{"adk v2.2.0", "one approval is delivered twice", effects{"pay 7": 1}, sameApproval},
		{"adk v2.2.0", "a tool node retries a payment whose answer was lost", effects{"pay 7": 1}, nodeRetry},
	}
}

type adkPayArgs struct {
	Order int `json:"order"`
}

// adkPay pays; its first answers may get lost.
func adkPay(w *world, confirm bool, lost int) (tool.Tool, error) {
	return functiontool.New(functiontool.Config{Name: "pay", RequireConfirmation: confirm}, func(_ adkagent.Context, in adkPayArgs) (map[string]any, error) {
		w.act("pay " + strconv.Itoa(in.Order))
		if lost--; lost >= 0 {
			return nil, errors.New("i/o timeout")
		}
		return map[string]any{"paid": true}, nil
	})
}

// adkRun gives a runner one message and returns the id of a confirmation that
// is asked for.
func adkRun(ctx context.Context, r *runner.Runner, part *genai.Part) (asked string, err error) {
	for event, err := range r.Run(ctx, "user", "session", &genai.Content{Role: "user", Parts: []*genai.Part{part}}, adkagent.RunConfig{}) {
		if err != nil {
			return "", err
		}
		if event.Content == nil {
			continue
		}
		for _, p := range event.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_confirmation" {
				asked = p.FunctionCall.ID
			}
		}
	}
	return asked, nil
}

// sameApproval: a client sends its user's approval again, as after a timeout.
func sameApproval(ctx context.Context, w *world) error {
	model := scripted.New(scripted.CallTools(scripted.Use("pay", `{"order":7}`)))
	model.Otherwise(scripted.Say("I see."))
	defer model.Close()
	pay, err := adkPay(w, true, 0)
	if err != nil {
		return err
	}
	var plugins []*plugin.Plugin
	if w.guarded {
		ex, err := w.executor(ctx, settle.WithGuarded(payByOrder()))
		if err != nil {
			return err
		}
		guard, err := settleadk.Plugin(ex)
		if err != nil {
			return err
		}
		plugins = append(plugins, guard)
	}
	a, err := llmagent.New(llmagent.Config{Name: "payer", Model: chatmodel.New(model.URL()), Tools: []tool.Tool{pay}})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: plugins}})
	if err != nil {
		return err
	}
	asked, err := adkRun(ctx, r, genai.NewPartFromText("Pay order 7."))
	if err != nil {
		return err
	}
	yes := &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: asked, Name: "adk_request_confirmation", Response: map[string]any{"confirmed": true}}}
	for range 2 {
		if _, err := adkRun(ctx, r, yes); err != nil {
			return err
		}
	}
	return nil
}

// nodeRetry: the retry policy of a workflow repeats every error.
func nodeRetry(ctx context.Context, w *world) error {
	pay, err := adkPay(w, false, 1)
	if err != nil {
		return err
	}
	if w.guarded {
		ex, err := w.executor(ctx, settle.WithGuarded(payByOrder()))
		if err != nil {
			return err
		}
		if pay, err = settleadk.Tool(ex, pay); err != nil {
			return err
		}
	}
	retry := workflow.DefaultRetryConfig()
	retry.InitialDelay = time.Millisecond
	node, err := workflow.NewToolNode(pay, workflow.NodeConfig{RetryConfig: retry})
	if err != nil {
		return err
	}
	order := workflow.NewFunctionNode("order", func(adkagent.Context, any) (map[string]any, error) { return map[string]any{"order": 7}, nil }, workflow.NodeConfig{})
	a, err := workflowagent.New(workflowagent.Config{Name: "flow", Edges: workflow.Chain(workflow.Start, order, node)})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return err
	}
	_, err = adkRun(ctx, r, genai.NewPartFromText("go"))
	return err
}
