package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestR44TextCantActOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                 "plain",
		"naïve – 漢字 🙂":          "naïve – 漢字 🙂",
		"\x1b[2Jgone":           `\x1b[2Jgone`,
		"a\tb\nc\rd":            `a\tb\nc\rd`,
		"\u202eevil":            `\u202eevil`,
		"\u009b31m":             `\u009b31m`,
		"bad\xffbyte":           `bad\xffbyte`,
		"zero\u200bwidth":       `zero\u200bwidth`,
		"\x1asealed":            "(sealed)",
		`quote " and \ stay`:    `quote " and \ stay`,
		"tag \U000e0041 hidden": `tag \U000e0041 hidden`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"\x1b[2J", "\u202e", "\u009b", "\U000e0041", "\x7f", "漢字 🙂"} {
		encoded, err := json.MarshalIndent(map[string]string{"x": text}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		safe := printableJSON(encoded)
		if i := strings.IndexFunc(string(safe), func(r rune) bool { return r != '\n' && printable(string(r)) != string(r) }); i >= 0 {
			t.Errorf("%q is written as %q", text, safe)
		}
		var back map[string]string
		if err := json.Unmarshal(safe, &back); err != nil || back["x"] != text {
			t.Errorf("%q is written as %q and read as %q, %v", text, safe, back["x"], err)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, nil},
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 8, []string{"one two", "three"}},
		{"exceedingly long", 5, []string{"exceedingly", "long"}},
		{"漢字 漢字 漢字", 9, []string{"漢字 漢字", "漢字"}},
		{"a\nb", 10, []string{"a", "b"}},
	} {
		if got := wrap(tc.text, tc.width); !slices.Equal(got, tc.want) {
			t.Errorf("%q in %d cells is %q, want %q", tc.text, tc.width, got, tc.want)
		}
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.FixedZone("", 3600))
	a := &app{process: process{now: func() time.Time { return now }}}
	for _, tc := range []struct {
		at   time.Time
		want string
	}{
		{now, "2026-11-29 11:00:00Z (now)"},
		{now.Add(-59 * time.Second), "2026-11-29 10:59:01Z (59s ago)"},
		{now.Add(-61 * time.Second), "2026-11-29 10:58:59Z (1m01s ago)"},
		{now.Add(90 * time.Minute), "2026-11-29 12:30:00Z (in 1h30m)"},
		{now.Add(-49 * time.Hour), "2026-11-27 10:00:00Z (2d01h ago)"},
		{time.Time{}, "-"},
	} {
		if got := a.when(tc.at); got != tc.want {
			t.Errorf("%v is %q, want %q", tc.at, got, tc.want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain-1_x./:@": "plain-1_x./:@", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a&b": "'a&b'", "é": "'é'",
	} {
		if got := quote(text); got != want {
			t.Errorf("%q is quoted as %s, want %s", text, got, want)
		}
	}
}
