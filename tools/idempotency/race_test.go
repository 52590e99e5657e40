package idempotency_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/idempotency"
)

// R19: whoever comes first runs; 64 clients of two processes get its answer.
func TestR19OneOfSixtyFourClientsRuns(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) store.Ledger{
		"sqlite": openLedger,
		"postgres": func(t *testing.T) store.Ledger {
			db := pgtest.New(t)
			l, err := postgres.New(t.Context(), db.Pool(t), postgres.WithSchema(db.Schema(t)))
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, declared, answer := open(t), []settle.AnyTool{idempotency.Declare(route, unsafe)}, created()
			processes := []*service{serveOn(t, ledger, declared, answer), serveOn(t, ledger, declared, answer)}
			answers := make([]reply, 64)
			start := make(chan struct{})
			var group sync.WaitGroup
			for i := range answers {
				client := http.Client{Transport: &idempotency.Transport{Base: &http.Transport{}, Attempts: 20}}
				r := processes[i%2].request("k", `{"amount":1}`)
				group.Go(func() {
					defer client.CloseIdleConnections()
					<-start
					resp, err := client.Do(r)
					if err == nil {
						answers[i], err = read(resp)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			group.Wait()
			firsts := 0
			for _, got := range answers {
				if got.status != 201 || got.body != `{"id":"pay_1"}` {
					t.Errorf("a client got %+v", got)
				}
				if got.header.Get("Idempotency-Replayed") == "" {
					firsts++
				}
			}
			if ran := processes[0].ran.Load() + processes[1].ran.Load(); ran != 1 || firsts != 1 {
				t.Errorf("the handler ran %d times, and %d answers are first ones; want 1", ran, firsts)
			}
		})
	}
}

// short is a contract whose lease ends soon after its process.
var short = settle.Contract{NoLookup: true, Timeout: 100 * time.Millisecond, VisibilityDelay: settle.Immediately}

// serveAndHang is a service whose handler never comes back.
func serveAndHang(file string) {
	l, err := sqlite.Open(context.Background(), file)
	if err != nil {
		panic(err)
	}
	x, err := settle.New(l, settle.WithGuarded(idempotency.Declare(route, short)))
	if err != nil {
		panic(err)
	}
	guard, err := idempotency.New(x, idempotency.Options{Caller: caller})
	if err != nil {
		panic(err)
	}
	h, err := guard.Protect(route, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		fmt.Println("entered")
		select {}
	}))
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	http.Serve(listener, h) //nolint:errcheck,gosec // it is killed
}

// A service is killed in the middle of a request. The one that takes its place
// doesn't run it again, and says that nobody knows.
func TestR27ServiceThatIsKilledInTheMiddleLeavesItUnknown(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settle.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env, cmd.Stderr = append(os.Environ(), asService+"="+file), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+lines.Text()+"/payments", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"ann"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	cut := make(chan error)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		cut <- err
	}()
	if !lines.Scan() || lines.Text() != "entered" {
		t.Fatalf("the service says %q", lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-cut; err == nil {
		t.Error("the client got an answer")
	}
	cmd.Wait() //nolint:errcheck // it was killed

	s := serveOn(t, openFile(t, file), []settle.AnyTool{idempotency.Declare(route, short)}, created())
	// As long as its lease lasts, the killed one counts as at work.
	client := http.Client{Transport: &idempotency.Transport{Attempts: 10}}
	resp, err := client.Do(s.request("k", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(resp)
	if err != nil || got.status != 409 || !idempotency.Pending(resp) {
		t.Fatalf("%+v, %v", got, err)
	}
	s.isProblem(got, "outcome-unknown")
	s.runs(0)
	if _, err := s.executor.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doc := s.ask(200, "k"); doc["status"] != "manual" {
		t.Errorf("the status endpoint says %v, want a person's", doc)
	}
	s.refused(409, "outcome-unknown", "k", `{}`)
	s.runs(0)
}
