package sqlite

import (
	"context"
	"slices"

	"github.com/settle-go/settle/store"
)

// The writes on a resource (R31). Their order is decided under the database's
// write lock, which serves as the lock of every resource.

const (
	lastNumber = `SELECT max(resource_seq) FROM settle_operation WHERE resource_key = ? AND resource_key IS NOT NULL`
	higher     = `SELECT 1 FROM settle_operation
		WHERE resource_key = ? AND resource_key IS NOT NULL AND resource_seq > ? AND state <> 'failed' LIMIT 1`
	lowerOpen = `WHERE o.resource_key = ? AND o.resource_key IS NOT NULL AND (o.settled_at IS NULL OR o.doubts > 0) AND o.resource_seq < ?
		ORDER BY o.resource_seq`
	newestWrite = `WHERE o.resource_key = ? AND o.resource_key IS NOT NULL AND o.state <> 'failed'
		ORDER BY o.resource_seq DESC LIMIT 1`
)

// number gives a new write its number on the resource and makes it wait where
// an older one may still take effect.
func (w *write) number(own *store.Operation) error {
	own.ResourceSeq = 0
	if _, err := w.first([]any{&own.ResourceSeq}, lastNumber, own.ResourceKey[:]); err != nil {
		return err
	}
	own.ResourceSeq++
	if own.State != store.Running {
		return nil
	}
	blocked, err := w.blocked(own)
	if err == nil && blocked != nil {
		own.State = store.Retryable
	}
	return err
}

// lower lists the writes on the row's resource with lower numbers that are
// unsettled or can still take effect.
func (v *view) lower(row *store.Operation) ([]store.Entry, error) {
	if row.ResourceKey.IsZero() {
		return nil, nil
	}
	all, err := v.entries(context.Background(), lowerOpen, row.ResourceKey[:], row.ResourceSeq)
	return slices.DeleteFunc(all, func(e store.Entry) bool { return e.State.Settled() && !e.Blocks() }), err
}

// newest is the write on the resource with the highest number that isn't failed.
func (v *view) newest(resource store.Digest) (*store.Entry, error) {
	if resource.IsZero() {
		return nil, nil
	}
	all, err := v.entries(context.Background(), newestWrite, resource[:])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// blocked says why an idempotent write must not start now, if so.
func (w *write) blocked(row *store.Operation) (*store.BlockedError, error) {
	overtaken, err := w.has(higher, row.ResourceKey[:], row.ResourceSeq)
	if err != nil {
		return nil, err
	}
	if overtaken {
		return &store.BlockedError{Overtaken: true}, nil
	}
	lower, err := w.lower(row)
	if err != nil {
		return nil, err
	}
	var waits []store.Entry
	for _, e := range lower {
		if e.Blocks() {
			waits = append(waits, e)
		}
	}
	if waits == nil {
		return nil, nil
	}
	return &store.BlockedError{Others: waits}, nil
}
