package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Claim implements [store.Ledger].
func (l *Ledger) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	likely := true
	for _, c := range claims {
		if move := (store.Move{To: c.Operation.State}); !c.Look && !move.Allowed() {
			return nil, &store.MoveError{Move: move}
		}
		likely = likely && (c.Look || c.Likely)
	}
	if likely {
		if answers, all, err := l.recorded(ctx, claims); err != nil || all {
			return answers, err
		}
	}
	claims = slices.Clone(claims)
	for i := range claims {
		ownClaim(&claims[i])
	}
	return written(ctx, l, func(w *write) ([]store.Claimed, error) {
		answers := make([]store.Claimed, len(claims))
		for i := range claims {
			var err error
			if answers[i], err = w.claim(&claims[i]); err != nil {
				return nil, err
			}
		}
		return answers, nil
	})
}

// recorded answers claims without the writer, if each of them only looks or
// finds what it claims recorded already. A row is never taken back, so what a
// read finds recorded is recorded.
func (l *Ledger) recorded(ctx context.Context, claims []store.Claim) (answers []store.Claimed, all bool, err error) {
	answers = make([]store.Claimed, len(claims))
	err = l.read(ctx, func(v *view) error {
		all = true
		for i := 0; i < len(claims) && all; i++ {
			if answers[i], all, err = v.recorded(&claims[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return answers, all, err
}

// ownClaim gives the claim bytes that its caller can't change: it may have left
// by the time that the writer reads them. Durations get the ledger's resolution.
func ownClaim(c *store.Claim) {
	o := &c.Operation
	o.Fields, o.Arguments, o.Trace = bytes.Clone(o.Fields), bytes.Clone(o.Arguments), bytes.Clone(o.Trace)
	o.Visibility, o.Escalate, o.Retention = whole(o.Visibility), whole(o.Escalate), whole(o.Retention)
}

// whole rounds up to microseconds: of two durations the longer is the safer.
func whole(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// claim decides one claim, under the database's write lock.
func (w *write) claim(c *store.Claim) (store.Claimed, error) {
	if plain(c) {
		if answer, made, err := w.insert(c); err != nil || made {
			return answer, err
		}
	}
	if answer, found, err := w.recorded(c); err != nil || found {
		return answer, err
	}
	if refused, others, err := w.refuses(c); err != nil {
		return store.Claimed{}, err
	} else if refused != store.NotRefused {
		return w.standing(c, refused, others)
	}
	answer, made, err := w.insert(c)
	if err == nil && !made {
		err = errors.New("a row has the claim's place that wasn't there under the write lock")
	}
	return answer, err
}

// plain says whether nothing but a row in its place can keep a claim out.
func plain(c *store.Claim) bool {
	own := &c.Operation
	return c.Known && !c.Look && own.Number == 1 && len(c.After) == 0 && c.Hold == nil && own.Unique.IsZero() && own.ResourceKey.IsZero()
}

const highestNumber = `SELECT number FROM settle_operation WHERE intent = ? AND slot = ? ORDER BY number DESC LIMIT 1`

// recorded answers a claim from what is recorded in its place, if that is.
func (v *view) recorded(c *store.Claim) (answer store.Claimed, found bool, err error) {
	own := &c.Operation
	if !c.Look {
		var highest int
		found, err := v.first([]any{&highest}, highestNumber, own.Intent[:], own.Slot[:])
		if err != nil || !found || highest < own.Number {
			return answer, false, err
		}
	}
	answer, err = v.standing(c, store.NotRefused, nil)
	if err != nil || c.Look || own.Owner == uuid.Nil {
		return answer, true, err
	}
	for _, row := range answer.Slot {
		if row.Number == own.Number && row.Owner == own.Owner {
			lower, err := v.lower(&row)
			return store.Claimed{Won: true, Operation: row, Others: lower}, true, err
		}
	}
	return answer, true, nil
}

// standing answers with what stands in the claim's place.
func (v *view) standing(c *store.Claim, refused store.Refusal, others []store.Entry) (answer store.Claimed, err error) {
	own := &c.Operation
	answer = store.Claimed{Refused: refused, Others: others}
	answer.Slot, err = v.operations("WHERE o.intent = ? AND o.slot = ? ORDER BY o.number", own.Intent[:], own.Slot[:])
	if err != nil {
		return answer, err
	}
	if last := len(answer.Slot) - 1; last >= 0 && refused == store.NotRefused {
		if answer.Others, err = v.lower(&answer.Slot[last]); err != nil {
			return answer, err
		}
	}
	answer.Newest, err = v.newest(own.ResourceKey)
	return answer, err
}

const (
	pinnedContract = `SELECT digest FROM settle_contract WHERE intent = ? AND tool = ?`
	pinContract    = `INSERT INTO settle_contract (intent, tool, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	uniqueTaken    = `WHERE o.unique_digest = ? AND o.unique_digest IS NOT NULL AND o.state <> 'failed'`
	versionOf      = `SELECT version FROM settle_operation WHERE id = ?`
	ofTool         = `SELECT id, slot, batch, state, run FROM settle_operation WHERE intent = ? AND tool = ? ORDER BY id`
)

// refuses looks for what keeps a new row out.
func (w *write) refuses(c *store.Claim) (store.Refusal, []store.Entry, error) {
	own := &c.Operation
	for _, g := range c.After {
		var version int
		found, err := w.first([]any{&version}, versionOf, g.ID[:])
		if err != nil || !found || version != g.Version {
			return store.RefusedGuard, nil, err
		}
	}
	if !c.Known {
		if pinned, found, err := w.contract(own); err != nil || (found && pinned != own.Contract) {
			return store.RefusedContract, nil, err
		}
	}
	if c.Hold != nil {
		if holding, err := w.holding(c); err != nil || holding != nil {
			return store.RefusedHold, holding, err
		}
	}
	if !own.Unique.IsZero() {
		if taken, err := w.entries(context.Background(), uniqueTaken, own.Unique[:]); err != nil || taken != nil {
			return store.RefusedUnique, taken, err
		}
	}
	return store.NotRefused, nil, nil
}

// contract is the tool's identity definition in the intent, if it has one yet (R3).
func (w *write) contract(own *store.Operation) (pinned store.Digest, found bool, err error) {
	found, err = w.first([]any{&pinned}, pinnedContract, own.Intent[:], own.Tool)
	return pinned, found, err
}

// holding lists the operations that hold the claim (R30).
func (w *write) holding(c *store.Claim) ([]store.Entry, error) {
	var ids []uuid.UUID
	var o store.Operation
	err := w.query(context.Background(), func(values []driver.Value) error {
		o = store.Operation{}
		if err := decodeAll([]any{&o.ID, &o.Slot, &o.Batch, &o.State, &o.Run}, values); err != nil {
			return err
		}
		if o.Holds(*c) {
			ids = append(ids, o.ID)
		}
		return nil
	}, ofTool, c.Operation.Intent[:], c.Operation.Tool)
	if err != nil {
		return nil, err
	}
	var holding []store.Entry
	for _, id := range ids {
		e, err := w.entry(context.Background(), id)
		if err != nil {
			return nil, err
		}
		holding = append(holding, e)
	}
	return holding, nil
}

// insert records the operation with its first event, unless its place is taken.
func (w *write) insert(claim *store.Claim) (answer store.Claimed, made bool, err error) {
	none, row, event := &w.before, &w.after, &w.event
	c := *claim // the request may run once more and must meet the claim as it was
	if !c.Operation.ResourceKey.IsZero() {
		*row = c.Operation
		if err := w.number(row); err != nil {
			return answer, false, err
		}
		c.Operation = *row
	}
	*none = store.Operation{}
	*row, *event = store.First(c, w.now)
	args, set := changed(w.args[:0], none, row)
	args, own := ownEvent(args, event)
	w.args = args
	if n, err := w.exec(w.shapes.insert(set|own), args...); err != nil || n == 0 {
		return answer, false, err
	}
	if own == 0 {
		if err := w.journal(event); err != nil {
			return answer, false, err
		}
	}
	if !c.Known {
		if _, err := w.exec(pinContract, row.Intent[:], row.Tool, row.Contract[:]); err != nil {
			return answer, false, err
		}
	}
	if err := w.fileCases(none, row, &store.Change{}); err != nil {
		return answer, false, err
	}
	if err := w.announce(row, c.Announce); err != nil {
		return answer, false, err
	}
	w.recent.keep(row)
	answer.Won, answer.Operation = true, *row
	answer.Others, err = w.lower(row)
	return answer, true, err
}

func (w *write) journal(e *store.Event) error {
	w.args = encoded(w.args[:0], eventColumns, e)
	_, err := w.exec(insertEvent, w.args...)
	return err
}
