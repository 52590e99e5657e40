package storetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func queueDefects() map[string]defect {
	return map[string]defect{
		"the queue crosses tenants": {
			fails: []string{"queue/R39EveryFieldOfACaseFilterSelects"},
			queue: func(f *store.CaseFilter) { f.Tenant = "" },
		},
		"what is closed stays in the queue": {
			fails: []string{"queue/R39AClosedCaseKeepsWhatItSaid", "queue/R39EveryFieldOfACaseFilterSelects"},
			queue: func(f *store.CaseFilter) { f.Closed = true },
		},
		"what is closed is gone": {
			fails: []string{"queue/R39AClosedCaseKeepsWhatItSaid", "cases/R39OneCaseIsOpenWhileAPersonIsNeeded"},
			queue: func(f *store.CaseFilter) { f.Closed = false },
		},
		"every case is old enough": {
			fails: []string{"queue/R39EveryFieldOfACaseFilterSelects"},
			queue: func(f *store.CaseFilter) { f.OlderThan = 0 },
		},
		"held cases are free": {
			fails: []string{"queue/R39EveryFieldOfACaseFilterSelects"},
			queue: func(f *store.CaseFilter) { f.Free = false },
		},
		"the queue begins anew": {
			fails: []string{"queue/R39TheQueueIsReadPageByPage", "queue/R39WhatIsOpenedOrClosedMeanwhileMovesNoOther"},
			queue: func(f *store.CaseFilter) { f.After = store.CaseCursor{} },
		},
		"a page ends within an instant": {
			fails: []string{"queue/R39TheQueueIsReadPageByPage"},
			queue: func(f *store.CaseFilter) {
				if !f.After.OpenedAt.IsZero() {
					f.After.ID = uuid.Max
				}
			},
			queued: func(entries []store.CaseEntry) {
				for n := range entries {
					entries[n].Case.OpenedAt = entries[n].Case.OpenedAt.Truncate(time.Hour)
				}
			},
		},
		"the queue has no order": {
			fails:  []string{"queue/R39TheQueueIsInTheOrderOfOpening", "walk"},
			queued: func(entries []store.CaseEntry) { slices.Reverse(entries) },
		},
		"the queue never ends": {
			fails: []string{"queue/R39WithoutALimitAPageHasAHundred"},
			queue: func(f *store.CaseFilter) {
				if f.Limit == 0 {
					f.Limit = 1 << 20
				}
			},
		},
	}
}

func caseDefects() map[string]defect {
	return map[string]defect{
		"nobody takes a case": {
			fails:  []string{"taken/R40ACaseIsTakenAndReleased", "taken/R40AnIncidentIsTaken", "changes/R20AChangeIsWhatNextSays", "walk"},
			change: func(c *store.Change) { c.Take = nil },
		},
		"a case is never released": {
			fails: []string{"taken/R40ACaseIsTakenAndReleased", "walk"},
			change: func(c *store.Change) {
				if c.Take != nil && *c.Take == "" {
					c.Take = nil
				}
			},
		},
		"every move releases": {
			fails: []string{"taken/R40ACaseStaysTakenUntilItIsReleased", "walk"},
			change: func(c *store.Change) {
				if c.Take == nil {
					c.Take = new("")
				}
			},
		},
		"proposals are forgotten": {
			fails:  []string{"taken/R41AProposalIsKeptWithTheOpenCase", "taken/R41AProposalReplacesTheOneBefore", "walk"},
			change: func(c *store.Change) { c.Proposal = nil },
		},
		"incidents stay open": {
			fails: []string{"incidents/R40ResolvingClosesEveryOpenIncident", "purge/R51AnOpenIncidentKeepsThePayload",
				"closing/R51AnIntentWithAnOpenIncidentStaysOpen", "closed/R51AnOpenIncidentKeepsTheOperation", "walk"},
			change: func(c *store.Change) { c.Resolve = false },
		},
		"a case is born taken": {
			fails: []string{"taken/R40WhatIsTakenWithAMoveIsTheCaseFromBefore", "walk"},
			queued: func(entries []store.CaseEntry) {
				for n, e := range entries {
					if e.Case.Holder == "" && e.Case.ClosedAt.IsZero() {
						entries[n].Case.Holder = e.Entry.Taken
					}
				}
			},
		},
		"what is left isn't taken": {
			fails: []string{"taken/R40WhatIsTakenWithAMoveIsTheCaseFromBefore", "walk"},
			change: func(c *store.Change) {
				if c.To != c.Of.State {
					c.Take, c.Proposal = nil, nil
				}
			},
		},
		"an attempt files cases": {
			fails: []string{"incidents/R40AnAttemptLeavesCasesAlone"},
			apply: func(ctx context.Context, l store.Ledger, c store.Change) (store.Operation, error) {
				o, err := l.Apply(ctx, c)
				if err != nil || c.Start == nil || !c.Resolve {
					return o, err
				}
				return l.Apply(ctx, store.Change{Of: o, To: o.State, Resolve: true, Incident: c.Incident})
			},
		},
		"every move resolves": {
			fails:  []string{"incidents/R25AnIncidentStaysOpenWhenTheStatesCaseIsClosed", "walk"},
			change: func(c *store.Change) { c.Resolve = true },
		},
		"nothing is an incident": {
			fails: []string{"incidents/R25AnIncidentIsACaseOfItsOwn", "purge/R51AnOpenIncidentKeepsThePayload",
				"closed/R51AnOpenIncidentKeepsTheOperation", "walk"},
			change: func(c *store.Change) { c.Incident = "" },
		},
	}
}

