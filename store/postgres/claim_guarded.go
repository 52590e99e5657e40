package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/store"
)

// rounds bounds how often a claim is decided anew because what refused it was
// gone when it was read.
const rounds = 4

var errUndecided = errors.New("store/postgres: what stands in the way of a claim changed each time it was read; make the same claim again")

// claimGuarded makes the open claims one after the other, each with what it
// needs to be answered, in one batch: one transaction, one round trip.
func (w *wave) claimGuarded(ctx context.Context) error {
	for range rounds {
		if len(w.open) == 0 {
			return nil
		}
		if err := w.claimOnce(ctx); err != nil {
			return err
		}
	}
	if len(w.open) > 0 {
		return errUndecided
	}
	return nil
}

func (w *wave) claimOnce(ctx context.Context) error {
	var b pgx.Batch
	w.queueLocks(&b)
	findings := make([]*finding, len(w.open))
	for n, i := range w.open {
		c := &w.claims[i]
		findings[n] = w.queueClaim(&b, c)
		w.ledger.queueAnnounce(&b, c.Operation.ID, 1, firstTail(c), c.Announce)
	}
	w.queueUnbind(&b)
	w.ledger.queueOwnWaits(&b)
	if err := w.conn.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	for n, i := range slices.Clone(w.open) {
		w.made = w.made || !findings[n].at.IsZero()
		if answer, ok := findings[n].answer(&w.claims[i]); ok {
			w.close(i, answer)
		}
	}
	return nil
}

// queueOwnWaits gives the statements that a handler sends in the same transaction
// the session's own limit again.
func (l *Ledger) queueOwnWaits(b *pgx.Batch) {
	if l.held != nil && l.limits {
		b.Queue("SET LOCAL lock_timeout TO DEFAULT")
	}
}

// queueLocks takes the locks of all open claims, each kind in a fixed order, so
// that two calls never wait for one another in a circle.
func (w *wave) queueLocks(b *pgx.Batch) {
	var contracts, resources, singles, guards places
	for _, i := range w.open {
		c := &w.claims[i]
		if c.Look {
			continue
		}
		contracts.add(c, uuid.Nil)
		if !c.Operation.ResourceKey.IsZero() {
			resources.add(c, uuid.UUID(c.Operation.ResourceKey))
		}
		if !c.Operation.Unique.IsZero() {
			singles.add(c, uuid.UUID(c.Operation.Unique))
		}
		for _, g := range c.After {
			guards.add(c, g.ID)
		}
	}
	if len(contracts.intent) == 0 {
		return
	}
	if w.ledger.limits {
		b.Queue(w.ledger.sql.lockLimit)
	}
	w.queueBind(b)
	b.Queue(w.ledger.sql.lockContracts, contracts.intent, contracts.tool, contracts.slot, contracts.number)
	for _, lock := range []struct {
		places
		statements []string
	}{
		{resources, []string{w.ledger.sql.numberResources, w.ledger.sql.lockResources}},
		{singles, []string{w.ledger.sql.enterSingles, w.ledger.sql.lockSingles}},
		{guards, []string{w.ledger.sql.lockGuards}},
	} {
		if len(lock.key) == 0 {
			continue
		}
		for _, statement := range lock.statements {
			b.Queue(statement, lock.key, lock.intent, lock.slot, lock.number)
		}
	}
}

// places are the slots of claims, with what is to be locked for each, by column.
type places struct {
	key, intent, slot []pgtype.UUID
	tool              []string
	number            []int32
}

func (p *places) add(c *store.Claim, key uuid.UUID) {
	p.key, p.intent, p.slot = append(p.key, some(key)), append(p.intent, some(c.Operation.Intent)), append(p.slot, some(c.Operation.Slot))
	p.tool, p.number = append(p.tool, c.Operation.Tool), append(p.number, int32(c.Operation.Number))
}

// queueBind pins the contracts that no claim has pinned yet (R3).
func (w *wave) queueBind(b *pgx.Batch) {
	var p places
	var digests []pgtype.UUID
	for _, i := range w.open {
		if c := &w.claims[i]; !c.Look {
			p.add(c, uuid.Nil)
			digests = append(digests, some(c.Operation.Contract))
		}
	}
	b.Queue(w.ledger.sql.bind, p.intent, p.tool, digests, p.slot, p.number)
}

// queueUnbind takes back what was pinned for claims that were refused.
func (w *wave) queueUnbind(b *pgx.Batch) {
	var p places
	for _, i := range w.open {
		if c := &w.claims[i]; !c.Look && !c.Known {
			p.add(c, uuid.Nil)
		}
	}
	if len(p.intent) > 0 {
		b.Queue(w.ledger.sql.unbind, p.intent, p.tool)
	}
}

