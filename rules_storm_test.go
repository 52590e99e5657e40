package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Everything at once: several processes, many callers that come and go, workers,
// a ledger that loses requests and answers, a far side that does the same. What
// the far side did is the oracle.

// oracle is a far side that knows what it did, by tool and order.
type oracle struct {
	mu sync.Mutex
	// done are the keys under which each order of a tool was acted on.
	done map[string][]string
	// stands is what was written last, by order, for idempotent writes.
	stands map[string]int
	// calm says that the storm is over and lookups answer.
	calm atomic.Bool
}

// act does the effect, once for each key where it deduplicates.
func (o *oracle) act(tool string, in payArgs, key string, dedups bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if tool == "write" {
		o.stands[in.Order] = in.Amount
		return
	}
	name := tool + " " + in.Order
	if dedups && slices.Contains(o.done[name], key) {
		return
	}
	o.done[name] = append(o.done[name], key)
}

func (o *oracle) find(tool, order, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.done[tool+" "+order], key)
}

// stormy is a tool whose attempts end by chance.
func (o *oracle) stormy(tool string, c settle.Contract, lookup bool) settle.Tool[payArgs, paid] {
	c.Timeout, c.VisibilityDelay = 300*time.Millisecond, settle.Immediately
	t := settle.Tool[payArgs, paid]{Name: tool, Contract: c}
	t.Do = func(_ context.Context, op settle.Op, in payArgs) (paid, error) {
		dedups := c.Class == settle.Keyed
		if rand.N(4) == 0 {
			pause(time.Duration(rand.N(3)) * time.Millisecond)
		}
		switch rand.N(8) {
		case 0:
			return paid{}, settle.NotSent(errors.New("no route"))
		case 1:
			return paid{}, errors.New("lost before")
		case 2:
			o.act(tool, in, op.Key(), dedups)
			return paid{}, errors.New("lost after")
		case 3:
			o.act(tool, in, op.Key(), dedups)
			panic("after acting")
		case 4:
			if in.Amount%2 == 1 {
				return paid{}, settle.Rejected(errors.New("odd"))
			}
		}
		o.act(tool, in, op.Key(), dedups)
		return paid{tool + in.Order}, nil
	}
	if lookup {
		t.Lookup = func(_ context.Context, q settle.Query[paid], in payArgs) (settle.Evidence, error) {
			switch {
			case rand.N(4) == 0 && !o.calm.Load():
				return settle.Evidence{}, errors.New("503")
			case o.find(tool, in.Order, q.Key()):
				return q.Happened(tool+in.Order, paid{tool + in.Order}), nil
			}
			return q.NotHappened(), nil
		}
	}
	return t
}

func TestNoStormHasASecondEffect(t *testing.T) {
	g := onFile(t)
	o := &oracle{done: map[string][]string{}, stands: map[string]int{}}
	day := 24 * time.Hour
	tools := []settle.AnyTool{
		o.stormy("blind", settle.Contract{NoLookup: true}, false), o.stormy("seen", settle.Contract{}, true),
		o.stormy("keyed", settle.Contract{Class: settle.Keyed, KeyWindow: day, NoLookup: true, Attempts: 3}, false),
		o.stormy("both", settle.Contract{Class: settle.Keyed, KeyWindow: day, Attempts: 3}, true),
		o.stormy("write", settle.Contract{Class: settle.Idempotent, Attempts: 3}, false),
	}
	names := []string{"blind", "seen", "keyed", "both", "write"}
	const rounds, callers, orders = 3, 12, 6
	for range rounds {
		executors := []*settle.Executor{g.executor(tools...), g.executor(tools...), g.executor(tools...)}
		var group sync.WaitGroup
		for c := range callers {
			group.Go(func() {
				for range 6 {
					ctx, cancel := g.ctx, context.CancelFunc(func() {})
					if rand.N(5) == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.N(4))*time.Millisecond)
					}
					g.maybeBreak()
					call := payCall(fmt.Sprint("A-", rand.N(orders)), 2*(1+rand.N(2)))
					call.Tool = names[rand.N(len(names))]
					if out, err := executors[c%3].Execute(ctx, call); err != nil {
						t.Error(err)
					} else if out.Status == settle.StatusCompleted && call.Tool != "write" && len(o.of(call.Tool, call)) == 0 {
						t.Errorf("%s is called completed and nothing was done", call.Tool)
					}
					cancel()
				}
			})
		}
		group.Go(func() {
			for range 3 {
				_, _ = executors[0].Recover(g.ctx) //nolint:errcheck // the ledger fails on purpose
			}
		})
		group.Wait()
		// The processes end in good order before the clock is set forward: a lease
		// that ends while its attempt is at work is what no ledger can survive.
		for _, x := range executors {
			if err := x.Shutdown(g.ctx); err != nil {
				t.Error(err)
			}
		}
		g.forward(time.Minute)
	}
	for _, method := range []string{"claim", "apply", "take", "intent", "audit"} {
		g.ledger.mend(method)
	}
	o.calm.Store(true)
	last := g.executor(tools...)
	for range 6 {
		g.recover(last)
		g.forward(3 * time.Hour)
	}
	o.check(g)
}

