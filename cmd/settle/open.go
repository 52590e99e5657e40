package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// place is where a ledger is: a file, or a schema of a PostgreSQL database.
type place struct{ file, dsn, schema string }

func (p place) kind() string {
	if p.file != "" {
		return "sqlite"
	}
	return "postgres"
}

// parsePlace reads what --ledger takes. Its errors don't repeat the text, which
// may hold a password.
func parsePlace(text, schema string) (place, error) {
	file, isFile := strings.CutPrefix(text, "sqlite:")
	switch {
	case text == "":
		return place{}, usage("no ledger is named: give --ledger sqlite:PATH or --ledger postgres://…, or set SETTLE_LEDGER")
	case isFile && schema != "":
		return place{}, usage("--schema is for postgres ledgers; a sqlite one is a file of its own")
	case isFile && file != "":
		return place{file: file}, nil
	case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
		return place{dsn: text, schema: firstOf(schema, postgres.DefaultSchema)}, nil
	}
	return place{}, usage("the ledger isn't named as sqlite:PATH or postgres://USER@HOST/DATABASE")
}

// secretive says that a ledger's name holds a password.
func secretive(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return true
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// access is what a command does with the ledger.
type access int

const (
	reads access = iota
	writes
	// migrates makes the ledger, and brings its schema up to date. No other
	// command does: a newer command line must not shut out the workers that run.
	migrates
)

// opener opens a ledger.
type opener func(ctx context.Context, at place, how access) (store.Ledger, error)

var errNoLedger = errors.New("there is no such ledger")

func open(ctx context.Context, at place, how access) (store.Ledger, error) {
	if at.file != "" {
		return openFile(ctx, at.file, how)
	}
	return openDatabase(ctx, at, how)
}

// openFile looks at a ledger before it opens it for writing, since that would
// make or migrate it.
func openFile(ctx context.Context, path string, how access) (store.Ledger, error) {
	if how == migrates {
		return opened(sqlite.Open(ctx, path))
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no file %s", errNoLedger, path)
	}
	l, err := sqlite.Open(ctx, path, sqlite.ReadOnly())
	if err != nil || how == reads {
		return opened(l, err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return opened(sqlite.Open(ctx, path))
}

// opened keeps a nil ledger from becoming one that isn't nil.
func opened(l *sqlite.Ledger, err error) (store.Ledger, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// connectTimeout bounds the wait for a server that doesn't answer.
const connectTimeout = 10 * time.Second

func openDatabase(ctx context.Context, at place, how access) (store.Ledger, error) {
	config, err := pgxpool.ParseConfig(at.dsn)
	if err != nil {
		return nil, usage("the ledger's URL can't be read: see \"Connection URIs\" in PostgreSQL's manual")
	}
	config.MaxConns = 2
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "settle"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	options := []postgres.Option{postgres.WithSchema(at.schema)}
	if how != migrates {
		options = append(options, postgres.WithoutMigration())
	}
	l, err := postgres.New(ctx, pool, options...)
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
