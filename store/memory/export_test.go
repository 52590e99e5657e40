package memory

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// CasesOf shows an operation's cases to tests: no method of the ledger does.
func (l *Ledger) CasesOf(operation uuid.UUID) []store.Case { return l.cases[operation] }

// Audited shows what was audited to tests.
func (l *Ledger) Audited() []store.Audit { return l.audit }