// of are the keys under which a call's order was acted on.
func (o *oracle) of(tool string, call settle.Call) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var order string
	if _, err := fmt.Sscanf(string(call.Args), `{"order":%q`, &order); err != nil {
		return nil
	}
	return slices.Clone(o.done[tool+" "+order])
}

// maybeBreak plans a fault by chance.
func (g *rig) maybeBreak() {
	methods, plans := []string{"claim", "apply", "apply", "take", "audit"}, []plan{down, lostRequest, lostAnswer, lostAnswer}
	if rand.N(3) == 0 {
		g.ledger.next(methods[rand.N(len(methods))], times(1+rand.N(5), plans[rand.N(len(plans))])...)
	}
}

// checkWrites: what stands is the newest write that is known to be made.
func (o *oracle) checkWrites(g *rig) {
	g.Helper()
	newest := map[string]store.Entry{}
	for _, e := range g.all() {
		var in payArgs
		if e.Tool != "write" || e.State == store.Failed {
			continue
		}
		if err := json.Unmarshal(e.Arguments, &in); err != nil {
			g.Fatal(err)
		}
		if e.ResourceSeq > newest[in.Order].ResourceSeq {
			newest[in.Order] = e
		}
	}
	for order, e := range newest {
		var in payArgs
		if err := json.Unmarshal(e.Arguments, &in); err != nil {
			g.Fatal(err)
		}
		if e.State == store.Completed && o.stands[order] != in.Amount {
			g.Errorf("the newest write on %s, number %d, is completed with %d, and %d stands", order, e.ResourceSeq, in.Amount, o.stands[order])
		}
	}
}

func (o *oracle) check(g *rig) {
	g.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checkWrites(g)
	for name, keys := range o.done {
		if len(keys) > 1 {
			g.Errorf("%s was acted on %d times, under %v", name, len(keys), keys)
		}
	}
	for _, e := range g.all() {
		var in payArgs
		if _, err := fmt.Sscanf(string(e.Arguments), `{"order":%q`, &in.Order); err != nil {
			g.Fatal(err)
		}
		if e.Tool == "write" {
			continue
		}
		acted := len(o.done[e.Tool+" "+in.Order]) > 0
		switch e.State {
		case store.Completed:
			if !acted {
				g.Errorf("%s %s is completed and nothing was done", e.Tool, in.Order)
			}
		case store.Running, store.Unknown:
			g.Errorf("%s %s is %s (%s) in the end", e.Tool, in.Order, e.State, e.Reason)
		case store.Manual:
			if e.Tool == "seen" {
				g.Errorf("%s %s is a person's though its far side answers", e.Tool, in.Order)
			}
		}
	}
}
