package webhook_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/inbox"
	"github.com/settle-go/settle/tools/webhook"
)

// relayOrder is the environment variable that makes a process of this test
// binary one that relays and then waits to be killed. It holds an [order].
const relayOrder = "SETTLE_TEST_RELAY"

// order says which ledger's events go where.
type order struct {
	Ledger address
	URL    string
}

func TestMain(m *testing.M) {
	if encoded := os.Getenv(relayOrder); encoded != "" {
		os.Exit(relay(encoded))
	}
	pgtest.Main(m)
}

// relay is the main of a process that relays.
func relay(encoded string) int {
	var o order
	sink := webhook.Config{Source: "desk", Secrets: []string{vectorSecret}}
	err := json.Unmarshal([]byte(encoded), &o)
	if err == nil {
		sink.URL = o.URL
		err = o.relay(sink)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test at the latest
	return 0
}

func (o order) relay(c webhook.Config) error {
	ctx := context.Background()
	ledger, err := o.Ledger.open(ctx)
	if err != nil {
		return err
	}
	sink, err := webhook.New(c)
	if err != nil {
		return err
	}
	x, err := settle.New(ledger, settle.WithOutbox(sink), settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	_, err = x.Relay(ctx)
	return err
}

// address says where a database is: a file, or a schema of PostgreSQL.
type address struct{ File, DSN, Schema string }

func (a address) open(ctx context.Context) (store.Ledger, error) {
	if a.File != "" {
		return sqlite.Open(ctx, a.File)
	}
	pool, err := pgxpool.New(ctx, a.DSN)
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

// connect opens the database for the consumer, and for the test.
func (a address) connect() (*sql.DB, error) {
	if a.File != "" {
		file := url.URL{Scheme: "file", OmitHost: true, Path: a.File, RawQuery: "_pragma=busy_timeout(20000)&_txlock=immediate"}
		return sql.Open("sqlite", file.String())
	}
	config, err := pgx.ParseConfig(a.DSN)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = a.Schema
	return stdlib.OpenDB(*config), nil
}

// onEachDatabase runs a scenario with a ledger and a consumer on each database.
func onEachDatabase(t *testing.T, scenario func(w *world)) {
	t.Helper()
	t.Parallel()
	for name, at := range map[string]func(t *testing.T) address{
		"sqlite":   func(t *testing.T) address { return address{File: filepath.Join(t.TempDir(), "db")} },
		"postgres": func(t *testing.T) address { db := pgtest.New(t); return address{DSN: db.DSN(), Schema: db.Schema(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newWorld(t, at(t), at(t)))
		})
	}
}

// world is a sender's ledger, and a consumer with a database of its own that
// receives by HTTP.
type world struct {
	*testing.T
	ledger   address
	beside   *sql.DB // the ledger's database
	consumer *sql.DB
	receiver *httptest.Server

	mu sync.Mutex
	// deliveries are the ids that reached the consumer, in their order.
	deliveries []string
	// committed is called, where it is set, between commit and answer.
	committed func()
}

func newWorld(t *testing.T, ledger, consumer address) *world {
	t.Helper()
	w := &world{T: t, ledger: ledger}
	w.beside, w.consumer = w.database(ledger), w.database(consumer)
	create, number := inbox.SQLite, "INTEGER PRIMARY KEY"
	if consumer.DSN != "" {
		w.exec(w.consumer, "CREATE SCHEMA "+consumer.Schema)
		create, number = inbox.Postgres, "bigint GENERATED ALWAYS AS IDENTITY"
	}
	w.exec(w.consumer, create)
	w.exec(w.consumer, "CREATE TABLE effect (n "+number+", event text NOT NULL, operation text NOT NULL, type text NOT NULL)")
	v, err := webhook.NewVerifier(vectorSecret)
	if err != nil {
		t.Fatal(err)
	}
	w.receiver = httptest.NewServer(webhook.Handler(v, w.take))
	t.Cleanup(w.receiver.Close)
	return w
}

func (w *world) database(at address) *sql.DB {
	w.Helper()
	db, err := at.connect()
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { db.Close() })
	return db
}

func (w *world) exec(db *sql.DB, statement string) {
	w.Helper()
	if _, err := db.ExecContext(w.Context(), statement); err != nil {
		w.Fatal(err)
	}
}

// take is what the consumer does with an event: it has one effect, with its record
// in one transaction.
func (w *world) take(ctx context.Context, e webhook.Event) error {
	w.mu.Lock()
	w.deliveries = append(w.deliveries, e.ID)
	committed := w.committed
	w.mu.Unlock()
	tx, err := w.consumer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	isNew, err := inbox.Once(ctx, tx, e.Source, e.ID)
	if err != nil || !isNew {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO effect (event, operation, type) VALUES ($1, $2, $3)", e.ID, e.Operation, e.Type); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if committed != nil {
		committed()
	}
	return nil
}

// onCommit has f called between the consumer's next commits and their answers.
func (w *world) onCommit(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed = f
}

// hadEffects requires that each event of the operations had one effect, in order.
func (w *world) hadEffects(operations ...string) {
	w.Helper()
	rows, err := w.consumer.QueryContext(w.Context(), "SELECT operation, type FROM effect ORDER BY n")
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	got := map[string][]string{}
	for rows.Next() {
		var operation, kind string
		if err := rows.Scan(&operation, &kind); err != nil {
			w.Fatal(err)
		}
		got[operation] = append(got[operation], kind)
	}
	if err := rows.Err(); err != nil || len(got) != len(operations) {
		w.Errorf("%d operations had effects, want %d; error %v", len(got), len(operations), err)
	}
	for _, o := range operations {
		if kinds := strings.Join(got[o], " "); kinds != "item.reserved settle.settled" {
			w.Errorf("an operation's events had the effects %q", kinds)
		}
	}
}

// received are the ids that reached the consumer so far.
func (w *world) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.deliveries)
}

