package settlegenkit

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/own"
)

// Tools offers the executor's own tools to a Generate, for [ai.WithTools]: those
// of [settle.WithTools], in their order; with names, only those. A name that the
// executor doesn't have is left to genkit to find, which is an error of Generate
// where there is none.
func (g *Guard) Tools(names ...string) []ai.ToolRef {
	all, missing := g.offer(names, func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef {
		return ai.NewMultipartTool(name, description, run, schema)
	})
	for _, name := range missing {
		all = append(all, ai.ToolName(name))
	}
	return all
}

// Define is [Guard.Tools] for prompts, whose tools have to be registered. It
// panics, as genkit does, where the registry has a tool with the name, and where
// the executor has none.
func (g *Guard) Define(registry *genkit.Genkit, names ...string) []ai.ToolRef {
	all, missing := g.offer(names, func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef {
		return genkit.DefineMultipartTool(registry, name, description, run, schema)
	})
	if len(missing) > 0 {
		panic(fmt.Sprintf("settlegenkit: tools %q: the executor has none with this name: register it with settle.WithTools", missing))
	}
	return all
}

type toolFunc = ai.MultipartToolFunc[any]

// offer makes a tool of genkit of each of the executor's, and names those that it
// doesn't have.
func (g *Guard) offer(names []string, with func(name, description string, run toolFunc, schema ai.ToolOption) ai.ToolRef) (all []ai.ToolRef, missing []string) {
	found, missing := own.Tools(g.executor, names)
	for _, d := range found {
		g.mu.Lock()
		g.own[d.Name] = true
		g.mu.Unlock()
		var schema map[string]any
		_ = json.Unmarshal(d.Schema, &schema) // an object: the executor has parsed it
		all = append(all, with(d.Name, d.Description, g.runner(d.Name), ai.WithInputSchema(schema)))
	}
	return all, missing
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
