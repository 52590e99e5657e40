package farside_test

import (
	"testing"
	"time"

	"github.com/settle-go/settle/internal/farside"
)

func TestTicketsAreSearchedAndNotDeduplicated(t *testing.T) {
	t.Parallel()
	c := newClock()
	desk := farside.NewTickets(farside.Clock(c.now), farside.VisibleAfter(time.Second))
	client := farside.NewTicketsClient(desk.URL())
	closeAfter(t, desk, client)
	for _, title := range []string{"Late parcel", "Late parcel", "Lost parcel"} {
		_, err := client.Open(t.Context(), title, "text")
		requireNoError(t, err)
	}
	requireEffects(t, desk.Server, 3)
	if twice := desk.Duplicates(); len(twice) != 1 || len(twice[0]) != 2 {
		t.Fatalf("expected one title twice, got %+v", twice)
	}
	hidden, err := client.Search(t.Context(), "parcel")
	requireNoError(t, err)
	c.advance(time.Second)
	all, err := client.Search(t.Context(), "PARCEL")
	requireNoError(t, err)
	exact, err := client.FindByTitle(t.Context(), "Lost parcel")
	requireNoError(t, err)
	none, err := client.FindByTitle(t.Context(), "lost")
	requireNoError(t, err)
	if len(hidden) != 0 || len(all) != 3 || len(exact) != 1 || len(none) != 0 {
		t.Fatalf("expected 0, 3, 1 and 0 tickets, got %d, %d, %d and %d", len(hidden), len(all), len(exact), len(none))
	}
}

func TestTicketsCloseOnce(t *testing.T) {
	t.Parallel()
	desk := farside.NewTickets()
	client := farside.NewTicketsClient(desk.URL())
	closeAfter(t, desk, client)
	ticket, err := client.Open(t.Context(), "Late parcel", "")
	requireNoError(t, err)
	for range 2 {
		got, err := client.CloseTicket(t.Context(), ticket.ID)
		requireNoError(t, err)
		if !got.Closed {
			t.Fatalf("expected a closed ticket, got %+v", got)
		}
	}
	requireEffects(t, desk.Server, 2)
	if e := desk.Effects()[1]; e.Kind != "ticket_closed" || e.Resource != ticket.ID {
		t.Fatalf("expected one closing, got %+v", e)
	}
	_, err = client.CloseTicket(t.Context(), "tk_9999")
	if e := requireKind(t, err, farside.Rejected); e.Status != 404 {
		t.Fatalf("expected 404, got %d", e.Status)
	}
}

func TestMailIsFoundByHeaderOnlyWhereSearchable(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]farside.Option{"plain": nil, "searchable": {farside.Searchable()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay := farside.NewMail(opts...)
			client := farside.NewMailClient(relay.URL())
			closeAfter(t, relay, client)
			for range 2 {
				_, err := client.Send(t.Context(), farside.Message{
					To: "ann@example.org", Purpose: "refund", Subject: "Your refund", Body: "It is on its way.",
					Headers: map[string]string{"x-operation": "op-1"},
				})
				requireNoError(t, err)
			}
			requireEffects(t, relay.Server, 2)
			e := relay.Effects()[0]
			if e.Fields["to"] != "ann@example.org" || e.Fields["header.X-Operation"] != "op-1" || len(relay.Duplicates()) != 1 {
				t.Fatalf("expected both messages in the journal, got %+v", e)
			}
			found, err := client.FindByHeader(t.Context(), "X-Operation", "op-1")
			if opts == nil {
				requireKind(t, err, farside.Rejected)
				return
			}
			requireNoError(t, err)
			none, err := client.FindByHeader(t.Context(), "X-Operation", "op-2")
			requireNoError(t, err)
			if len(found) != 2 || len(none) != 0 {
				t.Fatalf("expected 2 messages and none, got %+v and %+v", found, none)
			}
		})
	}
}

func TestLabelsCountWritesAndChanges(t *testing.T) {
	t.Parallel()
	labels := farside.NewLabels()
	client := farside.NewLabelsClient(labels.URL())
	closeAfter(t, labels, client)
	for _, label := range []string{"urgent", "urgent", "done", "urgent"} {
		_, err := client.Set(t.Context(), "7/a b", label)
		requireNoError(t, err)
	}
	issue, err := client.Get(t.Context(), "7/a b")
	requireNoError(t, err)
	if issue != (farside.Issue{ID: "7/a b", Label: "urgent", Version: 3}) {
		t.Fatalf("expected the third change, got %+v", issue)
	}
	if labels.Acted() != 4 {
		t.Fatalf("expected 4 writes, got %d", labels.Acted())
	}
	requireEffects(t, labels.Server, 3)
	if twice := labels.Duplicates(); len(twice) != 1 || len(twice[0]) != 2 {
		t.Fatalf("expected one state written anew after another, got %+v", twice)
	}
	_, err = client.SetIf(t.Context(), "7/a b", "done", 2)
	if e := requireKind(t, err, farside.Rejected); e.Status != 412 {
		t.Fatalf("expected 412, got %d", e.Status)
	}
	_, err = client.SetIf(t.Context(), "7/a b", "done", 3)
	requireNoError(t, err)
	if labels.Acted() != 5 {
		t.Fatalf("expected a refused write not to count, got %d", labels.Acted())
	}
}

func TestBalanceCountsReads(t *testing.T) {
	t.Parallel()
	bank := farside.NewBalance()
	client := farside.NewBalanceClient(bank.URL())
	closeAfter(t, bank, client)
	bank.SetBalance("acc-1", "12.50")
	got, err := client.Get(t.Context(), "acc-1")
	requireNoError(t, err)
	none, err := client.Get(t.Context(), "acc-2")
	requireNoError(t, err)
	if got.Amount != "12.50" || none.Amount != "0" {
		t.Fatalf("expected 12.50 and 0, got %s and %s", got.Amount, none.Amount)
	}
	bank.Reads.Next(farside.CommitThenDrop(), farside.DropBefore())
	for range 2 {
		_, err = client.Get(t.Context(), "acc-1")
		requireKind(t, err, farside.Unknown)
	}
	if bank.Acted() != 3 {
		t.Fatalf("expected 3 reads, got %d", bank.Acted())
	}
	requireRequests(t, bank.Server, 4)
	requireEffects(t, bank.Server, 0)
}
