package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/idempotency"
)

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// A refusal is an answer as well: it is recorded, and stands.
func TestFinalAnswersAreRecorded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 202, 303, 400, 402, 404, 409, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, answering(status, "said once"))
			s.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			first := s.pay(status, "k", `{}`)
			s.replayed(first, "k", `{}`)
			s.refused(422, "key-reused", "k", `{"corrected":true}`)
			s.runs(1)
		})
	}
}

func TestAnswersWithoutABodyAreReplayed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{204, 200, 201} {
		s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
			if status != 200 {
				w.WriteHeader(status)
			}
			if _, err := io.WriteString(w, ""); status == 204 && !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("a body with 204: %v", err)
			}
		})
		s.replayed(s.pay(status, "k", `{}`), "k", `{}`)
		s.runs(1)
	}
}

// R27: an error of the service itself says nothing of what it did.
func TestR27AnswersThatSayNothingLeaveTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 425, 429, 500, 502, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, answering(status, "oh"))
			first := s.pay(status, "k", `{}`)
			if first.body != "oh" || first.header.Get("Idempotency-Status") != "unknown" && first.header.Get("Idempotency-Status") != "manual" {
				t.Errorf("the first answer is %+v, want the handler's, marked unknown", first)
			}
			got := s.refused(409, "outcome-unknown", "k", `{}`)
			if got.header.Get("Retry-After") != "" || !strings.Contains(got.body, first.header.Get("Idempotency-Operation")) {
				t.Errorf("got %v %s", got.header, got.body)
			}
			s.refused(422, "key-reused", "k", `{"other":1}`)
			if doc := s.ask(200, "k"); doc["status"] != "manual" && doc["status"] != "unknown" {
				t.Errorf("the status endpoint says %v", doc)
			}
			s.runs(1)
		})
	}
}

func TestHandlerThatPanicsIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "never sent")
		panic("secret words")
	})
	got := s.refused(500, "outcome-unknown", "k", `{}`)
	if !strings.Contains(got.body, `"operation":"`) || strings.Contains(got.body, "never sent") {
		t.Errorf("got %s", got.body)
	}
	s.refused(409, "outcome-unknown", "k", `{}`)
	s.runs(1)
	if log := s.log.String(); !strings.Contains(log, "a handler panicked") || strings.Contains(log, "secret words") {
		t.Errorf("the log says %s", log)
	}
}

func TestHandlerThatEndsItsGoroutineOrAbortsCutsTheConnection(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(){
		"abort":  func() { panic(http.ErrAbortHandler) },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, func(http.ResponseWriter, *http.Request) { leave() })
			if resp, err := s.server.Client().Do(s.request("k", `{}`)); err == nil {
				got, _ := read(resp)
				s.isProblem(got, "outcome-unknown")
			}
			s.refused(409, "outcome-unknown", "k", `{}`)
			s.runs(1)
		})
	}
}

// R21, R24: what didn't return in time isn't known; its own late word settles it.
func TestR25HandlerThatReturnsLateSettlesIts(t *testing.T) {
	t.Parallel()
	c := unsafe
	c.Timeout, c.VisibilityDelay = 50*time.Millisecond, time.Minute
	timedOut, release := make(chan struct{}), make(chan struct{})
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(timedOut)
		<-release
		w.WriteHeader(201)
		io.WriteString(w, "late")
	})
	first := make(chan reply)
	go func() { first <- s.do(s.request("k", `{}`)) }()
	<-timedOut
	for doc := s.ask(200, "k"); doc["status"] == "in_progress"; doc = s.ask(200, "k") {
	}
	s.refused(409, "outcome-unknown", "k", `{}`)
	close(release)
	got := <-first
	if got.status != 201 || got.body != "late" || got.header.Get("Idempotency-Status") != "not_recorded" {
		t.Errorf("the first answer is %+v, want the handler's, not called settled", got)
	}
	ctx, cancel := context.WithTimeout(settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "shop", Subject: "ann"}), 10*time.Second)
	defer cancel()
	if _, err := s.executor.Wait(ctx, got.header.Get("Idempotency-Operation")); err != nil {
		t.Fatal(err)
	}
	s.replayed(got, "k", `{}`)
	s.runs(1)
}

