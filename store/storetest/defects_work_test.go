package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func changeDefects() map[string]defect {
	return map[string]defect{
		"versions are ignored": {
			fails: []string{"moves/R20ARowThatMovedOnIsLeftAlone", "moves/R20OneOfSeveralMovesAtOnceIsMade", "cases/R41AnotherDecisionOnAnOldVersionIsStale", "walk"},
			apply: func(ctx context.Context, l store.Ledger, c store.Change) (store.Operation, error) {
				o, err := l.Apply(ctx, c)
				for stale := (*store.StaleError)(nil); errors.As(err, &stale); o, err = l.Apply(ctx, c) {
					c.Of, c.Decision = stale.Current, uuid.Nil
				}
				return o, err
			},
		},
		"a decision is taken twice": {
			fails:  []string{"cases/R41ADecisionIsTakenOnce", "walk"},
			change: func(c *store.Change) { c.Decision = uuid.Nil },
		},
		"every move is made": {
			fails: []string{"moves/R20TheLedgerMakesEveryMoveOfTheTableAndNoOther"},
			change: func(c *store.Change) {
				if !(store.Move{From: c.Of.State, To: c.To}).Allowed() {
					c.To = c.Of.State
				}
			},
		},
		"settled writes are past": {
			fails: []string{"writes/R31ACompletedWriteInDoubtMakesTheNewOneWait", "writes/R31ASettledWriteInDoubtBlocksUntilItsMoment",
				"closed/R31AWriteInDoubtStillBlocks"},
			change: func(c *store.Change) {
				if c.To.Settled() {
					c.Doubts = 0
				}
			},
		},
		"only what completes is flagged": {
			fails: []string{"changes/R47FlagsAreAddedWhateverTheMove", "changes/R25AnAttachedAnswerStaysAttached", "walk"},
			change: func(c *store.Change) {
				if c.To != store.Completed || c.Of.State == store.Completed {
					c.Flags = 0
				}
			},
		},
		"the trace of an attempt that ended is lost": {
			fails:  []string{"changes/R48TheTraceOfTheLastAttemptIsKept", "walk"},
			change: func(c *store.Change) { c.Trace = nil },
		},
		"a return changes no moment": {
			fails:  []string{"moments/R21TheOnlyAttemptsReturnBringsTheMomentForward", "changes/R20AChangeIsWhatNextSays"},
			change: func(c *store.Change) { c.Returned = false },
		},
		"doubts are forgotten": {
			fails:  []string{"changes/R23DoubtsAreAlwaysTaken", "writes/R31ALowerWriteInDoubtMakesTheNewOneWait", "walk"},
			change: func(c *store.Change) { c.Doubts = 0 },
		},
		"today's visibility is ignored": {
			fails:  []string{"moments/R21TheLongerVisibilityHolds"},
			change: func(c *store.Change) { c.Visibility = 0 },
		},
		"due before the moment": {
			fails:  []string{"moments/R35DueAtTheMomentIsNotBeforeIt", "walk"},
			change: func(c *store.Change) { c.Due.AtMoment = false },
		},
		"due for ever": {
			fails: []string{"changes/R38DueIsAlwaysTaken"},
			change: func(c *store.Change) {
				if !c.Due.Set {
					c.Due = store.DueIn(time.Hour)
				}
			},
		},
		"one resource settles several": {
			fails:  []string{"evidence/R34AResourceSettlesOneOperationByAttribute", "evidence/R34OneOfSeveralAtOnceIsSettled"},
			change: func(c *store.Change) { c.ByAttribute = false },
		},
		"results are cut": {
			fails: []string{"payloads/R47ResultsComeBackByteForByte"},
			change: func(c *store.Change) {
				if len(c.Result) > 1<<16 {
					c.Result = c.Result[:1<<16]
				}
			},
		},
		"bodies are rewritten": {
			fails:  []string{"payloads/R57BodiesOfEventsComeBackByteForByte", "events/R57EveryMoveIsAnEventOfTheChain"},
			change: func(c *store.Change) { c.Body = bytes.TrimSpace(bytes.ToValidUTF8(c.Body, nil)) },
		},
		"a row isn't dated": {
			fails:   []string{"moments/R22EveryAnswerSaysWhenItWasRead"},
			changed: func(o *store.Operation) { o.Read = time.Time{} },
		},
	}
}

