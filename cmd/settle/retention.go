package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

func (a *app) purge() *cobra.Command {
	var after string
	c := &cobra.Command{Use: "purge", Short: "Take the payload from operations whose retention is over",
		Long: "Take arguments, results and names from the settled operations whose retention is\nover, and leave tombstones that keep them from being executed again (R51). It\nworks in pages beside live traffic, and can be interrupted anywhere.",
		Args: arguments(0)}
	c.Flags().StringVar(&after, "after", "", "go on behind this operation, as an interrupted purge has said")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := a.ofAllTenants("purge"); err != nil {
			return err
		}
		return a.onLedger(c.Context(), writes, func(d *desk) error {
			meter := a.meter()
			done, err := d.Purge(c.Context(), after, func(p settle.PurgeProgress) { meter.show(purged(p)) })
			return a.removed(meter, done, err, "purge")
		})
	}
	return c
}

func purged(p settle.PurgeProgress) string {
	return fmt.Sprintf("%s looked at, %d purged", countOf(p.Seen, "operation"), p.Removed)
}

// removed reports the end of a purge, or where it was interrupted.
func (a *app) removed(meter *meter, done settle.PurgeProgress, err error, again ...string) error {
	meter.clear()
	if errors.Is(err, settle.ErrCursor) {
		return usage("--after takes the operation that an interrupted purge has named: %w", err)
	}
	if err != nil {
		if done.After != "" && len(again) == 1 {
			again = append(again, "--after", done.After)
		}
		return next(fmt.Errorf("%s before it ended: %w", purged(done), err), a.command(again...))
	}
	if a.json {
		a.encode(a.out, map[string]int{"seen": done.Seen, "removed": done.Removed})
		return nil
	}
	fmt.Fprintf(a.out, "%s.\n", purged(done))
	return nil
}

func (a *app) erase() *cobra.Command {
	var p settle.Principal
	var yes bool
	c := &cobra.Command{Use: "erase --tenant TENANT --subject SUBJECT --yes", Short: "Erase the payloads of one principal",
		Long: "Erase arguments and results of all operations of one principal at once, whatever\ntheir age and state, and leave tombstones (R52). It can't be undone. An operation\nthat isn't settled can then only be decided by a person. The names of tasks go\nwhen they are closed.",
		Args: arguments(0), DisableFlagsInUseLine: true}
	c.Flags().StringVar(&p.Tenant, "tenant", "", "the principal's tenant")
	c.Flags().StringVar(&p.Subject, "subject", "", "the principal's subject")
	c.Flags().BoolVar(&yes, "yes", false, "erase: without it nothing is done")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if p.Tenant == "" || p.Subject == "" {
			return usage("erase needs --tenant and --subject")
		}
		if !yes {
			return usage("erase can't be undone: repeat it with --yes")
		}
		return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
			if err := a.within(p.Tenant); err != nil {
				return err
			}
			meter := a.meter()
			done, err := d.Erase(ctx, p, func(p settle.PurgeProgress) { meter.show(purged(p)) })
			return a.removed(meter, done, err, "erase", "--tenant", quote(p.Tenant), "--subject", quote(p.Subject), "--yes")
		})
	}
	return c
}

// within refuses a tenant that the operator doesn't see.
func (a *app) within(tenant string) error {
	o, err := a.operator()
	if err != nil {
		return err
	}
	if o.Tenants != nil && !slices.Contains(o.Tenants, tenant) {
		return fmt.Errorf("%w: the tenant isn't among SETTLE_OPERATOR_TENANTS", settle.ErrNotAllowed)
	}
	return nil
}

func (a *app) closeTask() *cobra.Command {
	var n names
	var yes bool
	c := &cobra.Command{Use: "close [OPERATION] --yes", Short: "Close a task for good",
		Long: "Close a task for good: its names go, its operations become tombstones that a\nlater purge deletes, and every later call in it is answered \"expired\" (R52). It\ncan't be undone, and is refused while an operation isn't settled. The task is\nnamed by one of its operations, or by its own names; a long ledger is read\nthrough for those.",
		Args: arguments(0, "OPERATION"), DisableFlagsInUseLine: true}
	n.add(c)
	c.Flags().BoolVar(&yes, "yes", false, "close: without it nothing is done")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := n.check(args); err != nil {
			return err
		}
		if !yes {
			return usage("a closed task can't be opened again: repeat it with --yes")
		}
		return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error { return a.closeNamed(ctx, d, args, n) })
	}
	return c
}

func (a *app) closeNamed(ctx context.Context, d *desk, args []string, n names) error {
	o, err := a.operationOf(ctx, d, args, n)
	if err != nil {
		return err
	}
	if d.keyless && strings.HasPrefix(o.Subject, sealedName) {
		return errKeyless
	}
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: o.Tenant, Subject: o.Subject})
	if err := d.CloseTask(settle.WithTask(ctx, settle.Task{ID: o.Task, Goal: o.Goal})); err != nil {
		return next(err, a.command("ops", "list", "--tenant", quote(o.Tenant), "--task", quote(o.Task)))
	}
	if a.json {
		a.encode(a.out, map[string]any{"tenant": o.Tenant, "task": o.Task, "closed": true})
		return nil
	}
	fmt.Fprintln(a.out, "The task is closed.")
	return nil
}
