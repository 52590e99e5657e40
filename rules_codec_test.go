package settle_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

type grantArgs struct {
	Account string `json:"account" settle:"identity"`
	Token   string `json:"token" settle:"secret"`
}

type granted struct {
	ID string `json:"id" settle:"resource"`
	To string `json:"to"`
}

// grant fails as it is told, and says which token it was given.
func grant(fail *error, tokens *[]string) settle.Tool[grantArgs, granted] {
	return settle.Tool[grantArgs, granted]{Name: "grant", Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, Attempts: 2},
		Do: func(_ context.Context, op settle.Op, in grantArgs) (granted, error) {
			_ = op.Key()
			*tokens = append(*tokens, in.Token)
			return granted{"g-1", "plaintext-owner"}, *fail
		}}
}

func newKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) //nolint:errcheck // never fails
	return key
}

func codec(t *testing.T, current string, keys map[string][]byte) *settle.AESCodec {
	t.Helper()
	c, err := settle.NewAESCodec(current, keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sealedWorld is an executor with a codec on a SQLite file.
func sealedWorld(t *testing.T, path string, c settle.Codec, tools ...settle.AnyTool) (*settle.Executor, store.Ledger) {
	t.Helper()
	l, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	x, err := settle.New(l, settle.WithTools(tools...), settle.WithCodec(c))
	if err != nil {
		t.Fatal(err)
	}
	return x, l
}

var grantCall = settle.Call{Tool: "grant", Args: json.RawMessage(`{"account":"plaintext-account","token":"plaintext-token"}`)}

func sealedScope() context.Context {
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "plaintext-subject"})
	return settle.WithTask(ctx, settle.Task{ID: "plaintext-task", Goal: "plaintext-goal"})
}

func TestR56NothingReadableIsStoredUnderACodec(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	var fail error
	var tokens []string
	x, l := sealedWorld(t, path, codec(t, "a", map[string][]byte{"a": newKey()}), grant(&fail, &tokens))
	out, err := x.Execute(sealedScope(), grantCall)
	if err != nil || out.Status != settle.StatusCompleted {
		t.Fatal(out.ForModel(), err)
	}
	again, err := x.Execute(sealedScope(), grantCall)
	if err != nil || !again.Replayed || !bytes.Contains(again.Result, []byte("plaintext-owner")) {
		t.Fatalf("the replay is %s, %v", again.ForModel(), err)
	}
	nothingReadable(t, path, l)
}

// nothingReadable closes the ledger and looks for plain text in its files.
func nothingReadable(t *testing.T, path string, l store.Ledger) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("plaintext")) {
			t.Errorf("the file settle.db%s holds something readable", suffix)
		}
	}
}

// R56: with a codec a secret field is stored, so that a worker can resume.
func TestR56AWorkerResumesWithSecretsUnderACodec(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	keys := map[string][]byte{"a": newKey()}
	fail := errors.New("no answer")
	var tokens []string
	x, _ := sealedWorld(t, path, codec(t, "a", keys), grant(&fail, &tokens))
	out, err := x.Execute(sealedScope(), grantCall)
	if err != nil || out.Status != settle.StatusUnknown {
		t.Fatal(out.ForModel(), err)
	}
	// Rotated: another key seals, the old one still opens.
	keys["b"] = newKey()
	fail = nil
	tool := grant(&fail, &tokens)
	tool.Contract.Attempts = 5
	y, _ := sealedWorld(t, path, codec(t, "b", keys), tool)
	ageSQLite(t, path)
	if _, err := y.Recover(sealedScope()); err != nil {
		t.Fatal(err)
	}
	done, err := y.Get(sealedScope(), out.Operation)
	if err != nil || done.Status != settle.StatusCompleted {
		t.Fatalf("after recovery: %s, %v", done.ForModel(), err)
	}
	for _, token := range tokens {
		if token != "plaintext-token" {
			t.Errorf("an attempt had another token than the call")
		}
	}
}

func TestR56AMissingKeyRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	var fail error
	var tokens []string
	x, _ := sealedWorld(t, path, codec(t, "a", map[string][]byte{"a": newKey()}), grant(&fail, &tokens))
	out, err := x.Execute(sealedScope(), grantCall)
	if err != nil {
		t.Fatal(err)
	}
	y, _ := sealedWorld(t, path, codec(t, "c", map[string][]byte{"c": newKey()}), grant(&fail, &tokens))
	var missing *settle.MissingKeyError
	if _, err := y.Get(sealedScope(), out.Operation); !errors.As(err, &missing) || missing.KeyID != "a" {
		t.Errorf("Get without the key: %v, want a MissingKeyError that names it", err)
	}
	refused, err := y.Execute(sealedScope(), grantCall)
	if err != nil || refused.Status != settle.StatusUnavailable {
		t.Errorf("a call without the key: %s, %v", refused.ForModel(), err)
	}
	if len(tokens) != 1 {
		t.Errorf("%d attempts were made, want 1", len(tokens))
	}
}

