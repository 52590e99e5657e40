package idempotency_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/idempotency"
)

// decide settles a case as a person.
func (s *service) decide(reference string, d settle.Decision) {
	s.Helper()
	if _, err := s.executor.Recover(s.Context()); err != nil {
		s.Fatal(err)
	}
	ctx := settle.WithOperator(s.Context(), settle.Operator{Name: "ann"})
	found, err := s.executor.Queue().Get(ctx, reference)
	if err != nil {
		s.Fatal(err)
	}
	d.Operation, d.Version, d.ID, d.Reason = reference, found.Version, uuid.NewString(), "asked the bank"
	if _, err := s.executor.Queue().Decide(ctx, d); err != nil {
		s.Fatal(err)
	}
}

// R40: what a person decides is what clients are told.
func TestR40PersonsDecisionIsTheAnswer(t *testing.T) {
	t.Parallel()
	response, err := json.Marshal(idempotency.JSON(201, []byte(`{"id":"pay_7"}`)))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		decision settle.Decision
		want     func(s *service)
		runs     int64
	}{
		"happened, with the route's own answer": {settle.Decision{Kind: settle.DecideHappened, Resource: "pay_7", Result: response}, func(s *service) {
			if got := s.pay(201, "k", `{}`); got.body != `{"id":"pay_7"}` || got.header.Get("Idempotency-Replayed") != "true" {
				s.Errorf("got %+v", got)
			}
		}, 1},
		"happened": {settle.Decision{Kind: settle.DecideHappened, Resource: "pay_7"}, func(s *service) {
			got := s.pay(200, "k", `{}`)
			if !strings.HasPrefix(got.body, `{"status":"completed"`) || !strings.Contains(got.body, `"resource":"pay_7"`) {
				s.Errorf("got %+v, want the status document", got)
			}
		}, 1},
		"did not happen":   {settle.Decision{Kind: settle.DecideFail}, func(s *service) { s.refused(409, "failed", "k", `{}`) }, 1},
		"abandoned":        {settle.Decision{Kind: settle.DecideAbandon}, func(s *service) { s.refused(409, "abandoned", "k", `{}`) }, 1},
		"to run once more": {settle.Decision{Kind: settle.DecideRunOnce}, func(s *service) { s.pay(200, "k", `{}`) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
				if tries.Add(1) == 1 {
					w.WriteHeader(502)
				}
				io.WriteString(w, "answered")
			})
			first := s.pay(502, "k", `{}`)
			s.decide(first.header.Get("Idempotency-Operation"), tc.decision)
			tc.want(s)
			s.runs(tc.runs)
		})
	}
}

// R43: nothing runs before a person has allowed exactly this.
func TestR43RequestThatNeedsApproval(t *testing.T) {
	t.Parallel()
	c := unsafe
	c.Approval = true
	s := serve(t, c, created())
	got := s.refused(409, "awaiting-approval", "k", `{"amount":1}`)
	s.refused(422, "key-reused", "k", `{"amount":2}`)
	s.runs(0)
	s.decide(got.header.Get("Idempotency-Operation"), settle.Decision{Kind: settle.DecideApprove})
	s.replayed(s.pay(201, "k", `{"amount":1}`), "k", `{"amount":1}`)
	s.runs(1)
}

// R29: a handler that sends the operation's key to a far side that deduplicates
// may run again, and sends the same key.
func TestR29KeyedHandlerRunsAgainWithTheSameKey(t *testing.T) {
	t.Parallel()
	bank := newFar(t, status(201))
	client, _ := newClient(t)
	var tries atomic.Int64
	c := settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, VisibilityDelay: settle.Immediately}
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), http.MethodPost, bank.server.URL, strings.NewReader("42.10"))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := client.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if tries.Add(1) == 1 {
			panic("after the bank was told")
		}
		w.WriteHeader(resp.StatusCode)
	})
	s.refused(500, "outcome-unknown", "k", `{}`)
	s.pay(201, "k", `{}`)
	if key := bank.saw(2, "42.10"); key == `"k"` {
		t.Error("the bank saw the caller's key, which another caller may have too")
	}
	s.runs(2)
}