func TestNothingHappenedLeavesTheKeyFree(t *testing.T) {
	t.Parallel()
	busy := true
	by := map[string]func(http.ResponseWriter, *http.Request){
		"by its word": func(w http.ResponseWriter, r *http.Request) {
			if !idempotency.NothingHappened(r.Context()) {
				t.Error("the context isn't that of a guarded request")
			}
			answering(400, "busy")(w, r)
		},
		"by its status": answering(503, "busy"),
	}
	for name, refuse := range by {
		t.Run(name, func(t *testing.T) {
			busy = true
			s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
				if busy {
					refuse(w, r)
					return
				}
				answering(201, "done")(w, r)
			}, func(o *idempotency.Options) { o.Free = []int{503} })
			for range 2 {
				got := s.do(s.request("k", `{"amount":1}`))
				if got.body != "busy" || got.header.Get("Idempotency-Status") != "not_done" || got.header.Get("Idempotency-Replayed") != "" {
					t.Fatalf("got %+v, want the handler's own answer", got)
				}
			}
			busy = false
			s.replayed(s.pay(201, "k", `{"amount":2}`), "k", `{"amount":2}`)
			s.runs(3)
		})
	}
	if idempotency.NothingHappened(t.Context()) || idempotency.SetResource(t.Context(), "x") {
		t.Error("a context without a request was taken for one")
	}
}

// R28: a wait that the handler asks for is never shortened.
func TestR28RetryAfterHoldsForTheKey(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		idempotency.NothingHappened(r.Context())
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	})
	s.pay(429, "k", `{}`)
	got := s.refused(503, "not-done", "k", `{}`)
	if wait := got.header.Get("Retry-After"); wait != "3600" && wait != "3599" {
		t.Errorf("it may be sent again after %q s, want an hour", wait)
	}
	s.runs(1)
}

// R32: a lookup settles what the handler's answer left open, in the route's own form.
func TestR32LookupSettlesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		found  bool
		broken func(http.ResponseWriter)
	}{
		"it happened, the answer says 500":      {true, func(w http.ResponseWriter) { w.WriteHeader(500) }},
		"it happened, the handler panicked":     {true, func(http.ResponseWriter) { panic("lost") }},
		"it didn't happen, the answer says 500": {false, func(w http.ResponseWriter) { w.WriteHeader(500) }},
		"it didn't happen, handler panicked":    {false, func(http.ResponseWriter) { panic("lost") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			declared := idempotency.Declare(route, settle.Contract{VisibilityDelay: settle.Immediately})
			declared.Lookup = func(_ context.Context, q settle.Query[idempotency.Response], in idempotency.Request) (settle.Evidence, error) {
				if in.Key != "k" || string(in.Body) != `{"amount":1}` {
					return settle.Evidence{}, errors.New("asked for another request")
				}
				if tc.found {
					return q.Happened("pay_1", idempotency.JSON(201, []byte(`{"id":"pay_1"}`))), nil
				}
				return q.NotHappened(), nil
			}
			tries := 0
			s := serveOn(t, openLedger(t), []settle.AnyTool{declared}, func(w http.ResponseWriter, r *http.Request) {
				if tries++; tries == 1 {
					tc.broken(w)
					return
				}
				answering(201, `{"id":"pay_2"}`)(w, r)
			})
			first := s.do(s.request("k", `{"amount":1}`))
			second := s.pay(201, "k", `{"amount":1}`)
			if tc.found {
				if first.status != 201 || first.body != `{"id":"pay_1"}` || second.body != first.body {
					t.Errorf("got %+v, then %+v; want what was found", first, second)
				}
				s.runs(1)
				return
			}
			if first.status < 500 || first.header.Get("Idempotency-Status") != "not_done" || second.body != `{"id":"pay_2"}` {
				t.Errorf("got %+v, then %+v; want a second run", first, second)
			}
			s.runs(2)
		})
	}
}

// R4: only the host says that a handler may run again after an unknown outcome.
func TestR4HostDeclaresWhatMayRunAgain(t *testing.T) {
	t.Parallel()
	tries := 0
	s := serve(t, settle.Contract{Class: settle.Idempotent, VisibilityDelay: settle.Immediately}, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			panic("lost")
		}
		answering(200, "written")(w, r)
	})
	s.refused(500, "outcome-unknown", "k", `{"state":1}`)
	s.refused(422, "key-reused", "k", `{"state":2}`)
	s.replayed(s.pay(200, "k", `{"state":1}`), "k", `{"state":1}`)
	s.runs(2)
}

