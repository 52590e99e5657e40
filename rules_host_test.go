package settle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/sqlite"
)

// What the host's own functions do beside acting: panic, or end their goroutine.

// fragile reads itself as it is told to.
type fragile struct{ how string }

func (f fragile) MarshalJSON() ([]byte, error) { return json.Marshal(f.how) }

func (f *fragile) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &f.how); err != nil {
		return err
	}
	leave(f.how)
	return nil
}

func leave(how string) {
	switch how {
	case "panic":
		panic("s3cret")
	case "exit":
		runtime.Goexit()
	}
}

type fragileArgs struct {
	Order string  `json:"order" settle:"identity"`
	How   fragile `json:"how"`
}

// lines is a log that many goroutines write.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// hostTools are a read and an unsafe tool whose host functions leave as the
// arguments say, and one that a framework runs.
func hostTools() (own, guarded []settle.AnyTool) {
	read, pay := settle.Contract{Class: settle.Read}, unsafeContract()
	authorize := func(_ context.Context, a settle.Authorization) error {
		for _, how := range []string{"panic", "exit"} {
			if bytes.Contains(a.Args, []byte("authorize "+how)) {
				leave(how)
			}
		}
		return nil
	}
	read.Authorize, pay.Authorize = authorize, authorize
	normal := unsafeContract()
	normal.Normalize = map[string]settle.Normalizer{"order": {Name: "n", Func: func(s string) string {
		leave(strings.TrimPrefix(s, "normalise "))
		return s
	}}}
	own = []settle.AnyTool{
		settle.Tool[fragileArgs, paid]{Name: "read", Contract: read, Do: does[fragileArgs, paid]()},
		settle.Tool[fragileArgs, paid]{Name: "pay", Contract: pay, Do: does[fragileArgs, paid]()},
		settle.Tool[fragileArgs, paid]{Name: "normal", Contract: normal, Do: does[fragileArgs, paid]()},
	}
	return own, []settle.AnyTool{settle.Tool[fragileArgs, paid]{Name: "theirs", Contract: pay}}
}

