package memory

import (
	"slices"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// CasesOf shows an operation's cases to tests: no method of the ledger does.
func (l *Ledger) CasesOf(operation uuid.UUID) []store.Case {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.cases[operation])
}

// Audited shows what was audited to tests.
func (l *Ledger) Audited() []store.Audit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.audit)
}
