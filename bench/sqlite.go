package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store/sqlite"
)

// sqlite measures settle on a SQLite file, with synchronous=FULL and 32
// goroutines, beside two bare writers: one that commits the claim and the
// outcome of each call, and one that commits 32 whole calls at a time.
func (b *bench) sqlite(ctx context.Context) (err error) {
	const workers = 32
	folder, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "settle.db")
	ledger, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	payer, err := newPayer(ledger, workers)
	if err != nil {
		return errors.Join(err, ledger.Close())
	}
	each, err := openBareFile(ctx, filepath.Join(folder, "each.db"))
	if err != nil {
		return errors.Join(err, ledger.Close())
	}
	grouped, err := openBareFile(ctx, filepath.Join(folder, "grouped.db"))
	if err != nil {
		return errors.Join(err, ledger.Close(), each.close())
	}
	turns, err := b.takeTurns(ctx, contender{1, each.commitTwice}, contender{1, grouped.commitGroup}, one(workers, payer.pay))
	if err != nil {
		return errors.Join(err, ledger.Close(), each.close(), grouped.close())
	}
	if err := errors.Join(payer.shutdown(), ledger.Close(), each.close(), grouped.close()); err != nil {
		return err
	}
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	b.costs("sqlite/bare-two-commits", turns[0])
	b.costs("sqlite/bare-grouped", turns[1])
	b.costs("sqlite/32/settle", turns[2])
	b.figure("sqlite/32/settle/stored", float64(file.Size())/float64(payer.done()), "B/op")
	b.atLeast("sqlite/32/of-bare-grouped", turns[2].over(turns[1]), 0.35)
	b.atLeast("sqlite/32/of-bare-two-commits", turns[2].over(turns[0]), 3)
	return nil
}

// group is how many calls the grouped writer commits at a time.
const group = 32

// bareFile is the floor on SQLite: one connection, prepared statements, the same
// row, indexes and journal as [bareTables], and the settings of settle's writer.
// A single goroutine writes; nobody waits for an answer.
type bareFile struct {
	db                    *sql.DB
	conn                  *sql.Conn
	insert, update, event *sql.Stmt
	begin, commit         *sql.Stmt
	intent                uuid.UUID
	done                  int
}

func openBareFile(ctx context.Context, path string) (*bareFile, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f := &bareFile{db: db, conn: conn}
	if err := f.prepare(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *bareFile) prepare(ctx context.Context) error {
	for _, text := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA cache_size = -16384", "PRAGMA wal_autocheckpoint = 4096",
		`CREATE TABLE bare (id BLOB PRIMARY KEY, intent BLOB NOT NULL, slot BLOB NOT NULL, owner BLOB NOT NULL, tool TEXT NOT NULL,
			state TEXT NOT NULL, version INTEGER NOT NULL, call_id TEXT NOT NULL, fingerprint BLOB NOT NULL, arguments BLOB NOT NULL,
			lease_until INTEGER, created_at INTEGER NOT NULL, settled_at INTEGER, resource TEXT, result BLOB, UNIQUE (intent, slot)) STRICT`,
		`CREATE TABLE bare_event (operation BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL,
			hash BLOB NOT NULL, PRIMARY KEY (operation, seq)) STRICT, WITHOUT ROWID`,
	} {
		if _, err := f.conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	for statement, text := range map[**sql.Stmt]string{
		&f.begin:  "BEGIN IMMEDIATE",
		&f.commit: "COMMIT",
		&f.insert: `INSERT INTO bare (id, intent, slot, owner, tool, state, version, call_id, fingerprint, arguments, lease_until, created_at)
			VALUES (?, ?, ?, ?, 'pay', 'running', 1, ?, ?, ?, ?, ?)`,
		&f.update: `UPDATE bare SET state = 'completed', version = 2, lease_until = NULL, settled_at = ?, resource = ?, result = ?
			WHERE id = ? AND version = 1 AND state = 'running'`,
		&f.event: `INSERT INTO bare_event (operation, seq, at, kind, actor, hash) VALUES (?, ?, ?, ?, 'caller', ?)`,
	} {
		var err error
		if *statement, err = f.conn.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (f *bareFile) close() error { return errors.Join(f.conn.Close(), f.db.Close()) }

// commitTwice makes one call: its claim is committed, then its outcome.
func (f *bareFile) commitTwice(ctx context.Context, _ int) (int, error) {
	c, err := f.next()
	if err != nil {
		return 0, err
	}
	if err := f.transaction(ctx, func() error { return f.claim(ctx, c) }); err != nil {
		return 0, fmt.Errorf("the bare writer's claim: %w", err)
	}
	if err := f.transaction(ctx, func() error { return f.settle(ctx, c) }); err != nil {
		return 0, fmt.Errorf("the bare writer's outcome: %w", err)
	}
	return 1, nil
}

// commitGroup makes 32 calls with one commit.
func (f *bareFile) commitGroup(ctx context.Context, _ int) (int, error) {
	err := f.transaction(ctx, func() error {
		for range group {
			c, err := f.next()
			if err != nil {
				return err
			}
			if err := errors.Join(f.claim(ctx, c), f.settle(ctx, c)); err != nil {
				return err
			}
		}
		return nil
	})
	return group, err
}

func (f *bareFile) transaction(ctx context.Context, do func() error) error {
	if _, err := f.begin.ExecContext(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	_, err := f.commit.ExecContext(ctx)
	return err
}

// bareCall is one call of the floor.
type bareCall struct {
	order             string
	id                uuid.UUID
	fingerprint       [32]byte
	arguments, result []byte
}

func (f *bareFile) next() (c bareCall, err error) {
	if f.done%perIntent == 0 {
		f.intent = uuid.Must(uuid.NewV7())
	}
	f.done++
	c.order, c.id = "ord_0_"+strconv.Itoa(f.done), uuid.Must(uuid.NewV7())
	if c.arguments, err = json.Marshal(paymentOf(c.order)); err != nil {
		return c, err
	}
	c.fingerprint = sha256.Sum256(c.arguments)
	c.result, err = json.Marshal(receipt{ID: "ch_" + c.order, Status: "succeeded"})
	return c, err
}

func (f *bareFile) claim(ctx context.Context, c bareCall) error {
	owner, now := uuid.New(), time.Now()
	if _, err := f.insert.ExecContext(ctx, c.id[:], f.intent[:], c.fingerprint[:16], owner[:], "call_"+c.order, c.fingerprint[:], c.arguments,
		now.Add(30*time.Second).UnixMicro(), now.UnixMicro()); err != nil {
		return err
	}
	_, err := f.event.ExecContext(ctx, c.id[:], 1, now.UnixMicro(), "claimed", c.fingerprint[:])
	return err
}

func (f *bareFile) settle(ctx context.Context, c bareCall) error {
	now := time.Now()
	if _, err := f.update.ExecContext(ctx, now.UnixMicro(), "ch_"+c.order, c.result, c.id[:]); err != nil {
		return err
	}
	_, err := f.event.ExecContext(ctx, c.id[:], 2, now.UnixMicro(), "completed", c.fingerprint[:])
	return err
}
