package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

const (
	// recoveryAtOnce is settle's default for WithConcurrency.
	recoveryAtOnce = 4
	// crowd is the tool that nearly all hanging operations are of, in so many tenants.
	crowd        = "a_crowd"
	crowdTenants = 8
	// answerTime is what the far side takes for an answer, so that the limit is reached.
	answerTime = time.Millisecond
	// heapSamples is how often the heap is looked at on the way.
	heapSamples = 20
)

// fewTools have a hundred operations each, which have been due for less long
// than the crowd's, and names that come behind its.
var fewTools = []string{"b_few", "c_few", "d_few", "e_few"}

// recovery measures how an executor recovers from a crash that left very many
// operations running, nearly all of them of one tool.
func (b *bench) recovery(ctx context.Context) error {
	return b.onEach(ctx, 16, func(database string, open func(string) (*ground, error)) error {
		g, err := open("recovered")
		if err != nil {
			return err
		}
		hanging, err := b.hang(ctx, g)
		if err != nil {
			return err
		}
		far, err := newFarSide(hanging)
		if err != nil {
			return err
		}
		x, err := settle.New(g.Ledger, settle.WithTools(far.tools()...))
		if err != nil {
			return errors.Join(err, far.close())
		}
		running, stopRunning := context.WithCancel(ctx)
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- x.Run(running) }()
		select {
		case <-far.all:
		case err := <-ended:
			stopRunning()
			return errors.Join(errors.New("recovery ended before its work did"), err, far.close())
		}
		took := time.Since(began)
		stopRunning()
		if err := errors.Join(<-ended, stop(x), far.close()); err != nil {
			return err
		}
		far.report(b, database+"/recovery", took)
		return nothingHangs(ctx, g)
	})
}

// hang leaves operations behind as a process does that died while they ran, and
// says how many. The copies are made while one of each tool and tenant really runs.
func (b *bench) hang(ctx context.Context, g *ground) (int, error) {
	few := max(b.hanging/1000, 4)
	crowded := (b.hanging - few*len(fewTools)) / crowdTenants
	hang := func(tool, tenant string, n int, expired time.Duration) error {
		at := g.at(g.began.Add(-expired))
		instants := map[string]map[string]string{"operation": {"lease_until": at, "due_at": g.later(at, "(n % 1000)"), "moment": at}}
		x, err := settle.New(g.Ledger, settle.WithTools(charge(tool, nil, func(ctx context.Context, op settle.Op) error {
			return g.fill(ctx, copies{operation: op.Reference(), n: n, change: instants})
		})))
		if err != nil {
			return err
		}
		args, err := json.Marshal(paymentOf("ord_1"))
		if err != nil {
			return err
		}
		ctx := settle.WithTask(settle.WithPrincipal(ctx, settle.Principal{Tenant: tenant, Subject: "agent"}), settle.Task{ID: "crash", Goal: "pay"})
		return errors.Join(completed(x.Execute(ctx, settle.Call{Tool: tool, Args: args, CallID: "call_1"})), stop(x))
	}
	for tenant := range crowdTenants {
		if err := hang(crowd, "tenant-"+strconv.Itoa(tenant), crowded, 2*time.Hour); err != nil {
			return 0, err
		}
	}
	for i, tool := range fewTools {
		if err := hang(tool, "tenant-"+strconv.Itoa(i), few, time.Hour); err != nil {
			return 0, err
		}
	}
	return crowdTenants*crowded + len(fewTools)*few, g.finish(ctx)
}

// nothingHangs requires that every operation is completed.
func nothingHangs(ctx context.Context, g *ground) error {
	unsettled := slices.DeleteFunc(store.States(), store.State.Settled)
	left, err := g.List(ctx, store.Filter{States: unsettled, Limit: 1})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("an operation is left %s", left[0].State)
	}
	return err
}