func TestR51KeyWhoseRecordIsGoneIs410(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	s.pay(201, "k", `{}`)
	if _, err := s.executor.Erase(t.Context(), settle.Principal{Tenant: "shop", Subject: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	s.refused(410, "expired", "k", `{}`)
	s.refused(410, "expired", "k", `{"other":1}`)
	if doc := s.ask(200, "k"); doc["status"] != "expired" {
		t.Errorf("the status endpoint says %v", doc)
	}
	s.runs(1)
}

func TestR52KeysOfAClosedTaskAre410(t *testing.T) {
	t.Parallel()
	task := settle.Task{ID: "2026-11", Goal: "payments"}
	s := serve(t, unsafe, created(), func(o *idempotency.Options) { o.Task = func(*http.Request) settle.Task { return task } })
	s.pay(201, "k", `{}`)
	ctx := settle.WithTask(settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "shop", Subject: "ann"}), task)
	if err := s.executor.CloseTask(ctx); err != nil {
		t.Fatal(err)
	}
	s.refused(410, "expired", "k", `{}`)
	s.runs(1)
}

// R46: what the caller may not see any more isn't replayed.
func TestR46ReplayAsksForPermission(t *testing.T) {
	t.Parallel()
	c := unsafe
	allowed := true
	c.Authorize = func(context.Context, settle.Authorization) error {
		if !allowed {
			return errors.New("gone")
		}
		return nil
	}
	s := serve(t, c, created())
	s.pay(201, "k", `{}`)
	allowed = false
	if got := s.refused(403, "denied", "k", `{}`); strings.Contains(got.body, "pay_1") {
		t.Errorf("the answer tells what was made: %s", got.body)
	}
	s.refused(403, "denied", "k-2", `{}`)
	s.runs(1)
}

func TestR26LedgerThatIsGoneIs503(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	s.pay(201, "k", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.executor.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.refused(503, "unavailable", "k-2", `{}`); got.header.Get("Retry-After") != "1" {
		t.Errorf("got %v", got.header)
	}
	s.runs(1)
}

// R55: a key, a body, a caller's name stand in no log and no problem.
func TestR55LogHoldsNoKeysOrBodies(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(http.ResponseWriter, *http.Request) { panic("in-the-panic") })
	s.refused(500, "outcome-unknown", "the-secret-key", `{"card":"4111"}`)
	s.refused(409, "outcome-unknown", "the-secret-key", `{"card":"4111"}`)
	for _, word := range []string{"the-secret-key", "4111", "in-the-panic", "subject=ann"} {
		if strings.Contains(s.log.String(), word) {
			t.Errorf("the log has %q:\n%s", word, s.log.String())
		}
	}
}

// R56: a body that must not be stored counts by its digest alone.
func TestR56SecretBodyIsNotStored(t *testing.T) {
	t.Parallel()
	c := unsafe
	c.Secret = []string{"body"}
	s := serve(t, c, created())
	first := s.pay(201, "k", `{"card":"4111"}`)
	s.replayed(first, "k", `{"card":"4111"}`)
	s.refused(422, "key-reused", "k", `{"card":"4112"}`)
	entries, err := s.ledger.List(t.Context(), listAll)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d operations, %v", len(entries), err)
	}
	if args := string(entries[0].Arguments); strings.Contains(args, "4111") || !strings.Contains(args, "/payments") {
		t.Errorf("the ledger has %s", args)
	}
	if result := string(entries[0].Result); strings.Contains(result, "session=secret") {
		t.Errorf("the ledger has a cookie: %s", result)
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := idempotency.New(nil, idempotency.Options{Free: []int{201}, Headers: []string{"set-cookie"}, MaxBody: -1, MaxResponse: 3 << 20})
	for _, part := range []string{"needs an executor", "Options.Caller", "201", "Set-Cookie", "negative", "MaxResponse"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want it to tell of %s", err, part)
		}
	}
	s := serve(t, unsafe, created())
	for _, name := range []string{"payments", "POST ", "POST /other", ""} {
		var wrong *idempotency.RouteError
		if _, err := s.guard.Protect(name, created()); !errors.As(err, &wrong) || wrong.Route != name {
			t.Errorf("%q: %v, want a RouteError", name, err)
		}
	}
	if _, err := s.guard.Protect(route, nil); err == nil {
		t.Error("a route without a handler was taken")
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	h, err := s.guard.Protect(route, created())
	if err != nil {
		t.Fatal(err)
	}
	s.mux.Handle("/any", h)
	got := s.refused(405, "method-not-allowed", "k", `{}`, at("/any"), func(r *http.Request) { r.Method = http.MethodPut })
	if got.header.Get("Allow") != "POST" {
		t.Errorf("got %v", got.header)
	}
	s.runs(0)
}
