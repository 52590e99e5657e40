package sqltool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/tools/sqltool"
)

type reserveArgs struct {
	Item string `json:"item" settle:"identity"`
	For  string `json:"for"`
	N    int    `json:"n"`
	Note string `json:"note,omitempty"`
}

type reserved struct {
	ID   string  `json:"id" settle:"resource"`
	Left int     `json:"free"`
	Note *string `json:"note"`
}

// reserve takes pieces off the stock and writes an order.
func reserve(t *testing.T) settle.AnyTool {
	return declare[reserveArgs, reserved](t, sqltool.Spec{
		Name: "reserve", Description: "Reserve an item.",
		Checks: []sqltool.Check{
			{SQL: "SELECT 1 FROM stock WHERE item = :item", Otherwise: "there is no such item"},
			{SQL: "SELECT 1 FROM orders WHERE item = :item AND customer = :for", Absent: true, Otherwise: "this customer has one already"},
		},
		Statements: []sqltool.Statement{
			{SQL: "INSERT INTO orders (id, item, customer, tenant) VALUES (:settle_key, :item, :for, :settle_tenant)", Violates: "that order is there already"},
			{SQL: "UPDATE stock SET free = free - :n, note = COALESCE(:note, note) WHERE item = :item AND free >= :n RETURNING item || '-' || :settle_key AS id, free, note",
				Otherwise: "there are not so many left", Result: true},
		},
	})
}

const orders = `CREATE TABLE orders (id text PRIMARY KEY, item text NOT NULL, customer text NOT NULL CHECK (customer <> 'nobody'), tenant text NOT NULL)`

func TestR53StatementsAndOutcomeCommitTogether(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.stock()
		w.exec(orders)
		w.start(reserve(w.T))
		out := w.want(w.call("reserve", `{"item":"chair","for":"ann","n":2}`), settle.StatusCompleted)
		got, err := settle.Decode[reserved](out)
		if err != nil || got.Left != 1 || got.Note == nil || *got.Note != "oak" || !strings.HasPrefix(out.Resource, "chair-settle") {
			w.Errorf("got %+v, resource %q, %v", got, out.Resource, err)
		}
		if replay := w.want(w.call("reserve", `{"item":"chair","for":"ann","n":2}`), settle.StatusCompleted); !replay.Replayed {
			w.Error("the second call is no replay")
		}
		if free, made := w.count("SELECT free FROM stock WHERE item = 'chair'"), w.count("SELECT count(*) FROM orders WHERE tenant = 'acme'"); free != 1 || made != 1 {
			w.Errorf("%d left and %d orders, want 1 and 1", free, made)
		}
	})
}

func TestR53ARefusalLeavesNothing(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.stock()
		w.exec(orders)
		w.start(reserve(w.T))
		for args, says := range map[string]string{
			`{"item":"lamp","for":"ann","n":1}`:     "there is no such item",
			`{"item":"table","for":"ann","n":1}`:    "there are not so many left", // after the order was written
			`{"item":"chair","for":"nobody","n":1}`: "that order is there already",
		} {
			if out := w.want(w.call("reserve", args), settle.StatusFailed); out.Detail != says {
				w.Errorf("the detail is %q, want %q", out.Detail, says)
			}
		}
		if n := w.count("SELECT count(*) FROM orders"); n != 0 {
			w.Errorf("%d orders", n)
		}
		w.want(w.call("reserve", `{"item":"chair","for":"ann","n":1}`), settle.StatusCompleted) // a corrected call (R10)
	})
}

func TestR53TwinsChangeTheRowsOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.stock()
		w.exec(orders)
		w.start(reserve(w.T))
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { w.call("reserve", `{"item":"chair","for":"ann","n":1}`) })
		}
		group.Wait()
		if free := w.count("SELECT free FROM stock WHERE item = 'chair'"); free != 2 {
			w.Errorf("%d left, want 2", free)
		}
	})
}

