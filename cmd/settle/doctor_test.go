package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

type diagnosis struct {
	Healthy bool
	Checks  []check
}

// of finds a check by name and status.
func (d diagnosis) of(t *testing.T, name, status string) check {
	t.Helper()
	for _, c := range d.Checks {
		if c.Name == name && c.Status == status {
			return c
		}
	}
	t.Errorf("there is no check %s that is %s in %+v", name, status, d.Checks)
	return check{}
}

// doctor is what it finds, whether or not the ledger's settings please it.
func (w *world) doctor() (d diagnosis) {
	w.Helper()
	r := w.start(w.env, "", "doctor", "--json")
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		w.Fatalf("settle doctor --json wrote %q: %v", r.out, err)
	}
	return d
}

func TestDoctorFindsWhatKeepsOperationsOpen(t *testing.T) {
	t.Parallel()
	for _, l := range ledgers[1:] { // one in memory is never healthy
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			w := l.create(t).hire()
			// The tests' own server is quick at the price of its durability.
			well, settings := 0, good
			if l.name == "postgres" {
				well, settings = 1, bad
			}
			d := read[diagnosis](w, well, "doctor")
			d.of(t, "ledger", good)
			d.of(t, "settings", settings)
			d.of(t, "operator", good)
			d.of(t, "queue", good)

			w.manual("refund", "o-1")
			w.call(inTask(t.Context(), "case-43"), "refund", "o-2", settle.StatusUnknown)
			if c := read[diagnosis](w, well, "doctor").of(t, "operations", good); !strings.Contains(c.Said, "1 unknown, 1 manual") {
				t.Errorf("the operations: %+v", c)
			}
			w.age(30 * time.Hour)
			d = read[diagnosis](w, 1, "doctor")
			if c := d.of(t, "workers", bad); !strings.Contains(c.Said, "1 operation of refund: due for up to 1d05h and nobody takes it") {
				t.Errorf("the workers: %+v", c)
			}
			if c := d.of(t, "queue", odd); !strings.Contains(c.Said, "1 open case, 1 of them free") {
				t.Errorf("the queue: %+v", c)
			}
			r := w.run(1, "doctor")
			contains(t, r.out, "bad   workers", "do: see that a process with Executor.Run")
			w.recover()
			read[diagnosis](w, well, "doctor").of(t, "workers", good)

			nobody := w.as("")
			read[diagnosis](nobody, well, "doctor").of(t, "operator", odd)
		})
	}
}

func TestDoctorWithoutALedger(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": "sqlite:" + filepath.Join(t.TempDir(), "none.db")}
	r := runs(t, env, "", "doctor")
	if r.exit != 1 || !strings.HasPrefix(r.out, "bad   ledger") || !strings.Contains(r.out, "do: settle migrate") {
		t.Errorf("doctor without a ledger: %+v", r)
	}
	env["SETTLE_LEDGER"] = "postgres://127.0.0.1:1/none?sslmode=disable&connect_timeout=2"
	if r := runs(t, env, "", "doctor"); r.exit != 1 || !strings.HasPrefix(r.out, "bad   ledger") {
		t.Errorf("doctor without a server: %+v", r)
	}
	delete(env, "SETTLE_LEDGER")
	if r := runs(t, env, "", "doctor"); r.exit != 2 {
		t.Errorf("doctor without a name: %+v", r)
	}
}

