//go:build !unix

package sqlite_test

import "context"

// The roles of tests that need Unix.
func openInTurn(context.Context) error      { return nil }
func writeAtTheLimit(context.Context) error { return nil }
