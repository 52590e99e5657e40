package memory

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Claim implements [store.Ledger].
func (l *Ledger) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, c := range claims {
		if move := (store.Move{To: c.Operation.State}); !c.Look && !move.Allowed() {
			return nil, &store.MoveError{Move: move}
		}
	}
	answers := make([]store.Claimed, len(claims))
	for i, c := range claims {
		answers[i] = l.claim(c, now)
	}
	return answers, nil
}

func (l *Ledger) claim(c store.Claim, now time.Time) store.Claimed {
	own := c.Operation
	slot := slotKey{own.Intent, own.Slot}
	for _, id := range l.slots[slot] {
		row := l.rows[id]
		if row.Number == own.Number && row.Owner == own.Owner && own.Owner != uuid.Nil && !c.Look {
			return store.Claimed{Won: true, Operation: l.read(row, now), Others: l.lower(row, now)}
		}
	}
	recorded := slices.ContainsFunc(l.slots[slot], func(id uuid.UUID) bool { return l.rows[id].Number >= own.Number })
	if recorded || c.Look {
		return l.recorded(c, store.NotRefused, nil, now)
	}
	if refused, others := l.refuses(c, now); refused != store.NotRefused {
		return l.recorded(c, refused, others, now)
	}
	return l.insert(c, now)
}

// recorded answers with what stands in the claim's place.
func (l *Ledger) recorded(c store.Claim, refused store.Refusal, others []store.Entry, now time.Time) store.Claimed {
	answer := store.Claimed{Refused: refused, Others: others}
	for _, id := range l.slots[slotKey{c.Operation.Intent, c.Operation.Slot}] {
		answer.Slot = append(answer.Slot, l.read(l.rows[id], now))
	}
	if last := len(answer.Slot) - 1; last >= 0 && refused == store.NotRefused {
		answer.Others = l.lower(&answer.Slot[last], now)
	}
	for _, id := range l.resources[c.Operation.ResourceKey] {
		if l.rows[id].State != store.Failed {
			newest := l.entry(l.rows[id], now)
			answer.Newest = &newest
		}
	}
	return answer
}

// refuses looks for what keeps a new row out.
func (l *Ledger) refuses(c store.Claim, now time.Time) (store.Refusal, []store.Entry) {
	own := c.Operation
	for _, g := range c.After {
		if row := l.rows[g.ID]; row == nil || row.Version != g.Version {
			return store.RefusedGuard, nil
		}
	}
	key := contractKey{own.Intent, own.Tool}
	if bound, ok := l.contracts[key]; ok && bound != own.Contract {
		return store.RefusedContract, nil
	}
	if c.Hold != nil {
		var holding []store.Entry
		for _, id := range l.tools[key] {
			if row := l.rows[id]; row.Holds(c) {
				holding = append(holding, l.entry(row, now))
			}
		}
		if holding != nil {
			return store.RefusedHold, holding
		}
	}
	if !own.Unique.IsZero() {
		for _, id := range l.uniques[own.Unique] {
			if row := l.rows[id]; row.State != store.Failed {
				return store.RefusedUnique, []store.Entry{l.entry(row, now)}
			}
		}
	}
	return store.NotRefused, nil
}

func (l *Ledger) insert(c store.Claim, now time.Time) store.Claimed {
	var waits bool
	if key := c.Operation.ResourceKey; !key.IsZero() {
		l.sequence[key]++
		c.Operation.ResourceSeq = l.sequence[key]
		waits = c.Operation.State == store.Running && l.blocked(&c.Operation, now) != nil
	}
	if waits {
		c.Operation.State = store.Retryable
	}
	row, event := store.First(c, now)
	row = ownRow(row)
	l.rows[row.ID] = &row
	l.events[row.ID] = []store.Event{event}
	key := contractKey{row.Intent, row.Tool}
	l.contracts[key] = row.Contract
	l.tools[key] = append(l.tools[key], row.ID)
	slot := slotKey{row.Intent, row.Slot}
	l.slots[slot] = append(l.slots[slot], row.ID)
	if !row.Unique.IsZero() {
		l.uniques[row.Unique] = append(l.uniques[row.Unique], row.ID)
	}
	if !row.ResourceKey.IsZero() {
		l.resources[row.ResourceKey] = append(l.resources[row.ResourceKey], row.ID)
	}
	l.fileCases(store.Operation{}, row, store.Change{}, now)
	l.announce(&row, c.Announce, now)
	return store.Claimed{Won: true, Operation: l.read(&row, now), Others: l.lower(&row, now)}
}

// lower lists the writes on the row's resource with lower numbers that are
// unsettled or can still take effect.
func (l *Ledger) lower(row *store.Operation, now time.Time) []store.Entry {
	var lower []store.Entry
	if row.ResourceKey.IsZero() {
		return nil
	}
	for _, id := range l.resources[row.ResourceKey] {
		if o := l.rows[id]; o.ResourceSeq < row.ResourceSeq && (!o.State.Settled() || l.read(o, now).Blocks()) {
			lower = append(lower, l.entry(o, now))
		}
	}
	return lower
}

// blocked says whether an idempotent write must not start now (R31). A lower
// write that has no attempt that could still take effect doesn't block.
func (l *Ledger) blocked(row *store.Operation, now time.Time) error {
	for _, id := range l.resources[row.ResourceKey] {
		if o := l.rows[id]; o.ResourceSeq > row.ResourceSeq && o.State != store.Failed {
			return &store.BlockedError{Overtaken: true}
		}
	}
	var waits []store.Entry
	for _, e := range l.lower(row, now) {
		if e.Blocks() {
			waits = append(waits, e)
		}
	}
	if waits != nil {
		return &store.BlockedError{Others: waits}
	}
	return nil
}
