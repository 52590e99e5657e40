package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Announcement is an event for others, written with the claim or change that it
// tells of (R54).
type Announcement struct {
	// ID is the event's for ever: the same change, made again because its answer
	// was lost, announces the same events.
	ID   uuid.UUID
	Type string
	// Data is JSON.
	Data []byte
}

// Outgoing is an announcement that hasn't been delivered.
type Outgoing struct {
	Announcement
	// Seq orders the announcements of one operation.
	Seq       int64
	Operation uuid.UUID
	// Of is the operation's intent: at least its id and tenant and the names.
	Of Intent
	// At is the instant of the change.
	At time.Time
	// Deliveries counts the times that it was handed out, and is the lease of who
	// has it: whoever fetches it next counts one more.
	Deliveries int
	// DueAt is when it is handed out next; zero for a dead one, which waits for an
	// operator, and the operation's later ones with it.
	DueAt time.Time
}

// BehindDead is how long what waits behind a dead announcement is put off, so that
// nobody looks at it: until an operator has redelivered or discarded that.
const BehindDead = 36_500 * 24 * time.Hour

// Dead says that it is not delivered any more unless an operator says so.
func (o Outgoing) Dead() bool { return o.DueAt.IsZero() }

// OutgoingFilter selects undelivered announcements. Empty fields select everything.
type OutgoingFilter struct {
	// Tenant is the tenant's name.
	Tenant string
	// Dead selects dead ones only.
	Dead bool
	// After continues behind a Seq; Limit bounds the answer (0: 100).
	After int64
	Limit int
}

// Outbox is what a [Ledger] offers beside, so that events leave at least once
// and in order for each operation (R54).
type Outbox interface {
	// Fetch hands out announcements that are due, of each operation the first one
	// only, and nobody gets them again within the lease.
	Fetch(ctx context.Context, limit int, lease time.Duration) ([]Outgoing, error)
	// Delivered deletes announcements that were received. What was put off behind
	// them is due.
	Delivered(ctx context.Context, received ...Outgoing) error
	// Undelivered keeps one that wasn't received: it is due again after wait, or
	// dead, and the operation's later ones not before it: a backlog costs nothing
	// while it waits. Where somebody else has fetched it meanwhile, nothing is changed.
	Undelivered(ctx context.Context, o Outgoing, wait time.Duration, dead bool) error
	// Waiting lists what waits, in the order of Seq.
	Waiting(ctx context.Context, f OutgoingFilter) ([]Outgoing, error)
	// Redeliver makes a tenant's (by name) announcement due at once, a dead one
	// too; Discard deletes it. [ErrNotFound] where there is none.
	Redeliver(ctx context.Context, tenant string, id uuid.UUID) error
	Discard(ctx context.Context, tenant string, id uuid.UUID) error
}
