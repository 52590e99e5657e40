package settle

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// sealedLedger seals on the way in and opens on the way out (R56); everything
// else is the ledger's. The tenant's name, resources and the journal's metadata
// stay readable, since rows are found and shown by them.
type sealedLedger struct {
	store.Ledger
	codec Codec
}

func (l sealedLedger) seal(plain []byte, of uuid.UUID, what string) ([]byte, error) {
	if plain == nil {
		return nil, nil
	}
	return l.codec.Seal(plain, append(of[:], what...))
}

// open reads values that were stored before there was a codec as they are.
func (l sealedLedger) open(value *[]byte, of uuid.UUID, what string) error {
	if len(*value) == 0 || (*value)[0] != sealedMark[0] {
		return nil
	}
	plain, err := l.codec.Open(*value, append(of[:], what...))
	*value = plain
	return err
}

// sealedName marks a name that is sealed: a character that no name may have.
const sealedName = "\x1a"

func (l sealedLedger) sealName(name *string, of uuid.UUID) error {
	sealed, err := l.seal([]byte(*name), of, "name")
	*name = sealedName + base64.RawStdEncoding.EncodeToString(sealed)
	return err
}

// keyOfName is the id of the key that a name is sealed under, or "".
func keyOfName(name string) string {
	sealed, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(name, sealedName))
	if err != nil {
		return ""
	}
	return keyOf(sealed)
}

func (l sealedLedger) openName(name *string, of uuid.UUID) error {
	encoded, ok := strings.CutPrefix(*name, sealedName)
	if !ok {
		return nil
	}
	sealed, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return ErrSealed
	}
	if err := l.open(&sealed, of, "name"); err != nil {
		return err
	}
	*name = string(sealed)
	return nil
}

// What can't be opened is mostly all under one key, so the first error says it all.
func (l sealedLedger) openIntent(i *store.Intent) error {
	return cmp.Or(l.openName(&i.Subject, i.ID), l.openName(&i.Task, i.ID), l.openName(&i.Goal, i.ID),
		l.open(&i.Key, i.ID, "key"), l.open(&i.TenantKey, i.Tenant, "tenant key"))
}

func (l sealedLedger) openRow(o *store.Operation) error {
	return cmp.Or(l.open(&o.Arguments, o.ID, "arguments"), l.open(&o.Result, o.ID, "result"))
}

func (l sealedLedger) openEntry(e *store.Entry) error {
	return cmp.Or(l.openRow(&e.Operation), l.openIntent(&e.Of))
}

// Intent implements [store.Ledger].
func (l sealedLedger) Intent(ctx context.Context, p store.Intent) (store.Intent, error) {
	var sealing []error
	for _, name := range []*string{&p.Subject, &p.Task, &p.Goal} {
		sealing = append(sealing, l.sealName(name, p.ID))
	}
	var err error
	p.Key, err = l.seal(p.Key, p.ID, "key")
	sealing = append(sealing, err)
	p.TenantKey, err = l.seal(p.TenantKey, p.Tenant, "tenant key")
	if err := errors.Join(append(sealing, err)...); err != nil {
		return store.Intent{}, &store.UnwrittenError{Err: err}
	}
	stored, err := l.Ledger.Intent(ctx, p)
	if err != nil {
		return stored, err
	}
	if err := l.openIntent(&stored); err != nil {
		return store.Intent{}, &store.UnwrittenError{Err: err}
	}
	return stored, nil
}

// Claim implements [store.Ledger].
func (l sealedLedger) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	sealed := make([]store.Claim, len(claims))
	for i, c := range claims {
		if err := l.sealClaim(&c); err != nil {
			return nil, err
		}
		sealed[i] = c
	}
	answers, err := l.Ledger.Claim(ctx, sealed...)
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if err := l.openAnswer(&answers[i]); err != nil {
			// What was claimed stays, and its lease ends by itself: nothing is sent.
			return nil, &store.UnwrittenError{Err: err}
		}
	}
	return answers, nil
}

func (l sealedLedger) sealClaim(c *store.Claim) (err error) {
	if c.Operation.Arguments, err = l.seal(c.Operation.Arguments, c.Operation.ID, "arguments"); err != nil {
		return &store.UnwrittenError{Err: err}
	}
	c.Announce, err = l.sealEvents(c.Announce)
	return err
}

func (l sealedLedger) sealEvents(events []store.Announcement) (sealed []store.Announcement, err error) {
	for _, e := range events {
		if e.Data, err = l.seal(e.Data, e.ID, "event"); err != nil {
			return nil, &store.UnwrittenError{Err: err}
		}
		sealed = append(sealed, e)
	}
	return sealed, nil
}

// Fetch implements [store.Outbox] where the ledger below does. What can't be
// opened here is left to a relay that has its key, until its lease ends.
func (l sealedLedger) Fetch(ctx context.Context, limit int, lease time.Duration) ([]store.Outgoing, error) {
	fetched, err := l.Ledger.(store.Outbox).Fetch(ctx, limit, lease)
	return l.openOutgoing(fetched), err
}

func (l sealedLedger) openOutgoing(all []store.Outgoing) (own []store.Outgoing) {
	for _, o := range all {
		if errors.Join(l.open(&o.Data, o.ID, "event"), l.openIntent(&o.Of)) == nil {
			own = append(own, o)
		}
	}
	return own
}

