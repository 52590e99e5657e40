package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/pgtest"
)

func TestUsageIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	reference := uuid.NewString()
	decide := []string{"queue", "decide", reference, "fail", "--version", "3", "--reason", "x"}
	for _, tc := range []struct {
		args []string
		says string
	}{
		{nil, "needs a command"},
		{[]string{"queue"}, "needs a command"},
		{[]string{"queue", "shwo", reference}, "did you mean show?"},
		{[]string{"bogus"}, `no command "bogus"`},
		{[]string{"queue", "list", "--bogus"}, "--bogus"},
		{[]string{"queue", "list", "extra"}, "one too many"},
		{[]string{"queue", "list", "--state", "done"}, "awaiting_approval, running"},
		{[]string{"queue", "list", "--older-than", "soon"}, "3d"},
		{[]string{"queue", "list", "--mine", "--free"}, "mine"},
		{[]string{"queue", "show"}, "needs OPERATION"},
		{[]string{"queue", "note", reference}, "needs TEXT"},
		{[]string{"queue", "note", reference, " "}, "no text"},
		{[]string{"queue", "decide", reference}, "needs OUTCOME"},
		{[]string{"queue", "decide", reference, "--version", "3", "--reason", "x"}, "needs OUTCOME"},
		{[]string{"queue", "decide", reference, "run-once-more", "--version", "3", "--reason", "x"}, "did you mean run_once_more?"},
		{[]string{"queue", "decide", reference, "done", "--version", "3", "--reason", "x"}, "the outcomes are happened, run_once_more"},
		{[]string{"queue", "decide", reference, "fail", "--reason", "x"}, "needs --version"},
		{[]string{"queue", "decide", reference, "fail", "--version", "0", "--reason", "x"}, "queue show"},
		{[]string{"queue", "decide", reference, "fail", "--version", "3"}, "needs --reason"},
		{[]string{"queue", "decide", reference, "fail", "--version", "3", "--reason", " "}, "needs --reason"},
		{append(slices.Clone(decide), "--id", "7"), "UUID"},
		{append(slices.Clone(decide), "--resource", "r"), "for happened"},
		{append(slices.Clone(decide), "--result", "{}"), "for happened"},
		{[]string{"queue", "decide", reference, "happened", "--version", "3", "--reason", "x"}, "--no-resource"},
		{[]string{"queue", "decide", reference, "happened", "--version", "3", "--reason", "x", "--no-resource", "--result", "@nowhere.json"}, "can't be read"},
		{[]string{"queue", "confirm", reference, "--version", "3"}, "needs --reason"},
		{[]string{"ops", "list", "--all", "--state", "manual"}, "all"},
		{[]string{"ops", "list", "--since", "yesterday"}, "how long ago"},
		{[]string{"ops", "brief"}, "--tenant and --task"},
		{[]string{"ops", "brief", reference, "--task", "x"}, "not both"},
		{[]string{"erase", "--tenant", "acme", "--yes"}, "--subject"},
		{[]string{"erase", "--tenant", "acme", "--subject", "bot"}, "--yes"},
		{[]string{"close", reference}, "--yes"},
		{[]string{"close", "--yes"}, "--tenant and --task"},
		{[]string{"audit", "chain", reference, "--after", reference}, "not both"},
		{[]string{"migrate", "--check", "--print"}, "check"},
		{[]string{"--schema", "other", "queue", "list"}, "postgres"},
	} {
		r := w.run(2, tc.args...)
		if !strings.Contains(r.err, tc.says) || r.out != "" {
			t.Errorf("settle %v says %q and writes %q, want %q in it", tc.args, r.err, r.out, tc.says)
		}
		if f := failed(w, 2, tc.args...); f.Code != "usage" {
			t.Errorf("settle %v --json: %+v", tc.args, f)
		}
	}
}

func TestTheEnvironmentIsChecked(t *testing.T) {
	t.Parallel()
	w := newMemory(t).hire()
	for _, tc := range []struct{ name, value, says string }{
		{"SETTLE_OPERATOR", "", "SETTLE_OPERATOR"},
		{"SETTLE_OPERATOR", "ann\x07", "control character"},
		{"SETTLE_LEDGER", "", "SETTLE_LEDGER"},
		{"SETTLE_LEDGER", "settle.db", "sqlite:PATH"},
		{"SETTLE_LEDGER", "mysql://root:hidden@host/db", "sqlite:PATH"},
		{"SETTLE_KEYS", "hidden", "ID:BASE64"},
		{"SETTLE_KEYS", "k:aGlkZGVu", "32"},
	} {
		other := w.as("ann")
		other.env[tc.name] = tc.value
		r := other.run(2, "queue", "list")
		if !strings.Contains(r.err, tc.says) || strings.Contains(r.err+r.out, "hidden") || strings.Contains(r.err, "aGlk") {
			t.Errorf("%s=%q: %q, want %q in it and no secret", tc.name, tc.value, r.err, tc.says)
		}
	}
	// R41: no flag names the operator.
	contains(t, w.run(2, "queue", "list", "--operator", "bo").err, "unknown flag: --operator")
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"queue", "--help"}, {"help", "queue", "decide"}, {"queue", "decide", "--help"}} {
		r := runs(t, nil, "", args...)
		if r.exit != 0 || r.err != "" || !strings.Contains(r.out, "Usage:") {
			t.Errorf("settle %v: exit code %d, %q, %q", args, r.exit, r.out, r.err)
		}
	}
	if r := runs(t, nil, "", "--version"); r.exit != 0 || !strings.HasPrefix(r.out, "settle ") {
		t.Errorf("settle --version: %+v", r)
	}
	contains(t, runs(t, nil, "", "--help").out, "SETTLE_OPERATOR", "a second person is needed")
}

func TestALedgerIsMadeByMigrateOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "it's here.db")
	env := map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": "sqlite:" + path}
	for _, args := range [][]string{{"queue", "list"}, {"queue", "take", uuid.NewString()}, {"purge"}, {"migrate", "--check"}, {"verify"}} {
		r := runs(t, env, "", args...)
		if r.exit != 1 || !strings.Contains(r.err, "next: settle migrate") {
			t.Errorf("settle %v without a ledger: %+v", args, r)
		}
	}
	r := runs(t, map[string]string{"SETTLE_OPERATOR": "ann"}, "", "--ledger", "sqlite:"+path, "queue", "list")
	contains(t, r.err, `next: settle --ledger 'sqlite:`+filepath.Dir(path)+`/it'\''s here.db' migrate`)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("a ledger is there: %v", err)
	}
	if r := runs(t, env, "", "migrate"); r.exit != 0 || r.out != "The schema of the sqlite ledger is up to date.\n" {
		t.Errorf("settle migrate: %+v", r)
	}
	if r := runs(t, env, "", "migrate", "--check", "--json"); r.exit != 0 {
		t.Errorf("settle migrate --check: %+v", r)
	}
	if r := runs(t, env, "", "queue", "list"); r.exit != 0 || !strings.HasPrefix(r.out, "OPERATION\t") {
		t.Errorf("settle queue list: %+v", r)
	}
	r = runs(t, env, "", "migrate", "--print")
	contains(t, r.out, "CREATE TABLE settle_operation")
}

func TestAPostgresLedgerIsMadeByMigrateOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	env := map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": db.DSN()}
	schema := db.Schema(t)
	for _, args := range [][]string{{"queue", "list"}, {"queue", "take", uuid.NewString()}, {"purge"}, {"migrate", "--check"}} {
		r := runs(t, env, "", append([]string{"--schema", schema}, args...)...)
		if r.exit != 1 || !strings.Contains(r.err, "next: settle --schema "+schema+" migrate") {
			t.Errorf("settle %v without a ledger: %+v", args, r)
		}
	}
	for _, args := range [][]string{{"migrate"}, {"migrate", "--check"}, {"queue", "list"}} {
		if r := runs(t, env, "", append([]string{"--schema", schema}, args...)...); r.exit != 0 {
			t.Errorf("settle %v: %+v", args, r)
		}
	}
}

func TestMigrationsArePrintedForPostgres(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SETTLE_LEDGER": "postgres://nobody@nowhere.invalid/db"}
	r := runs(t, env, "", "--schema", "ledger2", "migrate", "--print", "--json")
	var printed struct {
		Ledger     string
		Migrations []step
	}
	if err := json.Unmarshal([]byte(r.out), &printed); err != nil || r.exit != 0 || printed.Ledger != "postgres" || len(printed.Migrations) == 0 ||
		!strings.Contains(printed.Migrations[0].SQL, `"ledger2"`) {
		t.Errorf("settle migrate --print: %+v, %v", r, err)
	}
}

func TestAPasswordIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, ledger := range []string{"postgres://ann:hidden@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?user=ann&password=hidden", "postgres://ann:hid%zzden@host/db"} {
		for _, args := range [][]string{{"queue", "list"}, {"doctor"}, {"migrate", "--json"}, {"queue", "decide", uuid.NewString(), "fail", "--version", "1", "--reason", "x"}} {
			r := runs(t, map[string]string{"SETTLE_OPERATOR": "ann"}, "", append([]string{"--ledger", ledger}, args...)...)
			if r.exit == 0 || strings.Contains(r.out+r.err, "hid") {
				t.Errorf("settle --ledger %s %v: %+v", ledger, args, r)
			}
		}
	}
	a := &app{ledger: "postgres://ann:hidden@host/db"}
	if line := a.command("queue", "list"); line != "settle --ledger … queue list" {
		t.Errorf("the next command is %q", line)
	}
	a.ledger = "postgres://ann@host/db?sslmode=verify-full"
	if line := a.command("queue", "list"); line != "settle --ledger 'postgres://ann@host/db?sslmode=verify-full' queue list" {
		t.Errorf("the next command is %q", line)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := runs(t, nil, "", "completion", shell); r.exit != 0 || !strings.Contains(r.out, "settle") {
			t.Errorf("settle completion %s: exit code %d, %q", shell, r.exit, r.err)
		}
	}
	w := newMemory(t).hire()
	reference := w.manual("refund", "o-1")
	contains(t, w.run(0, "__complete", "queue", "decide", "").out, reference+"\trefund manual")
	contains(t, w.run(0, "__complete", "queue", "decide", reference, "").out, "run_once_more\t", "abandon\t")
	contains(t, w.run(0, "__complete", "ops", "show", "").out, reference)
	contains(t, w.run(0, "__complete", "queue", "list", "--state", "").out, "awaiting_approval")
	// Without a ledger there is nothing to offer, and nothing breaks.
	other := w.as("ann")
	other.env["SETTLE_LEDGER"] = ""
	if out := other.run(0, "__complete", "queue", "show", "").out; !strings.HasPrefix(out, ":1") {
		t.Errorf("completion without a ledger: %q", out)
	}
}
