package settle_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the test's own connections, beside the ledger's
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// ledgers are the durable ledgers: what holds on one holds on all of them.
var ledgers = []struct {
	name string
	// create gives the place of an empty ledger.
	create func(t *testing.T) address
}{
	{"sqlite", func(t *testing.T) address {
		return address{File: filepath.Join(t.TempDir(), "settle.db")}
	}},
	{"postgres", func(t *testing.T) address {
		db := pgtest.New(t)
		return address{DSN: db.DSN(), Schema: db.Schema(t)}
	}},
}

// address says where a ledger is, to this process and to others: a file, or a
// schema of a PostgreSQL database.
type address struct {
	File, DSN, Schema string
	via               string // a proxy before PostgreSQL, "host:port"
}

// open opens the ledger, and creates it where there is none.
func (a address) open(ctx context.Context) (store.Ledger, error) {
	if a.File != "" {
		return sqlite.Open(ctx, a.File)
	}
	config, err := pgxpool.ParseConfig(a.DSN)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4
	if a.via != "" {
		at, err := netip.ParseAddrPort(a.via)
		if err != nil {
			return nil, err
		}
		config.ConnConfig.Host, config.ConnConfig.Port = at.Addr().String(), at.Port()
		config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	l, err := postgres.New(ctx, pool, postgres.WithSchema(a.Schema))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pooled{l, pool}, nil
}

// pooled is a ledger that closes its pool.
type pooled struct {
	*postgres.Ledger
	pool *pgxpool.Pool
}

func (p pooled) Close() error {
	err := p.Ledger.Close()
	p.pool.Close()
	return err
}

// instants are the columns that [address.age] makes older. The instants of the
// events, and tail_at with them, are sealed by the chain and stay.
var instants = map[string][]string{
	"operation": {"lease_until", "due_at", "moment", "key_until", "created_at", "first_sent", "unknown_since", "settled_at"},
	"intent":    {"created_at", "closed_at"},
	"case":      {"opened_at", "closed_at", "held_at"},
	"outbox":    {"at", "due_at"},
}

// age makes everything in the ledger older by d.
func (a address) age(ctx context.Context, d time.Duration) error {
	older := "%[1]s = %[1]s - %[2]d"
	if a.File == "" {
		older += " * interval '1 microsecond'"
	}
	for table, columns := range instants {
		if a.File == "" && table == "outbox" {
			columns = append(slices.Clone(columns), "leased_until") // on SQLite a lease is a due_at
		}
		sets := make([]string, len(columns))
		for i, c := range columns {
			sets[i] = fmt.Sprintf(older, c, d.Microseconds())
		}
		if err := a.exec(ctx, "UPDATE "+a.table(table)+" SET "+strings.Join(sets, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// openCases counts the cases that nobody has settled.
func (a address) openCases(ctx context.Context) (n int, err error) {
	db, err := a.connect()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM "+a.table("case")+" WHERE closed_at IS NULL").Scan(&n)
	return n, err
}

// table is the name of one of the ledger's tables.
func (a address) table(name string) string {
	if a.File != "" {
		return "settle_" + name
	}
	return a.Schema + `."` + name + `"`
}

func (a address) exec(ctx context.Context, statement string) error {
	db, err := a.connect()
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// connect opens the database beside the ledger.
func (a address) connect() (*sql.DB, error) {
	if a.File != "" {
		file := url.URL{Scheme: "file", OmitHost: true, Path: a.File, RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}
		return sql.Open("sqlite", file.String())
	}
	return sql.Open("pgx", a.DSN)
}
