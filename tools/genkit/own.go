package settlegenkit

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/settle-go/settle"
)

// Tools offers the executor's own tools to a Generate, for [ai.WithTools]: those
// of [settle.WithTools], in their order; with names, only those.
func (g *Guard) Tools(names ...string) []ai.ToolRef {
	return g.offer(names, func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef {
		return ai.NewMultipartTool(name, description, run, schema)
	})
}

// Define is [Guard.Tools] for prompts, whose tools have to be registered. It
// panics, as genkit does, where the registry has a tool with the name.
func (g *Guard) Define(registry *genkit.Genkit, names ...string) []ai.ToolRef {
	return g.offer(names, func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef {
		return genkit.DefineMultipartTool(registry, name, description, run, schema)
	})
}

type toolFunc = ai.MultipartToolFunc[any]

// offer makes a tool of genkit of each of the executor's.
func (g *Guard) offer(names []string, with func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef) []ai.ToolRef {
	var all []ai.ToolRef
	for _, d := range g.executor.Tools() {
		if d.Guarded || len(d.Schema) == 0 || len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		g.mu.Lock()
		g.own[d.Name] = true
		g.mu.Unlock()
		var schema map[string]any
		_ = json.Unmarshal(d.Schema, &schema) // an object: the executor has parsed it
		all = append(all, with(d.Name, d.Description, g.runner(d.Name), ai.WithInputSchema(schema)))
	}
	return all
}

func (g *Guard) runs(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own[name]
}

func (g *Guard) runner(name string) toolFunc {
	return func(ctx *ai.ToolContext, input any) (*ai.MultipartToolResponse, error) {
		call, err := callOf(name, "", input)
		if err != nil {
			return nil, err
		}
		return g.execute(ctx, call)
	}
}

// execute runs a tool of the executor. In a Generate with the guard it is the
// middleware that calls it, with the call's id and before genkit checks the
// arguments, which would end Generate.
func (g *Guard) execute(ctx context.Context, call settle.Call) (*ai.MultipartToolResponse, error) {
	out, err := g.executor.Execute(g.scope(ctx), call)
	if err != nil {
		return nil, err
	}
	return g.told(out, false)
}
