package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Corrections of what has happened.

type partArgs struct {
	Order string `json:"order" settle:"identity"`
	Text  string `json:"text"`
}

type part struct {
	ID string `json:"id" settle:"resource"`
}

// corrections are the originals that a tool's compensation was given.
type corrections []settle.Original[partArgs, part]

func (c corrections) resources() (ids []string) {
	for _, o := range c {
		ids = append(ids, o.Resource)
	}
	return ids
}

// partOf is a tool that refuses the text "too large", and can be corrected.
func partOf(name string, corrected *corrections) settle.Tool[partArgs, part] {
	contract := settle.Contract{NoLookup: true, VisibilityDelay: settle.Immediately}
	return settle.Tool[partArgs, part]{Name: name, Contract: contract,
		Do: func(_ context.Context, _ settle.Op, in partArgs) (part, error) {
			switch in.Text {
			case "too large":
				return part{}, settle.Rejected(errors.New("too large"))
			case "lost":
				return part{}, errors.New("the answer was lost")
			}
			return part{name + " " + in.Text}, nil
		},
		Compensation: &settle.Compensation[partArgs, part]{Contract: contract,
			Do: func(_ context.Context, _ settle.Op, o settle.Original[partArgs, part]) error {
				*corrected = append(*corrected, o)
				return nil
			}}}
}

func partCall(tool, text string) settle.Call {
	return settle.Call{Tool: tool, Args: args(partArgs{"A-1", text})}
}

// ticketWithFile opens a ticket and attaches a file to it; whatever becomes of
// the file, the composite is done where lenient says so.
func ticketWithFile(corrected *corrections, lenient bool) settle.Tool[partArgs, part] {
	ticket, file := partOf("ticket", corrected), partOf("file", corrected)
	return settle.Tool[partArgs, part]{Name: "report", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{ticket, file},
		Do: func(ctx context.Context, op settle.Op, in partArgs) (part, error) {
			out, err := settle.Step(ctx, op, "ticket", ticket, partArgs{in.Order, "opened"})
			if err != nil {
				return out, err
			}
			if _, err = settle.Step(ctx, op, "file", file, in, settle.After("ticket")); lenient {
				err = nil
			}
			return out, err
		}}
}

func (p *process) compensates(operation string) settle.Outcome {
	p.Helper()
	out, err := p.x.Compensate(p.ctx, operation)
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// The ticket was opened under the number that was refused.
func TestR49TheStepsOfACorrectedCompositeAreAllCorrected(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var corrected corrections
		p := w.start(ticketWithFile(&corrected, false))
		w.want(p.call(partCall("report", "too large")), settle.StatusFailed)
		done := w.want(p.call(partCall("report", "small")), settle.StatusCompleted)
		undo := w.want(p.compensates(done.Operation), settle.StatusCompleted)
		if got := corrected.resources(); !slices.Equal(got, []string{"file small", "ticket opened"}) {
			w.Errorf("corrected were %q, want both steps, the last first", got)
		}
		equal(w, "the corrections that are told of", len(undo.Related), 2)
		w.want(p.compensates(done.Operation), settle.StatusCompleted)
		equal(w, "corrections made", len(corrected), 2)
		if again := p.call(partCall("report", "small")); again.CorrectedBy == "" {
			w.Error("the replay doesn't say that it was corrected (R48)")
		}
	})
}

// A composite may be done whatever becomes of a step. Where that step turns out
// to have happened after all, nothing is corrected until a person has settled it.
func TestR49AStepThatReopenedHoldsTheCorrection(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var corrected corrections
		release := make(chan struct{})
		report := ticketWithFile(&corrected, true)
		file := report.Steps[1].(settle.Tool[partArgs, part])
		file.Contract.Timeout = quick
		file.Do = func(context.Context, settle.Op, partArgs) (part, error) {
			<-release // deaf to its context
			return part{"file late"}, nil
		}
		report.Steps[1] = file
		p := w.start(report)
		p.call(partCall("report", "late"))
		w.age(longEnough)
		p.recover()
		step := w.only("file").ID.String()
		ann := p.person("ann")
		ann.decides(step, settle.DecideFail)
		done := w.want(p.call(partCall("report", "late")), settle.StatusCompleted)
		close(release)
		w.settles("file", store.Manual)

		undo := w.want(p.compensates(done.Operation), settle.StatusHeld)
		equal(w, "corrections made", len(corrected), 0)
		equal(w, "what is waited for", undo.Related[0].Operation, step)

		ann.decides(step, settle.DecideHappened)
		w.want(p.compensates(done.Operation), settle.StatusCompleted)
		equal(w, "corrections made", len(corrected), 2)
	})
}

// Whoever corrects has to know what: with the arguments gone, a refund of
// nothing to nobody would be called done.
func TestR49WhatIsForgottenIsNotCorrected(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var corrected corrections
		p := w.start(partOf("ticket", &corrected))
		first := w.want(p.call(partCall("ticket", "opened")), settle.StatusCompleted)
		undo := w.want(p.compensates(first.Operation), settle.StatusCompleted)
		second := w.want(p.inTask("case-43").call(partCall("ticket", "opened")), settle.StatusCompleted)
		if _, err := p.x.Erase(p.ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"}, nil); err != nil {
			w.Fatal(err)
		}
		for _, operation := range []string{first.Operation, second.Operation} {
			out := w.want(p.compensates(operation), settle.StatusExpired)
			equal(w, "what is told of", out.Related[0].Operation, operation)
			if operation == first.Operation {
				equal(w, "its correction", out.CorrectedBy, undo.Operation)
			}
		}
		equal(w, "corrections made", len(corrected), 1)
	})
}