func workDefects() map[string]defect {
	return map[string]defect{
		"no lease is ever lost": {
			fails: []string{"renew/R22WhatIsLostComesBackAndIsLeftAlone", "renew/R22ALeaseThatEndedIsLost", "walk"},
			renew: func(ctx context.Context, l store.Ledger, lease time.Duration, held []store.Held) ([]store.Held, error) {
				_, err := l.Renew(ctx, lease, held...)
				return nil, err
			},
		},
		"a renewal is forgotten": {
			fails: []string{"renew/R22ALeaseIsExtendedWithItsMoment", "renew/R22RenewedLeasesAreNotDue"},
			renew: func(context.Context, store.Ledger, time.Duration, []store.Held) ([]store.Held, error) {
				return nil, nil
			},
		},
		"work is handed out twice": {
			fails: []string{"take/R36ATakenRowIsAnothersUntilTheTakersLeaseEnds", "take/R36OneTakerForEachRow"},
			take:  func(t *store.Take) { t.Lease = 0 },
		},
		"the cursor is ignored": {
			fails: []string{"take/R36ALongListStarvesNobody", "walk"},
			take:  func(t *store.Take) { t.After = store.Pair{} },
		},
		"a tool may fill the list": {
			fails: []string{"take/R36ThereIsABoundPerToolAndTenant", "walk"},
			take:  func(t *store.Take) { t.Each = 0 },
		},
		"tools at their limit are taken": {
			fails: []string{"take/R36ToolsAtTheirLimitAreLeftOut"},
			take:  func(t *store.Take) { t.Except = nil },
		},
		"anything instead of the one operation": {
			fails: []string{"take/R36OneOperationIsTakenIfItIsDue"},
			take:  func(t *store.Take) { t.Operation = uuid.Nil },
		},
		"taking moves the version": {
			fails: []string{"take/R22TakingChangesDueAtAndNothingElse"},
			taken: func(e *store.Entry) { e.Version++ },
		},
		"what isn't due is taken": {
			fails: []string{"take/R36OnlyDueRowsAreTaken"},
			takes: func(ctx context.Context, l store.Ledger, t store.Take) ([]store.Entry, error) {
				return l.List(ctx, store.Filter{States: []store.State{store.Running}})
			},
		},
	}
}

func readDefects() map[string]defect {
	return map[string]defect{
		"references cross tenants": {
			fails: []string{"tenancy/R46AnotherTenantsOperationIsNotFound"},
			get: func(ctx context.Context, l store.Ledger, _ string, id uuid.UUID) (store.Entry, error) {
				entries, err := l.List(ctx, store.Filter{Limit: 10000})
				for _, e := range entries {
					if e.ID == id {
						return e, nil
					}
				}
				return store.Entry{}, errors.Join(err, store.ErrNotFound)
			},
		},
		"the list crosses tenants": {
			fails: []string{"tenancy/R6TheSameTaskOfAnotherTenantIsAnotherIntent", "list/R39EveryFieldOfAFilterSelects"},
			list:  func(f *store.Filter) { f.Tenant = "" },
		},
		"identities are ignored": {
			fails: []string{"list/R39EveryFieldOfAFilterSelects", "walk"},
			list:  func(f *store.Filter) { f.Node = store.Digest{} },
		},
		"the list begins anew": {
			fails: []string{"list/R39TheListContinuesInTheOrderOfClaims"},
			list:  func(f *store.Filter) { f.After = uuid.Nil },
		},
		"the list has no order": {
			fails:  []string{"list/R39TheListContinuesInTheOrderOfClaims"},
			listed: func(entries []store.Entry) { slices.Reverse(entries) },
		},
		"the list never ends": {
			fails: []string{"list/R39WithoutALimitTheListEndsAfterAThousand"},
			list: func(f *store.Filter) {
				if f.Limit == 0 {
					f.Limit = 1 << 20
				}
			},
		},
		"an event is forgotten": {
			fails: []string{"events/R57EveryMoveIsAnEventOfTheChain", "moves/R20TheLedgerMakesEveryMoveOfTheTableAndNoOther"},
			journal: func(_ uuid.UUID, events []store.Event) []store.Event {
				return slices.DeleteFunc(events, func(e store.Event) bool { return e.Seq == 2 })
			},
		},
		"an event is rewritten": {
			fails: []string{"events/R57EveryMoveIsAnEventOfTheChain"},
			journal: func(_ uuid.UUID, events []store.Event) []store.Event {
				for n := range events {
					events[n].Actor = "nobody"
				}
				return events
			},
		},
		"what was asked for is written though nobody waits": {
			fails:    []string{"errors/R26ACallWithAnEndedContextWritesNothing"},
			detached: true,
		},
	}
}

// lockDefects decide first and write later, without a lock.
func lockDefects() map[string]defect {
	return map[string]defect{
		"hold and claim apart": {
			fails:  []string{"hold/R30HoldAndClaimAreDecidedTogether"},
			claims: apart(func(c *store.Claim) { c.Hold = nil }),
		},
		"unique and claim apart": {
			fails:  []string{"unique/R14OneOfSeveralAtOnceIsAdmitted"},
			claims: apart(func(c *store.Claim) { c.Operation.Unique = store.Digest{} }),
		},
	}
}

// apart looks whether the claim would be refused, using the ledger itself on a
// claim that can't stand, lets others do the same, and then claims unchecked.
func apart(unchecked func(*store.Claim)) func(context.Context, store.Ledger, []store.Claim) ([]store.Claimed, error) {
	var checked atomic.Int32
	return func(ctx context.Context, l store.Ledger, claims []store.Claim) ([]store.Claimed, error) {
		claims = slices.Clone(claims)
		entries, err := l.List(ctx, store.Filter{Limit: 10000})
		if err != nil {
			return nil, err
		}
		for _, c := range claims {
			for _, e := range entries {
				held := c.Hold != nil && e.Intent == c.Operation.Intent && e.Tool == c.Operation.Tool && e.Holds(c)
				taken := !c.Operation.Unique.IsZero() && e.Unique == c.Operation.Unique
				if held || taken {
					return l.Claim(ctx, claims...)
				}
			}
		}
		before := checked.Add(1)
		for n := 0; n < 10_000 && checked.Load() == before; n++ {
			runtime.Gosched()
		}
		for n := range claims {
			unchecked(&claims[n])
		}
		return l.Claim(ctx, claims...)
	}
}
