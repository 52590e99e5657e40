package settle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/settle-go/settle/store"
)

// The documents say in prose what the code says in tables. These tests hold
// the two together.

func readDoc(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// docTable returns the rows of the first table after a line, each cell without
// its white space.
func docTable(t *testing.T, doc, after string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(doc, after)
	if !found {
		t.Fatalf("the document has no %q", after)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("there is no table after %q", after)
	}
	return rows[2:] // without the head and the line below it
}

var quoted = regexp.MustCompile("`([^`]*)`")

func TestProtocolDocumentHasEveryRule(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "docs/protocol.md")
	headings := regexp.MustCompile(`(?m)^### R(\d+)\. \S`).FindAllStringSubmatch(doc, -1)
	if len(headings) != 60 {
		t.Errorf("it has %d rules, want 60", len(headings))
	}
	for i, heading := range headings {
		if heading[1] != strconv.Itoa(i+1) {
			t.Fatalf("the rule R%s stands where R%d belongs", heading[1], i+1)
		}
	}
}

func TestR20ProtocolDocumentHasTheTableOfMoves(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "docs/protocol.md")
	var got []string
	for _, row := range docTable(t, doc, "The moves that exist.") {
		from := strings.Trim(row[0], "`")
		if from == "(new)" {
			from = ""
		}
		for _, to := range quoted.FindAllStringSubmatch(row[1], -1) {
			got = append(got, from+">"+to[1])
		}
	}
	var want []string
	for _, move := range store.Moves() {
		want = append(want, move.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the document has the moves\n%q\nand the state table\n%q", got, want)
	}
}

func TestProtocolDocumentHasTheStates(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "docs/protocol.md")
	settled := map[string]bool{}
	var got, want []string
	for _, row := range docTable(t, doc, "## 4. States") {
		name := strings.Trim(row[0], "`")
		got = append(got, name)
		settled[name] = row[2] == "yes"
	}
	for _, state := range store.States() {
		want = append(want, state.String())
		if settled[state.String()] != state.Settled() {
			t.Errorf("the document says of %s that settled is %v", state, settled[state.String()])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the document has the states %q, the code %q", got, want)
	}
}

func TestR59ProtocolDocumentHasTheStatuses(t *testing.T) {
	t.Parallel()
	doc := readDoc(t, "docs/protocol.md")
	var got []string
	for _, row := range docTable(t, doc, "### R59.") {
		got = append(got, strings.Trim(row[0], "`"))
	}
	want := docStatuses(t)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the document has the statuses %q, the code %q", got, want)
	}
}

// docStatuses reads the values of the constants of type Status.
func docStatuses(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Status" {
			return true
		}
		for _, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok {
				t.Fatalf("the value of %s is no literal", spec.Names[0])
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
		return true
	})
	return values
}

// A guide's code that doesn't compile is worse than none: each piece is a part
// of an example that runs.
func TestGuideQuotesExamplesThatRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("docs*_example_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var examples strings.Builder
	for _, name := range files {
		examples.WriteString(docUnindented(readDoc(t, name)))
	}
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readDoc(t, "docs/contracts.md"), -1)
	if len(pieces) == 0 {
		t.Error("the guide has no code")
	}
	for _, piece := range pieces {
		if !strings.Contains(examples.String(), docUnindented(piece[1])) {
			t.Errorf("this is in no example:\n%s", piece[1])
		}
	}
}

func docUnindented(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	docHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, name := range names {
		for _, link := range docLink.FindAllStringSubmatch(readDoc(t, name), -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := name
			if path != "" {
				target = filepath.Join("docs", path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which isn't there", name, link[1])
				continue
			}
			if anchor != "" && !slices.Contains(docAnchors(readDoc(t, target)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", name, link[1])
			}
		}
	}
}

// docAnchors are the names under which a page's headings can be linked to: in
// lower case, with hyphens for blanks and without other punctuation.
func docAnchors(doc string) []string {
	var all []string
	for _, heading := range docHeading.FindAllStringSubmatch(doc, -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(heading[1])))
	}
	return all
}
