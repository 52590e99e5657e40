package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	references = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instants   = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z`)
	spans      = regexp.MustCompile(`\b(\d+d\d\dh|\d+h\d\dm|\d+m\d\ds|\d+s)\b`)
)

// plain replaces what differs from run to run: references by their order,
// instants and spans by words.
func plain(text string) string {
	seen := map[string]string{}
	text = references.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("REF-%d", len(seen)+1)
		}
		return seen[id]
	})
	text = spans.ReplaceAllString(instants.ReplaceAllString(text, "INSTANT"), "SPAN")
	return strings.ReplaceAll(text, "(now)", "(SPAN ago)") // on a busy machine a moment is a second
}

// golden compares an output with a file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	text = plain(text)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, text, want)
	}
}