// age lets time pass for the outbox.
func (w *world) age(d time.Duration) {
	w.Helper()
	if w.ledger.File != "" {
		w.exec(w.beside, fmt.Sprintf("UPDATE settle_outbox SET due_at = due_at - %d", d.Microseconds()))
		return
	}
	w.exec(w.beside, fmt.Sprintf("UPDATE outbox SET due_at = due_at - %[1]d * interval '1 microsecond', leased_until = leased_until - %[1]d * interval '1 microsecond'", d.Microseconds()))
}

// process is one with an executor and a ledger of its own.
type process struct {
	*world
	x   *settle.Executor
	ctx context.Context
}

// start starts a process that sends to a URL.
func (w *world) start(to string) *process {
	w.Helper()
	ctx := scope(context.Background())
	ledger, err := w.ledger.open(ctx)
	if err != nil {
		w.Fatal(err)
	}
	x, err := settle.New(ledger, settle.WithTools(reserve()), settle.WithLogger(slog.New(slog.DiscardHandler)),
		settle.WithOutbox(sinkTo(w, to, func(c *webhook.Config) { c.Source = "desk" })))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := x.Shutdown(ctx); err != nil {
			w.Error(err)
		}
		if err := ledger.Close(); err != nil {
			w.Error(err)
		}
	})
	return &process{w, x, ctx}
}

// reserves makes calls, each of which has two events, and returns their operations.
func (p *process) reserves(items ...string) (operations []string) {
	p.Helper()
	for _, item := range items {
		out, err := p.x.Execute(p.ctx, reserving(item))
		if err != nil || out.Status != settle.StatusCompleted {
			p.Fatalf("%+v, error %v", out, err)
		}
		operations = append(operations, out.Operation)
	}
	return operations
}

// relays makes passes until nothing is due, and adds up what they did.
func (p *process) relays() (all settle.RelayReport) {
	p.Helper()
	for {
		report, err := p.x.Relay(p.ctx)
		if err != nil {
			p.Fatal(err)
		}
		if report.Fetched == 0 {
			return all
		}
		all.Fetched += report.Fetched
		all.Delivered += report.Delivered
		all.Failed += report.Failed
		all.Dead += report.Dead
	}
}

type reserveArgs struct {
	Item string `json:"item" settle:"identity"`
}

// reserve is a tool that publishes what it does.
func reserve() settle.AnyTool {
	return settle.Tool[reserveArgs, struct{}]{Name: "reserve", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in reserveArgs) (struct{}, error) {
			return struct{}{}, op.Publish(settle.Event{Type: "item.reserved", Data: in})
		}}
}

func reserving(item string) settle.Call {
	return settle.Call{Tool: "reserve", Args: fmt.Appendf(nil, `{"item":%q}`, item), CallID: "call_" + rand.Text()}
}

func scope(ctx context.Context) context.Context {
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "agent"})
	return settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
}

func operator(ctx context.Context) context.Context {
	return settle.WithOperator(ctx, settle.Operator{Name: "ann", Tenants: []string{"acme"}})
}
