package storetest_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// defects returns them by name.
func defects() map[string]defect {
	all := map[string]defect{}
	for _, some := range []map[string]defect{
		intentDefects(), claimDefects(), refusalDefects(), orderDefects(), changeDefects(), workDefects(), readDefects(), lockDefects(),
		queueDefects(), caseDefects(), purgeDefects(), tombstoneDefects(), closingDefects(), closedDefects(), recordDefects(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func intentDefects() map[string]defect {
	return map[string]defect{
		"every proposal is an intent": {
			fails: []string{"intents/R7TheSameDigestIsTheSameRowForEver", "intents/R7OneRowForSeveralCallersAtOnce"},
			intent: func(l store.Ledger, p store.Intent) (store.Intent, error) {
				p.Digest[0] = byte(time.Now().UnixNano())
				p.Digest[1] = p.ID[15]
				return l.Intent(context.Background(), p)
			},
		},
		"every intent has a tenant": {
			fails: []string{"intents/R7IntentsOfOneTenantShareItsIDAndKey"},
			intent: func(l store.Ledger, p store.Intent) (store.Intent, error) {
				copy(p.TenantDigest[:], p.ID[:])
				return l.Intent(context.Background(), p)
			},
		},
	}
}

func claimDefects() map[string]defect {
	return map[string]defect{
		"two claims win": {
			fails: []string{"claims/R19AnotherOwnerIsShownTheRow", "races/R19OneOfSeveralClaimsAtOnceIsWon", "storm"},
			claimed: func(_ store.Claim, a *store.Claimed) {
				if !a.Won && len(a.Slot) > 0 {
					a.Won, a.Operation, a.Slot = true, a.Slot[len(a.Slot)-1], nil
				}
			},
		},
		"a loser gets no row": {
			fails:   []string{"claims/R19AnotherOwnerIsShownTheRow", "races/R19OneOfSeveralClaimsAtOnceIsWon"},
			claimed: func(_ store.Claim, a *store.Claimed) { a.Slot = nil },
		},
		"a lost answer stays lost": {
			fails: []string{"claims/R19ALostAnswerIsClaimedAgain", "races/R19ARepeatedClaimMeetsItself", "batches/R19ABatchIsClaimedAgainAsAWhole"},
			claims: func(ctx context.Context, l store.Ledger, claims []store.Claim) ([]store.Claimed, error) {
				for n := range claims {
					claims[n].Look = true
				}
				looks, err := l.Claim(ctx, claims...)
				for n := range claims {
					claims[n].Look = false
				}
				if err == nil && slices.ContainsFunc(looks, func(a store.Claimed) bool { return len(a.Slot) > 0 }) {
					return looks, nil
				}
				return l.Claim(ctx, claims...)
			},
		},
		"a look writes": {
			fails: []string{"claims/R18ALookReadsAndNeverWrites", "claims/R18ALookIsWonByNobody"},
			claim: func(c *store.Claim) { c.Look = false },
		},
		"the hint decides": {
			fails: []string{"claims/R19HintsNeverDecide"},
			claim: func(c *store.Claim) { c.Look = c.Look || c.Likely },
		},
		"Known leaves out the hold": {
			fails: []string{"claims/R19HintsNeverDecide"},
			claim: func(c *store.Claim) {
				if c.Known {
					c.Hold = nil
				}
			},
		},
		"the slot upside down": {
			fails:   []string{"claims/R10TheSlotHoldsEveryNumberLowestFirst"},
			claimed: func(_ store.Claim, a *store.Claimed) { slices.Reverse(a.Slot) },
		},
		"a claim begins anywhere": {
			fails: []string{"claims/R20AClaimCantBeginInEveryState"},
			claim: func(c *store.Claim) {
				if !(store.Move{To: c.Operation.State}).Allowed() {
					c.Operation.State = store.Retryable
				}
			},
		},
		"claims are made one by one": {
			fails: []string{"claims/R20AClaimCantBeginInEveryState"},
			claims: func(ctx context.Context, l store.Ledger, claims []store.Claim) ([]store.Claimed, error) {
				var answers []store.Claimed
				for _, c := range claims {
					got, err := l.Claim(ctx, c)
					if err != nil {
						return nil, err
					}
					answers = append(answers, got...)
				}
				return answers, nil
			},
		},
		"answers in another order": {
			fails: []string{"batches/R19AnswersComeInTheOrderOfTheClaims"},
			claims: func(ctx context.Context, l store.Ledger, claims []store.Claim) ([]store.Claimed, error) {
				answers, err := l.Claim(ctx, claims...)
				slices.Reverse(answers)
				return answers, err
			},
		},
		"bytes become text": {
			fails: []string{"payloads/R29ArgumentsComeBackByteForByte"},
			claim: func(c *store.Claim) {
				c.Operation.Arguments = bytes.ReplaceAll(c.Operation.Arguments, []byte{0}, nil)
			},
		},
	}
}

func refusalDefects() map[string]defect {
	return map[string]defect{
		"the hold is ignored": {
			fails: []string{"hold/R30EveryUnsettledOperationHolds", "hold/R30HoldAndClaimAreDecidedTogether", "storm", "walk"},
			claim: func(c *store.Claim) { c.Hold = nil },
		},
		"told once, never held": {
			fails: []string{"hold/R30ToldOnesHoldWhileTheyAreUnsettled"},
			claim: func(c *store.Claim) {
				if c.Hold != nil && len(c.Hold.Told) > 0 {
					c.Hold = nil
				}
			},
		},
		"no batch is one batch": {
			fails: []string{"hold/R30NoBatchIsNobodysBatch"},
			claim: func(c *store.Claim) {
				if c.Operation.Batch == uuid.Nil {
					c.Operation.Batch = uuid.Max
				}
			},
		},
		"guards are ignored": {
			fails: []string{"occurrences/R10AGuardThatMovedOnRefusesAndShowsTheSlot", "occurrences/R9AGuardOnAnOperationThatIsNotThereRefuses", "walk"},
			claim: func(c *store.Claim) { c.After = nil },
		},
		"any contract will do": {
			fails: []string{"contract/R3AnotherIdentityDefinitionIsRefused", "contract/R3OneOfTwoDefinitionsAtOnceIsPinned"},
			claim: func(c *store.Claim) { c.Operation.Contract = store.Digest{1} },
		},
		"unique is forgotten": {
			fails: []string{"unique/R14ASecondOneIsRefusedOverIntents", "unique/R14OneOfSeveralAtOnceIsAdmitted",
				"tombstones/R14PurgingNeverLiftsUniqueness", "closed/R14UniquenessOutlivesItsIntent", "walk"},
			claim: func(c *store.Claim) { c.Operation.Unique = store.Digest{} },
		},
		"unique in its intent only": {
			fails: []string{"unique/R14ASecondOneIsRefusedOverIntents"},
			claim: func(c *store.Claim) {
				if !c.Operation.Unique.IsZero() {
					copy(c.Operation.Unique[:], c.Operation.Intent[8:])
				}
			},
		},
	}
}

func orderDefects() map[string]defect {
	return map[string]defect{
		"writes have no order": {
			fails: []string{"writes/R31WritesOnAResourceAreNumbered", "writes/R31ARunningLowerWriteMakesTheNewOneWait",
				"writes/R31AnAttemptStartsForTheHighestNumberOnly", "writes/R31NumbersAndStartsAreDecidedTogether",
				"closed/R31WhatOvertookAnOlderWriteStillDoes", "storm", "walk"},
			claim: func(c *store.Claim) { c.Operation.ResourceKey = store.Digest{} },
		},
		"a batch is sorted before its writes are numbered": {
			fails: []string{"batches/R31WritesOfOneBatchAreNumberedInTheirOrder"},
			claims: func(ctx context.Context, l store.Ledger, claims []store.Claim) ([]store.Claimed, error) {
				claims = slices.Clone(claims)
				slices.Reverse(claims)
				answers, err := l.Claim(ctx, claims...)
				slices.Reverse(answers)
				return answers, err
			},
		},
		"nobody is shown what it waits for": {
			fails: []string{"writes/R31ALostAnswerShowsWhatItWaitsFor", "writes/R31ATwinIsShownWhatTheWriteWaitsFor"},
			claimed: func(_ store.Claim, a *store.Claimed) {
				if a.Refused == store.NotRefused {
					a.Others = nil
				}
			},
		},
		"nobody is shown the newest write": {
			fails:   []string{"writes/R31WhoDoesntWinIsShownTheNewestWrite"},
			claimed: func(_ store.Claim, a *store.Claimed) { a.Newest = nil },
		},
	}
}
