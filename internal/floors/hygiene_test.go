package floors

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// taboo is something that no file may contain.
type taboo struct {
	name    string
	suffix  string // of the files that it holds for
	pattern *regexp.Regexp
	instead string
}

// Each pattern is written so that it doesn't match itself.
var taboos = []taboo{
	{
		"a path of one machine", "",
		regexp.MustCompile("(?m)(?:^|[\\s\"'`(=,:])/(?:wor[k]|roo[t]|hom[e]|User[s])/[\\w.]"),
		"use a path relative to the file or the repository",
	},
	{
		"the host of a package registry", "",
		regexp.MustCompile(`\b(?:proxy\.golan[g]|sum\.golan[g]|registry\.npmj[s]|deb\.debia[n]|pypi\.or[g])`),
		"name the package; its client knows the host",
	},
	{
		"a reminder", "",
		regexp.MustCompile(`\b(?:TOD[O]|FIXM[E]|XX[X])\b`),
		"do it, or file an issue",
	},
	{
		"a sleep", "_test.go",
		regexp.MustCompile(`\btime\.Slee[p]\(`),
		"wait for what the test waits for, or use a virtual clock",
	},
	{
		"a skipped test", "_test.go",
		regexp.MustCompile(`\b(?:t|b|f|tb)\.Ski[p](?:f|Now)?\(`),
		"fail with what is missing and how to get it",
	},
}

// unread are folders that don't belong to the tree.
var unread = []string{".git", ".idea", ".vscode", "bin", "node_modules"}

func TestNoFileContainsATaboo(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	read := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(unread, entry.Name()) {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || entry.Name() == ".git" { // a file in a linked worktree
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			// Another test's file, which came and went.
			return nil
		}
		if err != nil {
			return err
		}
		if isBinary(content) {
			return nil
		}
		read++
		for _, ta := range taboos {
			for _, line := range ta.lines(path, content) {
				t.Errorf("%s:%d: %s: %s", strings.TrimPrefix(path, root+string(filepath.Separator)), line, ta.name, ta.instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read == 0 {
		t.Error("no file was read")
	}
}

// isBinary looks for a zero byte near the beginning, as git does.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0
}

// lines returns the numbers of the lines that contain the taboo.
func (ta taboo) lines(path string, content []byte) []int {
	if !strings.HasSuffix(path, ta.suffix) {
		return nil
	}
	var lines []int
	for _, at := range ta.pattern.FindAllIndex(content, -1) {
		// The match may begin with the end of the line before.
		lines = append(lines, 1+bytes.Count(content[:at[1]], []byte("\n")))
	}
	return lines
}

func TestTaboosMatch(t *testing.T) {
	t.Parallel()
	// Put together here, so that this file contains none of them.
	for text, want := range map[string]string{
		"cd /" + "work/main":                         "a path of one machine",
		"\"/" + "root/.cache\"":                      "a path of one machine",
		"a\n/" + "home/someone":                      "a path of one machine",
		"https://example.org/" + "home/page":         "",
		"GET /" + "work":                             "",
		"GOPROXY=https://proxy" + ".golang.org":      "the host of a package registry",
		"x() // TO" + "DO: more":                     "a reminder",
		"ctx := context.TO" + "DO()":                 "a reminder",
		"time.Sle" + "ep(1)":                         "a sleep",
		"t.Ski" + "p(\"no server\")":                 "a skipped test",
		"tb.Ski" + "pNow()":                          "a skipped test",
		"rows.Ski" + "p(3)":                          "",
		"Fault{Request: \"commit\", Sk" + "ip: 2}":   "",
		"golang.org/x/text v0.44.0 h1:wor" + "k/rXX": "",
	} {
		got := ""
		for _, ta := range taboos {
			if len(ta.lines("x_test.go", []byte(text))) > 0 {
				got += ta.name
			}
		}
		if got != want {
			t.Errorf("%q contains %q, want %q", text, got, want)
		}
	}
	sleep := taboos[slices.IndexFunc(taboos, func(ta taboo) bool { return ta.name == "a sleep" })]
	if lines := sleep.lines("x.go", []byte("time.Sle"+"ep(1)")); lines != nil {
		t.Error("a sleep outside tests is reported as one in them")
	}
}
