package settleadk

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
)

// Plugin puts the executor before every tool of the agents that a runner runs.
// The contract of a tool is found by its name, among those of
// [settle.WithGuarded]; without one it is Unsafe, and all of its arguments
// identify a call (R1).
//
// The tools in a request to the model are replaced by guarded ones, so that all
// other callbacks run as before and outside the guard. Two ways through the
// framework make no such request: a call that was resumed after its confirmation,
// and a live session. There the plugin runs the tool itself, in its
// BeforeToolCallback, which leaves out the BeforeToolCallbacks of later plugins
// and of the agent: register it last.
//
// An agent as a tool has a runner of its own, which has no plugins: the run ends
// with an error unless [Unguarded] names it, which says that its tools are guarded
// by [Tool].
//
// At the beginning of each invocation the model is told what the task has done
// and what is open (R60), in the system instruction.
//
// A mistake of the host, such as no task, is an error of the run before the
// model is asked.
func Plugin(x *settle.Executor, options ...Option) (*plugin.Plugin, error) {
	g := newGuard(x, options)
	return plugin.New(plugin.Config{
		Name:                "settle",
		BeforeModelCallback: g.beforeModel,
		BeforeToolCallback:  g.beforeTool,
		AfterRunCallback:    func(ctx agent.InvocationContext) { g.briefs.Delete(ctx.InvocationID()) },
	})
}

// beforeModel adds the brief and guards the tools of a request.
func (g *guard) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	brief, err := g.brief(ctx)
	if err != nil {
		return nil, err
	}
	instruct(req, brief)
	for name, offered := range req.Tools {
		switch t := offered.(type) {
		case shown:
		case function:
			if err := g.unseen(t); err != nil {
				return nil, err
			}
			if !g.passes(t) {
				req.Tools[name] = &guarded{function: t, guard: g, tells: true}
			}
		case streaming:
			// A confirmed call of it would be resumed past every callback.
			return nil, fmt.Errorf("settleadk: %q is a streaming tool, which adk runs past its plugins: give the agent settleadk.Tool(executor, tool) instead", name)
		}
	}
	return nil, nil
}

// brief is the same throughout an invocation: the next one begins with another.
func (g *guard) brief(ctx agent.Context) (string, error) {
	if brief, ok := g.briefs.Load(ctx.InvocationID()); ok {
		return brief.(string), nil
	}
	scoped, err := g.scope(ctx)
	if err != nil {
		return "", err
	}
	brief, err := g.executor.Brief(scoped)
	if err != nil {
		return "", err
	}
	g.briefs.Store(ctx.InvocationID(), brief)
	return brief, nil
}

// instruct puts the brief behind the instructions of a request, which is made
// anew for each call of the model.
func instruct(req *model.LLMRequest, brief string) {
	if brief == "" {
		return
	}
	if req.Config == nil {
		req.Config = &genai.GenerateContentConfig{}
	}
	if req.Config.SystemInstruction == nil {
		req.Config.SystemInstruction = genai.NewContentFromText(brief, genai.RoleUser)
		return
	}
	system := *req.Config.SystemInstruction
	system.Parts = append(append([]*genai.Part(nil), system.Parts...), genai.NewPartFromText(brief))
	req.Config.SystemInstruction = &system
}

// beforeTool runs a tool that beforeModel hasn't met, and returns what it
// returned: never nil, which would make the framework run it once more.
func (g *guard) beforeTool(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	f, ok := t.(function)
	if _, already := t.(shown); !ok || already || g.passes(f) {
		return nil, nil
	}
	if err := g.unseen(f); err != nil {
		return nil, err
	}
	result, err := g.run(ctx, f, args, true)
	if err == nil && result == nil {
		result = map[string]any{}
	}
	return result, err
}

// unseen is the error of an agent as a tool: adk gives it a runner of its own,
// without plugins, so that its tools would act unguarded. Whether they are
// guarded themselves can't be seen from here.
func (g *guard) unseen(t function) error {
	if slices.Contains(g.unguarded, t.Name()) || !isAgent(reflect.ValueOf(t)) {
		return nil
	}
	return fmt.Errorf("settleadk: %q is an agent as a tool, whose own tools adk runs past its plugins: give that agent settleadk.Tool(executor, tool) for each of them, then name it in settleadk.Unguarded", t.Name())
}

// isAgent says that a tool is an agent, also within what others have put around
// it: tool.WithConfirmation embeds the tool that it asks for.
func isAgent(t reflect.Value) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	if t.Type().PkgPath() == "google.golang.org/adk/v2/tool/agenttool" {
		return true
	}
	for i := range t.NumField() {
		if f := t.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Interface && isAgent(t.Field(i)) {
			return true
		}
	}
	return false
}

// packageOf is the path of the package that a tool's type comes from.
func packageOf(t tool.Tool) string {
	of := reflect.TypeOf(t)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.PkgPath()
}

// steers says that a tool is adk's own machinery: what it does is to change
// where the run goes, so that a replay of its answer would do nothing.
func steers(t tool.Tool) bool {
	if _, ok := t.(interface{ DefersResponse() bool }); ok {
		return true
	}
	return strings.HasPrefix(packageOf(t), "google.golang.org/adk/v2/internal/")
}
