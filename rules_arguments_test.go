package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// What attempts are given of the arguments.

type orderArgs struct {
	Order string            `json:"order" settle:"identity"`
	Lines []string          `json:"lines"`
	Tags  map[string]string `json:"tags"`
	Note  *string           `json:"note"`
}

// spoil writes in everything that a handler can write in.
func spoil(in orderArgs) {
	in.Lines[0], in.Tags["a"], *in.Note = "spoiled", "spoiled", "spoiled"
}

func TestR29EachAttemptHasArgumentsOfItsOwn(t *testing.T) {
	const sent = `{"order":"A-1","lines":["one"],"tags":{"a":"b"},"note":"n"}`
	keyed := settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}
	raw := keyed
	raw.Identity = []string{"order"}
	read := settle.Contract{Class: settle.Read}
	lost := errors.New("the answer is lost")
	// Each of these tells what it was given, spoils it, and fails.
	tools := map[string]func(saw func(any)) settle.AnyTool{
		"a struct": func(saw func(any)) settle.AnyTool {
			return settle.Tool[orderArgs, paid]{Name: "order", Contract: keyed, Do: func(_ context.Context, op settle.Op, in orderArgs) (paid, error) {
				op.Key()
				saw(in)
				spoil(in)
				return paid{}, lost
			}}
		},
		"a pointer": func(saw func(any)) settle.AnyTool {
			return settle.Tool[*orderArgs, paid]{Name: "order", Contract: keyed, Do: func(_ context.Context, op settle.Op, in *orderArgs) (paid, error) {
				op.Key()
				saw(in)
				spoil(*in)
				in.Order = "spoiled"
				return paid{}, lost
			}}
		},
		"JSON": func(saw func(any)) settle.AnyTool {
			return settle.RawTool{Name: "order", Contract: raw, Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}`),
				Do: func(_ context.Context, op settle.Op, in json.RawMessage) (json.RawMessage, error) {
					op.Key()
					saw(in)
					for i := range in {
						in[i] = 'x'
					}
					return nil, lost
				}}
		},
		"of a read": func(saw func(any)) settle.AnyTool {
			return settle.Tool[orderArgs, paid]{Name: "order", Contract: read, Do: func(_ context.Context, _ settle.Op, in orderArgs) (paid, error) {
				saw(in)
				spoil(in)
				return paid{}, lost
			}}
		},
	}
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			g := inMemory(t)
			var given []string
			x := g.executor(tool(func(in any) {
				encoded, err := json.Marshal(in)
				if err != nil {
					g.Error(err)
				}
				given = append(given, string(encoded))
			}))
			g.do(g.ctx, x, settle.Call{Tool: "order", Args: json.RawMessage(sent)})
			if len(given) != 3 || slices.ContainsFunc(given, func(s string) bool { return s != sent }) {
				t.Errorf("the attempts were given %q", given)
			}
		})
	}
}

// A caller that has gone may use the buffer of its request for another one.
func TestR24AGoneCallersBufferIsItsOwn(t *testing.T) {
	g := inMemory(t)
	x := g.executor()
	ctx, leave := context.WithCancel(g.ctx)
	entered, reused, seen := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	go func() {
		<-entered
		leave()
	}()
	args := []byte(`{"order":"A-1"}`)
	_, out, err := settle.Around(ctx, x, settle.Call{Tool: "pay", Args: args}, func(ctx context.Context) (string, error) {
		close(entered)
		<-reused
		given, _ := settle.ArgumentsFrom(ctx)
		seen <- string(given)
		return "paid", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g.wantStatus(out, settle.StatusInProgress)
	copy(args, `{"order":"B-2"}`)
	close(reused)
	select {
	case given := <-seen:
		if given != `{"order":"A-1"}` {
			t.Errorf("the tool was given %s", given)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the tool doesn't return")
	}
}

// The host's other functions are given copies as well.
func TestR29NobodyWritesInAnothersArguments(t *testing.T) {
	const sent = `{"order":"A-1","amount":5}`
	g := inMemory(t)
	contract := keyedContract()
	contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		if string(a.Args) != sent {
			t.Errorf("%s is asked for with %s", a.Purpose, a.Args)
		}
		clear(a.Args)
		return nil
	}
	contract.NoLookup = true
	x := g.executorWith(settle.WithGuarded(settle.Tool[payArgs, paid]{Name: "pay", Contract: contract}))
	attempts := 0
	_, out, err := settle.Around(g.ctx, x, settle.Call{Tool: "pay", Args: json.RawMessage(sent)}, func(ctx context.Context) (string, error) {
		attempts++
		if _, ok := settle.KeyFrom(ctx); !ok {
			t.Error("there is no key")
		}
		for range 2 {
			given, _ := settle.ArgumentsFrom(ctx)
			if string(given) != sent {
				t.Errorf("attempt %d is given %s", attempts, given)
			}
			clear(given)
		}
		return "", errors.New("the answer is lost")
	})
	if err != nil {
		t.Fatal(err)
	}
	g.wantStatus(out, settle.StatusUnknown)
	if attempts != 3 {
		t.Errorf("there were %d attempts", attempts)
	}
}
