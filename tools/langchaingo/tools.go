package settlelangchaingo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/own"
)

// Tools returns tools that the executor runs itself as tools of langchaingo:
// those with the given names, or all that have a schema. Their input is a JSON
// object. langchaingo shows the model no schemas, so each description ends with
// the tool's.
func Tools(x *settle.Executor, names []string) ([]tools.Tool, error) {
	var all []tools.Tool
	found, missing := own.Tools(x, names)
	if err := own.Missing("settlelangchaingo", missing); err != nil {
		return nil, err
	}
	for i, d := range found {
		for _, before := range found[:i] {
			if sameTool(before.Name, d.Name) {
				return nil, fmt.Errorf("settlelangchaingo: tools %q and %q differ in upper and lower case only, which is one name for langchaingo: offer one of them", before.Name, d.Name)
			}
		}
		all = append(all, executorTool{x, d})
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
