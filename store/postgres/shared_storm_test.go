package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// What callers are told stays true while they meet in the same places, leave at
// any moment, send what the server refuses, and sessions end under groups: a write that was acknowledged stands,
// one that is said to be unwritten doesn't, a place has one winner, and all of the
// ledger's own places are free again at the end.
func TestR26InAStormOfLostAnswersNobodyIsToldWrong(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			s := &storm{ledgerWorld: newLedgerWorld(t, pgtest.MaxConns(5), pgtest.ExecMode(mode)), told: map[string]int{}, winners: map[store.Digest]int{}}
			s.intent = s.ledgerWorld.intent()
			s.won(storetest.Claim(storetest.Operation(s.intent)))
			const callers, rounds = 64, 8
			calm := s.killing()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range rounds {
						s.call(s.place())
					}
				})
			}
			group.Wait()
			calm()
			if s.told["done"] == 0 || s.told["late"] == 0 || s.told["claim lost"]+s.told["end lost"] == 0 {
				t.Errorf("no storm: %v", s.told)
			}
			s.idle()
		})
	}
}

type storm struct {
	*ledgerWorld
	intent store.Intent

	mu      sync.Mutex
	told    map[string]int
	winners map[store.Digest]int
	// contested is where callers meet.
	contested []store.Operation
}

func (s *storm) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[what]++
}

// place is an operation in a place of its own, or in one where others go too.
func (s *storm) place() store.Operation {
	o := storetest.Operation(s.intent)
	if rand.IntN(2) == 0 {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.contested) < 4 {
		s.contested = append(s.contested, o)
		return o
	}
	at := rand.IntN(len(s.contested))
	on := s.contested[at]
	if rand.IntN(4) == 0 {
		s.contested[at] = o // they go to a new one
		return o
	}
	return storetest.Operation(s.intent, storetest.On(on, 1))
}

// unreadable is a text that PostgreSQL refuses, and with it the group that it
// travels in.
const unreadable = "\x00"

func refused() bool { return rand.IntN(15) == 0 }

// call claims a place and ends what it won.
func (s *storm) call(o store.Operation) {
	ctx, cancel := s.impatient()
	defer cancel()
	if refused() {
		o.Source = unreadable
	}
	answers, err := s.Claim(ctx, storetest.Claim(o, func(c *store.Claim) { c.Known, c.Likely = true, rand.IntN(8) == 0 }))
	_, there := s.stored(o)
	if there {
		s.only(o)
	}
	if err != nil {
		if s.count("claim lost"); store.Unwritten(err) && there {
			s.t.Errorf("a claim that is said to be unwritten (%v) stands", err)
		}
		return
	}
	if answer := answers[0]; answer.Won != there {
		s.t.Errorf("a claim was answered with %v; its row is there: %v", answer.Won, there)
	} else if !answer.Won {
		if s.count("late"); len(answer.Slot) != 1 || answer.Slot[0].ID == o.ID {
			s.t.Errorf("who came too late was shown %d rows", len(answer.Slot))
		}
		return
	}
	s.end(answers[0].Operation)
}

// only says that a place has one row.
func (s *storm) only(o store.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.winners[o.Slot]++; s.winners[o.Slot] > 1 {
		s.t.Error("two claims of one place stand")
	}
}

func (s *storm) end(o store.Operation) {
	ctx, cancel := s.impatient()
	defer cancel()
	completion := storetest.Completion(o, "")
	if refused() {
		completion.Kind = unreadable
	}
	_, err := s.Apply(ctx, completion)
	state, _ := s.stored(o)
	switch {
	case err == nil && state != store.Completed:
		s.t.Errorf("an acknowledged end left its operation %s", state)
	case store.Unwritten(err) && state != store.Running:
		s.t.Errorf("an end that is said to be unwritten (%v) left its operation %s", err, state)
	case err == nil:
		s.count("done")
	default:
		s.count("end lost")
	}
}

func (s *storm) stored(o store.Operation) (store.State, bool) {
	for {
		entry, err := s.Get(s.t.Context(), s.intent.TenantName, o.ID)
		switch {
		case err == nil:
			return entry.State, true
		case errors.Is(err, store.ErrNotFound):
			return 0, false
		case s.t.Context().Err() != nil:
			s.t.Error(err)
			return 0, false
		}
	}
}

// impatient is a context that may end at any moment of a write.
func (s *storm) impatient() (context.Context, context.CancelFunc) {
	if rand.IntN(3) > 0 {
		return context.WithTimeout(s.t.Context(), time.Minute)
	}
	return context.WithTimeout(s.t.Context(), time.Duration(rand.IntN(4000))*time.Microsecond)
}

// killing ends the ledger's sessions one after the other until it is told to stop.
func (s *storm) killing() (stop func()) {
	killer := s.db.Pool(s.t, pgtest.MaxConns(1))
	calm := make(chan struct{})
	var kills sync.WaitGroup
	kills.Go(func() {
		for {
			select {
			case <-calm:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := killer.Exec(s.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE pid <> pg_backend_pid() AND position($1 in query) > 0 ORDER BY random() LIMIT 1`, s.schema); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	return func() { close(calm); kills.Wait() }
}
