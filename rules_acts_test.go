package settle_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// Who took something away for good can be seen (R52, R57).

var allActs = settle.Operator{Name: "auditor"}

// acts are the kinds and actors of the audit's rows on no one operation.
func (p *process) acts() (acts []string) {
	p.Helper()
	rows, err := p.x.Queue().Acts(settle.WithOperator(context.Background(), allActs))
	if err != nil {
		p.Fatal(err)
	}
	for _, row := range rows {
		if row.At.IsZero() || strings.Contains(row.Detail, "acme") || strings.Contains(row.Detail, "support-agent") || strings.Contains(row.Detail, "case-42") {
			p.Errorf("an act is %+v", row)
		}
		acts = append(acts, row.Kind+" "+row.Actor)
	}
	return acts
}

func TestR57WhoErasedAndClosedIsAudited(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(refund("A", "1")), settle.StatusCompleted)
		ann := settle.WithOperator(p.ctx, settle.Operator{Name: "ann", Tenants: []string{"acme"}})
		who := settle.Principal{Tenant: "acme", Subject: "support-agent"}
		for _, ctx := range []context.Context{p.ctx, ann} {
			if _, err := p.x.Erase(ctx, who, nil); err != nil {
				w.Fatal(err)
			}
		}
		gone, leave := context.WithCancel(ann)
		leave()
		if _, err := p.x.Erase(gone, who, nil); err == nil {
			w.Error("erasing went on for a caller who had gone")
		}
		open := p.inTask("case-43")
		open.unknownTicket()
		if err := open.x.CloseTask(settle.WithOperator(open.ctx, settle.Operator{Name: "bo"})); err == nil {
			w.Error("an unsettled task was closed")
		}
		// What a host closes as part of its day's work is in the intent's row alone.
		done := p.inTask("case-44")
		w.want(done.call(refund("B", "1")), settle.StatusCompleted)
		if err := done.x.CloseTask(done.ctx); err != nil {
			w.Error(err)
		}
		for range 2 { // the second time nothing changes
			if err := p.x.CloseTask(ann); err != nil {
				w.Fatal(err)
			}
		}
		want := "erase host, erased host, erase operator:ann, erased operator:ann, close operator:bo, close_failed operator:bo, close operator:ann, closed operator:ann"
		equal(w, "the audit", strings.Join(p.acts(), ", "), want)
	})
}

func TestR57NobodyErasesWithoutBeingAllowed(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var asked []string
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(), settle.WithOperatorPolicy(func(_ context.Context, a settle.OperatorAction) error {
			asked = append(asked, a.Action+" "+a.Tenant)
			if a.Operator.Name == "bo" {
				return errors.New("not bo")
			}
			return nil
		}))
		call := reserving("chair", "ann")
		w.want(p.call(call), settle.StatusCompleted)
		who := settle.Principal{Tenant: "acme", Subject: "support-agent"}
		for _, o := range []settle.Operator{{Name: "bo"}, {Name: "eve", Tenants: []string{"globex"}}} {
			ctx := settle.WithOperator(p.ctx, o)
			if _, err := p.x.Erase(ctx, who, nil); !errors.Is(err, settle.ErrNotAllowed) {
				w.Errorf("%s erases: %v", o.Name, err)
			}
			if err := p.x.CloseTask(ctx); !errors.Is(err, settle.ErrNotAllowed) {
				w.Errorf("%s closes: %v", o.Name, err)
			}
			if _, err := p.x.Queue().Acts(ctx); !errors.Is(err, settle.ErrNotAllowed) {
				w.Errorf("%s sees the acts: %v", o.Name, err)
			}
		}
		if acts := p.acts(); len(acts) != 0 {
			w.Errorf("what was refused is audited as %v", acts)
		}
		equal(w, "what the policy was asked", strings.Join(asked, ", "), "erase acme, close acme, acts , acts ")
		w.wantReplay(p.call(call), settle.StatusCompleted)
	})
}

// Without a row that says by whom, nothing is taken away.
func TestR57WithoutAnAuditNothingIsErased(t *testing.T) {
	g := inMemory(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.ledger.next("audit", down, down)
	if _, err := x.Erase(g.ctx, settle.Principal{Tenant: "acme", Subject: "bot"}, nil); err == nil {
		t.Error("erased without a row")
	}
	ann := settle.WithOperator(g.ctx, settle.Operator{Name: "ann"})
	if err := x.CloseTask(ann); err == nil {
		t.Error("closed without a row")
	}
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
}
