package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// OneFlight lets one claim and one end at a time travel alone. The others wait
// that long for it.
func OneFlight(l *Ledger, patience time.Duration) {
	for _, s := range []*shared{l.claims, l.ends} {
		s.limit, s.patience = 1, patience
	}
}

// Waiting is how many claims and ends wait to travel together.
func Waiting(l *Ledger) int {
	n := 0
	for _, s := range []*shared{l.claims, l.ends} {
		s.mu.Lock()
		n += len(s.waiting)
		s.mu.Unlock()
	}
	return n
}

// Busy is how many claims and ends are under way, or wait for one that is.
func Busy(l *Ledger) int {
	n := Waiting(l)
	for _, s := range []*shared{l.claims, l.ends} {
		s.mu.Lock()
		n += s.flying
		s.mu.Unlock()
	}
	return n
}

// Expects says whether who ends an operation next waits for company.
func Expects(l *Ledger) bool {
	l.ends.mu.Lock()
	defer l.ends.mu.Unlock()
	return l.ends.company
}

// LockBriefly is the statement that bounds how long a group waits for locks.
func LockBriefly(l *Ledger) string { return l.sql.lockBriefly }

// Leading makes a change that gets a place to fly alone, and lets others come
// before it does. It says whether it flew with them.
func Leading(ctx context.Context, l *Ledger, c store.Change, come func()) (together bool, _ error) {
	e, moved := store.NextEvent(c), instants{}
	s, st, place := l.ends, l.plainly(&c, &e, &moved), placeOf(c.Of.ID, uuid.Nil)
	if p, _ := s.board(ctx, place, st); p != nil {
		return false, errors.New("there was no place")
	}
	come()
	p := s.gather(ctx, place, st)
	if p == nil {
		defer s.landed()
		return false, l.fetch(ctx, st)
	}
	<-p.done
	return !p.alone, p.err
}
