package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// onEachLedger runs a scenario in a world of its own on each ledger.
func onEachLedger(t *testing.T, scenario func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for _, l := range ledgers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, l.create(t).hire())
		})
	}
}

var ledgers = []struct {
	name   string
	create func(t *testing.T) *world
}{
	{"memory", newMemory},
	{"sqlite", newSQLite},
	{"postgres", newPostgres},
}

func TestQueueShowsWhatADecisionNeeds(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		w.call(inTask(t.Context(), "case-43"), "grant", "o-2", settle.StatusAwaitingApproval)
		w.run(0, "queue", "note", reference, "the desk is closed\nuntil nine")

		golden(t, "queue_list", w.run(0, "queue", "list").out)
		golden(t, "queue_list_json", w.run(0, "queue", "list", "--json").out)
		golden(t, "queue_show", w.run(0, "queue", "show", reference).out)
		golden(t, "queue_show_json", w.run(0, "queue", "show", reference, "--json").out)
		golden(t, "ops_list", w.run(0, "ops", "list").out)
		golden(t, "ops_list_json", w.run(0, "ops", "list", "--json").out)
		golden(t, "ops_show", w.run(0, "ops", "show", reference).out)
		golden(t, "ops_show_json", w.run(0, "ops", "show", reference, "--json").out)
		golden(t, "ops_brief", w.run(0, "ops", "brief", reference).out)

		for _, args := range [][]string{{"queue", "show", reference}, {"ops", "show", reference}, {"queue", "show", reference, "--json"}} {
			if r := w.run(0, args...); strings.Contains(r.out, "o-1") {
				t.Errorf("settle %v shows an argument's value:\n%s", args, r.out)
			}
		}
		revealed := read[struct{ Arguments struct{ Order string } }](w, 0, "queue", "reveal", reference)
		if revealed.Arguments.Order != "o-1" {
			t.Errorf("reveal shows %+v", revealed)
		}
		contains(t, w.run(0, "queue", "show", reference).out, "revealed, manual")
	})
}

func TestR40ADecisionSettles(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		view := read[caseView](w, 0, "queue", "show", reference)
		version := len(view.Events)
		if view.Version != version || len(view.Decisions) != 5 {
			t.Fatalf("the case is at version %d after %d events, with %d decisions", view.Version, version, len(view.Decisions))
		}
		// Every decision is listed as the command to type.
		for _, d := range view.Decisions {
			if want := "settle queue decide " + reference + " " + d.Decision + " --version "; !strings.HasPrefix(d.Command, want) {
				t.Errorf("%s is to be typed as %q, want %q…", d.Decision, d.Command, want)
			}
			found := false
			for _, o := range outcomes {
				found = found || string(o.kind) == d.Decision
			}
			if !found {
				t.Errorf("decide doesn't know the decision %s", d.Decision)
			}
		}
		r := w.run(0, typed(view.Decisions[0].Command, "r-9", "the bank says so")...)
		contains(t, r.out, "Decided: happened.", "completed, at version ")
		contains(t, w.run(0, "ops", "show", reference).out, "completed", "r-9", "the bank says so", "operator:ann")
		// R45: the decision reaches whoever waits.
		contains(t, w.run(0, "ops", "wait", reference).out, "completed, resource r-9")
		if out, err := w.host.Get(inTask(t.Context(), "case-42"), reference); err != nil || out.Status != settle.StatusCompleted || out.Resource != "r-9" {
			t.Errorf("the host is told %+v, %v", out, err)
		}
		if r := w.run(0, "queue", "list"); strings.Contains(r.out, reference) {
			t.Errorf("the case is still open:\n%s", r.out)
		}
		contains(t, w.run(0, "queue", "list", "--closed").out, reference)
	})
}

// typed makes the arguments of a command that was shown, with its gaps filled in.
func typed(command, resource, reason string) []string {
	words := strings.Fields(strings.TrimPrefix(command, "settle "))
	for i, word := range words {
		switch word {
		case "ID":
			words[i] = resource
		case `"…"`:
			words[i] = reason
		}
	}
	return words
}

func TestR41ADecisionNamesTheVersionSeen(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		seen := read[caseView](w, 0, "queue", "show", reference).Version
		bo := w.as("bo")
		bo.run(0, "queue", "note", reference, "I look into it")

		decide := []string{"queue", "decide", reference, "fail", "--reason", "no transfer"}
		f := failed(w, 3, append(decide, "--version", "1")...)
		if f.Code != "stale_version" || f.Version != seen+1 || !strings.HasSuffix(f.Next, "queue show "+reference) {
			t.Errorf("a stale version is refused with %+v", f)
		}
		// A refusal changes nothing but the audit.
		contains(t, w.run(0, "ops", "show", reference).out, "manual", "decision_refused (fail), by operator:ann")

		id := uuid.NewString()
		now := []string{"--version", itoa(seen + 1), "--id", id}
		first := read[decidedView](w, 0, append(decide, now...)...)
		again := read[decidedView](w, 0, append(decide, now...)...)
		if first.State != "failed" || first.ID != id || again.Version != first.Version {
			t.Errorf("decided %+v, and again %+v", first, again)
		}
		if f := failed(bo, 3, "queue", "decide", reference, "abandon", "--version", itoa(seen+1), "--reason", "late"); f.Code != "stale_version" {
			t.Errorf("who comes second is told %+v", f)
		}
	})
}

