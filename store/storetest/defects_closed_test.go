package storetest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// seen remembers what was shown of each record.
type seen[T any] struct{ all sync.Map }

func (s *seen[T]) set(id uuid.UUID, shown T) { s.all.Store(id, shown) }

func (s *seen[T]) get(id uuid.UUID) (shown T, ok bool) {
	v, ok := s.all.Load(id)
	if ok {
		shown = v.(T)
	}
	return shown, ok
}

func isClosed(e store.Entry) bool { return !e.Of.ClosedAt.IsZero() }

// tombstoneDefects are those of what comes in after a payload is gone.
func tombstoneDefects() map[string]defect {
	return map[string]defect{
		"a late result is kept": keptDefect(func(o *store.Operation, c store.Change) { o.Result = c.Result }),
		"a late trace is kept":  keptDefect(func(o *store.Operation, c store.Change) { o.Trace = c.Trace }),
		"a late attempt is kept": keptDefect(func(o *store.Operation, c store.Change) {
			if c.Start != nil {
				o.CallID, o.Trace = c.Start.CallID, c.Start.Trace
			}
		}),
		"a late proposal is kept": proposalDefect(),
	}
}

// keptDefect keeps something of the changes that come in for tombstones.
func keptDefect(keep func(o *store.Operation, c store.Change)) defect {
	var late seen[store.Change]
	show := func(o *store.Operation) {
		if c, ok := late.get(o.ID); ok {
			keep(o, c)
		}
	}
	return defect{
		fails: []string{"tombstones/R51WhatComesInLaterIsNotKept"},
		apply: func(ctx context.Context, l store.Ledger, c store.Change) (store.Operation, error) {
			o, err := l.Apply(ctx, c)
			if err == nil && o.Flags&store.FlagPurged != 0 {
				late.set(o.ID, c)
				show(&o)
			}
			return o, err
		},
		get: func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error) {
			e, err := l.Get(ctx, tenant, id)
			show(&e.Operation)
			return e, err
		},
	}
}

// proposalDefect keeps the proposals of cases that are closed on tombstones.
func proposalDefect() defect {
	var proposals seen[[]byte]
	return defect{
		fails: []string{"tombstones/R51AProposalForATombstoneGoesWithItsCase"},
		queued: func(entries []store.CaseEntry) {
			for n, e := range entries {
				if e.Case.ClosedAt.IsZero() {
					proposals.set(e.Case.ID, e.Case.Proposal)
				} else if shown, ok := proposals.get(e.Case.ID); ok {
					entries[n].Case.Proposal = shown
				}
			}
		},
	}
}

// closedDefects are those of what becomes of a closed intent's operations.
func closedDefects() map[string]defect {
	hide := func(hidden func(e store.Entry) bool) func(context.Context, store.Ledger, string, uuid.UUID) (store.Entry, error) {
		return func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error) {
			e, err := l.Get(ctx, tenant, id)
			if err == nil && hidden(e) {
				return store.Entry{}, store.ErrNotFound
			}
			return e, err
		}
	}
	return map[string]defect{
		"closing deletes": {
			fails: []string{"closing/R52AClosedIntentsOperationsAreTombstones", "closed/R52WhoStillKnowsTheIntentMeetsItsTombstones",
				"closed/R14UniquenessOutlivesItsIntent", "closed/R31WhatOvertookAnOlderWriteStillDoes", "walk"},
			get: hide(isClosed),
		},
		"closing takes no payload": {
			fails: []string{"closing/R52AClosedIntentsOperationsAreTombstones", "walk"},
			get: func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error) {
				e, err := l.Get(ctx, tenant, id)
				if isClosed(e) {
					e.Flags &^= store.FlagPurged
				}
				return e, err
			},
		},
		"what was reopened is deleted": {
			fails: []string{"closed/R51WhatWasReopenedIsNotDeleted"},
			get:   hide(func(e store.Entry) bool { return isClosed(e) && !e.State.Settled() }),
		},
		"the grace is forgotten":                     hastyDefect(hide),
		"what is gone stays":                         ghostDefect(),
		"what completed a deleted operation is free": freeDefect(),
		"journals outlive their operations":          journalDefect(),
		"erasure deletes what the next purge would":  erasingDefect(),
	}
}

// hastyDefect deletes tombstones of closed intents with the first purge.
func hastyDefect(hide func(func(store.Entry) bool) func(context.Context, store.Ledger, string, uuid.UUID) (store.Entry, error)) defect {
	var purged atomic.Bool
	return defect{
		fails:  []string{"closed/R52TombstonesGoWithTheirJournalsWhenTheGraceIsOver", "closed/R52WhoStillKnowsTheIntentMeetsItsTombstones", "walk"},
		purged: func(*store.Purged) { purged.Store(true) },
		get:    hide(func(e store.Entry) bool { return purged.Load() && isClosed(e) }),
	}
}

// ghostDefect shows operations that are deleted as they were.
func ghostDefect() defect {
	var shown seen[store.Entry]
	return defect{
		fails: []string{"closed/R52TombstonesGoWithTheirJournalsWhenTheGraceIsOver", "closed/R52SeveralPurgesAtOnceDeleteEachOperationOnce",
			"closed/R52DeletingWorksInPages", "closed/R31AFailedWriteGoes", "walk"},
		changed: func(o *store.Operation) { shown.set(o.ID, store.Entry{Operation: *o}) },
		get: func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error) {
			e, err := l.Get(ctx, tenant, id)
			if ghost, ok := shown.get(id); ok && errors.Is(err, store.ErrNotFound) {
				return ghost, nil
			}
			return e, err
		},
	}
}

// freeDefect lets a resource settle a second operation once the first is deleted.
func freeDefect() defect {
	return defect{
		fails: []string{"closed/R34WhatCompletedAnOperationStaysTaken"},
		apply: func(ctx context.Context, l store.Ledger, c store.Change) (store.Operation, error) {
			o, err := l.Apply(ctx, c)
			var taken *store.ResourceTakenError
			if !errors.As(err, &taken) || !c.ByAttribute {
				return o, err
			}
			entries, listed := l.List(ctx, store.Filter{Tool: c.Of.Tool, States: []store.State{store.Completed}, Limit: 10000})
			for _, e := range entries {
				if e.ResourceDigest == c.ResourceDigest {
					return o, err
				}
			}
			c.ByAttribute = false
			o, err = l.Apply(ctx, c)
			return o, errors.Join(listed, err)
		},
	}
}

func journalDefect() defect {
	var journals seen[[]store.Event]
	return defect{
		fails: []string{"closed/R52TombstonesGoWithTheirJournalsWhenTheGraceIsOver"},
		journal: func(id uuid.UUID, events []store.Event) []store.Event {
			if len(events) > 0 {
				journals.set(id, events)
			}
			shown, _ := journals.get(id)
			return shown
		},
	}
}

func erasingDefect() defect {
	return defect{
		fails: []string{"closed/R52ErasureDeletesNothing"},
		purges: func(ctx context.Context, l store.Ledger, p store.Purge) (store.Purged, error) {
			done, err := l.Purge(ctx, p)
			if err == nil && p.Principal != [32]byte{} {
				_, err = l.Purge(ctx, store.Purge{After: p.After, Limit: p.Limit})
			}
			return done, err
		},
	}
}