// A function of the host's that doesn't return ends no call without an outcome,
// and is told in the log without what it was called with (R55).
func TestR27HostFunctionsThatDontReturnEndNoCall(t *testing.T) {
	for _, c := range []struct {
		tool, order, how string
		status           settle.Status
	}{
		{"read", "A-1", "panic", settle.StatusInvalidArguments},
		{"read", "A-1", "exit", settle.StatusInvalidArguments},
		{"read", "A-1", "authorize panic", settle.StatusDenied},
		{"read", "A-1", "authorize exit", settle.StatusDenied},
		{"pay", "A-1", "panic", settle.StatusInvalidArguments},
		{"pay", "A-1", "exit", settle.StatusInvalidArguments},
		{"pay", "A-1", "authorize panic", settle.StatusDenied},
		{"pay", "A-1", "authorize exit", settle.StatusDenied},
		{"normal", "normalise panic", "", settle.StatusInvalidArguments},
		{"normal", "normalise exit", "", settle.StatusInvalidArguments},
		{"theirs", "A-1", "panic", settle.StatusInvalidArguments},
		{"theirs", "A-1", "exit", settle.StatusInvalidArguments},
		{"theirs", "A-1", "authorize exit", settle.StatusDenied},
	} {
		t.Run(c.tool+" "+c.order+" "+c.how, func(t *testing.T) {
			g := inMemory(t)
			own, guarded := hostTools()
			log := &lines{}
			x := g.executorWith(settle.WithTools(own...), settle.WithGuarded(guarded...), settle.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
			args, err := json.Marshal(map[string]string{"order": c.order, "how": c.how})
			if err != nil {
				t.Fatal(err)
			}
			call := settle.Call{Tool: c.tool, Args: args}
			var out settle.Outcome
			if c.tool == "theirs" {
				var attempt *settle.Attempt
				if attempt, out, err = x.Begin(g.ctx, call); attempt != nil {
					t.Error("an attempt was begun")
				}
			} else {
				var outs []settle.Outcome
				fine := settle.Call{Tool: "read", Args: json.RawMessage(`{"order":"B-2","how":""}`)}
				if outs, err = x.ExecuteAll(g.ctx, fine, call); err == nil {
					g.wantStatus(outs[0], settle.StatusCompleted)
					out = outs[1]
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			g.wantStatus(out, c.status)
			if out.Tool != c.tool || strings.Contains(out.ForModel(), "host") {
				t.Errorf("tool %q, and the model is told: %s", out.Tool, out.ForModel())
			}
			if written := log.String(); !strings.Contains(written, "level=ERROR") || strings.Contains(written, "s3cret") || strings.Contains(written, "A-1") {
				t.Errorf("the log says %q", written)
			}
		})
	}
}

// textArgs are the same arguments, as an older version of the tool read them.
type textArgs struct {
	Order string `json:"order" settle:"identity"`
	How   string `json:"how"`
}

// A decoder that fails is asked only where the ledger has no answer (R18), and what
// it can't read of what is stored is a case (R38).
func TestR18WhatIsRecordedAnswersThoughADecoderDoesNotReturn(t *testing.T) {
	keyed := settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}
	for _, how := range []string{"panic", "exit"} {
		t.Run(how, func(t *testing.T) {
			g := onFile(t)
			call := settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"A-1","how":"` + how + `"}`)}
			before := settle.Tool[textArgs, paid]{Name: "pay", Contract: keyed, Do: does[textArgs, paid]()}
			after := settle.Tool[fragileArgs, paid]{Name: "pay", Contract: keyed, Do: does[fragileArgs, paid]()}
			g.want(g.executor(before), call, settle.StatusCompleted)
			x := g.executor(after)
			if out := g.want(x, call, settle.StatusCompleted); !out.Replayed {
				t.Error("it was done again")
			}
			left := g.crashed(before, settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"A-2","how":"` + how + `"}`)})
			g.recoverEvery(10*time.Minute, 3, x)
			if row := g.row(settle.Outcome{Operation: left.ID.String()}); row.State != store.Manual || row.Reason != "arguments_undecodable" {
				t.Errorf("arguments that can't be read any more are %s (%s)", row.State, row.Reason)
			}
		})
	}
}

func TestR02ABoundBelowZeroIsAMistake(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]settle.Option{"WithArgumentLimit": settle.WithArgumentLimit(-1), "WithResultLimit": settle.WithResultLimit(-1),
		"WithConcurrency": settle.WithConcurrency(-1), "WithRedelivery": settle.WithRedelivery(-time.Hour)} {
		if x, err := settle.New(memory.New(), option); x != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: it was built: %v, error %v", name, x != nil, err)
		}
	}
}

// What is nil is a mistake that New tells, like any other.
func TestR02NothingIsNil(t *testing.T) {
	t.Parallel()
	var tool *settle.Tool[payArgs, paid]
	var file *sqlite.Ledger
	composite := settle.Tool[payArgs, paid]{Name: "all", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{nil}, Do: does[payArgs, paid]()}
	for name, build := range map[string]func() (*settle.Executor, error){
		"a ledger":         func() (*settle.Executor, error) { return settle.New(nil) },
		"a typed ledger":   func() (*settle.Executor, error) { return settle.New(file) },
		"an option":        func() (*settle.Executor, error) { return settle.New(memory.New(), nil) },
		"a tool":           func() (*settle.Executor, error) { return settle.New(memory.New(), settle.WithTools(nil)) },
		"a tool's pointer": func() (*settle.Executor, error) { return settle.New(memory.New(), settle.WithTools(tool)) },
		"a guarded tool":   func() (*settle.Executor, error) { return settle.New(memory.New(), settle.WithGuarded(nil)) },
		"a step": func() (*settle.Executor, error) {
			return settle.New(memory.New(), settle.Volatile(), settle.WithTools(composite))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := build()
			if x != nil || err == nil {
				t.Fatalf("it was built, with the error %v", err)
			}
			var wrong *settle.ToolError
			if isTool := strings.Contains(name, "tool") || name == "a step"; isTool != errors.As(err, &wrong) {
				t.Errorf("the error is %T: %v", err, err)
			}
		})
	}
}
