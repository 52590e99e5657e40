package idempotency_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle/tools/idempotency"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each problem's type leads to its line in the README, with the status it has.
func TestReadmeListsEveryProblem(t *testing.T) {
	t.Parallel()
	text := readme(t)
	listed := regexp.MustCompile(`(?m)^\| ([\d, ]+) \| <a id="([a-z-]+)"></a>`).FindAllStringSubmatch(text, -1)
	lines := map[string]string{}
	for _, line := range listed {
		lines[line[2]] = line[1]
	}
	for name, status := range idempotency.Problems() {
		if !strings.Contains(lines[name], status) {
			t.Errorf("the README has %s with the status %q, the code with %s", name, lines[name], status)
		}
		delete(lines, name)
	}
	for name := range lines {
		t.Errorf("the README lists %s, which there is not", name)
	}
}

// script is the README's client in JavaScript.
func script(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```js\n(.*?)```").FindStringSubmatch(readme(t))
	if found == nil {
		t.Fatal("the README has no client in JavaScript")
	}
	return found[1]
}

func TestReadmeAndExampleHaveOneClientInJavaScript(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "payments-api", "idempotency.mjs"))
	if err != nil || string(example) != script(t) {
		t.Errorf("the example's client isn't the README's: %v", err)
	}
}

const drive = `
import { sendOnce } from "./idempotency.mjs";
const [url, mode] = process.argv.slice(2);
const pay = (key, options) => sendOnce(url, {
  method: "POST", body: JSON.stringify({ amount: 1 }),
  headers: { "Content-Type": "application/json", Authorization: "ann" }, ...options?.init,
}, { key, ...options });
const tell = async (r) => console.log(r.status, await r.text(), r.headers.get("Idempotency-Replayed"));
switch (mode) {
  case "once": await tell(await pay("k")); break;
  case "new key": await tell(await pay(undefined)); break;
  case "impatient": await tell(await pay("k", { timeout: 300, attempts: 20 })); break;
  case "race": {
    const all = await Promise.all(Array.from({ length: 16 }, () => pay("k", { attempts: 20 })));
    const texts = new Set(await Promise.all(all.map((r) => r.text())));
    const firsts = all.filter((r) => r.headers.get("Idempotency-Replayed") === null).length;
    console.log(texts.size, firsts, all.every((r) => r.status === 201));
    break;
  }
  case "aborted": {
    const stop = new AbortController();
    const answer = pay("k", { init: { signal: stop.signal } });
    const ask = new URL("/idempotency?route=POST+%2Fpayments", url);
    while ((await fetch(ask, { headers: { Authorization: "ann", "Idempotency-Key": "k" } })).status !== 200);
    stop.abort(new Error("left the page"));
    try { await answer; } catch (error) { console.log(error.message); }
    await fetch(new URL("/released", url));
    break;
  }
}
`

// The README's client, run by node: it times out, is cut off, and races.
func TestReadmesClientInJavaScript(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Log("node isn't on this machine: the README's client in JavaScript was not run")
		return
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"idempotency.mjs": script(t), "drive.mjs": drive} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for mode, tc := range map[string]struct {
		front func(http.Handler) http.Handler
		// work is how long the handler takes, or until it is released.
		work time.Duration
		want string
	}{
		"once":      {losesFirstAnswer, 0, `201 {"id":"pay_1"} true`},
		"new key":   {same, 0, `201 {"id":"pay_1"} null`},
		"impatient": {same, time.Second, `201 {"id":"pay_1"} true`},
		"race":      {same, 0, `1 1 true`},
		"aborted":   {same, time.Minute, `left the page`},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			answer, released := created(), make(chan struct{})
			c := unsafe
			c.Timeout = 2 * time.Minute
			s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-released:
				case <-time.After(tc.work):
				case <-r.Context().Done():
					t.Error("the handler's context ended with its client")
				}
				answer(w, r)
			})
			s.mux.HandleFunc("GET /released", func(http.ResponseWriter, *http.Request) { close(released) })
			front := tc.front(s.mux)
			s.front.Store(&front)
			said, err := exec.CommandContext(t.Context(), node, filepath.Join(folder, "drive.mjs"), s.server.URL+"/payments", mode).CombinedOutput()
			if got := strings.TrimSpace(string(said)); err != nil || got != tc.want {
				t.Errorf("node says %s, %v; want %s", got, err, tc.want)
			}
			s.runs(1)
		})
	}
}

func same(h http.Handler) http.Handler { return h }

// losesFirstAnswer carries a request out and cuts the connection.
func losesFirstAnswer(h http.Handler) http.Handler {
	var lost atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lost.Swap(true) {
			h.ServeHTTP(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discard) WriteHeader(int)             {}
