package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// Apply implements [store.Ledger]. It takes one round trip, and one more where
// the change isn't made.
func (l *Ledger) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	if move := (store.Move{From: c.Of.State, To: c.To}); !move.Allowed() {
		return store.Operation{}, l.misplaced(ctx, &c, move)
	}
	for range rounds {
		row, made, err := l.apply(ctx, &c)
		if made {
			l.tell(ctx, &c)
		}
		if made || err != nil {
			return row, err
		}
	}
	return store.Operation{}, &store.UnwrittenError{Err: errUndecided, Again: true}
}

// apply makes the change, or finds out why it can't be made. It is made again
// where neither holds: what stood in its way is gone.
func (l *Ledger) apply(ctx context.Context, c *store.Change) (_ store.Operation, made bool, _ error) {
	e := store.NextEvent(*c)
	var moved instants
	var rivals []store.Entry
	var err error
	switch {
	case c.Start != nil:
		rivals, err = l.start(ctx, c, &e, &moved)
	case reopens(c):
		err = l.reopen(ctx, c, &e, &moved)
	default:
		s := l.plainly(c, &e, &moved)
		if l.ends != nil && shareableEnd(c) {
			err = l.ends.send(ctx, placeOf(c.Of.ID, uuid.Nil), s)
		} else {
			err = l.row(ctx, c, &e, s)
		}
	}
	if index, ok := violated(err); ok && strings.HasPrefix(index, "attribute_") {
		return store.Operation{}, false, &store.ResourceTakenError{}
	}
	if err != nil {
		return store.Operation{}, false, asWrite(err)
	}
	if moved.tailAt.IsZero() {
		return store.Operation{}, false, l.refusal(ctx, c, rivals)
	}
	return after(c, &e, &moved), true, nil
}

// plainly is the statement of a change that needs no locks but the row's.
func (l *Ledger) plainly(c *store.Change, e *store.Event, moved *instants) statement {
	if settles(c) {
		return statement{l.sql.settle, settleArgs(c, e), []any{(*instant)(&moved.tailAt), &moved.flags}}
	}
	return statement{l.sql.move, moveArgs(c, e), moved.fields()}
}

// shareableEnd says whether a change is one statement that may travel with others.
func shareableEnd(c *store.Change) bool {
	return settles(c) && len(c.Announce) == 0 && len(c.Result)+len(c.Body)+len(c.Trace) <= maxBaggage
}

// after is the row as the change left it. The version says that the rest of it
// was as the caller saw it.
func after(c *store.Change, e *store.Event, moved *instants) store.Operation {
	row := c.Of
	row.Advance(c, e.Hash, moved.tailAt)
	if !settles(c) {
		moved.put(&row)
	}
	// A purge comes in between without a new version.
	if row.Flags = moved.flags; row.Flags&store.FlagPurged != 0 {
		row.Entomb()
	}
	return row
}

// row runs the statement of a change, with what it announces.
func (l *Ledger) row(ctx context.Context, c *store.Change, e *store.Event, s statement) error {
	if len(c.Announce) == 0 {
		return l.fetch(ctx, s)
	}
	var b pgx.Batch
	s.queue(&b)
	l.queueAnnounce(&b, c.Of.ID, e.Seq, e.Hash[:], c.Announce)
	return l.send(ctx, &b)
}

// settles says whether the change is what the statement settle writes: the
// handler of a first and only attempt returned.
func settles(c *store.Change) bool {
	return c.Of.State == store.Running && c.Of.Version == 1 && c.To == store.Completed && c.Reason == "" && c.Returned && c.Start == nil &&
		c.Of.Doubts == 0 && c.Doubts == 0 && c.Told == c.Of.Told && c.Granted == c.Of.Granted &&
		c.Visibility <= c.Of.Visibility && !c.Checked && !c.ByAttribute && c.Incident == "" && c.Decision == uuid.Nil &&
		c.Take == nil && c.Proposal == nil && !c.Resolve
}

func settleArgs(c *store.Change, e *store.Event) []any {
	return []any{
		some(c.Of.ID), sum32(c.Of.Tail), sum32(e.Hash), span(c.Of.Visibility),
		[]byte(c.Resource), maybe(c.ResourceDigest), c.Result, c.ResultVersion, int16(c.Flags), c.Trace,
		c.Kind, c.Actor, c.Body,
	}
}

// sum32 is a copy, so that the record that it comes from stays on the stack.
func sum32(s [32]byte) []byte { return s[:] }

// changeArgs are the parameters $1 to $21 that move and start share. The row
// gets the visibility; the moment is the one under the longer of those of row
// and change.
func changeArgs(c *store.Change, e *store.Event, visibility time.Duration) []any {
	longer := max(c.Of.Visibility, c.Visibility)
	ended := window(0)
	if c.Returned {
		ended = span(longer)
	}
	return append(make([]any, 0, 37),
		some(c.Of.ID), c.Of.Version, c.Of.State.String(), sum32(c.Of.Tail),
		c.To.String(), c.Reason, sum32(e.Hash), maybe(c.Decision), e.Attempt,
		c.Doubts, c.Told && c.Start == nil, c.Granted && c.Start == nil, c.Checked, c.Verdict, c.Actor,
		int64(visibility), span(longer-c.Of.Visibility), ended, c.Of.Doubts == 0,
		c.Kind, c.Body)
}

