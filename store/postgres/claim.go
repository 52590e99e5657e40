package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// Claim implements [store.Ledger].
//
// Round trips: one, and one more for a plain claim that wasn't won and wasn't
// [store.Claim.Likely]. A claim that must be decided anew, because what refused
// it was gone before it could be read, takes another one.
func (l *Ledger) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	for i := range claims {
		c := &claims[i]
		if move := (store.Move{To: c.Operation.State}); !c.Look && !move.Allowed() {
			return nil, &store.MoveError{Move: move}
		}
	}
	w := newWave(l, claims)
	err := w.claimAll(ctx)
	switch {
	case err == nil:
		return w.answers, nil
	case w.made:
		return nil, unanswered(err)
	case errors.Is(err, errUndecided):
		return nil, &store.UnwrittenError{Err: err, Again: true}
	}
	return nil, asWrite(err)
}

func (w *wave) claimAll(ctx context.Context) error {
	late := false
	if len(w.claims) == 1 && w.ledger.claims != nil && shareable(&w.claims[0]) {
		var err error
		if late, err = w.claimShared(ctx); err != nil {
			return err
		}
	}
	if len(w.open) == 0 {
		return nil
	}
	conn, err := w.ledger.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	w.conn = conn
	switch {
	case late:
		err = w.readSlots(ctx)
	case apart(w.claims):
		err = w.claimPlain(ctx)
	}
	if err != nil {
		return err
	}
	return w.claimGuarded(ctx)
}

// plain says whether a claim is decided by the unique constraint and the pinned
// contract alone, and runs at once. Its row stands for its event, in which there
// is no reason then.
func plain(c *store.Claim) bool {
	o := &c.Operation
	return o.State == store.Running && o.Reason == "" && !c.Look && len(c.After) == 0 && len(c.Announce) == 0 && c.Hold == nil && o.Unique.IsZero() && o.ResourceKey.IsZero()
}

// apart says whether the claims are plain and none meets another one of the
// call, so that their order doesn't matter.
func apart(claims []store.Claim) bool {
	type place struct {
		intent uuid.UUID
		slot   store.Digest
	}
	seen := make(map[place]bool, len(claims))
	for i := range claims {
		c := &claims[i]
		at := place{c.Operation.Intent, c.Operation.Slot}
		if !plain(c) || seen[at] {
			return false
		}
		seen[at] = true
	}
	return true
}

// wave is one call of Claim under way.
type wave struct {
	ledger  *Ledger
	conn    conn
	claims  []store.Claim
	answers []store.Claimed
	open    []int // the claims that have no answer yet
	made    bool  // whether a row was made: what fails later leaves it standing
}

// conn is what a wave travels on.
type conn interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func newWave(l *Ledger, claims []store.Claim) *wave {
	w := &wave{ledger: l, claims: claims, answers: make([]store.Claimed, len(claims)), open: make([]int, len(claims))}
	for i := range claims {
		w.open[i] = i
	}
	return w
}

// shareable says whether a claim is one statement that may travel with others.
func shareable(c *store.Claim) bool {
	o := &c.Operation
	return plain(c) && c.Known && !c.Likely && len(o.Arguments)+len(o.Trace) <= maxBaggage
}

// claimShared makes a plain claim that may travel with others, and says whether
// it came too late.
func (w *wave) claimShared(ctx context.Context) (late bool, err error) {
	c := &w.claims[0]
	var at time.Time
	tail := firstTail(c)
	place := placeOf(c.Operation.Intent, uuid.UUID(c.Operation.Slot))
	if err := w.ledger.claims.send(ctx, place, w.statement(c, tail, &at)); err != nil {
		return false, err // what is on its way may still write at
	}
	if late = at.IsZero(); !late {
		w.won(0, tail, at)
	}
	return late, nil
}