// What an operator reads at night is one sentence, and never an empty list for
// what can't be read.
func TestR56AnOperatorIsToldOnceWhichKeyIsMissing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	x, l := sealedWorld(t, path, codec(t, "a", map[string][]byte{"a": newKey()}), lost(settle.Contract{NoLookup: true}))
	var out settle.Outcome
	for _, task := range []string{"1", "2", "3"} {
		var err error
		if out, err = x.Execute(settle.WithTask(sealedScope(), settle.Task{ID: task, Goal: "g"}), partCall("lost", "x")); err != nil {
			t.Fatal(err)
		}
	}
	ann := settle.WithOperator(context.Background(), settle.Operator{Name: "ann"})
	with := func(options ...settle.Option) *settle.Queue {
		y, err := settle.New(l, options...)
		if err != nil {
			t.Fatal(err)
		}
		return y.Queue()
	}
	other := with(settle.WithCodec(codec(t, "b", map[string][]byte{"b": newKey()})))
	wrong := with(settle.WithCodec(codec(t, "a", map[string][]byte{"a": newKey()})))
	for name, read := range map[string]func(*settle.Queue) error{
		"the queue":      func(q *settle.Queue) error { _, err := q.List(ann, settle.QueueFilter{}); return err },
		"the operations": func(q *settle.Queue) error { _, err := q.Operations(ann, settle.OperationFilter{}); return err },
		"a case":         func(q *settle.Queue) error { _, err := q.Get(ann, out.Operation); return err },
	} {
		var missing *settle.MissingKeyError
		if err := read(other); !errors.As(err, &missing) || err.Error() != missing.Error() {
			t.Errorf("%s without the key: %v", name, err)
		}
		if err := read(wrong); !errors.Is(err, settle.ErrSealed) || err.Error() != settle.ErrSealed.Error() {
			t.Errorf("%s with another key of its id: %v", name, err)
		}
	}
	var missing *settle.MissingKeyError
	if _, err := with().Operations(ann, settle.OperationFilter{Task: "1"}); !errors.As(err, &missing) || missing.KeyID != "a" {
		t.Errorf("the operations of a task whose name is sealed: %v, want a MissingKeyError that names the key", err)
	}
}

// Keys change in one process after the other. A case that can be read is shown and
// decided, whatever lies beside it: a decision that was taken must not look refused.
func TestR56WhatLiesBesideACaseNeedsNoKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	keys := map[string][]byte{"a": newKey(), "b": newKey()}
	tools := []settle.AnyTool{lost(settle.Contract{NoLookup: true}), partOf("file", new(corrections))}
	before, _ := sealedWorld(t, path, codec(t, "a", map[string][]byte{"a": keys["a"]}), tools...)
	while, _ := sealedWorld(t, path, codec(t, "b", keys), tools...)
	in := func(x *settle.Executor, task string, c settle.Call) string {
		out, err := x.Execute(settle.WithTask(sealedScope(), settle.Task{ID: task, Goal: "g"}), c)
		if err != nil {
			t.Fatal(err)
		}
		return out.Operation
	}
	old, one := in(before, "1", partCall("lost", "x")), in(while, "2", partCall("lost", "x"))
	ann := settle.WithOperator(context.Background(), settle.Operator{Name: "ann"})
	c, err := before.Queue().Get(ann, old)
	if err != nil || len(c.Related) != 1 || c.Related[0].Operation != one {
		t.Fatalf("a case beside one under a key that is missing: related to %+v, %v", c.Related, err)
	}
	c, err = before.Queue().Decide(ann, settle.Decision{Operation: old, Version: c.Version, ID: uuid.NewString(), Kind: settle.DecideFail, Reason: "asked them"})
	if err != nil || c.State != "failed" {
		t.Errorf("deciding it: %s, %v", c.State, err)
	}
	filed := in(before, "3", partCall("file", "x"))
	undo, err := while.Compensate(sealedScope(), filed)
	if err != nil || undo.Status != settle.StatusCompleted {
		t.Fatal(undo.ForModel(), err)
	}
	o, err := before.Queue().Operation(ann, filed)
	if err != nil || len(o.Children) != 1 || o.Children[0].Operation != undo.Operation {
		t.Errorf("an operation whose correction is under a key that is missing: %+v, %v", o.Children, err)
	}
}

func TestR56ACodecRefusesWhatItCantKeep(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func() (*settle.AESCodec, error){
		"a short key": func() (*settle.AESCodec, error) {
			return settle.NewAESCodec("a", map[string][]byte{"a": make([]byte, 16)})
		},
		"no current key":   func() (*settle.AESCodec, error) { return settle.NewAESCodec("a", map[string][]byte{"b": newKey()}) },
		"a key without id": func() (*settle.AESCodec, error) { return settle.NewAESCodec("", map[string][]byte{"": newKey()}) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c := codec(t, "a", map[string][]byte{"a": newKey()})
	sealed, err := c.Seal([]byte("text"), []byte("row 1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(sealed, []byte("row 2")); err == nil {
		t.Error("a value opened in another row")
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := c.Open(sealed, []byte("row 1")); err == nil {
		t.Error("a changed value opened")
	}
}

// ageSQLite makes everything due.
func ageSQLite(t *testing.T, path string) {
	t.Helper()
	if err := (address{File: path}).age(t.Context(), longEnough); err != nil {
		t.Fatal(err)
	}
}
