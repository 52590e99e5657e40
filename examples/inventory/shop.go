package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

type wish struct {
	Customer string `json:"customer" settle:"identity"`
	SKU      string `json:"sku"`
}

type reservation struct {
	ID string `json:"id" settle:"resource"`
}

var errSoldOut = errors.New("sold out")

// reserve takes one item from the stock. The condition is in the statement, so
// that two who ask at once can't both get the last one; the rows and the record of
// the operation commit together.
var reserve = settle.Tool[wish, reservation]{
	Name:     "reserve",
	Contract: settle.Contract{Class: settle.Transactional},
	Do: sqlite.InTx(func(ctx context.Context, tx *sql.Tx, _ settle.Op, in wish) (reservation, error) {
		taken, err := tx.ExecContext(ctx, "UPDATE item SET free = free - 1 WHERE sku = ? AND free > 0", in.SKU)
		if err != nil {
			return reservation{}, err
		}
		if n, err := taken.RowsAffected(); err != nil || n == 0 {
			return reservation{}, settle.Rejected(errors.Join(errSoldOut, err))
		}
		r := reservation{ID: uuid.NewString()}
		_, err = tx.ExecContext(ctx, "INSERT INTO reservation (id, sku, customer) VALUES (?, ?, ?)", r.ID, in.SKU, in.Customer)
		return r, err
	}),
	Compensation: &settle.Compensation[wish, reservation]{
		Contract: settle.Contract{Class: settle.Transactional},
		Do: func(ctx context.Context, _ settle.Op, o settle.Original[wish, reservation]) error {
			tx, ok := sqlite.Tx(ctx)
			if !ok {
				return sqlite.ErrNoTx
			}
			gone, err := tx.ExecContext(ctx, "DELETE FROM reservation WHERE id = ?", o.Out.ID)
			if err != nil {
				return err
			}
			if n, err := gone.RowsAffected(); err != nil || n == 0 {
				return settle.Rejected(errors.Join(errors.New("the reservation is gone already"), err))
			}
			_, err = tx.ExecContext(ctx, "UPDATE item SET free = free + 1 WHERE sku = ?", o.In.SKU)
			return err
		},
	},
}

// shop is one process at work on the shop's database.
type shop struct {
	ledger *sqlite.Ledger
	db     *sql.DB
	ex     *settle.Executor
}

func openShop(ctx context.Context, file string) (*shop, error) {
	ledger, err := sqlite.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: "_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, errors.Join(err, ledger.Close())
	}
	ex, err := settle.New(ledger, settle.WithTools(reserve))
	if err != nil {
		return nil, errors.Join(err, db.Close(), ledger.Close())
	}
	return &shop{ledger, db, ex}, nil
}

func (s *shop) close(ctx context.Context) error {
	return errors.Join(s.ex.Shutdown(ctx), s.db.Close(), s.ledger.Close())
}

func (s *shop) stock(ctx context.Context, n int) error {
	_, err := s.db.ExecContext(ctx, `
		CREATE TABLE item (sku TEXT PRIMARY KEY, free INTEGER NOT NULL CHECK (free >= 0));
		CREATE TABLE reservation (id TEXT PRIMARY KEY, sku TEXT NOT NULL, customer TEXT NOT NULL);
		INSERT INTO item VALUES ('chair', ?);`, n)
	return err
}

// inTask is the context of a customer's agent.
func inTask(ctx context.Context, customer, basket string) context.Context {
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "shop", Subject: customer})
	return settle.WithTask(ctx, settle.Task{ID: basket, Goal: "checkout"})
}

// reserve makes a customer's call and returns what the agent is told, in short.
func (s *shop) reserve(ctx context.Context, customer, basket string) (string, error) {
	out, err := s.ex.Execute(inTask(ctx, customer, basket), settle.Call{Tool: "reserve", CallID: uuid.NewString(),
		Args: json.RawMessage(fmt.Sprintf(`{"customer":%q,"sku":"chair"}`, customer))})
	if err != nil || out.Status == settle.StatusCompleted {
		return string(out.Status), err
	}
	// A replay keeps the refusal's code and not its words.
	return string(out.Status) + ": " + errSoldOut.Error(), nil
}

// giveBack undoes a customer's reservation.
func (s *shop) giveBack(ctx context.Context, customer string) (string, error) {
	found, err := s.ledger.List(ctx, store.Filter{Tenant: "shop", Tool: "reserve", States: []store.State{store.Completed}})
	if err != nil {
		return "", err
	}
	for _, e := range found {
		if e.Of.Subject == customer {
			out, err := s.ex.Compensate(inTask(ctx, customer, "basket"), e.ID.String())
			return string(out.Status), err
		}
	}
	return "", errors.New("nobody has a chair")
}

// serve is one process: it serves its customers, all at once, each twice.
func serve(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) < 2 {
		return errors.New("a child needs the file and its customers")
	}
	s, err := openShop(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, customer := range append(args[1:], args[1:]...) {
		group.Go(func() {
			answer, err := s.reserve(ctx, customer, "basket")
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			fmt.Fprintln(out, customer, answer)
		})
	}
	group.Wait()
	return failed
}