// Values never become statements, whatever they are, and reach the database as
// they are.
func TestValuesAreBound(t *testing.T) {
	const schema = `{"type":"object","required":["v"],"properties":{"v":{},"w":{"type":"object","properties":{"x":{"type":"string"}}}}}`
	onEachLedger(t, func(w *world) {
		w.exec("CREATE TABLE kept (id text, v text, x text)")
		w.start(declare[json.RawMessage, json.RawMessage](w.T, sqltool.Spec{
			Name: "keep", Schema: json.RawMessage(schema), Contract: settle.Contract{WholeArguments: true, Resource: "id"},
			Statements: []sqltool.Statement{{
				SQL:    "INSERT INTO kept VALUES (:settle_key, CAST(:v AS text), :w.x) RETURNING id, v, x -- :v; 'quoted",
				Result: true,
			}},
		}))
		quoted := func(text string) string { b, _ := json.Marshal(text); return string(b) }
		hostile := "'); DROP TABLE kept; -- \" $1 ?1 :v \\"
		truth := "true"
		if !w.postgres {
			truth = "1" // SQLite has no type for it
		}
		for arg, want := range map[string]string{
			`{"v":` + quoted(hostile) + `}`: quoted(hostile),
			`{"v":12345678901234567}`:       `"12345678901234567"`,
			`{"v":-7}`:                      `"-7"`,
			`{"v":42.5}`:                    `"42.5"`,
			`{"v":true}`:                    `"` + truth + `"`,
			`{"v":null}`:                    `null`,
			`{"v":{"a":[1,"b"]}}`:           quoted(`{"a":[1,"b"]}`),
			`{"v":"","w":{"x":"inner"}}`:    `""`,
		} {
			out := w.want(w.call("keep", arg), settle.StatusCompleted)
			got, err := settle.Decode[struct {
				ID   string
				V, X json.RawMessage
			}](out)
			if err != nil || string(got.V) != want || got.ID != out.Resource || (string(got.X) == "null") == strings.Contains(arg, "inner") {
				w.Errorf("%s: got %s, want %s (%v)", arg, out.Result, want, err)
			}
		}
		if n := w.count("SELECT count(*) FROM kept"); n != 8 {
			w.Errorf("%d rows", n)
		}
	})
}

func TestResultsAreReadByTheirTypes(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.stock()
		list := func(name string, rows sqltool.Rows, where string) settle.AnyTool {
			return declare[struct {
				Least int `json:"least"`
			}, []map[string]any](w.T, sqltool.Spec{
				Name: name, Contract: settle.Contract{WholeArguments: true},
				Statements: []sqltool.Statement{
					{SQL: "UPDATE stock SET free = free WHERE free >= :least", Rows: sqltool.Any},
					{SQL: "SELECT item, free, price, note, sold FROM stock WHERE " + where + " ORDER BY item", Rows: rows, Result: true},
				},
			})
		}
		w.start(list("list", sqltool.Some, "free >= :least"), list("none", sqltool.Any, "free > 1000 + :least"), list("some", sqltool.Some, "free > 1000 + :least"))
		out := w.want(w.call("list", `{"least":0}`), settle.StatusCompleted)
		var got, want any
		const rows = `[{"item":"chair","free":3,"price":42.1,"note":"oak","sold":false},{"item":"table","free":0,"price":199.99,"note":null,"sold":true}]`
		_ = json.Unmarshal(out.Result, &got)
		_ = json.Unmarshal([]byte(rows), &want)
		if a, b := encoded(w, got), encoded(w, want); a != b {
			w.Errorf("got  %s\nwant %s", a, b)
		}
		if out := w.want(w.call("none", `{"least":0}`), settle.StatusCompleted); string(out.Result) != "[]" {
			w.Errorf("got %s", out.Result)
		}
		w.want(w.call("some", `{"least":0}`), settle.StatusFailed)
	})
}

func TestNumbersOfAResultAreNotRounded(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.start(declare[struct {
			Of string `json:"of"`
		}, map[string]any](w.T, sqltool.Spec{Name: "look", Contract: settle.Contract{WholeArguments: true},
			Statements: []sqltool.Statement{{SQL: "SELECT 9007199254740993 AS id WHERE :of <> ''", Result: true}}}))
		if out := w.want(w.call("look", `{"of":"ann"}`), settle.StatusCompleted); string(out.Result) != `{"id":9007199254740993}` {
			w.Errorf("got %s", out.Result)
		}
	})
}