func TestToolsThatNobodyDeclared(t *testing.T) {
	t.Parallel()
	w := newMemory(t)
	x, err := settle.New(w.ledger, settle.WithTools(w.tool("refund", settle.Contract{NoLookup: true})), settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	w.host = x
	reference := w.manual("refund", "o-1")
	contains(t, w.run(0, "queue", "show", reference).out, "no worker has declared this tool")
	if v := read[caseView](w, 0, "queue", "show", reference); v.Declared {
		t.Error("the tool counts as declared")
	}
	read[diagnosis](w, 1, "doctor").of(t, "declared", odd)
	if err := x.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := read[caseView](w, 0, "queue", "show", reference); !v.Declared {
		t.Error("the tool doesn't count as declared")
	}
}

func TestR57VerifyFindsAForgedJournal(t *testing.T) {
	t.Parallel()
	w := newSQLite(t).hire()
	w.fails = nil
	first := w.call(inTask(t.Context(), "case-42"), "refund", "o-1", settle.StatusCompleted)
	second := w.call(inTask(t.Context(), "case-42"), "refund", "o-2", settle.StatusCompleted)
	out := w.run(0, "verify").out
	contains(t, out, "2 journals verified, with 4 events, all whole.", "What can't be seen without an anchor")

	path := strings.TrimPrefix(w.env["SETTLE_LEDGER"], "sqlite:")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Whoever can write the file can drop what guards its journals.
	if _, err := db.Exec("DROP TRIGGER settle_operation_claimed"); err != nil {
		t.Fatal(err)
	}
	id := uuid.MustParse(first)
	res, err := db.Exec("UPDATE settle_operation SET claimed_by = 'nobody' WHERE id = ?", id[:])
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("forged %d events, %v", n, err)
	}
	contains(t, w.run(1, "verify").out, "BROKEN operation "+first, "1 problem")
	w.run(1, "audit", "chain", first)
	w.run(0, "audit", "chain", second)
	w.run(0, "audit", "chain", "--after", first)
	v := read[struct {
		Operations int
		Problems   []problemView
		Unseen     string
	}](w, 1, "audit", "chain")
	if v.Operations != 2 || len(v.Problems) != 1 || v.Problems[0].Operation != first || v.Unseen == "" {
		t.Errorf("audit chain --json: %+v", v)
	}

	// A setting that breaks a promise is found as well.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	contains(t, w.run(1, "verify").out, "FOUND file mode = 0644", "do: chmod 600")
	if f := failed(w, 1, "audit", "chain", uuid.NewString()); f.Code != "not_found" {
		t.Errorf("an operation that isn't there: %+v", f)
	}
}

func TestR39AnIncidentIsAcknowledged(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		w.fails = nil
		reference := w.call(inTask(t.Context(), "case-42"), "refund", "o-1", settle.StatusCompleted)
		e, err := w.ledger.Get(t.Context(), "acme", uuid.MustParse(reference))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.ledger.Apply(t.Context(), store.Change{Of: e.Operation, To: e.State, Kind: "late_success", Actor: "test", Incident: "late_success"}); err != nil {
			t.Fatal(err)
		}
		contains(t, w.run(0, "queue", "list").out, "completed, incident\tlate_success")
		view := read[caseView](w, 0, "queue", "show", reference)
		if len(view.Decisions) != 1 || view.Decisions[0].Decision != "acknowledge" {
			t.Fatalf("an incident is decided by %+v", view.Decisions)
		}
		contains(t, w.run(0, "queue", "show", reference).out, "look for a second effect")
		w.run(0, typed(view.Decisions[0].Command, "", "one transfer only")...)
		contains(t, w.run(0, "queue", "show", reference).out, "There is nothing to decide.")
	})
}

func TestAnOldSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	l, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, tc := range []struct {
		shift string
		next  bool
	}{{"version + 100", false}, {"version - 101", true}} {
		if _, err := db.Exec("UPDATE settle_schema SET version = " + tc.shift + " WHERE version = (SELECT max(version) FROM settle_schema)"); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": "sqlite:" + path}
		for _, args := range [][]string{{"queue", "list"}, {"queue", "take", uuid.NewString()}, {"purge"}} {
			r := runs(t, env, "", args...)
			if r.exit != 1 || !strings.Contains(r.err, "schema version") || strings.Contains(r.err, "next: settle migrate") != tc.next {
				t.Errorf("settle %v on a schema of another version: %+v", args, r)
			}
		}
	}
}
