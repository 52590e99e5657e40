package settlelangchaingo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/tools/internal/own"
)

// Guarded is a tool of langchaingo. Its contract is found by its name, among
// those of [settle.WithGuarded]; without one the tool is Unsafe, and all of its
// input identifies a call (R1).
type Guarded struct {
	Tool tools.Tool
	// Schema is the JSON Schema of a tool that takes an object: its input has to
	// be one that fits, and the contract speaks of its fields. Without a schema
	// the input is text, white space around it apart, and the contract knows it
	// as the one field "input"; a contract with other identity fields is an error
	// of each call.
	Schema json.RawMessage
}

// Guard returns the tools with the executor before each of their calls.
//
// What a tool returns passes through untouched where it ran for this call. Its
// error means what [settle.NotSent] and [settle.Rejected] say, otherwise an
// unknown outcome, and becomes text; that of [settle.Interrupted] ends
// langchaingo's executor, as it came. A Keyed tool takes its key from
// [settle.KeyFrom]. The caller's cancellation doesn't reach a tool unless its
// contract is Interruptible (R24).
//
// Names that differ in upper and lower case only are refused, since langchaingo
// finds one tool by both, and so is one of a tool that the executor runs itself
// ([Tools]).
func Guard(x *settle.Executor, guarded ...Guarded) ([]tools.Tool, error) {
	var all []tools.Tool
	var problems []error
	for i, g := range guarded {
		if g.Tool == nil {
			problems = append(problems, fmt.Errorf("settlelangchaingo: guarded tool %d is nil", i))
			continue
		}
		name := g.Tool.Name()
		var err error
		switch {
		case name == "":
			err = errors.New("it has no name")
		case slices.ContainsFunc(all, func(t tools.Tool) bool { return sameTool(t.Name(), name) }):
			err = errors.New("its name is given twice, upper and lower case being one for langchaingo")
		case own.Runs(x, name, sameTool):
			err = own.ErrRuns
		case len(g.Schema) > 0:
			_, err = schema.ParseForeign(g.Schema)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("settlelangchaingo: guarded tool %q: %w", name, err))
			continue
		}
		all = append(all, guardedTool{g.Tool, x, g.Schema})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// sameTool says whether langchaingo, which looks a name up in upper case, may take
// two for one.
func sameTool(a, b string) bool { return strings.EqualFold(strings.ToUpper(a), strings.ToUpper(b)) }

// guardedTool is a tool with the executor before it.
type guardedTool struct {
	tools.Tool
	executor *settle.Executor
	schema   json.RawMessage
}

func (t guardedTool) Call(ctx context.Context, input string) (string, error) {
	call, ok := t.call(input)
	if !ok {
		return settle.Outcome{Status: settle.StatusInvalidArguments, Tool: t.Name(), Detail: "the input is no valid UTF-8"}.ForModel(), nil
	}
	said, out, err := settle.Around(ctx, t.executor, call, func(ctx context.Context) (string, error) {
		if args, _ := settle.ArgumentsFrom(ctx); len(t.schema) > 0 && string(args) != string(call.Args) {
			return t.Tool.Call(ctx, string(args))
		}
		return t.Tool.Call(ctx, input)
	})
	switch {
	case err != nil:
		return "", err
	case out.Status == settle.StatusInvalidArguments && len(t.schema) == 0 && slices.ContainsFunc(out.Fields, isNoInput):
		// No input of the model's would do.
		return "", fmt.Errorf("settlelangchaingo: the contract of tool %q speaks of the field %s, but without a Schema its input is text, known as the one field \"input\": give its Guarded a Schema; nothing was done",
			t.Name(), strings.Join(out.Fields, ", "))
	case out.Status == settle.StatusCompleted && !out.Replayed && said != "":
		return said, nil
	}
	return out.ForModel(), nil
}

func isNoInput(field string) bool { return field != textField }

// textField is what the contract of a tool without a schema calls its input.
const textField = "input"

// call is what the executor is asked for. Text that isn't UTF-8 can't be one
// without another text becoming the same.
func (t guardedTool) call(input string) (_ settle.Call, ok bool) {
	trimmed := strings.TrimSpace(input)
	if len(t.schema) > 0 {
		return settle.Call{Tool: t.Name(), Args: json.RawMessage(trimmed), Schema: t.schema}, true
	}
	args, err := json.Marshal(map[string]string{textField: trimmed})
	return settle.Call{Tool: t.Name(), Args: args}, err == nil && utf8.ValidString(trimmed)
}