func encoded(w *world, v any) string {
	w.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func TestPostgresTypes(t *testing.T) {
	onEachLedger(t, func(w *world) {
		statement := `SELECT 12345678901234567.89 AS n, '{"a": [1]}'::jsonb AS j, true AS b, 'infinity'::float8 AS f, '\x00ff'::bytea AS y,
			timestamptz '2026-02-03 04:05:06.5+01' AS at, timestamp '2026-02-03 04:05:06' AS local, date '2026-02-03' AS d,
			'0192d3a0-0000-7000-8000-000000000000'::uuid AS u, ARRAY[1,2] AS l, E'a\'b:c' AS e, $q$:no$q$ AS q, (ARRAY[1,2])[1:1] AS s, :x::int + 1 AS x`
		want := `{"n":12345678901234567.89,"j":{"a":[1]},"b":true,"f":"Infinity","y":"AP8=","at":"2026-02-03T03:05:06.5Z","local":"2026-02-03T04:05:06","d":"2026-02-03",` +
			`"u":"0192d3a0-0000-7000-8000-000000000000","l":"{1,2}","e":"a'b:c","q":":no","s":"{1}","x":8}`
		if !w.postgres {
			statement = `SELECT 42.5 AS n, 9007199254740993 AS i, x'00ff' AS y, NULL AS z, 9e999 AS f, 'a:b' AS "e:f", :x + 1 AS x`
			want = `{"n":42.5,"i":9007199254740993,"y":"AP8=","z":null,"f":"+Inf","e:f":"a:b","x":8}`
		}
		w.start(declare[json.RawMessage, json.RawMessage](w.T, sqltool.Spec{
			Name: "types", Schema: json.RawMessage(`{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}}`),
			Contract: settle.Contract{WholeArguments: true}, Statements: []sqltool.Statement{{SQL: statement, Result: true}},
		}))
		if out := w.want(w.call("types", `{"x":7}`), settle.StatusCompleted); string(out.Result) != want {
			w.Errorf("got  %s\nwant %s", out.Result, want)
		}
	})
}

func TestR55ErrorsOfTheDatabaseHoldNoValues(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.exec("CREATE TABLE kept (id text PRIMARY KEY CHECK (id <> 's3cret'))")
		tool, err := sqltool.New[json.RawMessage, json.RawMessage](sqltool.Spec{
			Name: "keep", Schema: json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`),
			Contract: settle.Contract{WholeArguments: true}, Statements: []sqltool.Statement{{SQL: "INSERT INTO kept VALUES (:id)"}},
		})
		if err != nil {
			w.Fatal(err)
		}
		do := tool.Do
		var failed error
		tool.Do = func(ctx context.Context, op settle.Op, in json.RawMessage) (json.RawMessage, error) {
			out, err := do(ctx, op, in)
			failed = err
			return out, err
		}
		w.start(tool)
		w.want(w.call("keep", `{"id":"s3cret"}`), settle.StatusNotDone)
		if failed == nil || strings.Contains(failed.Error(), "s3cret") || !strings.Contains(failed.Error(), "statement 1") {
			w.Errorf("the error is %v", failed)
		}
		w.want(w.call("keep", `{"id":"other"}`), settle.StatusCompleted)
	})
}

func TestNumbersThatSQLiteCannotHold(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.exec("CREATE TABLE kept (v numeric)")
		w.start(declare[json.RawMessage, json.RawMessage](w.T, sqltool.Spec{
			Name: "keep", Schema: json.RawMessage(`{"type":"object","required":["v"],"properties":{"v":{"type":"number"}}}`),
			Contract: settle.Contract{WholeArguments: true}, Statements: []sqltool.Statement{{SQL: "INSERT INTO kept VALUES (:v)"}},
		}))
		want := settle.StatusFailed
		if w.postgres {
			want = settle.StatusCompleted
		}
		out := w.want(w.call("keep", `{"v":12345678901234567.89}`), want)
		if strings.Contains(out.Detail, "1234") {
			w.Errorf("the detail is %q", out.Detail)
		}
	})
}

// What a database never takes is a refusal: the same call would be refused again.
func TestTextsThatPostgresCannotHold(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.exec("CREATE TABLE kept (v text)")
		w.start(declare[json.RawMessage, json.RawMessage](w.T, sqltool.Spec{
			Name: "keep", Schema: json.RawMessage(`{"type":"object","required":["v"],"properties":{"v":{"type":"string"}}}`),
			Contract: settle.Contract{WholeArguments: true}, Statements: []sqltool.Statement{{SQL: "INSERT INTO kept VALUES (:v)"}},
		}))
		want := settle.StatusCompleted
		if w.postgres {
			want = settle.StatusFailed
		}
		if out := w.want(w.call("keep", `{"v":"a\u0000b"}`), want); w.postgres && !strings.Contains(out.Detail, "U+0000") {
			w.Errorf("the detail is %q", out.Detail)
		}
	})
}

func TestR53OtherLedgersAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := settle.New(memory.New(), settle.Volatile(), settle.WithTools(reserve(t))); err == nil {
		t.Error("a ledger without transactions was accepted")
	}
}

func TestWrongDeclarationsAreRefused(t *testing.T) {
	t.Parallel()
	const good = "INSERT INTO orders VALUES (:item, :for, :n, :note)"
	for says, edit := range map[string]func(*sqltool.Spec){
		"Transactional":                     func(s *sqltool.Spec) { s.Contract.Class = settle.Keyed },
		"leads to no field":                 func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = :itm" },
		"the facts of an operation":         func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = :settle_owner" },
		"nothing is done with for, n, note": func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = :item" },
		"nothing is done with note": func(s *sqltool.Spec) {
			s.Statements[0].SQL = "INSERT INTO o VALUES (:item, :for, :n, ':note') -- :note"
		},
		"begins with none of":         func(s *sqltool.Spec) { s.Statements[0].SQL = "COMMIT" },
		"more after the semicolon":    func(s *sqltool.Spec) { s.Statements[0].SQL = good + "; COMMIT" },
		"a $ before":                  func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = $1" },
		"a question mark":             func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = ?" },
		"an @ before":                 func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = @item" },
		"a quote that isn't closed":   func(s *sqltool.Spec) { s.Statements[0].SQL = "DELETE FROM o WHERE i = 'x" },
		"a comment that isn't closed": func(s *sqltool.Spec) { s.Statements[0].SQL = good + " /* x" },
		"a comment inside a comment":  func(s *sqltool.Spec) { s.Statements[0].SQL = good + " /* /* */ :x */" },
		"OR ROLLBACK":                 func(s *sqltool.Spec) { s.Statements[0].SQL = "INSERT or rollback INTO o VALUES (:item)" },
		"isn't the Result":            func(s *sqltool.Spec) { s.Statements[0].SQL = "SELECT :item, :for, :n, :note" },
		"more than one statement has Result": func(s *sqltool.Spec) {
			s.Statements = []sqltool.Statement{{SQL: good, Result: true}, {SQL: good, Result: true}}
		},
		"there is no statement":           func(s *sqltool.Spec) { s.Statements = nil },
		"Otherwise is empty":              func(s *sqltool.Spec) { s.Checks = []sqltool.Check{{SQL: "SELECT 1"}} },
		"check 1: it begins with none of": func(s *sqltool.Spec) { s.Checks = []sqltool.Check{{SQL: good, Otherwise: "no"}} },
		"none of One":                     func(s *sqltool.Spec) { s.Statements[0].Rows = 7 },
		"Schema is for raw tools":         func(s *sqltool.Spec) { s.Schema = json.RawMessage(`{}`) },
	} {
		spec := sqltool.Spec{Name: "reserve", Statements: []sqltool.Statement{{SQL: good}}}
		edit(&spec)
		if _, err := sqltool.New[reserveArgs, reserved](spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error that says %q, got %v", says, err)
		}
	}
}
