package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// Intent implements [store.Ledger]. It takes one round trip; where the intent
// is there already it writes nothing.
func (l *Ledger) Intent(ctx context.Context, p store.Intent) (store.Intent, error) {
	var found store.Intent
	var b pgx.Batch
	b.Queue(l.sql.proposeTenant, some(p.Tenant), p.TenantDigest[:], p.TenantName, p.TenantKey)
	b.Queue(l.sql.proposeIntent, some(p.ID), p.Digest[:], p.TenantDigest[:], p.Subject, p.Task, p.Goal, p.Key, p.Version, p.Principal[:])
	b.Queue(l.sql.findIntent, p.Digest[:]).QueryRow(func(row pgx.Row) error { return row.Scan(intentFields(&found)...) })
	if err := l.send(ctx, &b); err != nil {
		return store.Intent{}, asWrite(err)
	}
	return found, nil
}