// queueClaim makes one claim and reads what stands in its way, or only reads.
func (w *wave) queueClaim(b *pgx.Batch, c *store.Claim) *finding {
	f, o, sql := &finding{}, &c.Operation, &w.ledger.sql
	told := []pgtype.UUID{}
	if !c.Look {
		if c.Hold != nil {
			told = ids(c.Hold.Told)
		}
		b.Queue(sql.claimGuarded, guardedArgs(c, told)...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&f.refused, (*instant)(&f.at), &f.state, &f.seq)
		})
	}
	b.Queue(sql.slots, []pgtype.UUID{some(o.Intent)}, []pgtype.UUID{some(o.Slot)}).Query(func(rows pgx.Rows) (err error) {
		f.slot, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o store.Operation, err error) {
			err = row.Scan(append([]any{nil}, operationFields(&o)...)...)
			return o, err
		})
		return err
	})
	if c.Hold != nil && !c.Look {
		b.Queue(sql.holding, some(o.Intent), o.Tool, some(o.Slot), maybe(o.Batch), maybe(o.Run), told).Query(f.into(&f.holding))
	}
	if !o.Unique.IsZero() && !c.Look {
		b.Queue(sql.unique, some(o.Unique)).Query(f.into(&f.unique))
	}
	if !o.ResourceKey.IsZero() {
		b.Queue(sql.rivals, some(o.ResourceKey)).Query(f.into(&f.rivals))
	}
	return f
}

// guardedArgs are the parameters of claim_guarded: those of claim, and what
// guards it.
func guardedArgs(c *store.Claim, told []pgtype.UUID) []any {
	o := &c.Operation
	waiting := *c
	waiting.Operation.State = store.Retryable
	guards, versions := uuids(0), make([]int32, 0)
	for _, g := range c.After {
		guards, versions = append(guards, some(g.ID)), append(versions, int32(g.Version))
	}
	return append(claimArgs(c, firstTail(c)),
		o.State.String(), span(c.Wait), maybe(o.Unique), maybe(o.ResourceKey), guards, versions, c.Hold != nil, told, firstTail(&waiting),
		int64(o.Retention), int16(o.Flags))
}

// finding is what came back for one claim.
type finding struct {
	refused int
	at      time.Time // of the row that was made
	state   string
	seq     int64

	slot                    []store.Operation
	holding, unique, rivals []store.Entry
}

func (f *finding) into(entries *[]store.Entry) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*entries, err = pgx.CollectRows(rows, scanEntry)
		return err
	}
}

// answer is the claim's answer. There is none where it was refused by something
// that was gone when it was to be read.
func (f *finding) answer(c *store.Claim) (store.Claimed, bool) {
	if !f.at.IsZero() {
		return f.made(*c), true
	}
	if answer, ok := f.recorded(c); ok {
		return answer, true
	}
	switch refused := store.Refusal(max(f.refused, 0)); {
	case refused == store.RefusedHold && len(f.holding) > 0:
		return f.refusal(refused, f.holding), true
	case refused == store.RefusedGuard || refused == store.RefusedContract:
		return f.refusal(refused, nil), true
	case refused != store.RefusedHold && len(f.unique) > 0:
		return f.refusal(store.RefusedUnique, f.unique), true
	}
	return store.Claimed{}, false
}

// made is the answer to a claim that made its row.
func (f *finding) made(c store.Claim) store.Claimed {
	if c.Operation.State == store.Running && f.state != store.Running.String() {
		c.Operation.State = store.Retryable
	}
	row, _ := store.First(c, f.at)
	row.ResourceSeq = f.seq
	return store.Claimed{Won: true, Operation: row, Others: f.lower(row)}
}

// recorded is the answer to a claim whose number is there, or that only looks.
func (f *finding) recorded(c *store.Claim) (store.Claimed, bool) {
	own := &c.Operation
	there := c.Look
	for _, row := range f.slot {
		if row.Number == own.Number && row.Owner == own.Owner && own.Owner != uuid.Nil && !c.Look {
			return store.Claimed{Won: true, Operation: row, Others: f.lower(row)}, true
		}
		there = there || row.Number >= own.Number
	}
	if !there {
		return store.Claimed{}, false
	}
	answer := f.refusal(store.NotRefused, nil)
	if last := len(f.slot) - 1; last >= 0 {
		answer.Others = f.lower(f.slot[last])
	}
	return answer, true
}

func (f *finding) refusal(why store.Refusal, others []store.Entry) store.Claimed {
	answer := store.Claimed{Refused: why, Slot: f.slot, Others: others}
	for i, e := range f.rivals {
		if e.State != store.Failed {
			answer.Newest = &f.rivals[i]
		}
	}
	return answer
}

// lower lists the writes on the row's resource with lower numbers that are
// unsettled or can still take effect.
func (f *finding) lower(row store.Operation) []store.Entry {
	var lower []store.Entry
	for _, e := range f.rivals {
		if e.ResourceKey == row.ResourceKey && e.ResourceSeq < row.ResourceSeq && (!e.State.Settled() || e.Blocks()) {
			lower = append(lower, e)
		}
	}
	return lower
}
