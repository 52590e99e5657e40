package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/postgres"
)

const (
	// outgoingEvents is how many each contender delivers in a turn.
	outgoingEvents = 10_000
	// outgoingBatch is the relay's, and the bare loop's as well.
	outgoingBatch = 128
)

// outbox measures the relay, as Run runs it, beside the loop that an outbox needs
// at the least: SELECT … FOR UPDATE SKIP LOCKED, deliver, DELETE. Both have the
// same events and batches, and a receiver that takes no time.
func (b *bench) outbox(ctx context.Context) error {
	pool, err := b.postgres.pool(ctx, 4)
	if err != nil {
		return err
	}
	bare, err := newBareOutbox(ctx, pool)
	if err != nil {
		return err
	}
	relay, err := newRelay(ctx, pool)
	if err != nil {
		return err
	}
	turns := make([]measured, 2)
	for round := range b.rounds + 1 {
		for n := range turns {
			if round%2 == 1 {
				n = 1 - n // as takeTurns does
			}
			m := &turns[n]
			if round == 0 {
				m = &measured{}
			}
			if err := m.drain(ctx, []drained{bare, relay}[n]); err != nil {
				return err
			}
		}
	}
	b.costs("postgres/bare-outbox", turns[0])
	b.costs("postgres/relay", turns[1])
	b.atLeast("postgres/relay-of-bare", turns[1].over(turns[0]), 0.50)
	return relay.executor.Shutdown(ctx)
}

// drained is an outbox that is filled and then drained.
type drained interface {
	fill(ctx context.Context) error
	// drain returns when every event was delivered and deleted.
	drain(ctx context.Context) error
	left(ctx context.Context) (int, error)
}

// drain is a turn: it lasts until all events are delivered.
func (m *measured) drain(ctx context.Context, d drained) error {
	if err := d.fill(ctx); err != nil {
		return err
	}
	runtime.GC()
	before := spent()
	began := time.Now()
	err := d.drain(ctx)
	took := time.Since(began)
	after := spent()
	if err != nil {
		return err
	}
	if n, err := d.left(ctx); err != nil || n > 0 {
		return fmt.Errorf("%d of %d events are left (error: %w)", n, outgoingEvents, err)
	}
	m.rates = append(m.rates, outgoingEvents/took.Seconds())
	m.operations += outgoingEvents
	m.cpu += after.cpu - before.cpu
	m.mallocs += after.mallocs - before.mallocs
	m.bytes += after.bytes - before.bytes
	return nil
}

// counted is the receiver of both: it counts what it takes.
type counted struct {
	taken atomic.Int64
	// all has an element when that were all events of a turn.
	all chan struct{}
}

func newCounted() *counted { return &counted{all: make(chan struct{}, 1)} }

func (c *counted) Deliver(context.Context, settle.Delivery) error {
	if c.taken.Add(1)%outgoingEvents == 0 {
		c.all <- struct{}{}
	}
	return nil
}

// outgoingData is an event's data, that of settle.settled.
const outgoingData = `{"operation":"01a229e6-f467-77c1-b34d-795e27d6d06a","tool":"pay","class":"keyed","state":"completed","status":"completed","resource":"ch_ord_0_1"}`

// relay is settle's, over a ledger's outbox.
type relay struct {
	pool     *pgxpool.Pool
	executor *settle.Executor
	receiver *counted
}

func newRelay(ctx context.Context, pool *pgxpool.Pool) (*relay, error) {
	ledger, err := postgres.New(ctx, pool, postgres.WithSchema("outbox"))
	if err != nil {
		return nil, err
	}
	// A payment makes the intent and the tenant that the events are of. Its executor
	// has no outbox, so that there are no other events.
	p, err := newPayer(ledger, 1)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.pay(ctx, 0), p.shutdown()); err != nil {
		return nil, err
	}
	receiver := newCounted()
	x, err := settle.New(ledger, settle.WithOutbox(receiver))
	return &relay{pool, x, receiver}, err
}

