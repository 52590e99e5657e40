package sqlite

import (
	"bytes"
	"context"

	"github.com/settle-go/settle/store"
)

const (
	insertTenant = `INSERT INTO settle_tenant (id, digest, name, key) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING`
	insertIntent = `INSERT INTO settle_intent (id, digest, principal, tenant, subject, task, goal, key, version, created_at)
		SELECT ?, ?, ?, id, ?, ?, ?, ?, ?, ? FROM settle_tenant WHERE digest = ?`
)

// Intent implements [store.Ledger].
func (l *Ledger) Intent(ctx context.Context, proposed store.Intent) (store.Intent, error) {
	var got store.Intent
	var found bool
	err := l.read(ctx, func(v *view) (err error) {
		got, found, err = v.intent(proposed.Digest)
		return err
	})
	if err != nil || found {
		return got, err
	}
	proposed.Key, proposed.TenantKey = bytes.Clone(proposed.Key), bytes.Clone(proposed.TenantKey)
	return written(ctx, l, func(w *write) (store.Intent, error) { return w.propose(proposed) })
}

// propose records the intent, and its tenant, unless another one was faster.
func (w *write) propose(p store.Intent) (store.Intent, error) {
	if got, found, err := w.intent(p.Digest); err != nil || found {
		return got, err
	}
	if _, err := w.exec(insertTenant, p.Tenant[:], p.TenantDigest[:], p.TenantName, encode(&p.TenantKey)); err != nil {
		return store.Intent{}, err
	}
	if _, err := w.exec(insertIntent, p.ID[:], p.Digest[:], encode(&p.Principal), p.Subject, p.Task, p.Goal,
		encode(&p.Key), int64(p.Version), w.now.UnixMicro(), p.TenantDigest[:]); err != nil {
		return store.Intent{}, err
	}
	got, _, err := w.intent(p.Digest)
	return got, err
}
