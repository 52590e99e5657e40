package postgres

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/store"
)

// The types below read columns into the fields of records, with NULL as the
// zero value, in the binary format as in the text one.

type instant time.Time

func (t *instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = instant{}
	if v.Valid {
		*t = instant(v.Time.UTC())
	}
	return nil
}

type key [16]byte

func (k *key) ScanUUID(v pgtype.UUID) error {
	*k = v.Bytes
	return nil
}

type sum [32]byte

func (s *sum) ScanBytes(v []byte) error {
	if len(v) != len(s) {
		return fmt.Errorf("store/postgres: a digest of %d bytes stands where one of %d belongs", len(v), len(s))
	}
	copy(s[:], v)
	return nil
}

// seal is the hash of an event, zero where the event isn't stored.
type seal [32]byte

func (s *seal) ScanBytes(v []byte) error {
	if v == nil {
		return nil
	}
	return (*sum)(s).ScanBytes(v)
}

// raw is a text that came from outside and is kept as bytes.
type raw string

func (r *raw) ScanBytes(v []byte) error {
	*r = raw(v)
	return nil
}

type class store.Class

func (c *class) ScanText(v pgtype.Text) (err error) {
	*(*store.Class)(c), err = store.ParseClass(v.String)
	return err
}

type state store.State

func (s *state) ScanText(v pgtype.Text) (err error) {
	*(*store.State)(s), err = store.ParseState(v.String)
	return err
}

type move store.Move

func (m *move) ScanText(v pgtype.Text) (err error) {
	*(*store.Move)(m), err = store.ParseMove(v.String)
	return err
}

// operationFields are in the order of the statements' piece "operation".
func operationFields(o *store.Operation) []any {
	return []any{
		(*key)(&o.ID), (*key)(&o.Intent), (*key)(&o.Tenant), (*key)(&o.Slot), &o.Number, (*key)(&o.Parent),
		&o.Tool, (*class)(&o.Class), (*key)(&o.Contract), (*string)(&o.Source), (*key)(&o.Node), &o.Occurrence,
		(*state)(&o.State), &o.Reason, &o.Version, (*sum)(&o.Tail), (*instant)(&o.TailAt), &o.Attempt, &o.Doubts,
		(*key)(&o.Owner), (*key)(&o.Run), (*key)(&o.Batch), &o.Told, &o.Granted, &o.Taken,
		(*instant)(&o.LeaseUntil), (*instant)(&o.DueAt), (*instant)(&o.Moment), (*int64)(&o.Visibility),
		(*instant)(&o.KeyUntil), (*int64)(&o.Escalate), &o.Checks, &o.Verdict,
		(*instant)(&o.CreatedAt), (*instant)(&o.FirstSent), (*instant)(&o.UnknownSince), (*instant)(&o.SettledAt),
		(*instant)(&o.Read),
		(*sum)(&o.Fingerprint), &o.Fields, &o.Arguments, (*raw)(&o.CallID), &o.Trace, (*raw)(&o.Resource),
		(*key)(&o.ResourceDigest), &o.ByAttribute, &o.Result, &o.ResultVersion, &o.Flags,
		(*key)(&o.Unique), (*key)(&o.ResourceKey), &o.ResourceSeq, (*int64)(&o.Retention),
	}
}

// intentFields are in the order of the statements' piece "intent".
func intentFields(i *store.Intent) []any {
	return []any{
		(*key)(&i.ID), (*sum)(&i.Digest), (*key)(&i.Tenant), (*sum)(&i.TenantDigest), &i.TenantName,
		(*sum)(&i.Principal), &i.Subject, &i.Task, &i.Goal, &i.Key, &i.TenantKey, &i.Version, (*instant)(&i.CreatedAt), (*instant)(&i.ClosedAt),
	}
}

func scanEntry(row pgx.CollectableRow) (e store.Entry, err error) {
	err = row.Scan(append(operationFields(&e.Operation), intentFields(&e.Of)...)...)
	return e, err
}

func scanEvent(row pgx.CollectableRow) (e store.Event, err error) {
	err = row.Scan((*key)(&e.Operation), &e.Seq, (*instant)(&e.At), (*move)(&e.Move), &e.Kind, &e.Actor,
		&e.Attempt, &e.Reason, (*key)(&e.Decision), &e.Body, (*seal)(&e.Hash))
	return e, err
}

// instants are those of a row that was changed. A renewal or a take moves some
// of them without a new version, so they can't be computed from what the caller
// saw.
type instants struct {
	tailAt, createdAt, leaseUntil, dueAt, moment time.Time
	keyUntil, firstSent, unknownSince, settledAt time.Time
	flags                                        uint8
}

// fields are in the order of the statements' piece "instants".
func (i *instants) fields() []any {
	return []any{
		(*instant)(&i.tailAt), (*instant)(&i.createdAt), (*instant)(&i.leaseUntil), (*instant)(&i.dueAt), (*instant)(&i.moment),
		(*instant)(&i.keyUntil), (*instant)(&i.firstSent), (*instant)(&i.unknownSince), (*instant)(&i.settledAt), &i.flags,
	}
}

func (i *instants) put(o *store.Operation) {
	o.CreatedAt, o.FirstSent, o.UnknownSince, o.SettledAt = i.createdAt, i.firstSent, i.unknownSince, i.settledAt
	o.LeaseUntil, o.DueAt, o.Moment, o.KeyUntil = i.leaseUntil, i.dueAt, i.moment, i.keyUntil
}

// The functions below turn fields into parameters, each of a type that pgx can
// send in every mode.

// some is an id that is always there.
func some[T uuid.UUID | store.Digest](id T) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// maybe is an id whose zero value is NULL.
func maybe[T uuid.UUID | store.Digest](id T) pgtype.UUID {
	return pgtype.UUID{Bytes: id, Valid: id != T{}}
}

func span(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

// window is a span whose zero value is NULL.
func window(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: d > 0}
}

func ids(of []uuid.UUID) []pgtype.UUID {
	all := make([]pgtype.UUID, len(of))
	for i, id := range of {
		all[i] = some(id)
	}
	return all
}
