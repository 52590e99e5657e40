package storetest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// announced gives a change or claim events with the given types.
func announced(types ...string) []store.Announcement {
	var all []store.Announcement
	for _, t := range types {
		all = append(all, store.Announcement{ID: ID(), Type: t, Data: []byte(`{"of":"` + t + `"}`)})
	}
	return all
}

func announcing(events []store.Announcement) func(*store.Change) {
	return func(c *store.Change) { c.Announce = events }
}

// outbox is for ledgers that have one.
func outbox(s suite) {
	s.test("R54EventsAreWrittenWithTheChange", onOutbox(func(w *world, l store.Outbox) {
		o := w.record(w.intent(), func(o *store.Operation) { o.Flags = store.FlagAnnounced })
		want(w, "flags", w.read(o).Flags, store.FlagAnnounced)
		events := announced("a", "b")
		done := w.apply(Completion(o, "r-1", announcing(events)))
		waiting, err := l.Waiting(w.ctx, store.OutgoingFilter{})
		w.must(err, "waiting")
		want(w, "events", len(waiting), 2)
		for i, out := range waiting {
			if out.ID != events[i].ID || out.Type != events[i].Type || !bytes.Equal(out.Data, events[i].Data) || out.Operation != o.ID || out.Of.ID != o.Intent {
				w.Errorf("event %d is %+v", i, out)
			}
			w.wantInstant("At", out.At, done.TailAt)
			want(w, "deliveries", out.Deliveries, 0)
		}
	}))
	s.test("R54ARefusedChangeAnnouncesNothing", onOutbox(func(w *world, l store.Outbox) {
		o := w.record(w.intent())
		w.apply(Completion(o, "r-1", announcing(announced("a"))))
		refused[*store.StaleError](w, Completion(o, "r-2", announcing(announced("b"))))
		w.wantWaiting(l, "a")
	}))
	s.test("R54TheSameChangeMadeAgainAnnouncesOnce", onOutbox(func(w *world, l store.Outbox) {
		o := w.record(w.intent())
		events := announced("a")
		w.apply(Completion(o, "r-1", announcing(events)))
		refused[*store.StaleError](w, Completion(o, "r-1", announcing(events)))
		w.wantWaiting(l, "a")
	}))
	s.test("R54AClaimAnnouncesWhereItMakesItsRow", onOutbox(func(w *world, l store.Outbox) {
		c := Claim(Operation(w.intent(), In(store.AwaitingApproval)), func(c *store.Claim) { c.Announce = announced("a") })
		w.wantWon(w.claim(c))
		twin := Claim(Operation(store.Intent{ID: c.Operation.Intent, Tenant: c.Operation.Tenant}, On(c.Operation, 1), In(store.AwaitingApproval)),
			func(c *store.Claim) { c.Announce = announced("b") })
		want(w, "won by the twin", w.claim(twin).Won, false)
		w.wantWaiting(l, "a")
	}))
	s.test("R54OneOfAnOperationAtATimeInOrder", onOutbox(func(w *world, l store.Outbox) {
		i := w.intent()
		first, second := w.record(i), w.record(i)
		w.apply(Completion(first, "r-1", announcing(announced("a", "b"))))
		w.apply(Completion(second, "r-2", announcing(announced("c"))))
		got := w.fetch(l)
		want(w, "types", types(got), "a c")
		want(w, "deliveries", got[0].Deliveries, 1)
		want(w, "fetched by another relay", len(w.fetch(l)), 0)
		w.must(l.Delivered(w.ctx, got...), "delivered")
		want(w, "types behind them", types(w.fetch(l)), "b")
	}))
	s.test("R54ALeaseThatEndedIsFetchedAgain", onOutbox(func(w *world, l store.Outbox) {
		o := w.record(w.intent())
		w.apply(Completion(o, "r-1", announcing(announced("a"))))
		lost := w.fetch(l)
		w.age(2 * time.Minute)
		again := w.fetch(l)
		want(w, "types", types(again), "a")
		want(w, "deliveries", again[0].Deliveries, 2)
		w.must(l.Undelivered(w.ctx, lost[0], 0, true), "undelivered by who lost it")
		want(w, "dead", w.waiting(l)[0].Dead(), false)
	}))
	s.test("R54WhatFailsWaitsAndWhatIsDeadWaitsForAnOperator", onOutbox(func(w *world, l store.Outbox) {
		i := w.intent()
		o := w.record(i)
		w.apply(Completion(o, "r-1", announcing(announced("a", "b"))))
		w.must(l.Undelivered(w.ctx, w.fetch(l)[0], time.Minute, false), "undelivered")
		want(w, "fetched before its time", len(w.fetch(l)), 0)
		w.age(2 * time.Minute)
		w.must(l.Undelivered(w.ctx, w.fetch(l)[0], 0, true), "undelivered for good")
		want(w, "fetched though it is dead", len(w.fetch(l)), 0) // and b waits behind it
		dead, err := l.Waiting(w.ctx, store.OutgoingFilter{Dead: true, Tenant: i.TenantName})
		w.must(err, "waiting")
		want(w, "dead", types(dead), "a")
		w.must(l.Redeliver(w.ctx, i.TenantName, dead[0].ID), "redeliver")
		want(w, "fetched again", types(w.fetch(l)), "a")
		w.must(l.Discard(w.ctx, i.TenantName, dead[0].ID), "discard")
		want(w, "fetched behind it", types(w.fetch(l)), "b")
		for name, err := range map[string]error{
			"an unknown event": l.Redeliver(w.ctx, i.TenantName, uuid.New()),
			"of another":       l.Discard(w.ctx, "another-tenant", w.waiting(l)[0].ID),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				w.Errorf("%s: error %v, want ErrNotFound", name, err)
			}
		}
	}))
	s.test("R54WhatWaitsBehindAFailureIsPutOffWithIt", onOutbox(func(w *world, l store.Outbox) {
		o := w.record(w.intent())
		w.apply(Completion(o, "r-1", announcing(announced("a", "b"))))
		w.must(l.Undelivered(w.ctx, w.fetch(l)[0], time.Minute, false), "undelivered")
		waiting := w.waiting(l)
		w.wantInstant("DueAt of what is behind", waiting[1].DueAt, waiting[0].DueAt)
		w.age(2 * time.Minute)
		head := w.fetch(l)
		w.must(l.Undelivered(w.ctx, head[0], time.Hour, false), "undelivered again")
		w.age(2 * time.Hour)
		head = w.fetch(l)
		want(w, "types", types(head), "a")
		w.must(l.Delivered(w.ctx, head...), "delivered")
		want(w, "types behind it", types(w.fetch(l)), "b")
	}))
	s.test("R52ErasureEmptiesWhatIsStillToBeSent", onOutbox(func(w *world, l store.Outbox) {
		i := w.intent()
		o := w.record(i)
		w.apply(Completion(o, "r-1", announcing(announced("a"))))
		_, err := w.Ledger.Purge(w.ctx, store.Purge{Principal: i.Principal})
		w.must(err, "erase")
		want(w, "bytes of data", len(w.waiting(l)[0].Data), 0)
	}))
}

func (w *world) fetch(l store.Outbox) []store.Outgoing {
	w.Helper()
	fetched, err := l.Fetch(w.ctx, 10, time.Minute)
	w.must(err, "fetch")
	return fetched
}

func (w *world) waiting(l store.Outbox) []store.Outgoing {
	w.Helper()
	waiting, err := l.Waiting(w.ctx, store.OutgoingFilter{})
	w.must(err, "waiting")
	return waiting
}

func (w *world) wantWaiting(l store.Outbox, want string) {
	w.Helper()
	if got := types(w.waiting(l)); got != want {
		w.Errorf("the outbox has %q, want %q", got, want)
	}
}

func types(of []store.Outgoing) string {
	var all []byte
	for _, o := range slices.All(of) {
		all = append(append(all, o.Type...), ' ')
	}
	return string(bytes.TrimSpace(all))
}

func onOutbox(run func(*world, store.Outbox)) func(*world) {
	return func(w *world) {
		if l, ok := w.Ledger.(store.Outbox); ok {
			run(w, l)
		}
	}
}
