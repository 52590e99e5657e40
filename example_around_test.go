package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
)

// A tool that a framework owns keeps its own result type. The host says what it
// promises; the framework runs it.
func ExampleAround() {
	type message struct{ Text string } // the framework's own
	contract := settle.RawTool{Name: "post", Contract: settle.Contract{Identity: []string{"channel", "topic"}, NoLookup: true}}
	x, err := settle.New(memory.New(), settle.WithGuarded(contract), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	call := settle.Call{Tool: "post", Args: json.RawMessage(`{"channel":"ops","topic":"deploy","text":"done"}`)}
	for range 2 {
		result, out, err := settle.Around(exampleScope(), x, call, func(context.Context) (message, error) {
			return message{"posted"}, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %q\n", result.Text, out.Note())
	}
	// Output:
	// posted ""
	// posted "post was carried out before; nothing new was done for this call."
}

// A framework's tool that deduplicates by key at its far side takes the key from
// its context.
func ExampleKeyFrom() {
	contract := settle.RawTool{Name: "charge", Contract: settle.Contract{
		Class: settle.Keyed, KeyWindow: settle.Permanent, Identity: []string{"order"}, NoLookup: true}}
	x, err := settle.New(memory.New(), settle.WithGuarded(contract), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	call := settle.Call{Tool: "charge", Args: json.RawMessage(`{"order":"A-1"}`)}
	_, out, err := settle.Around(exampleScope(), x, call, func(ctx context.Context) (string, error) {
		key, ok := settle.KeyFrom(ctx)
		fmt.Println(len(key), ok)
		return "charged", nil
	})
	fmt.Println(out.Status, err)
	// Output:
	// 39 true
	// completed <nil>
}

// A framework's control flow reaches the framework as it is. The tool's word is
// that it sent nothing, so the call may come again.
func ExampleInterrupted() {
	x, err := settle.New(memory.New(), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	needsInput := errors.New("input required") // the framework's own
	call := settle.Call{Tool: "ask", Args: json.RawMessage(`{"question":"which seat?"}`)}
	_, out, err := settle.Around(exampleScope(), x, call, func(context.Context) (string, error) {
		return "", settle.Interrupted(needsInput)
	})
	fmt.Println(out.Status, errors.Is(err, needsInput))
	// Output:
	// not_done true
}

// A result that arrives as a stream is recorded at its end.
func ExampleExecutor_Begin() {
	x, err := settle.New(memory.New(), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	call := settle.Call{Tool: "draw", Args: json.RawMessage(`{"what":"a lighthouse"}`)}
	for range 2 {
		attempt, out, err := x.Begin(exampleScope(), call)
		if err != nil {
			fmt.Println(err)
			return
		}
		if attempt == nil { // it doesn't run now: the outcome is the answer
			fmt.Println(out.Status, "replayed:", out.Replayed, string(out.Result))
			return
		}
		picture := ""
		for _, chunk := range []string{"light", "house"} {
			picture += chunk // on its way to the reader
		}
		fmt.Println(attempt.End(picture, nil).Status)
	}
	// Output:
	// completed
	// completed replayed: true "lighthouse"
}
