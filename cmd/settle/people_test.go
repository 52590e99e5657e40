package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
)

// Who has a case at night may be asleep.
func TestR40ACaseIsTakenOver(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		bo := w.as("bo")
		if f := failed(w, 3, "queue", "take", reference, "--from", "bo"); f.Code != "conflict" || !strings.Contains(f.Message, "nobody has taken the case") || f.Next != "settle queue take "+reference {
			t.Errorf("taking over what nobody has: %+v", f)
		}
		bo.run(0, "queue", "take", reference)
		if f := failed(w, 3, "queue", "take", reference); f.Code != "conflict" || !strings.Contains(f.Message, "it is bo's") {
			t.Errorf("taking what somebody has: %+v", f)
		}
		if f := failed(w, 3, "queue", "take", reference, "--from", "carol"); f.Code != "conflict" {
			t.Errorf("taking from somebody who hasn't got it: %+v", f)
		}
		shown := w.run(0, "queue", "show", reference).out
		contains(t, shown, "settle queue take "+reference+" --from bo")
		contains(t, w.run(0, "queue", "take", reference, "--from", "bo").out, "The case is yours.")
		contains(t, w.run(0, "queue", "show", reference).out, "taken_over", "from bo", "by operator:ann")
		w.run(0, "queue", "take", reference, "--from", "bo") // again is no change
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		bo.run(3, "queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer")
		w.run(0, "queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer")
		if f := failed(w, 5, "queue", "take", reference, "--from", "ann"); f.Code != "no_open_case" {
			t.Errorf("taking over what is decided: %+v", f)
		}
	})
}

// Two persons must be told apart, and neither is nobody.
func TestR41AnOperatorsNameHasNoSpacesAround(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	reference := w.manual("refund", "o-1")
	for _, name := range []string{" ", "ann ", " ann", "ann\t", "\u00a0ann"} {
		if f := failed(w.as(name), 2, "queue", "take", reference); f.Code != "usage" {
			t.Errorf("an operator called %q: %+v", name, f)
		}
	}
}

// What is mistyped is told from what failed.
func TestACursorThatIsNoneIsUsage(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	for _, args := range [][]string{{"queue", "list"}, {"ops", "list"}} {
		failed(w, 2, append(args, "--cursor", "xyz")...)
	}
	failed(w, 2, "audit", "chain", "--after", "xyz")
	failed(w, 2, "purge", "--after", "xyz")
}

func TestR46AnotherTenantsJournalIsNotFound(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	reference := w.manual("refund", "o-1")
	w.run(0, "audit", "chain", reference)
	theirs, nobodys := "another tenant's", uuid.NewString()
	w.env["SETTLE_OPERATOR_TENANTS"] = "globex"
	for _, operation := range []string{reference, nobodys} {
		if f := failed(w, 1, "audit", "chain", operation); f.Code != "not_found" || !strings.Contains(f.Message, theirs) {
			t.Errorf("the journal of %s: %+v", operation, f)
		}
	}
	w.env["SETTLE_OPERATOR_TENANTS"] = "acme"
	w.run(0, "audit", "chain", reference)
}

// A decision's id that is given to another outcome must not look taken.
func TestR41AnIDThatIsUsedAgainIsAConflict(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	reference := w.manual("refund", "o-1")
	version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	rest := []string{"--version", version, "--reason", "asked the bank", "--id", uuid.NewString()}
	w.run(0, append([]string{"queue", "decide", reference, "fail"}, rest...)...)
	w.run(0, append([]string{"queue", "decide", reference, "fail"}, rest...)...)
	happened := append([]string{"queue", "decide", reference, "happened", "--resource", "r-1"}, rest...)
	if f := failed(w, 3, happened...); f.Code != "conflict" {
		t.Errorf("the same id for another decision: %+v", f)
	}
}

// What waits for other tenants is theirs, and so is that they have anything (R46).
func TestR46DoctorLooksAtTheOperatorsTenants(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		w.manual("refund", "o-1")
		globex := settle.WithPrincipal(inTask(t.Context(), "case-43"), settle.Principal{Tenant: "globex", Subject: "support-agent"})
		w.call(globex, "grant", "o-2", settle.StatusAwaitingApproval)
		w.call(globex, "refund", "o-3", settle.StatusUnknown)
		w.age(time.Hour)
		for tenants, want := range map[string][3]string{
			"":            {"not settled: 1 awaiting_approval, 1 unknown, 1 manual", "2 open cases, 2 of them free", bad},
			"acme":        {"not settled: 1 manual", "1 open case, 1 of them free", good},
			"globex":      {"not settled: 1 awaiting_approval, 1 unknown", "1 open case, 1 of them free", bad},
			"acme,globex": {"not settled: 1 awaiting_approval, 1 unknown, 1 manual", "2 open cases, 2 of them free", bad},
			"initech":     {"not settled: none", "no open cases", good},
		} {
			w.env["SETTLE_OPERATOR_TENANTS"] = tenants
			d := w.doctor()
			d.of(t, "workers", want[2])
			for check, said := range map[string]string{"operations": want[0], "queue": want[1]} {
				if c := d.of(t, check, good); !strings.HasPrefix(c.Said, said) {
					t.Errorf("for the tenants %q, %s: %q, want %q", tenants, check, c.Said, said)
				}
			}
		}
	})
}

// Whoever confirms a result has to be able to see it, and still finds it proposed.
func TestR41WhatIsConfirmedCanBeSeen(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("wire", "o-1")
		version := func() string { return itoa(read[caseView](w, 0, "queue", "show", reference).Version) }
		w.run(4, "queue", "decide", reference, "happened", "--version", version(), "--resource", "r-1", "--result", `{"id":"r-1"}`, "--reason", "their desk says so")
		bo := w.as("bo")
		bo.run(0, "queue", "take", reference)
		contains(t, bo.run(0, "queue", "show", reference).out, "Proposed, and to be confirmed", "is given with it, and hidden")
		type revealed struct {
			Proposed receipt `json:"proposed_result"`
		}
		if r := read[revealed](bo, 0, "queue", "reveal", reference); r.Proposed.ID != "r-1" {
			t.Errorf("the result that is proposed: %+v", r)
		}
		if v := read[caseView](bo, 0, "queue", "show", reference); v.Proposal == nil || !v.Proposal.HasResult {
			t.Fatalf("the proposal after a look at it: %+v", v.Proposal)
		}
		contains(t, bo.run(0, "queue", "confirm", reference, "--version", version(), "--reason", "asked them too").out, "Confirmed: happened")
	})
}

// What doesn't fit is mistyped, and nothing of it is kept in part (R40).
func TestR40LongWordsAreUsage(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	reference, long := w.manual("refund", "o-1"), strings.Repeat("x", 4097)
	version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	failed(w, 2, "queue", "note", reference, long)
	decide := []string{"queue", "decide", reference, "happened", "--version", version}
	failed(w, 2, append(decide, "--resource", "r-1", "--reason", long)...)
	failed(w, 2, append(decide, "--resource", long, "--reason", "seen")...)
	w.run(0, append(decide, "--resource", "r-1", "--reason", "seen")...)
}