func TestTakenCasesAreTheirOwners(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		bo := w.as("bo")
		contains(t, w.run(0, "queue", "take", reference).out, "The case is yours.")
		w.run(0, "queue", "take", reference)
		f := failed(bo, 3, "queue", "take", reference)
		if f.Code != "conflict" || !strings.Contains(f.Message, "ann") {
			t.Errorf("a taken case is refused with %+v", f)
		}
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		bo.run(3, "queue", "decide", reference, "abandon", "--version", version, "--reason", "x")
		bo.run(3, "queue", "release", reference)
		type list struct{ Cases []caseLine }
		if l := read[list](w, 0, "queue", "list", "--mine"); len(l.Cases) != 1 || l.Cases[0].Owner != "ann" {
			t.Errorf("ann's cases: %+v", l)
		}
		for _, empty := range [][]string{{"--free"}, {"--owner", "bo"}, {"--tool", "wire"}, {"--tenant", "globex"}, {"--older-than", "3d"}, {"--state", "awaiting_approval"}, {"--reason", "late_success"}} {
			if l := read[list](w, 0, append([]string{"queue", "list"}, empty...)...); len(l.Cases) != 0 {
				t.Errorf("queue list %v: %+v", empty, l)
			}
		}
		w.run(0, "queue", "release", reference)
		contains(t, bo.run(0, "queue", "take", reference).out, "yours")
	})
}

func TestR41TwoPersonsDecide(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("wire", "o-1")
		bo := w.as("bo")
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		w.run(3, "queue", "confirm", reference, "--version", version, "--reason", "there is nothing yet")

		proposed := read[decidedView](w, 4, "queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer")
		if proposed.State != "manual" || !proposed.Proposed || !strings.Contains(proposed.Next, "queue confirm") {
			t.Errorf("proposed: %+v", proposed)
		}
		confirm := typed(proposed.Next, "", "I asked them too")
		if f := failed(w, 4, confirm...); f.Code != "second_person_needed" {
			t.Errorf("who proposed confirms: %+v", f)
		}
		golden(t, "queue_show_proposed", bo.run(0, "queue", "show", reference).out)
		// New evidence voids the proposal.
		bo.run(0, "queue", "note", reference, "one more thing")
		bo.run(3, confirm...)

		version = itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		r := w.run(4, "queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer")
		contains(t, r.out, "Proposed: fail.", "A second person confirms it:")
		version = itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		decided := read[decidedView](bo, 0, "queue", "confirm", reference, "--version", version, "--reason", "I asked them too")
		if decided.State != "failed" {
			t.Errorf("confirmed: %+v", decided)
		}
		again := bo.run(0, "queue", "confirm", reference, "--version", version, "--reason", "I asked them too", "--id", decided.ID)
		contains(t, again.out, "Confirmed: fail. The operation is failed")
	})
}

func TestR40DidNotHappenWaitsForTheMoment(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		w.hire(w.tool("slow", settle.Contract{NoLookup: true, VisibilityDelay: 2 * time.Hour, EscalateAfter: 3 * time.Hour}))
		reference := w.early("slow", 0)
		view := read[caseView](w, 0, "queue", "show", reference)
		if view.MomentPassed || view.Decisions[1].Decision != "run_once_more" || view.Decisions[1].Refused == "" || view.Decisions[1].Command != "" {
			t.Errorf("before the moment run_once_more is shown as %+v", view.Decisions[1])
		}
		contains(t, w.run(0, "queue", "show", reference).out, "an attempt may still take effect until then", "not now: an attempt may still take effect")
		for _, outcome := range []string{"run_once_more", "fail"} {
			decide := []string{"queue", "decide", reference, outcome, "--version", itoa(view.Version), "--reason", "asked"}
			if f := failed(w, 5, decide...); f.Code != "moment_not_passed" || !strings.Contains(f.Message, "in 1h59m") {
				t.Errorf("%s before the moment: %+v", outcome, f)
			}
		}
		w.age(3 * time.Hour)
		w.run(0, "queue", "decide", reference, "run_once_more", "--version", itoa(view.Version), "--reason", "asked")
		w.fails = nil
		w.recover()
		contains(t, w.run(0, "ops", "wait", reference, "--timeout", "30s").out, "completed")
	})
}

