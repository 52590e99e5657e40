package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// A composite waits for as long as its step has to (R13, R28).

// throttled is a composite of one step that asks for an hour until it is open.
// told says what the composite makes of its step's error.
func throttled(open *bool, runs *int, told func(error) error) settle.AnyTool {
	step := settle.Tool[partArgs, part]{Name: "file", Contract: settle.Contract{Class: settle.Idempotent, NoLookup: true, Identity: []string{"order"}},
		Do: func(context.Context, settle.Op, partArgs) (part, error) {
			if !*open {
				return part{}, settle.NotSent(errors.New("429"), settle.RetryAfter(time.Hour))
			}
			return part{"file 1"}, nil
		},
		Compensation: &settle.Compensation[partArgs, part]{Contract: settle.Contract{Class: settle.Idempotent, NoLookup: true},
			Check: func(context.Context, settle.Original[partArgs, part]) (settle.Standing, error) {
				return settle.Stands(""), nil
			},
			Do: func(context.Context, settle.Op, settle.Original[partArgs, part]) error {
				return settle.NotSent(errors.New("429"), settle.RetryAfter(time.Hour))
			}}}
	return settle.Tool[partArgs, part]{Name: "report", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{step},
		Do: func(ctx context.Context, op settle.Op, in partArgs) (part, error) {
			*runs++
			out, err := settle.Step(ctx, op, "file", step, in)
			return out, told(err)
		}}
}

func TestR28ACompositeIsDueNoEarlierThanItsStep(t *testing.T) {
	for name, told := range map[string]func(error) error{
		"it returns the step's error": func(err error) error { return err },
		"it returns another one": func(err error) error {
			if err != nil {
				return errors.New("not today")
			}
			return nil
		},
		"it asks for less": func(err error) error {
			if err != nil {
				return settle.NotSent(err, settle.RetryAfter(time.Second))
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				var open bool
				var runs int
				p := w.start(throttled(&open, &runs, told))
				call := partCall("report", "small")
				out := w.want(p.call(call), settle.StatusNotDone)
				report, file := w.only("report"), w.only("file")
				if report.DueAt.Before(file.DueAt) || !out.NotBefore.Equal(report.DueAt) || report.DueAt.After(file.DueAt.Add(time.Minute)) {
					w.Errorf("the composite is due at %v, its step at %v, and the caller is told %v", report.DueAt, file.DueAt, out.NotBefore)
				}
				out = w.want(p.call(call), settle.StatusNotDone)
				if !out.NotBefore.Equal(report.DueAt) {
					w.Errorf("the next call is told %v", out.NotBefore)
				}
				equal(w, "runs before it is due", runs, 1)
				open = true
				w.age(2 * time.Hour)
				done := w.want(p.call(call), settle.StatusCompleted)
				equal(w, "runs", runs, 2)
				if undo := w.want(p.compensates(done.Operation), settle.StatusNotDone); time.Until(undo.NotBefore) < 50*time.Minute {
					w.Errorf("the correction isn't to be asked for before %v", undo.NotBefore)
				}
			})
		})
	}
}