// statement is that of a plain claim. It scans when the row was made, if it was.
func (w *wave) statement(c *store.Claim, tail []byte, at *time.Time) statement {
	text := w.ledger.sql.claim
	if !c.Known {
		text = w.ledger.sql.claimFirst
	}
	args := append(claimArgs(c, tail), int64(c.Operation.Retention), int16(c.Operation.Flags))
	return statement{text, args, []any{(*instant)(at)}}
}

// claimPlain makes plain claims in one batch, in the order of their keys: two calls
// that inserted in opposite order would wait for one another.
func (w *wave) claimPlain(ctx context.Context) error {
	order := slices.Clone(w.open)
	slices.SortFunc(order, func(a, b int) int {
		x, y := &w.claims[a].Operation, &w.claims[b].Operation
		return cmp.Or(bytes.Compare(x.Intent[:], y.Intent[:]), bytes.Compare(x.Slot[:], y.Slot[:]))
	})
	var b pgx.Batch
	likely, known := false, true
	for i := range w.claims {
		likely, known = likely || w.claims[i].Likely, known && w.claims[i].Known
	}
	if !known && len(w.claims) > 1 { // one claim pins its contract itself
		w.queueBind(&b)
	}
	at, tails := make([]time.Time, len(w.claims)), make([][]byte, len(w.claims))
	for _, i := range order {
		tails[i] = firstTail(&w.claims[i])
		w.statement(&w.claims[i], tails[i], &at[i]).queue(&b)
	}
	var slots []slot
	if likely {
		slots = w.queueSlots(&b)
	}
	if err := w.conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	for i := range w.claims {
		if !at[i].IsZero() {
			w.won(i, tails[i], at[i])
		}
	}
	switch {
	case len(w.open) == 0:
		return nil
	case likely:
		w.meet(slots)
		return nil
	}
	return w.readSlots(ctx)
}

// optional is for a row that may be absent.
func optional(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// won answers a plain claim that made its row.
func (w *wave) won(i int, tail []byte, at time.Time) {
	c, answer := &w.claims[i], &w.answers[i]
	w.made = true
	w.answered(i)
	answer.Won, answer.Operation = true, c.Operation
	answer.Operation.Begin(c, [32]byte(tail), at)
}

// close takes the answer to an open claim.
func (w *wave) close(i int, answer store.Claimed) {
	w.answers[i] = answer
	w.answered(i)
}

func (w *wave) answered(i int) {
	w.open = slices.DeleteFunc(w.open, func(open int) bool { return open == i })
}

// slot is what is recorded in the place of a claim.
type slot struct {
	claim int
	rows  []store.Operation
}

// readSlots reads what stands in the place of the open claims: a statement of
// its own, with a snapshot that has the winner's commit.
func (w *wave) readSlots(ctx context.Context) error {
	var b pgx.Batch
	slots := w.queueSlots(&b)
	if err := w.conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	w.meet(slots)
	return nil
}

// queueSlots reads the slots of the open claims.
func (w *wave) queueSlots(b *pgx.Batch) []slot {
	slots := make([]slot, len(w.open))
	intents, digests := uuids(len(w.open)), uuids(len(w.open))
	for n, i := range w.open {
		slots[n].claim = i
		intents[n], digests[n] = some(w.claims[i].Operation.Intent), some(w.claims[i].Operation.Slot)
	}
	b.Queue(w.ledger.sql.slots, intents, digests).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n int
			var o store.Operation
			if err := rows.Scan(append([]any{&n}, operationFields(&o)...)...); err != nil {
				return err
			}
			slots[n-1].rows = append(slots[n-1].rows, o)
		}
		return rows.Err()
	})
	return slots
}

// meet answers the claims whose number is recorded. The others met a pinned
// contract and stay open.
func (w *wave) meet(slots []slot) {
	for _, s := range slots {
		f := finding{slot: s.rows}
		if answer, ok := f.recorded(&w.claims[s.claim]); ok && slices.Contains(w.open, s.claim) {
			w.close(s.claim, answer)
		}
	}
}