func TestR40AnAttachedSuccessSpeaksAgainstDidNotHappen(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.early("refund", store.FlagAttached)
		w.age(time.Hour)
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		for _, outcome := range []string{"run_once_more", "fail"} {
			if f := failed(w, 5, "queue", "decide", reference, outcome, "--version", version, "--reason", "asked"); f.Code != "success_attached" {
				t.Errorf("%s beside an attempt's success: %+v", outcome, f)
			}
		}
		w.run(0, "queue", "decide", reference, "happened", "--version", version, "--reason", "it said so", "--no-resource")
	})
}

// early makes a case before the operation's moment.
func (w *world) early(tool string, flags uint8) string {
	w.Helper()
	w.fails = errLost
	reference := w.call(inTask(w.Context(), "case-42"), tool, "o-1", settle.StatusUnknown)
	e, err := w.ledger.Get(w.Context(), "acme", uuid.MustParse(reference))
	if err == nil {
		_, err = w.ledger.Apply(w.Context(), store.Change{Of: e.Operation, To: store.Manual, Kind: "escalated", Actor: "recovery",
			Reason: "arguments_undecodable", Doubts: e.Doubts, Flags: flags})
	}
	if err != nil {
		w.Fatal(err)
	}
	return reference
}

func TestR43Approvals(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		ctx := inTask(t.Context(), "case-42")
		reference := w.call(ctx, "grant", "o-1", settle.StatusAwaitingApproval)
		view := read[caseView](w, 0, "queue", "show", reference)
		if view.ApprovalUntil.IsZero() || len(view.Decisions) != 2 {
			t.Errorf("an approval is shown as %+v", view)
		}
		golden(t, "queue_show_approval", w.run(0, "queue", "show", reference).out)
		if f := failed(w, 5, "queue", "decide", reference, "fail", "--version", itoa(view.Version), "--reason", "x"); f.Code != "no_open_case" {
			t.Errorf("a decision that doesn't fit: %+v", f)
		}
		w.run(0, typed(view.Decisions[0].Command, "", "small amount")...)
		w.fails = nil
		w.call(ctx, "grant", "o-1", settle.StatusCompleted)

		other := w.call(ctx, "grant", "o-2", settle.StatusAwaitingApproval)
		version := itoa(read[caseView](w, 0, "queue", "show", other).Version)
		w.run(0, "queue", "decide", other, "deny", "--version", version, "--reason", "too much")
		late := w.call(ctx, "grant", "o-3", settle.StatusAwaitingApproval)
		version = itoa(read[caseView](w, 0, "queue", "show", late).Version)
		w.age(25 * time.Hour)
		if f := failed(w, 5, "queue", "decide", late, "approve", "--version", version, "--reason", "x"); f.Code != "approval_expired" {
			t.Errorf("an approval that comes too late: %+v", f)
		}
	})
}

func TestR40AResultHasToFitItsSchema(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		decide := []string{"queue", "decide", reference, "happened", "--version", version, "--reason", "seen", "--resource", "r-1"}
		for _, bad := range []string{`{"id":1}`, `{`, `[]`} {
			if f := failed(w, 5, append(decide, "--result", bad)...); f.Code != "result_does_not_fit" {
				t.Errorf("the result %s: %+v", bad, f)
			}
		}
		r := w.runWith(`{"id":"r-1"}`, 0, append(decide, "--result", "-")...)
		contains(t, r.out, "completed")
		out, err := w.host.Get(inTask(t.Context(), "case-42"), reference)
		if got, bad := settle.Decode[receipt](out); err != nil || bad != nil || got.ID != "r-1" {
			t.Errorf("the host reads %+v, %v, %v", got, err, bad)
		}
	})
}

func TestOperatorsSeeTheirTenantsOnly(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		other := w.as("bo")
		other.env["SETTLE_OPERATOR_TENANTS"] = "globex, initech"
		if out := other.run(0, "queue", "list").out; strings.Contains(out, reference) {
			t.Errorf("another tenant's case is listed:\n%s", out)
		}
		for _, args := range [][]string{{"queue", "show", reference}, {"queue", "take", reference}, {"ops", "show", reference}, {"ops", "brief", reference},
			{"ops", "wait", reference}, {"queue", "reveal", reference}, {"close", reference, "--yes"},
			{"queue", "decide", reference, "abandon", "--version", version, "--reason", "x"}} {
			if f := failed(other, 1, args...); f.Code != "not_found" {
				t.Errorf("settle %v: %+v", args, f)
			}
		}
		if f := failed(other, 5, "erase", "--tenant", "acme", "--subject", "support-agent", "--yes"); f.Code != "not_allowed" {
			t.Errorf("erase: %+v", f)
		}
		// What is about all tenants is refused whole.
		for _, args := range [][]string{{"purge"}, {"verify"}, {"audit", "chain"}, {"audit", "acts"}} {
			if f := failed(other, 5, args...); f.Code != "not_allowed" || !strings.Contains(f.Message, "without that variable") {
				t.Errorf("settle %v: %+v", args, f)
			}
			if args[0] != "verify" { // which finds something in a ledger that a test has
				w.run(0, args...)
			}
		}
		w.run(0, "queue", "show", reference)
	})
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}
