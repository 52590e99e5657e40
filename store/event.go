package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Event is one line of an operation's journal: append-only, in order, chained
// by hash (R57). Body is metadata as JSON; it holds no arguments and no results.
type Event struct {
	Operation uuid.UUID
	// Seq is the operation's Version after the event, from 1.
	Seq     int
	At      time.Time
	Move    Move
	Kind    string
	Actor   string
	Attempt int
	Reason  string
	// Decision is the operator's decision id, or zero; unique per operation (R41).
	Decision uuid.UUID
	Body     []byte
	Hash     [32]byte
}

// Tail is the end of an operation's journal: what the next event is chained to.
type Tail struct {
	Hash [32]byte
	At   time.Time
}

// Seal computes the hash of e, chained to the tail before it: SHA-256 over the
// tail's hash and instant and the event's own fields, each length-prefixed.
// The instant of e itself is not in it, since only the ledger knows it and only
// when it has written; the event after e seals it.
func (e Event) Seal(before Tail) [32]byte {
	// Room for what an event usually is: sealing is on the way of every write.
	var room [384]byte
	b := append(room[:0], "settle event 1"...)
	number := func(v int64) { b = binary.BigEndian.AppendUint64(b, uint64(v)) }
	field := func(s string) { number(int64(len(s))); b = append(b, s...) }

	b = append(b, before.Hash[:]...)
	number(micros(before.At))
	b = append(b, e.Operation[:]...)
	number(int64(e.Seq))
	from, to := e.Move.From.String(), e.Move.To.String()
	number(int64(len(from) + len(">") + len(to)))
	b = append(append(append(b, from...), '>'), to...)
	field(e.Kind)
	field(e.Actor)
	number(int64(e.Attempt))
	field(e.Reason)
	b = append(b, e.Decision[:]...)
	body := sha256.Sum256(e.Body)
	b = append(b, body[:]...)
	return sha256.Sum256(b)
}

// Chain seals those of an operation's events that have no hash, in order: a
// ledger may leave out of its journal what the operation's row says, and then
// knows no more of such an event than what is in its hash.
func Chain(events []Event) {
	var before Tail
	for i := range events {
		e := &events[i]
		if e.Hash == ([32]byte{}) {
			e.Hash = e.Seal(before)
		}
		before = Tail{Hash: e.Hash, At: e.At}
	}
}

// VerifyChain walks an operation's events from the first and compares them with
// the row. It can see a changed, added, reordered or missing event; it can't
// see that a tail was cut off together with the row's memory of it, nor that
// the operation was removed as a whole: that takes an anchor outside the ledger.
func VerifyChain(o Operation, events []Event) error {
	var before Tail
	var state State
	for i, e := range events {
		if e.Seq != i+1 || e.Operation != o.ID {
			return fmt.Errorf("store: operation %s: event %d of %s stands where event %d belongs", o.ID, e.Seq, e.Operation, i+1)
		}
		if e.Move.From != state || !e.Move.Allowed() {
			return fmt.Errorf("store: operation %s: event %d is the move %q after the state %q", o.ID, e.Seq, e.Move, state)
		}
		if e.Seal(before) != e.Hash {
			return fmt.Errorf("store: operation %s: event %d doesn't match its hash", o.ID, e.Seq)
		}
		before, state = Tail{Hash: e.Hash, At: e.At}, e.Move.To
	}
	if o.Version != len(events) || o.Tail != before.Hash || micros(o.TailAt) != micros(before.At) {
		return fmt.Errorf("store: operation %s: the row is at version %d and the journal ends with event %d", o.ID, o.Version, len(events))
	}
	if o.State != state {
		return fmt.Errorf("store: operation %s: the row is %s and the journal ends with %s", o.ID, o.State, state)
	}
	return nil
}

// micros is an instant in the ledger's resolution; the zero instant is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