func moveArgs(c *store.Change, e *store.Event) []any {
	due := window(0)
	if c.Due.Set && !c.To.Settled() {
		due = span(c.Due.In)
	}
	outcome := c.To == store.Completed && c.Of.State != store.Completed
	return append(changeArgs(c, e, max(c.Of.Visibility, c.Visibility)),
		due, due.Valid && c.Due.AtMoment,
		outcome, outcome && c.ByAttribute, []byte(c.Resource), maybe(c.ResourceDigest), c.Result, c.ResultVersion, int16(c.Flags),
		c.Incident, c.Trace, c.Take, c.Proposal != nil, proposal(c), c.Resolve, int16(c.Of.Flags))
}

func proposal(c *store.Change) []byte {
	if c.Proposal == nil {
		return nil
	}
	return *c.Proposal
}

// reopens says whether an operation that was settled comes to stand again
// among others: it isn't settled any more, or an attempt of it is in doubt.
func reopens(c *store.Change) bool {
	write := !c.Of.ResourceKey.IsZero()
	return c.Of.State.Settled() && (!c.To.Settled() && (write || !c.Of.Unique.IsZero()) || c.Doubts > 0 && write)
}

func (l *Ledger) reopen(ctx context.Context, c *store.Change, e *store.Event, moved *instants) error {
	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	b.Queue(l.sql.lockResource, some(c.Of.ID))
	b.Queue(l.sql.lockSingle, some(c.Of.ID))
	b.Queue(l.sql.reopen, moveArgs(c, e)...).QueryRow(func(row pgx.Row) error {
		return optional(row.Scan(moved.fields()...))
	})
	l.queueAnnounce(&b, c.Of.ID, e.Seq, e.Hash[:], c.Announce)
	return l.send(ctx, &b)
}

// start begins an attempt, under the lock of its resource (R31).
func (l *Ledger) start(ctx context.Context, c *store.Change, e *store.Event, moved *instants) (rivals []store.Entry, err error) {
	s := c.Start
	before := max(c.Of.Visibility, c.Visibility)
	longer := max(before, s.Visibility)
	trace := s.Trace
	if c.Trace != nil {
		trace = c.Trace
	}
	args := append(changeArgs(c, e, longer),
		span(longer-before), span(s.Lease), span(s.Lease+longer),
		maybe(s.Owner), maybe(s.Run), maybe(s.Batch), []byte(s.CallID), trace, int16(c.Flags))

	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	b.Queue(l.sql.lockResource, some(c.Of.ID))
	b.Queue(l.sql.start, args...).QueryRow(func(row pgx.Row) error {
		return optional(row.Scan(moved.fields()...))
	})
	b.Queue(l.sql.rivalsOf, some(c.Of.ID)).Query(func(rows pgx.Rows) (err error) {
		rivals, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	l.queueOwnWaits(&b)
	return rivals, l.send(ctx, &b)
}

// refusal says why nothing was changed, or nil where the change may be made now.
func (l *Ledger) refusal(ctx context.Context, c *store.Change, rivals []store.Entry) error {
	current, repeated, err := l.current(ctx, c)
	if err != nil {
		return err
	}
	if repeated || !c.Fresh(&current) {
		return &store.StaleError{Current: current, Repeated: repeated}
	}
	if c.Start != nil {
		return blocked(current, rivals)
	}
	if c.ByAttribute || (c.Of.State == store.Failed && c.To != store.Failed && !c.Of.Unique.IsZero()) {
		return &store.ResourceTakenError{}
	}
	return nil
}

// current reads the row as it is, and whether it has the change's decision.
func (l *Ledger) current(ctx context.Context, c *store.Change) (o store.Operation, repeated bool, _ error) {
	conn, err := l.acquire(ctx)
	if err != nil {
		return o, false, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, l.sql.current, some(c.Of.ID), maybe(c.Decision)).Scan(append(operationFields(&o), &repeated)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, false, store.ErrNotFound
	}
	return o, repeated, fromRead(err)
}

// blocked says what keeps an attempt on a resource from starting (R31).
func blocked(row store.Operation, rivals []store.Entry) error {
	var waits []store.Entry
	for _, e := range rivals {
		switch {
		case e.ResourceSeq > row.ResourceSeq && e.State != store.Failed:
			return &store.BlockedError{Overtaken: true}
		case e.ResourceSeq < row.ResourceSeq && e.Blocks():
			waits = append(waits, e)
		}
	}
	if waits != nil {
		return &store.BlockedError{Others: waits}
	}
	return nil
}

// misplaced is the answer to a move that the table doesn't have.
func (l *Ledger) misplaced(ctx context.Context, c *store.Change, move store.Move) error {
	if _, _, err := l.current(ctx, c); err != nil {
		return err
	}
	return &store.MoveError{Move: move}
}
