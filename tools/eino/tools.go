package settleeino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/own"
)

// Tools returns tools that the executor runs itself as tools of eino: those with
// the given names, or all that have a schema. They need no middleware, and pass
// one that was made with them in its config.
func Tools(x *settle.Executor, names []string, options ...Option) ([]tool.BaseTool, error) {
	var all []tool.BaseTool
	var problems []error
	found, missing := own.Tools(x, names)
	for _, d := range found {
		parameters := new(jsonschema.Schema)
		if err := json.Unmarshal(d.Schema, parameters); err != nil {
			problems = append(problems, fmt.Errorf("settleeino: tool %q: its schema is none for eino: %w", d.Name, err))
			continue
		}
		all = append(all, &executorTool{x, apply(options), &schema.ToolInfo{
			Name: d.Name, Desc: d.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(parameters),
		}})
	}
	problems = append(problems, own.Missing("settleeino", missing))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// executorTool is a tool that the executor runs.
type executorTool struct {
	executor *settle.Executor
	settings settings
	info     *schema.ToolInfo
}

func (t *executorTool) Info(context.Context) (*schema.ToolInfo, error) { return t.info, nil }

// errGuardedTwice: the middleware's own attempt would be the call's, and the
// executor's one inside of it the same operation.
var errGuardedTwice = errors.New("settleeino: a tool of Tools runs behind a Middleware that doesn't know it: " +
	"make the middleware with a config that has the tool; nothing was done")

func (t *executorTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	if ctx.Value(guardedKey{}) == t.info.Name {
		return "", settle.Interrupted(errGuardedTwice)
	}
	under, err := scoped(ctx)
	if err != nil {
		return "", err
	}
	out, err := t.executor.Execute(under, settle.Call{Tool: t.info.Name, Args: json.RawMessage(arguments), CallID: compose.GetToolCallID(ctx)})
	if err != nil {
		return "", err
	}
	if err := t.settings.parked(ctx, out); err != nil {
		return "", err
	}
	return out.ForModel(), nil
}

// NoSuchTool is a compose.ToolsNodeConfig.UnknownToolsHandler that tells the
// model so, and that nothing was done. Without a handler, an invented name ends
// the agent before any call of the turn runs.
func NoSuchTool(_ context.Context, name, _ string) (string, error) {
	return settle.Outcome{Status: settle.StatusNoSuchTool, Tool: name}.ForModel(), nil
}
