package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	decided = `SELECT 1 FROM settle_event WHERE operation = ? AND decision = ? AND decision IS NOT NULL`
	// From shelf to shelf of the index, and on each for the resource.
	otherResource = `WITH RECURSIVE shelf (n) AS (
			SELECT (SELECT seq >> 9 FROM settle_operation WHERE tool = ?1 AND resource_digest IS NOT NULL AND state = 'completed'
				ORDER BY seq >> 9 LIMIT 1)
			UNION ALL
			SELECT (SELECT seq >> 9 FROM settle_operation WHERE tool = ?1 AND resource_digest IS NOT NULL AND state = 'completed'
				AND seq >> 9 > n ORDER BY seq >> 9 LIMIT 1) FROM shelf WHERE n IS NOT NULL
		)
		SELECT 1 FROM shelf CROSS JOIN settle_operation o
		WHERE o.tool = ?1 AND o.seq >> 9 = shelf.n AND o.resource_digest = ?2 AND o.resource_digest IS NOT NULL
			AND o.state = 'completed' AND o.id <> ?3 LIMIT 1`
	formerResource = `SELECT 1 FROM settle_outcome WHERE tool = ? AND resource_digest = ?`
	otherUnique    = `SELECT 1 FROM settle_operation
		WHERE unique_digest = ? AND unique_digest IS NOT NULL AND state <> 'failed' AND id <> ?`
)

// Apply implements [store.Ledger].
func (l *Ledger) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	ownChange(&c)
	return written(ctx, l, func(w *write) (store.Operation, error) { return w.apply(&c) })
}

// ownChange is what [ownClaim] is for claims.
func ownChange(c *store.Change) {
	c.Body, c.Result, c.Trace = bytes.Clone(c.Body), bytes.Clone(c.Result), bytes.Clone(c.Trace)
	if c.Proposal != nil {
		proposal := bytes.Clone(*c.Proposal)
		c.Proposal = &proposal
	}
	c.Visibility = whole(c.Visibility)
	if c.Start != nil {
		start := *c.Start
		start.Trace, start.Visibility = bytes.Clone(start.Trace), whole(start.Visibility)
		c.Start = &start
	}
}

func (w *write) apply(c *store.Change) (store.Operation, error) {
	row, next, event := &w.before, &w.after, &w.event
	var err error
	if *row, err = w.latest(c.Of.ID); err != nil {
		return store.Operation{}, err
	}
	if move := (store.Move{From: c.Of.State, To: c.To}); !move.Allowed() {
		return store.Operation{}, &store.MoveError{Move: move}
	}
	if err := w.permits(row, c); err != nil {
		return store.Operation{}, err
	}
	change := *c
	change.Of = *row // the same in what guards the write; the chain goes on from the row itself
	*next, *event = store.Next(*row, change, w.now)
	if err := w.update(row, next, event); err != nil {
		return store.Operation{}, err
	}
	if err := w.announce(next, c.Announce); err != nil {
		return store.Operation{}, err
	}
	return *next, w.fileCases(row, next, c)
}

// latest is the row as it stands. Its bytes become the caller's where the row is
// written anew, since it is then forgotten or remembered with others.
func (w *write) latest(id uuid.UUID) (store.Operation, error) {
	if row, ok := w.recent.get(id); ok {
		row.Read = w.now
		return row, nil
	}
	return w.row(id)
}

// update writes a row that changed, with its event.
func (w *write) update(before, after *store.Operation, e *store.Event) error {
	args, set := changed(w.args[:0], before, after)
	args, own := ownEvent(args, e)
	w.args = append(args, before.ID[:], int64(before.Version))
	n, err := w.exec(w.shapes.update(set|own), w.args...)
	w.recent.keep(after)
	if err == nil && n != 1 {
		err = fmt.Errorf("a guarded write found %d rows under the write lock", n)
	}
	if err != nil || own != 0 {
		return err
	}
	return w.journal(e)
}

// permits refuses a change that must not be made of the row.
func (w *write) permits(row *store.Operation, c *store.Change) error {
	if c.Decision != uuid.Nil {
		if repeated, err := w.has(decided, row.ID[:], c.Decision[:]); err != nil || repeated {
			return cmp.Or[error](err, &store.StaleError{Current: owned(*row), Repeated: true})
		}
	}
	if !c.Fresh(row) {
		return &store.StaleError{Current: owned(*row)}
	}
	if c.Start != nil && !row.ResourceKey.IsZero() {
		if blocked, err := w.blocked(row); err != nil || blocked != nil {
			return cmp.Or[error](err, blocked)
		}
	}
	if c.To == store.Completed && c.ByAttribute {
		if taken, err := w.settles(row, c.ResourceDigest); err != nil || taken {
			return cmp.Or[error](err, &store.ResourceTakenError{})
		}
	}
	if row.State == store.Failed && c.To != store.Failed && !row.Unique.IsZero() {
		if taken, err := w.has(otherUnique, row.Unique[:], row.ID[:]); err != nil || taken {
			return cmp.Or[error](err, &store.ResourceTakenError{})
		}
	}
	return nil
}

// settles says whether the resource settles another operation of the tool, or
// one that is deleted (R34).
func (w *write) settles(row *store.Operation, resource store.Digest) (bool, error) {
	taken, err := w.has(otherResource, row.Tool, resource[:], row.ID[:])
	if err != nil || taken {
		return taken, err
	}
	return w.has(formerResource, row.Tool, resource[:])
}