func TestR47ACompensationGetsTheResultOfTodaysTool(t *testing.T) {
	type newer struct {
		Number string `json:"number" settle:"resource"`
	}
	g := onFile(t)
	old := g.executor(partOf("ticket", new(corrections)))
	for name, tc := range map[string]struct {
		upgrade func(int, json.RawMessage) (newer, error)
		want    string
	}{
		"upgraded": {func(int, json.RawMessage) (newer, error) { return newer{"7"}, nil }, "7"},
		"none":     {nil, ""},
		"fails":    {func(int, json.RawMessage) (newer, error) { return newer{"7"}, errors.New("no") }, ""},
		"panics":   {func(int, json.RawMessage) (newer, error) { panic("no") }, ""},
	} {
		ctx := g.inTask("case-" + name)
		made := g.do(ctx, old, partCall("ticket", "opened"))
		var got []settle.Original[partArgs, newer]
		x := g.executor(settle.Tool[partArgs, newer]{Name: "ticket", Contract: settle.Contract{NoLookup: true, VisibilityDelay: settle.Immediately},
			ResultVersion: 1, Upgrade: tc.upgrade, Do: does[partArgs, newer](),
			Compensation: &settle.Compensation[partArgs, newer]{Contract: settle.Contract{NoLookup: true},
				Do: func(_ context.Context, _ settle.Op, o settle.Original[partArgs, newer]) error {
					got = append(got, o)
					return nil
				}}})
		out, err := x.Compensate(ctx, made.Operation)
		if err != nil || out.Status != settle.StatusCompleted || len(got) != 1 {
			t.Fatalf("%s: %s, %v, after %d corrections", name, out.ForModel(), err, len(got))
		}
		if o := got[0]; o.Out.Number != tc.want || o.Resource != "ticket opened" || o.In.Order != "A-1" {
			t.Errorf("%s: it was given %+v", name, o)
		}
	}
}

// A correction that waits for a person is carried out by a worker, with nobody to
// hear that it failed but the metric (R50).
func TestR50AWorkersCorrectionCounts(t *testing.T) {
	o := observe(onFile(t))
	tool := partOf("file", new(corrections))
	tool.Compensation.Contract.Approval = true
	tool.Compensation.Do = func(context.Context, settle.Op, settle.Original[partArgs, part]) error {
		return settle.Rejected(errors.New("it is locked"))
	}
	x := o.executor(settle.WithTools(tool))
	done := o.want(x, partCall("file", "x"), settle.StatusCompleted)
	waits, err := x.Compensate(o.ctx, done.Operation)
	if err != nil || waits.Status != settle.StatusAwaitingApproval {
		t.Fatal(waits.ForModel(), err)
	}
	ann := settle.WithOperator(o.ctx, settle.Operator{Name: "ann"})
	_, err = x.Queue().Decide(ann, settle.Decision{Operation: waits.Operation, Version: 1, ID: uuid.NewString(), Kind: settle.DecideApprove, Reason: "it was filed twice"})
	if err != nil {
		t.Fatal(err)
	}
	o.recover(x)
	want := map[string]int64{"awaiting_approval": 1, "failed": 1}
	counted := map[string]int64{}
	for _, p := range o.metrics()["settle.compensations"].(metricdata.Sum[int64]).DataPoints {
		status, _ := p.Attributes.Value("settle.status")
		counted[status.AsString()] += p.Value
	}
	if !maps.Equal(counted, want) {
		t.Errorf("compensations are counted as %v, want %v", counted, want)
	}
}

// A correction that is given another id than the tool made corrects something else.
func TestR49ACorrectionsNumbersAreNotRounded(t *testing.T) {
	type order struct {
		ID any `json:"id" settle:"identity" jsonschema:"type=integer"`
	}
	onEachLedger(t, func(w *world) {
		var given settle.Original[order, map[string]any]
		p := w.start(settle.Tool[order, map[string]any]{Name: "open", Contract: settle.Contract{NoLookup: true},
			Do: func(context.Context, settle.Op, order) (map[string]any, error) {
				return map[string]any{"id": int64(1<<53 + 3)}, nil
			},
			Compensation: &settle.Compensation[order, map[string]any]{Contract: settle.Contract{NoLookup: true},
				Do: func(_ context.Context, _ settle.Op, o settle.Original[order, map[string]any]) error {
					given = o
					return nil
				}}})
		done := w.want(p.call(settle.Call{Tool: "open", Args: json.RawMessage(`{"id":9007199254740993}`)}), settle.StatusCompleted)
		w.want(p.compensates(done.Operation), settle.StatusCompleted)
		equal(w, "the id that was asked for", fmt.Sprint(given.In.ID), "9007199254740993")
		equal(w, "the id that was made", fmt.Sprint(given.Out["id"]), "9007199254740995")
	})
}
