package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
)

// situation is one thing that a framework does with the tool calls of a model.
type situation struct {
	framework string // its module, without host
	name      string
	// wanted says how often each effect is meant to happen, by its label.
	wanted effects
	// play drives the framework through it. An error is a mistake of the
	// reproduction; what the framework itself reports is part of the situation.
	play func(ctx context.Context, w *world) error
}

// effects counts what happened at the far side, by label.
type effects map[string]int

func (e effects) total() int {
	n := 0
	for _, of := range e {
		n += of
	}
	return n
}

// beside counts the effects that were not wanted, and the wanted ones that are
// missing.
func (e effects) beside(wanted effects) (duplicates, swallowed int) {
	for label := range maps.Keys(merged(e, wanted)) {
		switch d := e[label] - wanted[label]; {
		case d > 0:
			duplicates += d
		case d < 0:
			swallowed -= d
		}
	}
	return duplicates, swallowed
}

func merged(a, b effects) effects {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// world is what a situation is played in, once without and once with settle.
type world struct {
	guarded bool
	folder  string

	mu       sync.Mutex
	happened effects
	opened   []func() error
}

// act is the far side: it does what it is told, each time it is told.
func (w *world) act(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened[label]++
}

// executor returns an executor on the world's ledger; another one is what a
// restarted process has. Only a guarded world has a ledger.
func (w *world) executor(ctx context.Context, options ...settle.Option) (*settle.Executor, error) {
	if !w.guarded {
		return nil, errors.New("this world is without settle")
	}
	ledger, err := sqlite.Open(ctx, filepath.Join(w.folder, "ledger.db"))
	if err != nil {
		return nil, err
	}
	w.opened = append(w.opened, ledger.Close)
	ex, err := settle.New(ledger, options...)
	if err != nil {
		return nil, err
	}
	w.opened = append(w.opened, func() error { return ex.Shutdown(context.WithoutCancel(ctx)) })
	return ex, nil
}

func (w *world) close() error {
	var errs []error
	for _, end := range slices.Backward(w.opened) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// play plays a situation in a world of its own and returns what happened.
func (s situation) in(ctx context.Context, folder string, guarded bool) (effects, error) {
	w := &world{guarded: guarded, folder: folder, happened: effects{}}
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	if err := errors.Join(s.play(ctx, w), w.close()); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", s.framework, s.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.happened, nil
}
