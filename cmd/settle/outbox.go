package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

func (a *app) outboxCommands() *cobra.Command {
	return a.group("outbox", "Events that haven't been delivered (R54)", a.outboxList(), a.outboxRetry(), a.outboxDiscard())
}

// eventLine is an event in the JSON form.
type eventLine struct {
	Event      string     `json:"event"`
	Type       string     `json:"type"`
	Operation  string     `json:"operation"`
	Tenant     string     `json:"tenant"`
	At         time.Time  `json:"at"`
	Deliveries int        `json:"deliveries"`
	Dead       bool       `json:"dead"`
	NextAt     *time.Time `json:"next_at,omitempty"`
}

func (a *app) outboxList() *cobra.Command {
	var f settle.OutgoingEventFilter
	c := &cobra.Command{Use: "list", Short: "List events that wait, the oldest first",
		Long: "List the events that wait in the outbox, the oldest first. A dead one was given\nup: it waits for retry or discard, and the later events of its operation behind\nit.", Args: arguments(0)}
	c.Flags().StringVar(&f.Tenant, "tenant", "", "only events of this tenant")
	c.Flags().BoolVar(&f.Dead, "dead", false, "only events that were given up")
	c.Flags().IntVar(&f.Limit, "limit", 100, "at most as many, up to 1000")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
			events, err := d.queue.Undelivered(ctx, f)
			if err == nil {
				a.showEvents(events)
			}
			return err
		})
	}
	return c
}

func (a *app) showEvents(events []settle.OutgoingEvent) {
	if a.json {
		list := struct {
			Events []eventLine `json:"events"`
		}{[]eventLine{}}
		for _, e := range events {
			line := eventLine{Event: e.ID, Type: e.Type, Operation: e.Operation, Tenant: e.Tenant, At: e.At, Deliveries: e.Deliveries, Dead: e.Dead}
			if !e.NextAt.IsZero() {
				line.NextAt = &e.NextAt
			}
			list.Events = append(list.Events, line)
		}
		a.encode(a.out, list)
		return
	}
	t := table{columns: []column{{title: "EVENT", whole: true}, {title: "TYPE"}, {title: "NEXT", whole: true}, {title: "DELIVERIES", last: 2},
		{title: "OPERATION", whole: true, last: 1}, {title: "TENANT", last: 3}, {title: "WRITTEN", whole: true, last: extra}}}
	for _, e := range events {
		next := "dead"
		switch {
		case e.Dead:
		case e.NextAt.IsZero():
			next = "behind a dead one"
		default:
			next = a.stamped(e.NextAt)
		}
		t.rows = append(t.rows, []string{e.ID, shown(e.Type), next, fmt.Sprint(e.Deliveries), e.Operation, shown(e.Tenant), a.stamped(e.At)})
	}
	if len(t.rows) == 0 && a.out.terminal() {
		fmt.Fprintln(a.out, "No events.")
		return
	}
	t.write(a.out, a.bold)
}

func (a *app) outboxRetry() *cobra.Command {
	return a.onEvent("retry EVENT --tenant TENANT", "Let an event go out at once, a dead one too", "", "The event goes out with the relay's next pass.",
		func(ctx context.Context, q *settle.Queue, tenant, event string) error {
			return q.Redeliver(ctx, tenant, event)
		})
}

func (a *app) outboxDiscard() *cobra.Command {
	return a.onEvent("discard EVENT --tenant TENANT --yes", "Delete an event without delivering it",
		"an event that is discarded is told to nobody", "The event is gone, and what waited behind it goes out.",
		func(ctx context.Context, q *settle.Queue, tenant, event string) error {
			return q.Discard(ctx, tenant, event)
		})
}

// onEvent is a command on one event. Warning, where there is one, asks for --yes.
func (a *app) onEvent(use, short, warning, done string, do func(context.Context, *settle.Queue, string, string) error) *cobra.Command {
	var tenant string
	var yes bool
	c := &cobra.Command{Use: use, Short: short, Args: arguments(1, "EVENT"), DisableFlagsInUseLine: true}
	c.Flags().StringVar(&tenant, "tenant", "", "the event's tenant, as outbox list shows it")
	if warning != "" {
		c.Flags().BoolVar(&yes, "yes", false, "do it: without it nothing is done")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case tenant == "":
			return usage("%s needs --tenant", c.CommandPath())
		case warning != "" && !yes:
			return usage("%s: repeat it with --yes", warning)
		}
		return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
			err := do(ctx, d.queue, tenant, args[0])
			if errors.Is(err, store.ErrNotFound) {
				err = fmt.Errorf("the tenant has no such event in the outbox: it was delivered or discarded, or it is another tenant's: %w", err)
			}
			if err != nil {
				return next(err, a.command("outbox", "list"))
			}
			if a.json {
				a.encode(a.out, map[string]string{"event": args[0]})
				return nil
			}
			fmt.Fprintln(a.out, done)
			return nil
		})
	}
	return c
}
