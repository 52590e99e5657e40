// Package sqltool declares SQL statements as a tool that runs them in the
// ledger's own transaction: claim, rows and outcome commit together or not at
// all, so that the outcome is never in doubt (rule R53 in docs/protocol.md).
//
//	reserve, err := sqltool.New[Reserve, Reserved](sqltool.Spec{
//		Name: "reserve", Description: "Reserve an item.",
//		Checks: []sqltool.Check{{
//			SQL: "SELECT 1 FROM item WHERE id = :item FOR UPDATE", Otherwise: "there is no such item",
//		}},
//		Statements: []sqltool.Statement{{
//			SQL:       "UPDATE item SET free = free - :n WHERE id = :item AND free >= :n RETURNING id, free",
//			Otherwise: "there are not so many left", Result: true,
//		}},
//	})
//	ex, err := settle.New(ledger, settle.WithTools(reserve))
//
// Arguments are bound under their names and never become a part of a statement.
// A parameter that is no argument, and an argument that is no parameter, are
// errors when the tool is made.
//
// It works on the ledgers of store/postgres and store/sqlite, on whichever the
// tool runs: a statement that has to be understood by both keeps to what both
// have. It never leaves the database, so none of this holds for what others do
// with the rows.
package sqltool
