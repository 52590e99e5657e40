package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/settle-go/settle/tools/idempotency"
)

var (
	// The client of the README in tools/idempotency.
	//go:embed idempotency.mjs
	library []byte
	//go:embed client.mjs
	program []byte
)

// clients send payments, each in its own way.
type clients struct {
	ctx         context.Context
	out         io.Writer
	url, folder string
}

func (c clients) title(text string) { fmt.Fprintf(c.out, "\n%s\n", text) }
func (c clients) line(status int, body, how string) {
	fmt.Fprintf(c.out, "  %d %s%s\n", status, body, how)
}

// send sends one payment in Go. The transport makes the key, unless one is given.
func (c clients) send(p payment, key string) (status int, body string, replayed bool, err error) {
	encoded, err := json.Marshal(p)
	if err != nil {
		return 0, "", false, err
	}
	r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, bytes.NewReader(encoded))
	if err != nil {
		return 0, "", false, err
	}
	r.Header.Set("Authorization", "Bearer shop-7")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		if err := idempotency.SetKey(r.Header, key); err != nil {
			return 0, "", false, err
		}
	}
	client := http.Client{Transport: &idempotency.Transport{Attempts: 20}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", false, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), idempotency.Replayed(resp), err
}

func (c clients) one(title string, p payment) (string, error) {
	c.title(title)
	status, body, replayed, err := c.send(p, "")
	if err == nil {
		c.line(status, body, how(replayed))
	}
	return p.Order, err
}

func how(replayed bool) string {
	if replayed {
		return ", replayed"
	}
	return ""
}

func (c clients) inGo() (string, error) {
	return c.one("In Go, through idempotency.Transport", payment{"A-1001", "42.10"})
}

// inDoubt pays an order for which the processor doesn't answer the service.
func (c clients) inDoubt() (string, error) {
	return c.one("The card processor doesn't answer the service, and a lookup finds the charge", payment{silent, "5.00"})
}

// atOnce sends one payment from 16 clients at the same time.
func (c clients) atOnce() (string, error) {
	p := payment{"A-1002", "17.00"}
	c.title("In Go, 16 clients at once with one key")
	var group sync.WaitGroup
	answers, errs := make([]string, 16), make([]error, 16)
	for i := range answers {
		group.Go(func() {
			status, body, _, err := c.send(p, "one-key-for-all")
			answers[i], errs[i] = fmt.Sprint(status, " ", body), err
		})
	}
	group.Wait()
	times := map[string]int{}
	for _, answer := range answers {
		times[answer]++
	}
	for answer, n := range times {
		fmt.Fprintf(c.out, "  %d times %s\n", n, answer)
	}
	return p.Order, errors.Join(errs...)
}

// otherContent sends the key of another payment by mistake.
func (c clients) otherContent() error {
	c.title("In Go, a key that was used for another payment")
	status, body, _, err := c.send(payment{"A-1006", "99.00"}, "one-key-for-all")
	if err != nil {
		return err
	}
	var problem struct {
		Title   string
		Differs []string
	}
	if err := json.Unmarshal([]byte(body), &problem); err != nil {
		return err
	}
	c.line(status, problem.Title, ", differs in the "+strings.Join(problem.Differs, ", "))
	return nil
}

func (c clients) withCurl() (string, error) {
	c.title("With curl --retry")
	curl, err := exec.LookPath("curl")
	if err != nil {
		fmt.Fprintln(c.out, "  curl isn't on this machine")
		return "", nil
	}
	const order = "A-1003"
	cmd := exec.CommandContext(c.ctx, curl, "--silent", "--retry", "5", "--retry-all-errors", "--retry-delay", "1",
		"--header", "Authorization: Bearer shop-7", "--header", "Content-Type: application/json",
		"--header", `Idempotency-Key: "made-before-the-first-send"`, "--data", `{"order":"`+order+`","amount":"8.50"}`,
		"--include", c.url)
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("curl: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(said)), nil)
	if err != nil {
		return "", fmt.Errorf("curl: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("curl: %w", err)
	}
	c.line(resp.StatusCode, string(body), how(idempotency.Replayed(resp)))
	return order, nil
}

func (c clients) inJavaScript() (string, error) {
	c.title("In JavaScript, with fetch under node")
	node, err := exec.LookPath("node")
	if err != nil {
		fmt.Fprintln(c.out, "  node isn't on this machine")
		return "", nil
	}
	for name, text := range map[string][]byte{"idempotency.mjs": library, "client.mjs": program} {
		if err := os.WriteFile(filepath.Join(c.folder, name), text, 0o600); err != nil {
			return "", err
		}
	}
	const order = "A-1004"
	said, err := exec.CommandContext(c.ctx, node, filepath.Join(c.folder, "client.mjs"), c.url, order, "3.20").Output()
	if err != nil {
		return "", fmt.Errorf("node: %w", err)
	}
	fmt.Fprintf(c.out, "  %s\n", strings.TrimSpace(string(said)))
	return order, nil
}
