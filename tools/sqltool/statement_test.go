package sqltool

import (
	"slices"
	"testing"
)

func TestParametersAreFoundOutsideOfQuotesAndComments(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]struct {
		postgres string
		names    []string
	}{
		"SELECT :a, :b, :a;":                       {"SELECT $1, $2, $3;", []string{"a", "b", "a"}},
		"SELECT :a::int, x::text, :b :: int":       {"SELECT $1::int, x::text, $2 :: int", []string{"a", "b"}},
		"SELECT ':a', ''':b', \":c\", `:d`, :e":    {"SELECT ':a', ''':b', \":c\", `:d`, $1", []string{"e"}},
		`SELECT '\', :a, E'\':b', e'\\', :c`:       {`SELECT '\', $1, E'\':b', e'\\', $2`, []string{"a", "c"}},
		"SELECT $$:a$$, $t$ $$ :b $t$, a$b, :c":    {"SELECT $$:a$$, $t$ $$ :b $t$, a$b, $1", []string{"c"}},
		"SELECT :a -- :b'\n, :c /* :d\n' */ + :e":  {"SELECT $1 -- :b'\n, $2 /* :d\n' */ + $3", []string{"a", "c", "e"}},
		"SELECT x[1:2], x[:3], f(a := :a), :b.c.d": {"SELECT x[1:2], x[:3], f(a := $1), $2", []string{"a", "b.c.d"}},
		"SELECT j @> :a, j @@ :b, 1e5, :c2_d.":     {"SELECT j @> $1, j @@ $2, 1e5, $3.", []string{"a", "b", "c2_d"}},
		"VALUES (:ä)":                              {"VALUES ($1)", []string{"ä"}},
		"-- :x\n/* :y */ SELECT (:a)":              {"-- :x\n/* :y */ SELECT ($1)", []string{"a"}},
	} {
		got, err := parseStatement(sql, statementsBegin)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got.postgres != want.postgres || !slices.Equal(got.names, want.names) {
			t.Errorf("%s\ngot  %s %q\nwant %s %q", sql, got.postgres, got.names, want.postgres, want.names)
		}
	}
}

func TestSQLiteNumbersItsParameters(t *testing.T) {
	t.Parallel()
	got, err := parseStatement("UPDATE s SET n = n - :n WHERE n >= :n AND k = '?3'", statementsBegin)
	if err != nil || got.sqlite != "UPDATE s SET n = n - ?1 WHERE n >= ?2 AND k = '?3'" || !got.writes {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzStatement(f *testing.F) {
	for _, sql := range []string{"SELECT :a::int", "INSERT INTO o VALUES (':x', $t$:y$t$, E'\\'' , :z.a) -- c", "WITH x AS (SELECT 1) DELETE FROM y /* */ ;"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s, err := parseStatement(sql, statementsBegin)
		if err != nil {
			return
		}
		again, err := parseStatement(sql, statementsBegin)
		if err != nil || again.postgres != s.postgres || len(s.names) == 0 && (s.postgres != sql || s.sqlite != sql) {
			t.Errorf("%q became %q", sql, s.postgres)
		}
	})
}
