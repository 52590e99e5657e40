// Package storetest is the conformance suite of ledgers: what package store
// says, as tests. A ledger that passes [Run] can stand under an executor.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.World {
//			clock := storetest.NewClock()
//			return storetest.World{
//				Ledger: memory.New(memory.WithClock(clock.Now)),
//				Age:    clock.Age,
//			}
//		})
//	}
//
// The tests are grouped by topic and named by the rule that they prove, so that
// `go test -run TestConformance/take` runs one topic. Each of them is parallel,
// opens a world of its own and sleeps nowhere: time passes by World.Age.
//
// The builders ([NewIntent], [Operation], [Claim], [Change] and those beside
// them) make valid records for a ledger's own tests too.
package storetest

import (
	"testing"
	"time"

	"github.com/settle-go/settle/store"
)

// World is an empty ledger with what a test needs beside it.
type World struct {
	// Ledger is under test. The suite doesn't close it, except to see what a
	// closed ledger answers; whoever opens it does, in a cleanup.
	Ledger store.Ledger
	// Again opens the same ledger once more, as another process would (the same
	// database, another pool), and closes it in a cleanup. It is nil where that
	// can't be, as in memory.
	Again func(t testing.TB) store.Ledger
	// Age makes everything that the ledger has recorded older by d, as if its
	// clock had gone on: a database by SQL over the stored instants of intents,
	// operations and cases (lease_until, due_at, moment, key_until, created_at,
	// first_sent, unknown_since, settled_at, opened_at and the like, but neither
	// the events' instants nor the row's TailAt, which the chain seals); a ledger
	// with a clock of its own by that clock.
	Age func(t testing.TB, d time.Duration)
}

// Run runs the suite. open makes a new, empty world for each test; it is called
// from several goroutines at once.
func Run(t *testing.T, open func(t *testing.T) World) {
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			for _, tests := range topic.tests {
				tests(suite{t: t, open: open})
			}
		})
	}
}

// topic is a group of tests, one file each.
type topic struct {
	name  string
	tests []func(s suite)
}

func topics() []topic {
	type tests = []func(s suite)
	return []topic{
		{"intents", tests{intents, sharedIntents}},
		{"claims", tests{claims, slots, looks}},
		{"contract", tests{contract}},
		{"hold", tests{hold, runs, heldBatches, notHeld}},
		{"occurrences", tests{occurrences}},
		{"writes", tests{writes, lowerWrites, shownWrites, startedWrites, doubtfulWrites}},
		{"unique", tests{unique}},
		{"moves", tests{moves}},
		{"changes", tests{changes, outcomes, flags}},
		{"moments", tests{moments, attemptMoments, instantsOfStates, clocks}},
		{"renew", tests{renew, lostLeases}},
		{"take", tests{take, takeOrder, fairTakes}},
		{"evidence", tests{evidence}},
		{"cases", tests{cases, decisions}},
		{"incidents", tests{incidents}},
		{"queue", tests{queue, queuePages}},
		{"taken", tests{takenCases, proposals}},
		{"events", tests{events, journals}},
		{"audits", tests{audits}},
		{"tenancy", tests{tenancy}},
		{"list", tests{list}},
		{"purge", tests{purges, keptPayloads, purgePages}},
		{"tombstones", tests{tombstones}},
		{"erasure", tests{erasure}},
		{"closing", tests{closing, closingRefused}},
		{"closed", tests{closed, closedKeeps, closedStands}},
		{"tools", tests{declaredTools}},
		{"errors", tests{errs}},
		{"races", tests{races}},
		{"payloads", tests{payloads, texts}},
		{"batches", tests{batches, batchOrder}},
		{"transactions", tests{transactions}},
		{"outbox", tests{outbox}},
		{"storm", tests{storm}},
		{"walk", tests{walks}},
	}
}

// suite runs the tests of one topic.
type suite struct {
	t    *testing.T
	open func(t *testing.T) World
}

// test runs one test in a world of its own.
func (s suite) test(name string, run func(w *world)) {
	s.t.Run(name, func(t *testing.T) {
		t.Parallel()
		run(newWorld(t, s.open(t)))
	})
}