func purgeDefects() map[string]defect {
	entries := func(change func(e *store.Entry)) func(context.Context, store.Ledger, string, uuid.UUID) (store.Entry, error) {
		return func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error) {
			e, err := l.Get(ctx, tenant, id)
			if e.Flags&store.FlagPurged != 0 {
				change(&e)
			}
			return e, err
		}
	}
	return map[string]defect{
		"everything is purged at once": {
			fails: []string{"purge/R51ASettledOperationLosesItsPayloadAfterItsRetention", "purge/R51NoRetentionKeepsThePayload"},
			claim: func(c *store.Claim) { c.Operation.Retention = time.Nanosecond },
		},
		"everything is kept": {
			fails: []string{"purge/R51ASettledOperationLosesItsPayloadAfterItsRetention", "tombstones/R51ATombstoneStandsInItsPlace", "walk"},
			claim: func(c *store.Claim) { c.Operation.Retention = 0 },
		},
		"nobody has relatives": {
			fails: []string{"purge/R51WhatHangsOnAnUnsettledParentIsKept", "purge/R51WhatAnUnsettledStepHangsOnIsKept", "purge/R51WhatIsBeingUndoneIsKept",
				"closed/R51WhatHangsOnSomethingReopenedIsNotDeleted"},
			claim: func(c *store.Claim) { c.Operation.Parent = uuid.Nil },
		},
		"a tombstone tells by its fingerprint": {
			fails: []string{"purge/R51ASettledOperationLosesItsPayloadAfterItsRetention", "erasure/R52APrincipalsPayloadsGoAtOnce"},
			get:   entries(func(e *store.Entry) { e.Fingerprint = [32]byte{1} }),
		},
		"a tombstone has no resource": {
			fails: []string{"tombstones/R34PurgingFreesNoResource", "purge/R51ASettledOperationLosesItsPayloadAfterItsRetention"},
			get:   entries(func(e *store.Entry) { e.Resource = "" }),
		},
		"purging is a move": {
			fails: []string{"tombstones/R51ATombstoneStandsInItsPlace", "purge/R51ASettledOperationLosesItsPayloadAfterItsRetention"},
			get:   entries(func(e *store.Entry) { e.Version++ }),
		},
		"a page has no end": {
			fails: []string{"purge/R52APurgeWorksInPages", "purge/R52WithoutALimitAPageEndsAfterAThousand"},
			purge: func(p *store.Purge) { p.Limit = 1 << 20 },
		},
		"a purge begins anew": {
			fails: []string{"purge/R52APurgeWorksInPages", "purge/R52APurgeThatWasInterruptedGoesOn"},
			purge: func(p *store.Purge) { p.After = uuid.Nil },
		},
		"a purge ends with its first page": {
			fails:  []string{"purge/R52APurgeWorksInPages", "purge/R52APurgeThatWasInterruptedGoesOn"},
			purged: func(done *store.Purged) { done.Next = uuid.Nil },
		},
		"a purge counts what it saw": {
			fails:  []string{"purge/R51AnOperationIsPurgedOnce", "purge/R52APageCountsWhatItSaw"},
			purged: func(done *store.Purged) { done.Removed = done.Seen },
		},
		"erasure waits for retention": {
			fails: []string{"erasure/R52APrincipalsPayloadsGoAtOnce", "erasure/R52ErasureWaitsForNothing"},
			purge: func(p *store.Purge) { p.Principal = [32]byte{} },
		},
		"what was erased may be put back": {
			fails: []string{"erasure/R52WhatWasProposedBeforeAnErasureIsNotPutBack"},
			change: func(c *store.Change) {
				if c.Proposal != nil { // as if it had been read since
					c.Of.Flags |= store.FlagPurged
				}
			},
		},
		"tenants are principals": {
			fails: []string{"erasure/R52ErasureIsOfOnePrincipal"},
			intent: func(l store.Ledger, p store.Intent) (store.Intent, error) {
				p.Principal = p.TenantDigest
				return l.Intent(context.Background(), p)
			},
		},
	}
}

