package storetest

import (
	"errors"

	"github.com/settle-go/settle/store"
)

func tenancy(s suite) {
	s.test("R46AnotherTenantsOperationIsNotFound", func(w *world) {
		acme := w.intentOf("acme", "t")
		w.intentOf("umbrella", "t")
		o := w.record(acme)
		for _, name := range []string{"umbrella", "nobody", "", "Acme", "acme ", "acm", "%", "'"} {
			if _, err := w.Ledger.Get(w.ctx, name, o.ID); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("Get as tenant %q gave the error %v, want ErrNotFound", name, err)
			}
		}
		w.unchanged(o)
	})
	s.test("R46AnUnknownReferenceIsNotFound", func(w *world) {
		i := w.intent()
		_, err := w.Ledger.Get(w.ctx, i.TenantName, ID())
		if !errors.Is(err, store.ErrNotFound) || !store.Unwritten(err) {
			w.Errorf("got the error %v, want ErrNotFound", err)
		}
	})
	s.test("R6TheSameTaskOfAnotherTenantIsAnotherIntent", func(w *world) {
		acme, other := w.intentOf("acme", "t"), w.intentOf("umbrella", "t")
		if acme.ID == other.ID || acme.Tenant == other.Tenant {
			w.Fatal("two tenants share an intent or an id")
		}
		first := w.record(acme)
		second := w.record(other, On(first, 1))
		entries, err := w.Ledger.List(w.ctx, store.Filter{Tenant: "acme"})
		w.must(err, "List")
		w.wantIDs(entries, first)
		entries, err = w.Ledger.List(w.ctx, store.Filter{Tenant: "umbrella"})
		w.must(err, "List")
		w.wantIDs(entries, second)
	})
}

func list(s suite) {
	s.test("R39EveryFieldOfAFilterSelects", everyFilter)
	s.test("R39TheListContinuesInTheOrderOfClaims", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for range 7 {
			all = append(all, w.record(i))
		}
		f := store.Filter{Limit: 3}
		for _, page := range [][]store.Operation{all[:3], all[3:6], all[6:], nil} {
			entries, err := w.Ledger.List(w.ctx, f)
			w.must(err, "List")
			w.wantIDs(entries, page...)
			if len(entries) > 0 {
				f.After = entries[len(entries)-1].ID
			}
		}
	})
	s.test("R39WithoutALimitTheListEndsAfterAThousand", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for range 11 {
			for _, a := range w.claimAll(manyClaims(i, 100)...) {
				w.wantWon(a)
				all = append(all, a.Operation)
			}
		}
		entries, err := w.Ledger.List(w.ctx, store.Filter{Intent: i.ID})
		w.must(err, "List")
		w.wantIDs(entries, all[:1000]...)
		entries, err = w.Ledger.List(w.ctx, store.Filter{Intent: i.ID, Limit: 1050})
		w.must(err, "List")
		want(w, "rows with a higher limit", len(entries), 1050)
	})
}

func everyFilter(w *world) {
	acme, other := w.intentOf("acme", "t"), w.intentOf("umbrella", "t")
	next := w.intentOf("acme", "t-2")
	parent := w.record(acme, Tool("trip"))
	step := w.record(acme, func(o *store.Operation) { o.Parent = parent.ID })
	failed := w.standing(acme, store.Failed)
	mail := w.record(next, Tool("mail"))
	again := w.record(next, On(failed, 1))
	foreign := w.standing(other, store.Failed)
	namesake := w.record(other, On(failed, 1))
	for name, c := range map[string]struct {
		filter store.Filter
		rows   []store.Operation
	}{
		"all":            {store.Filter{}, []store.Operation{parent, step, failed, mail, again, foreign, namesake}},
		"tenant":         {store.Filter{Tenant: "acme"}, []store.Operation{parent, step, failed, mail, again}},
		"unknown tenant": {store.Filter{Tenant: "nobody"}, nil},
		"intent":         {store.Filter{Intent: acme.ID}, []store.Operation{parent, step, failed}},
		"parent":         {store.Filter{Parent: parent.ID}, []store.Operation{step}},
		"state":          {store.Filter{States: []store.State{store.Failed}}, []store.Operation{failed, foreign}},
		"states":         {store.Filter{States: []store.State{store.Failed, store.Running}}, []store.Operation{parent, step, failed, mail, again, foreign, namesake}},
		"tool":           {store.Filter{Tool: "mail"}, []store.Operation{mail}},
		"node":           {store.Filter{Node: failed.Node}, []store.Operation{failed, again, namesake}},
		"tenant's node":  {store.Filter{Tenant: "acme", Tool: "refund", Node: failed.Node}, []store.Operation{failed, again}},
		"node from":      {store.Filter{Tenant: "acme", Node: failed.Node, After: failed.ID, Limit: 1}, []store.Operation{again}},
		"unknown node":   {store.Filter{Node: SomeDigest()}, nil},
		"after":          {store.Filter{After: failed.ID}, []store.Operation{mail, again, foreign, namesake}},
		"limit":          {store.Filter{Limit: 2}, []store.Operation{parent, step}},
		"together": {store.Filter{Tenant: "acme", Intent: acme.ID, States: []store.State{store.Failed}, Tool: "refund", After: step.ID, Limit: 5},
			[]store.Operation{failed}},
		"contradiction": {store.Filter{Tenant: "umbrella", Intent: acme.ID}, nil},
	} {
		entries, err := w.Ledger.List(w.ctx, c.filter)
		w.must(err, "List by "+name)
		w.wantIDs(entries, c.rows...)
		for n, e := range entries {
			w.wantRow(e.Operation, c.rows[n])
		}
	}
}
