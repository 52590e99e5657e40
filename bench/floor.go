package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// floor measures settle beside the least that a safe external call needs of a
// database: two durable points, the claim before the first byte leaves and the
// outcome after the last one came.
func (b *bench) floor(ctx context.Context) error {
	for _, at := range []struct {
		workers int
		bar     float64
	}{{1, 0.90}, {32, 0.80}} {
		pool, err := b.postgres.pool(ctx, at.workers)
		if err != nil {
			return err
		}
		schema := "floor_" + strconv.Itoa(at.workers)
		bare, err := newBareTables(ctx, pool, at.workers)
		if err != nil {
			return err
		}
		payer, err := b.postgres.payer(ctx, pool, schema, at.workers)
		if err != nil {
			return err
		}
		writes, err := newWrites(ctx, pool, schema+"_writes")
		if err != nil {
			return err
		}
		empty, err := sizeOf(ctx, pool, schema)
		if err != nil {
			return err
		}
		turns, err := b.takeTurns(ctx, one(at.workers, bare.call), one(at.workers, payer.pay), one(at.workers, writes.call))
		if err != nil {
			return err
		}
		size, err := sizeOf(ctx, pool, schema)
		if err != nil {
			return err
		}
		name := "postgres/" + strconv.Itoa(at.workers)
		b.costs(name+"/floor", turns[0])
		b.costs(name+"/settle", turns[1])
		b.figure(name+"/settle/stored", float64(size-empty)/float64(payer.done()), "B/op")
		b.costs(name+"/writes", turns[2])
		b.plain(name+"/writes-of-floor", turns[2].over(turns[0]))
		b.atLeast(name+"/of-floor", turns[1].over(turns[0]), at.bar)
		if err := payer.shutdown(); err != nil {
			return err
		}
	}
	return nil
}

// bareTables is the floor: a table that holds what any ledger has to keep of a
// call (who asked for what and what came of it), with the two unique indexes
// that tell calls apart and find them again, and a journal. There is no lease
// that anybody could find when it has ended, no identity definition, no hold,
// no chain, no lookup, no case: nothing but what a call writes.
//
// A call is an INSERT and an UPDATE, each with its journal row pipelined behind
// it in one implicit transaction: two round trips and two commits, with prepared
// statements. It is what nobody can go below without losing one of the two
// durable points.
type bareTables struct {
	pool    *pgxpool.Pool
	workers []bareWorker
}

type bareWorker struct {
	intent uuid.UUID
	done   int
}

const bareSchema = `
DROP TABLE IF EXISTS bare, bare_event;
CREATE TABLE bare (
	id          uuid NOT NULL,
	intent      uuid NOT NULL,
	slot        uuid NOT NULL,
	owner       uuid NOT NULL,
	tool        text NOT NULL,
	state       text NOT NULL,
	version     integer NOT NULL,
	call_id     text NOT NULL,
	fingerprint bytea NOT NULL,
	arguments   bytea NOT NULL,
	lease_until timestamptz,
	created_at  timestamptz NOT NULL,
	settled_at  timestamptz,
	resource    text,
	result      bytea,
	PRIMARY KEY (intent, slot)
);
CREATE UNIQUE INDEX bare_id ON bare (id);
CREATE TABLE bare_event (
	operation uuid NOT NULL,
	seq       integer NOT NULL,
	at        timestamptz NOT NULL,
	kind      text NOT NULL,
	actor     text NOT NULL,
	hash      bytea NOT NULL,
	PRIMARY KEY (operation, seq)
);`

const (
	bareInsert = `INSERT INTO bare (id, intent, slot, owner, tool, state, version, call_id, fingerprint, arguments, lease_until, created_at)
		VALUES ($1, $2, $3, $4, $5, 'running', 1, $6, $7, $8, clock_timestamp() + $9::interval, clock_timestamp())`
	bareUpdate = `UPDATE bare SET state = 'completed', version = 2, lease_until = NULL, settled_at = clock_timestamp(), resource = $2, result = $3
		WHERE id = $1 AND version = 1 AND state = 'running'`
	bareEvent = `INSERT INTO bare_event (operation, seq, at, kind, actor, hash) VALUES ($1, $2, clock_timestamp(), $3, 'caller', $4)`
)

func newBareTables(ctx context.Context, pool *pgxpool.Pool, workers int) (*bareTables, error) {
	if _, err := pool.Exec(ctx, bareSchema); err != nil {
		return nil, err
	}
	return &bareTables{pool, make([]bareWorker, workers)}, nil
}

// call is one call of the floor, with the same arguments and result as settle's.
func (t *bareTables) call(ctx context.Context, worker int) error {
	w := &t.workers[worker]
	if w.done%perIntent == 0 {
		w.intent = uuid.Must(uuid.NewV7())
	}
	w.done++
	order := "ord_" + strconv.Itoa(worker) + "_" + strconv.Itoa(w.done)
	arguments, err := json.Marshal(paymentOf(order))
	if err != nil {
		return err
	}
	fingerprint := sha256.Sum256(arguments)
	slot := uuid.UUID(fingerprint[:16])
	id := known(uuid.Must(uuid.NewV7()))

	var claim pgx.Batch
	claim.Queue(bareInsert, id, known(w.intent), known(slot), known(uuid.New()), "pay", "call_"+order, fingerprint[:], arguments, 30*time.Second)
	claim.Queue(bareEvent, id, 1, "claimed", fingerprint[:])
	if err := t.pool.SendBatch(ctx, &claim).Close(); err != nil {
		return fmt.Errorf("the floor's claim: %w", err)
	}

	result, err := json.Marshal(receipt{ID: "ch_" + order, Status: "succeeded"})
	if err != nil {
		return err
	}
	var outcome pgx.Batch
	outcome.Queue(bareUpdate, id, "ch_"+order, result)
	outcome.Queue(bareEvent, id, 2, "completed", fingerprint[:])
	if err := t.pool.SendBatch(ctx, &outcome).Close(); err != nil {
		return fmt.Errorf("the floor's outcome: %w", err)
	}
	return nil
}

func known(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