func closingDefects() map[string]defect {
	return map[string]defect{
		"nothing is closed": {
			fails: []string{"closing/R52AClosedIntentKeepsItsDigestWithoutItsNames", "closing/R52AClosedIntentsOperationsAreTombstones",
				"closing/R52AnIntentWithUnsettledOperationsStaysOpen", "closed/R52TombstonesGoWithTheirJournalsWhenTheGraceIsOver", "walk"},
			closes: func(context.Context, store.Ledger, string, uuid.UUID) error { return nil },
		},
		"any tenant closes": {
			fails: []string{"closing/R46AnotherTenantsIntentIsNotFound", "walk"},
			closes: func(ctx context.Context, l store.Ledger, tenant string, intent uuid.UUID) error {
				entries, err := l.List(ctx, store.Filter{Intent: intent, Limit: 1})
				if err == nil && len(entries) > 0 {
					tenant = entries[0].Of.TenantName
				}
				return errors.Join(err, l.CloseIntent(ctx, tenant, intent))
			},
		},
		"a closed intent is not found": {
			fails:  []string{"closing/R52ClosingAgainIsNoChange", "closing/R52ClosingSeveralTimesAtOnceClosesOnce", "walk"},
			closes: once(),
		},
		"a closed intent is a new one": {
			fails: []string{"closing/R52AClosedIntentKeepsItsDigestWithoutItsNames", "closing/R52ClosingAgainIsNoChange"},
			intent: func(l store.Ledger, p store.Intent) (store.Intent, error) {
				i, err := l.Intent(context.Background(), p)
				if err == nil && !i.ClosedAt.IsZero() {
					p.Digest[0]++
					return l.Intent(context.Background(), p)
				}
				return i, err
			},
		},
		"what is unsettled is closed by force": {
			fails: []string{"closing/R52AnIntentWithUnsettledOperationsStaysOpen"},
			closes: func(ctx context.Context, l store.Ledger, tenant string, intent uuid.UUID) error {
				if err := l.CloseIntent(ctx, tenant, intent); !errors.Is(err, store.ErrUnsettled) {
					return err
				}
				return nil
			},
		},
	}
}

// once closes each intent, and finds it no more.
func once() func(context.Context, store.Ledger, string, uuid.UUID) error {
	var closed sync.Map
	return func(ctx context.Context, l store.Ledger, tenant string, intent uuid.UUID) error {
		err := l.CloseIntent(ctx, tenant, intent)
		if err != nil {
			return err
		}
		if _, again := closed.LoadOrStore(intent, true); again {
			return store.ErrNotFound
		}
		return nil
	}
}

// recordDefects are those of audits and declared tools.
func recordDefects() map[string]defect {
	return map[string]defect{
		"equal refusals are one": {
			fails:   []string{"audits/R57WhatChangedNothingIsAudited"},
			audited: func(rows []store.Audit) []store.Audit { return slices.Compact(rows) },
		},
		"the newest refusal comes first": {
			fails:   []string{"audits/R57AuditsComeOldestFirst", "audits/R57WhatChangedNothingIsAudited"},
			audited: func(rows []store.Audit) []store.Audit { slices.Reverse(rows); return rows },
		},
		"callers date their refusals": {
			fails: []string{"audits/R57TheLedgerDatesARow"},
			audited: func(rows []store.Audit) []store.Audit {
				for n := range rows {
					rows[n].At = rows[n].At.AddDate(-9, 0, 0)
				}
				return rows
			},
		},
		"refusals are of no operation": {
			fails: []string{"audits/R57AuditsAreOfTheirOperation"},
			audits: func(rows []store.Audit) []store.Audit {
				for n := range rows {
					rows[n].Operation = uuid.Nil
				}
				return rows
			},
		},
		"the first word on a tool stays": {
			fails: []string{"tools/R40TheLatestWordCounts", "tools/R40SeveralAreDeclaredAtOnce"},
			declare: func(ctx context.Context, l store.Ledger, tools []store.ToolRecord) error {
				for _, t := range tools {
					if known, err := l.Declared(ctx, t.Tool); err != nil || known.Tool != "" {
						continue
					}
					if err := l.Declare(ctx, t); err != nil {
						return err
					}
				}
				return nil
			},
		},
		"the first word of a call stays": {
			fails: []string{"tools/R40SeveralAreDeclaredAtOnce"},
			declare: func(ctx context.Context, l store.Ledger, tools []store.ToolRecord) error {
				tools = slices.Clone(tools)
				slices.Reverse(tools)
				return l.Declare(ctx, tools...)
			},
		},
		"one person always decides": {
			fails:    []string{"tools/R40WhatIsDeclaredOfAToolIsKept"},
			declared: func(t *store.ToolRecord) { t.Deciders = 1 },
		},
	}
}
