package idempotency_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/idempotency"
)

// Routes whose handlers write in the ledger's transaction (R53).

var transactional = settle.Contract{Class: settle.Transactional}

// shop has a table beside the ledger.
type shop struct {
	*service
	insert func(ctx context.Context) error
	count  func() (int, error)
}

func (s *shop) holds(want int) {
	s.Helper()
	if n, err := s.count(); err != nil || n != want {
		s.Fatalf("the table has %d rows, error %v, want %d", n, err, want)
	}
}

func onEachShop(t *testing.T, handler func(s *shop) http.HandlerFunc, test func(s *shop)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "settle.db")
		ledger := openFile(t, file)
		db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		if _, err := db.Exec("CREATE TABLE payment (id TEXT)"); err != nil {
			t.Fatal(err)
		}
		s := &shop{insert: func(ctx context.Context) error {
			tx, ok := sqlite.Tx(ctx)
			if !ok {
				return sqlite.ErrNoTx
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO payment VALUES ('p')")
			return err
		}, count: func() (n int, err error) {
			return n, db.QueryRow("SELECT count(*) FROM payment").Scan(&n)
		}}
		s.service = serveOn(t, ledger, []settle.AnyTool{idempotency.Declare(route, transactional)}, handler(s))
		test(s)
	})
	t.Run("postgres", func(t *testing.T) {
		s, _ := newPostgresShop(t, handler)
		test(s)
	})
}

// newPostgresShop has a table in which a payment is unique, which is checked at
// the commit, behind a proxy.
func newPostgresShop(t *testing.T, handler func(s *shop) http.HandlerFunc) (*shop, *faulty.Proxy) {
	t.Helper()
	db := pgtest.New(t)
	proxy := faulty.NewProxy(t, db.Addr(t))
	schema, direct := db.Schema(t), db.Pool(t)
	ledger, err := postgres.New(t.Context(), db.Pool(t, pgtest.Via(t, proxy.Addr()), pgtest.ExecMode(pgx.QueryExecModeExec)), postgres.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	table := schema + ".payment"
	if _, err := direct.Exec(t.Context(), "CREATE TABLE "+table+" (id text, twin text UNIQUE DEFERRABLE INITIALLY DEFERRED)"); err != nil {
		t.Fatal(err)
	}
	s := &shop{insert: func(ctx context.Context) error {
		tx, ok := postgres.Tx(ctx)
		if !ok {
			return postgres.ErrNoTx
		}
		_, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ('p', $1)", ctx.Value(twin{}))
		return err
	}, count: func() (n int, err error) {
		return n, direct.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
	}}
	s.service = serveOn(t, ledger, []settle.AnyTool{idempotency.Declare(route, transactional)}, handler(s))
	return s, proxy
}

// twin is the context key of what has to be unique.
type twin struct{}

func (s *shop) write(ctx context.Context) {
	if err := s.insert(ctx); err != nil {
		s.Error(err)
	}
}

// obeying writes a row and then does what the request's body says.
func obeying(s *shop) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.write(r.Context())
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.Error(err)
		}
		switch strings.Trim(string(body), `"`) {
		case "panics":
			panic("a handler")
		case "breaks":
			w.WriteHeader(http.StatusInternalServerError)
		case "takes nothing":
			idempotency.NothingHappened(r.Context())
			w.WriteHeader(http.StatusConflict)
		case "flushes and panics":
			io.WriteString(w, "so far")
			if err := http.NewResponseController(w).Flush(); err != nil {
				s.Error(err)
			}
			panic("a handler")
		case "refuses":
			w.WriteHeader(http.StatusPaymentRequired)
		case "writes a lot":
			io.WriteString(w, strings.Repeat("x", 2<<20))
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}
}

func TestR53AnAnswerCommitsOrRollsBackItsRows(t *testing.T) {
	t.Parallel()
	onEachShop(t, obeying, func(s *shop) {
		for body, status := range map[string]int{"panics": 503, "breaks": 500, "takes nothing": 409, "flushes and panics": 503} {
			for range 2 { // the key is free
				before := s.ran.Load()
				got := s.pay(status, body[:5], `"`+body+`"`)
				if s.ran.Load() != before+1 || got.header.Get("Idempotency-Status") != "not_done" || strings.Contains(got.body, "so far") {
					s.Errorf("a handler that %s: %d %s with %v", body, got.status, got.body, got.header)
				}
			}
		}
		s.holds(0)
		s.replayed(s.pay(201, "created", `"creates"`), "created", `"creates"`)
		s.replayed(s.pay(402, "refused", `"refuses"`), "refused", `"refuses"`)
		s.holds(2)
		if long := s.pay(200, "long", `"writes a lot"`); len(long.body) != 2<<20 || long.header.Get("Idempotency-Status") != "completed" {
			s.Errorf("a long answer has %d bytes and the status %q", len(long.body), long.header.Get("Idempotency-Status"))
		}
		if again := s.pay(200, "long", `"writes a lot"`); again.header.Get("Idempotency-Replayed") != "true" || !strings.Contains(again.body, `"completed"`) {
			s.Errorf("its replay is %s", again.body)
		}
		s.holds(3)
	})
}

// Nothing is reported before the commit has answered, and nothing of a commit
// that the database refuses.
func TestR53AnAnswerWhoseCommitIsRefusedIsNotSent(t *testing.T) {
	t.Parallel()
	s, _ := newPostgresShop(t, func(s *shop) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s.write(context.WithValue(r.Context(), twin{}, "one"))
			w.WriteHeader(http.StatusCreated)
		}
	})
	s.pay(201, "first", `{}`)
	s.refused(503, "not-done", "second", `{}`)
	s.holds(1)
}

func TestR53AnAnswerWhoseCommitIsNotAnsweredIsNotSent(t *testing.T) {
	t.Parallel()
	s, proxy := newPostgresShop(t, obeying)
	s.pay(201, "warm", `"creates"`)
	fault := proxy.Arm(faulty.Fault{Request: "COMMIT", Do: faulty.HoldAnswer, Answer: "COMMIT"})
	done := make(chan reply, 1)
	go func() { done <- s.do(s.request("lost", `"creates"`)) }()
	select {
	case <-fault.Done():
	case got := <-done:
		t.Fatalf("answered before the commit: %+v", got)
	}
	proxy.Refuse()
	proxy.Cut()
	fault.Release()
	got := <-done
	if got.status != 503 || got.header.Get("Retry-After") == "" || got.header.Get("Idempotency-Status") != "unknown" {
		t.Errorf("got %d %s with %v", got.status, got.body, got.header)
	}
	s.isProblem(got, "outcome-unknown")
	proxy.Admit()
	if again := s.pay(201, "lost", `"creates"`); again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("what was committed is carried out again")
	}
	s.holds(2)
}

func TestRoutesThatCantBeProtectedAreRefused(t *testing.T) {
	t.Parallel()
	s := serveOn(t, openLedger(t), []settle.AnyTool{idempotency.Declare(route, unsafe), idempotency.Declare("GET /a", settle.Contract{Class: settle.Read}),
		idempotency.Declare("POST /b", settle.Contract{Class: settle.Composite})}, created())
	for _, route := range []string{"GET /a", "POST /b"} {
		if _, err := s.guard.Protect(route, created()); err == nil {
			t.Errorf("%s is protected", route)
		}
	}
}