// charge is a tool whose far side can be asked.
func charge(name string, ask func(ctx context.Context, tool, key string) (string, error), do func(context.Context, settle.Op) error) settle.AnyTool {
	return settle.Tool[payment, receipt]{
		Name: name, Description: "Pay for an order",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, Timeout: time.Minute},
		Do: func(ctx context.Context, op settle.Op, in payment) (receipt, error) {
			return receipt{ID: "ch_" + in.Order, Status: "succeeded"}, do(ctx, op)
		},
		Lookup: func(ctx context.Context, q settle.Query[receipt], in payment) (settle.Evidence, error) {
			id, err := ask(ctx, name, q.Key())
			return q.Happened(id, receipt{ID: id, Status: "succeeded"}), err
		},
	}
}

// farSide is a server that knows every charge. It counts whom it serves.
type farSide struct {
	server  *http.Server
	client  *http.Client
	address string
	served  map[string]*served
	// want is how many are asked for in all; all is closed when they were.
	want  int64
	asked atomic.Int64
	all   chan struct{}

	mu sync.Mutex
	// heaps are taken on the way, crowdBefore is how much of the crowd was served
	// when the last of the others was.
	heaps       []float64
	crowdBefore int64
}

// served counts what a tool asks for: now, most at a time, and in all.
type served struct{ now, most, all atomic.Int64 }

func newFarSide(want int) (*farSide, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &farSide{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, address: "http://" + listener.Addr().String(),
		served: map[string]*served{crowd: {}}, want: int64(want), all: make(chan struct{})}
	for _, tool := range fewTools {
		f.served[tool] = &served{}
	}
	f.server = &http.Server{Handler: f}
	go func() { _ = f.server.Serve(listener) }() // ends with close
	return f, nil
}

func (f *farSide) close() error {
	f.client.CloseIdleConnections()
	return f.server.Close()
}

// ServeHTTP answers what became of a charge.
func (f *farSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tool := r.URL.Query().Get("tool")
	s := f.served[tool]
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	s.all.Add(1)
	n := f.asked.Add(1)
	if tool != crowd {
		f.mu.Lock()
		f.crowdBefore = f.served[crowd].all.Load()
		f.mu.Unlock()
	}
	if every := max(f.want/heapSamples, 1); n%every == 0 {
		f.mu.Lock()
		f.heaps = append(f.heaps, heap())
		f.mu.Unlock()
	}
	<-time.After(answerTime)
	fmt.Fprint(w, "ch_", r.URL.Query().Get("key"))
	if n == f.want {
		close(f.all)
	}
}

func (f *farSide) tools() []settle.AnyTool {
	never := func(context.Context, settle.Op) error {
		return errors.New("recovery sends nothing that its lookup has found")
	}
	tools := []settle.AnyTool{charge(crowd, f.ask, never)}
	for _, tool := range fewTools {
		tools = append(tools, charge(tool, f.ask, never))
	}
	return tools
}

// ask is a tool's lookup.
func (f *farSide) ask(ctx context.Context, tool, key string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address+"?"+url.Values{"tool": {tool}, "key": {key}}.Encode(), nil)
	if err != nil {
		return "", err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return "", err
	}
	id, err := io.ReadAll(response.Body)
	return string(id), errors.Join(err, response.Body.Close())
}

// report says what the far side saw.
func (f *farSide) report(b *bench, name string, took time.Duration) {
	b.figure(name+"/rate", float64(f.want)/took.Seconds(), "op/s")
	var most int64
	for _, s := range f.served {
		most = max(most, s.most.Load())
	}
	early, late := f.heaps[:max(len(f.heaps)/4, 1)], f.heaps[len(f.heaps)*3/4:]
	b.figure(name+"/heap", slices.Max(f.heaps)/1024, "KiB")
	b.figure(name+"/at-once", float64(most), "lookups")
	b.atMost(name+"-at-once-of-limit", float64(most)/recoveryAtOnce, 1)
	b.atMost(name+"-heap-growth", median(late)/median(early), 1.3)
	b.atMost(name+"-crowd-before-others", float64(f.crowdBefore)/float64(f.served[crowd].all.Load()), 0.05)
}
