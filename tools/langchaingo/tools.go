package settlelangchaingo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
)

// Tools returns tools that the executor runs itself as tools of langchaingo:
// those with the given names, or all that have a schema. Their input is a JSON
// object. langchaingo shows the model no schemas, so each description ends with
// the tool's.
func Tools(x *settle.Executor, names []string) ([]tools.Tool, error) {
	var all []tools.Tool
	missing := slices.Clone(names)
	for _, d := range x.Tools() {
		if d.Guarded || len(names) == 0 && len(d.Schema) == 0 || len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == d.Name })
		all = append(all, executorTool{x, d})
	}
	var problems []error
	for _, name := range missing {
		problems = append(problems, fmt.Errorf("settlelangchaingo: tool %q: the executor has none with this name: register it with settle.WithTools", name))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// executorTool is a tool that the executor runs.
type executorTool struct {
	executor *settle.Executor
	declared settle.Declaration
}

func (t executorTool) Name() string { return t.declared.Name }

func (t executorTool) Description() string {
	return strings.TrimSpace(t.declared.Description + " The input is a JSON object that fits this schema: " + string(t.declared.Schema))
}

func (t executorTool) Call(ctx context.Context, input string) (string, error) {
	out, err := t.executor.Execute(ctx, settle.Call{Tool: t.declared.Name, Args: json.RawMessage(strings.TrimSpace(input))})
	if err != nil {
		return "", err
	}
	return out.ForModel(), nil
}