// Waiting implements [store.Outbox]. Its data isn't shown, and stays sealed.
func (l sealedLedger) Waiting(ctx context.Context, f store.OutgoingFilter) ([]store.Outgoing, error) {
	return l.Ledger.(store.Outbox).Waiting(ctx, f)
}

// Delivered implements [store.Outbox].
func (l sealedLedger) Delivered(ctx context.Context, received ...store.Outgoing) error {
	return l.Ledger.(store.Outbox).Delivered(ctx, received...)
}

// Undelivered implements [store.Outbox].
func (l sealedLedger) Undelivered(ctx context.Context, o store.Outgoing, wait time.Duration, dead bool) error {
	return l.Ledger.(store.Outbox).Undelivered(ctx, o, wait, dead)
}

// Redeliver implements [store.Outbox].
func (l sealedLedger) Redeliver(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.Ledger.(store.Outbox).Redeliver(ctx, tenant, id)
}

// Discard implements [store.Outbox].
func (l sealedLedger) Discard(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.Ledger.(store.Outbox).Discard(ctx, tenant, id)
}

func (l sealedLedger) openAnswer(c *store.Claimed) error {
	opening := []error{l.openRow(&c.Operation)}
	for i := range c.Slot {
		opening = append(opening, l.openRow(&c.Slot[i]))
	}
	for i := range c.Others {
		opening = append(opening, l.openEntry(&c.Others[i]))
	}
	if c.Newest != nil {
		opening = append(opening, l.openEntry(c.Newest))
	}
	return cmp.Or(opening...)
}

// Apply implements [store.Ledger].
func (l sealedLedger) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	return l.applyBy(ctx, c, l.Ledger.Apply)
}

func (l sealedLedger) applyBy(ctx context.Context, c store.Change, apply func(context.Context, store.Change) (store.Operation, error)) (store.Operation, error) {
	var err error
	if c.Result, err = l.seal(c.Result, c.Of.ID, "result"); err != nil {
		return store.Operation{}, &store.UnwrittenError{Err: err}
	}
	if c.Announce, err = l.sealEvents(c.Announce); err != nil {
		return store.Operation{}, err
	}
	row, err := apply(ctx, c)
	var stale *store.StaleError
	if errors.As(err, &stale) {
		return row, errors.Join(err, l.openRow(&stale.Current))
	}
	if err != nil {
		return row, err
	}
	return row, l.openRow(&row)
}

// Transact implements [store.Transactor] where the ledger below does.
func (l sealedLedger) Transact(ctx context.Context, do func(context.Context, store.Transaction) error) error {
	return l.Ledger.(store.Transactor).Transact(ctx, func(ctx context.Context, t store.Transaction) error {
		return do(ctx, sealedTransaction{t, l})
	})
}

type sealedTransaction struct {
	store.Transaction
	ledger sealedLedger
}

// Claim implements [store.Transaction].
func (t sealedTransaction) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if err := t.ledger.sealClaim(&c); err != nil {
		return store.Claimed{}, err
	}
	claimed, err := t.Transaction.Claim(ctx, c)
	if err == nil {
		err = t.ledger.openAnswer(&claimed)
	}
	return claimed, err
}

// Apply implements [store.Transaction].
func (t sealedTransaction) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	return t.ledger.applyBy(ctx, c, t.Transaction.Apply)
}

// Commit implements [store.Transaction].
func (t sealedTransaction) Commit(ctx context.Context, c store.Change) (store.Operation, error) {
	return t.ledger.applyBy(ctx, c, t.Transaction.Commit)
}

// Take implements [store.Ledger]. A row that can't be opened here is left out:
// a worker that has its key takes it later.
func (l sealedLedger) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	entries, err := l.Ledger.Take(ctx, t)
	if err != nil {
		return nil, err
	}
	var own []store.Entry
	for _, e := range entries {
		if l.openEntry(&e) == nil {
			own = append(own, e)
		}
	}
	return own, nil
}

// Get implements [store.Ledger].
func (l sealedLedger) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	e, err := l.Ledger.Get(ctx, tenant, operation)
	if err != nil {
		return e, err
	}
	return e, l.openEntry(&e)
}

// List implements [store.Ledger].
func (l sealedLedger) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	entries, err := l.Ledger.List(ctx, f)
	for i := range entries {
		err = cmp.Or(err, l.openEntry(&entries[i]))
	}
	return entries, err
}

// Cases implements [store.Ledger].
func (l sealedLedger) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	cases, err := l.Ledger.Cases(ctx, f)
	for i := range cases {
		err = cmp.Or(err, l.openEntry(&cases[i].Entry))
	}
	return cases, err
}

// sealProposed seals the result in a proposal, which is all of it that is the
// business's. Whoever has no keys can confirm the others.
func (x *Executor) sealProposed(of uuid.UUID, p *proposal) (err error) {
	if x.settings.codec == nil || len(p.Result) == 0 {
		return nil
	}
	p.Sealed, err = x.settings.codec.Seal(p.Result, append(of[:], "proposal"...))
	p.Result = nil
	return err
}

func (x *Executor) openProposed(of uuid.UUID, p proposal) (json.RawMessage, error) {
	switch {
	case len(p.Sealed) == 0:
		return p.Result, nil
	case x.settings.codec == nil:
		return nil, &MissingKeyError{KeyID: keyOf(p.Sealed)}
	}
	return x.settings.codec.Open(p.Sealed, append(of[:], "proposal"...))
}
