package postgres

import "time"

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

// LockBriefly is the statement that bounds how long a group waits for locks.
func LockBriefly(l *Ledger) string { return l.sql.lockBriefly }
