package sqlite

import (
	"context"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// WithPragma sets a pragma of the writer's connection.
func WithPragma(pragma string) Option {
	return option(func(s *settings) { s.pragmas = append(s.pragmas, pragma) })
}

// WithVFS replaces SQLite's layer over the file system.
func WithVFS(name string) Option { return option(func(s *settings) { s.vfs = name }) }

// Queued is how many writes wait for the writer.
func (l *Ledger) Queued() int { return l.writer.queued() }

// Closing says that Close has begun.
func (l *Ledger) Closing() bool {
	l.writer.mu.Lock()
	defer l.writer.mu.Unlock()
	return l.writer.closed
}

// Write runs do in the writer, in a transaction that changes nothing else.
func (l *Ledger) Write(ctx context.Context, do func() error) error {
	return l.writer.submit(ctx, func(*write) error { return do() })
}

// MaxBatch and MaxRecent are the writer's bounds.
const (
	MaxBatch  = maxBatch
	MaxRecent = maxRecent
)

// Statements are those of the ledger's paths that choose rows, with the index
// that each of them needs.
func Statements() map[string]string {
	list := func(f store.Filter) string {
		where, _ := filtered(f)
		return selectEntry + where
	}
	cases := func(f store.CaseFilter) string {
		where, _ := filteredCases(f, 0)
		return selectCase + where
	}
	return map[string]string{
		selectOperation + "WHERE o.id = ?":                                                "sqlite_autoindex_settle_operation_1",
		selectEntry + "WHERE o.id = ?":                                                    "sqlite_autoindex_settle_intent_1",
		selectOperation + "WHERE o.intent = ? AND o.slot = ? ORDER BY o.number":           "settle_operation_slot",
		selectEntry + uniqueTaken:                                                         "settle_operation_unique",
		selectEntry + lowerOpen:                                                           "settle_operation_write_open",
		selectEntry + newestWrite:                                                         "settle_operation_write",
		list(store.Filter{Intent: uuid.Max}):                                              "settle_operation_slot",
		list(store.Filter{Parent: uuid.Max}):                                              "settle_operation_parent",
		list(store.Filter{States: []store.State{store.Manual, store.Unknown}}):            "settle_operation_waiting",
		list(store.Filter{Tenant: "acme", States: []store.State{store.AwaitingApproval}}): "settle_operation_waiting",
		list(store.Filter{}):                                                              "sqlite_autoindex_settle_operation_1",
		selectIntent + "WHERE i.digest = ?":                                               "sqlite_autoindex_settle_intent_2",
		selectEvents:                                                                      "PRIMARY KEY",
		highestNumber:                                                                     "settle_operation_slot",
		ofTool:                                                                            "settle_operation_slot",
		pinnedContract:                                                                    "PRIMARY KEY",
		versionOf:                                                                         "sqlite_autoindex_settle_operation_1",
		decided:                                                                           "settle_event_decision",
		otherResource:                                                                     "settle_operation_resource",
		otherUnique:                                                                       "settle_operation_unique",
		lastNumber:                                                                        "settle_operation_write",
		higher:                                                                            "settle_operation_write",
		extendLease:                                                                       "sqlite_autoindex_settle_operation_1",
		nextPair:                                                                          "settle_operation_due",
		dueOfPair:                                                                         "settle_operation_due",
		dueAlone:                                                                          "sqlite_autoindex_settle_operation_1",
		cases(store.CaseFilter{}):                                                         "settle_case_list",
		cases(store.CaseFilter{Tenant: "acme", Reason: "exhausted", OlderThan: 1}): "settle_case_tenant",
		cases(store.CaseFilter{Tool: "refund", Reason: "exhausted"}):               "settle_case_tool",
		cases(store.CaseFilter{Holder: "ann"}):                                     "settle_case_holder",
		cases(store.CaseFilter{Free: true, States: []store.State{store.Manual}}):   "settle_case_list",
		cases(store.CaseFilter{Operation: uuid.Max, Closed: true}):                 "settle_case_operation",
		closeCase:             "settle_case_operation",
		takeCase:              "settle_case_operation",
		proposeOnCase:         "settle_case_operation",
		dropClosed:            "settle_case_operation",
		dropProposal:          "settle_case_operation",
		dropProposals:         "settle_case_operation",
		purgePage:             "sqlite_autoindex_settle_operation_1",
		erasePage:             "sqlite_autoindex_settle_operation_1",
		purged:                "settle_operation_parent",
		entomb:                "sqlite_autoindex_settle_operation_1",
		entombAll:             "settle_operation_slot",
		unsettled:             "settle_operation_slot",
		keepResource:          "sqlite_autoindex_settle_operation_1",
		deleteCases:           "settle_case_operation",
		deleteEvents:          "PRIMARY KEY",
		formerResource:        "PRIMARY KEY",
		auditsOf:              "settle_audit_operation",
		declaredTool:          "PRIMARY KEY",
		insertIntent:          "sqlite_autoindex_settle_tenant_2",
		newShapes().update(1): "sqlite_autoindex_settle_operation_1",
	}
}
