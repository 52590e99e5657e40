package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faulty"
)

// The outbox, the sink, the handler and the inbox together, over real connections
// that break (R54).

// pastLease is more than the lease of a relay that died, and than the first pauses.
const pastLease = 3 * time.Minute

func (w *world) proxy() *faulty.Proxy {
	return faulty.NewProxy(w.T, w.receiver.Listener.Addr().String())
}

func TestR54ALostAcknowledgementIsRecognised(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		proxy := w.proxy()
		p := w.start("http://" + proxy.Addr())
		operations := p.reserves("chair")
		proxy.Arm(faulty.Fault{Request: "item.reserved", Do: faulty.LoseAnswer})
		if report := p.relays(); report != (settle.RelayReport{Fetched: 1, Failed: 1}) {
			w.Errorf("%+v", report)
		}
		w.age(pastLease)
		if report := p.relays(); report != (settle.RelayReport{Fetched: 2, Delivered: 2}) {
			w.Errorf("%+v", report)
		}
		ids := w.received()
		if len(ids) != 3 || ids[0] != ids[1] || ids[1] == ids[2] {
			w.Errorf("the ids %q came", ids)
		}
		w.hadEffects(operations...)
	})
}

func TestR54ARequestThatIsCutComesAgain(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		proxy := w.proxy()
		p := w.start("http://" + proxy.Addr())
		operations := p.reserves("chair")
		proxy.Arm(faulty.Fault{Request: "item.reserved", Do: faulty.CutBefore})
		p.relays()
		w.age(pastLease)
		p.relays()
		if ids := w.received(); len(ids) != 2 {
			w.Errorf("the ids %q came", ids)
		}
		w.hadEffects(operations...)
	})
}

// It was received, and the relay dies before it can write that down.
func TestR54AKilledRelayDeliversAgain(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		p := w.start(w.receiver.URL)
		operations := p.reserves("chair")
		arrived, killed := make(chan struct{}), make(chan struct{})
		w.onCommit(func() {
			close(arrived)
			<-killed
		})
		kill := w.relayInAnotherProcess()
		wait(w, arrived)
		kill()
		w.onCommit(nil)
		close(killed)
		if report := p.relays(); report.Fetched != 0 {
			w.Errorf("within the lease of the one that died: %+v", report)
		}
		w.age(pastLease)
		if report := p.relays(); report.Delivered != 2 {
			w.Errorf("%+v", report)
		}
		if ids := w.received(); len(ids) != 3 || ids[0] != ids[1] {
			w.Errorf("the ids %q came", ids)
		}
		w.hadEffects(operations...)
	})
}

// relayInAnotherProcess starts one that makes a pass of the relay, and returns what
// kills it.
func (w *world) relayInAnotherProcess() (kill func()) {
	w.Helper()
	encoded, err := json.Marshal(order{w.ledger, w.receiver.URL})
	if err != nil {
		w.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s", relayOrder, encoded))
	var said bytes.Buffer
	child.Stderr = &said
	if _, err := child.StdinPipe(); err != nil {
		w.Fatal(err)
	}
	if err := child.Start(); err != nil {
		w.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		if said.Len() > 0 {
			w.Errorf("the process that relays said: %s", said.Bytes())
		}
	})
	w.Cleanup(kill)
	return kill
}

func TestR54SeveralRelaysDeliverEachEvent(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		relays := []*process{w.start(w.receiver.URL), w.start(w.receiver.URL), w.start(w.receiver.URL)}
		operations := relays[0].reserves("a", "b", "c", "d", "e", "f", "g", "h")
		var group sync.WaitGroup
		for _, r := range relays {
			group.Go(func() { r.relays() })
		}
		group.Wait()
		relays[0].relays() // what another one had when this one ended
		w.hadEffects(operations...)
		if ids := w.received(); len(ids) != 16 {
			w.Errorf("%d deliveries of 16 events, though nothing broke", len(ids))
		}
	})
}

func TestR54AReceiverThatIsDownForAnHour(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		proxy := w.proxy()
		p := w.start("http://" + proxy.Addr())
		operations := p.reserves("chair", "table")
		proxy.Refuse()
		failed := 0
		for range 12 {
			report := p.relays()
			if failed += report.Failed; report.Delivered > 0 || report.Dead > 0 {
				w.Errorf("while it is down: %+v", report)
			}
			w.age(5 * time.Minute)
		}
		if failed < 2*9 || failed > 2*12 {
			w.Errorf("within the hour it was tried %d times", failed)
		}
		operations = append(operations, p.reserves("lamp")...)
		proxy.Admit()
		w.age(10 * time.Minute) // the longest pause
		if report := p.relays(); report != (settle.RelayReport{Fetched: 6, Delivered: 6}) {
			w.Errorf("when it is back: %+v", report)
		}
		w.hadEffects(operations...)
	})
}

// What the README says of a receiver that answers 200 twice: it is what it must do.
func TestR54AReceiverThatAnswers200Twice(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		sink := sinkTo(w, w.receiver.URL)
		d := delivery()
		for d.Number = range 2 {
			if err := sink.Deliver(w.Context(), d); err != nil {
				w.Error(err)
			}
		}
		var n int
		if err := w.consumer.QueryRowContext(w.Context(), "SELECT count(*) FROM effect").Scan(&n); err != nil || n != 1 || len(w.received()) != 2 {
			w.Errorf("%d deliveries had %d effects, error %v", len(w.received()), n, err)
		}
	})
}

func TestR54DeliveriesOfOneEventAtTheSameTime(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		sink := sinkTo(w, w.receiver.URL)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if err := sink.Deliver(w.Context(), delivery()); err != nil {
					w.Error(err)
				}
			})
		}
		group.Wait()
		var n int
		if err := w.consumer.QueryRowContext(w.Context(), "SELECT count(*) FROM effect").Scan(&n); err != nil || n != 1 {
			w.Errorf("8 deliveries had %d effects, error %v", n, err)
		}
	})
}

func TestR54AReceiverThatIsGoneWaitsForAnOperator(t *testing.T) {
	onEachDatabase(t, func(w *world) {
		var gone atomic.Bool
		gone.Store(true)
		front := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			if gone.Load() {
				answer.WriteHeader(http.StatusGone)
				return
			}
			w.receiver.Config.Handler.ServeHTTP(answer, r)
		}))
		w.Cleanup(front.Close)
		p := w.start(front.URL)
		operations := p.reserves("chair")
		if report := p.relays(); report != (settle.RelayReport{Fetched: 1, Dead: 1}) {
			w.Errorf("%+v", report)
		}
		gone.Store(false)
		w.age(24 * time.Hour)
		if report := p.relays(); report.Fetched != 0 {
			w.Errorf("behind a dead event: %+v", report)
		}
		ann := operator(p.ctx)
		dead, err := p.x.Queue().Undelivered(ann, settle.OutgoingEventFilter{Dead: true})
		if err != nil || len(dead) != 1 {
			w.Fatalf("%+v, error %v", dead, err)
		}
		if err := p.x.Queue().Redeliver(ann, "acme", dead[0].ID); err != nil {
			w.Fatal(err)
		}
		p.relays()
		if ids := w.received(); len(ids) != 2 || !slices.Contains(ids, dead[0].ID) {
			w.Errorf("the ids %q came", ids)
		}
		w.hadEffects(operations...)
	})
}

// wait waits for something that must come.
func wait(w *world, what <-chan struct{}) {
	w.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case <-what:
	case <-deadline.C:
		w.Fatal("what the test waits for didn't come")
	}
}
