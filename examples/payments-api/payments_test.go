package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const want = `The first answer to each key is lost on the way, so each client sends again.

In Go, through idempotency.Transport
  201 {"id":"ch_…","order":"A-1001","amount":"42.10"}, replayed

In Go, 16 clients at once with one key
  16 times 201 {"id":"ch_…","order":"A-1002","amount":"17.00"}

With curl --retry
  <curl>

In JavaScript, with fetch under node
  <node>

The card processor doesn't answer the service, and a lookup finds the charge
  201 {"id":"ch_…","order":"A-1005","amount":"5.00"}, replayed

In Go, a key that was used for another payment
  422 Idempotency-Key is already used, differs in the body

<n> orders paid, <n> charges on cards, 0 orders charged twice, 0 not at all
`

// tells runs the program and holds what it says against what this machine has.
func tells(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	clients := 3
	says := func(name, line string) string {
		if _, err := exec.LookPath(name); err != nil {
			return name + " isn't on this machine"
		}
		clients++
		return line
	}
	curl := says("curl", `201 {"id":"ch_…","order":"A-1003","amount":"8.50"}, replayed`)
	node := says("node", `201 {"id":"ch_…","order":"A-1004","amount":"3.20"}, replayed`)
	expected := strings.NewReplacer("<curl>", curl, "<node>", node, "<n>", string('0'+rune(clients))).Replace(want)
	if got := regexp.MustCompile(`ch_\d`).ReplaceAllString(out.String(), "ch_…"); got != expected {
		t.Errorf("got\n%s\nwant\n%s", got, expected)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the example left %v behind, %v", left, err)
	}
}

func TestProgramChargesEachOrderOnce(t *testing.T) { tells(t) }

func TestProgramSaysWhichClientsAreMissing(t *testing.T) {
	t.Setenv("PATH", "")
	tells(t)
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		paid    []string
		charges []charge
		fails   bool
	}{
		"each once":           {[]string{"A", "B"}, []charge{{Order: "A"}, {Order: "B"}}, false},
		"one twice":           {[]string{"A"}, []charge{{Order: "A"}, {Order: "A"}}, true},
		"one not at all":      {[]string{"A", "B"}, []charge{{Order: "A"}}, true},
		"one that wasn't met": {[]string{"A"}, []charge{{Order: "A"}, {Order: "B"}, {Order: "B"}}, true},
	} {
		if err := verdict(io.Discard, tc.paid, tc.charges); (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