// fill writes the events of as many operations.
func (r *relay) fill(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, `INSERT INTO outbox.outbox (event, operation, intent, at, due_at, type, data)
		SELECT gen_random_uuid(), gen_random_uuid(), i.id, clock_timestamp(), clock_timestamp(), 'settle.settled', convert_to($1, 'UTF8')
		FROM outbox.intent i, generate_series(1, $2)`, outgoingData, outgoingEvents)
	return err
}

// drain runs the executor until its receiver has everything. Run returns when
// what was received is deleted.
func (r *relay) drain(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.executor.Run(ctx) }()
	select {
	case <-r.receiver.all:
		stop()
		return <-ended
	case err := <-ended:
		return err
	}
}

func (r *relay) left(ctx context.Context) (n int, err error) {
	err = r.pool.QueryRow(ctx, "SELECT count(*) FROM outbox.outbox").Scan(&n)
	return n, err
}

// bareOutbox is a table with what a delivery needs and a key, and the loop over
// it. There is no order among the events of an operation, no lease that ends with
// a slow receiver (the transaction is open meanwhile), no retry, no dead event.
type bareOutbox struct {
	pool     *pgxpool.Pool
	receiver *counted
}

func newBareOutbox(ctx context.Context, pool *pgxpool.Pool) (*bareOutbox, error) {
	_, err := pool.Exec(ctx, `DROP TABLE IF EXISTS bare_outbox;
		CREATE TABLE bare_outbox (
			seq       bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
			event     uuid NOT NULL,
			operation uuid NOT NULL,
			tenant    text NOT NULL,
			subject   text NOT NULL,
			task      text NOT NULL,
			goal      text NOT NULL,
			at        timestamptz NOT NULL,
			type      text NOT NULL,
			data      bytea
		)`)
	return &bareOutbox{pool, newCounted()}, err
}

func (o *bareOutbox) fill(ctx context.Context) error {
	_, err := o.pool.Exec(ctx, `INSERT INTO bare_outbox (event, operation, tenant, subject, task, goal, at, type, data)
		SELECT gen_random_uuid(), gen_random_uuid(), 'acme', 'agent', $3, 'pay', clock_timestamp(), 'settle.settled', convert_to($1, 'UTF8')
		FROM generate_series(1, $2)`, outgoingData, outgoingEvents, uuid.NewString())
	return err
}

func (o *bareOutbox) drain(ctx context.Context) error {
	for {
		n, err := o.batch(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			<-o.receiver.all
			return nil
		}
	}
}

func (o *bareOutbox) left(ctx context.Context) (n int, err error) {
	err = o.pool.QueryRow(ctx, "SELECT count(*) FROM bare_outbox").Scan(&n)
	return n, err
}

// batch delivers a batch, and says how many events that were.
func (o *bareOutbox) batch(ctx context.Context) (n int, err error) {
	err = pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT seq, event, operation, tenant, subject, task, goal, at, type, data
			FROM bare_outbox ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED`, outgoingBatch)
		if err != nil {
			return err
		}
		var seqs []int64
		var seq int64
		var event, operation [16]byte
		var d settle.Delivery
		_, err = pgx.ForEachRow(rows, []any{&seq, &event, &operation, &d.Tenant, &d.Subject, &d.Task, &d.Goal, &d.At, &d.Type, (*[]byte)(&d.Data)}, func() error {
			d.ID, d.Operation = uuid.UUID(event).String(), uuid.UUID(operation).String()
			seqs = append(seqs, seq)
			return o.receiver.Deliver(ctx, d)
		})
		if err != nil || len(seqs) == 0 {
			return err
		}
		n = len(seqs)
		_, err = tx.Exec(ctx, "DELETE FROM bare_outbox WHERE seq = ANY ($1)", seqs)
		return err
	})
	return n, err
}
