package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
)

// unseen is what a verifier has to say for itself (R57).
const unseen = "What can't be seen without an anchor outside the ledger: the end of a journal that was cut off together with the row's memory of it, and an operation that was removed as a whole."

func (a *app) verify() *cobra.Command {
	return &cobra.Command{Use: "verify", Short: "Verify the ledger: its settings, and the journals of all operations",
		Long: "Verify the ledger: settings that break what settle promises, and the hash chains\nof all journals (R57). It exits with 1 where it finds something. Contracts are\nverified by the programs that have them (Executor.Verify).",
		Args: arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.ofAllTenants("verify", "audit", "chain", "OPERATION"); err != nil {
				return err
			}
			return a.onLedger(c.Context(), reads, func(d *desk) error {
				found, err := d.Verify(c.Context())
				if err != nil {
					return err
				}
				report, err := a.walk(c.Context(), d, "")
				if err != nil {
					return err
				}
				return a.showVerified(found, report)
			})
		}}
}

func (a *app) auditCommands() *cobra.Command {
	return a.group("audit", "Audit journals, and what was done to no one operation", a.auditChain(), a.auditActs())
}

func (a *app) auditChain() *cobra.Command {
	var after string
	c := &cobra.Command{Use: "chain [OPERATION]", Short: "Verify the hash chains of all journals, or of one",
		Long: "Verify the hash chains of all journals, or of one (R57). It exits with 1 where\none doesn't fit. " + unseen,
		Args: arguments(0, "OPERATION"), ValidArgsFunction: a.completeUnsettled}
	c.Flags().StringVar(&after, "after", "", "go on behind this operation, as an interrupted walk has said")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && after != "" {
			return usage("give an operation, or --after, but not both")
		}
		if len(args) == 0 {
			if err := a.ofAllTenants("audit chain", "audit", "chain", "OPERATION"); err != nil {
				return err
			}
		}
		return a.onLedger(c.Context(), reads, func(d *desk) error {
			if len(args) == 0 {
				report, err := a.walk(c.Context(), d, after)
				if err != nil {
					return err
				}
				return a.showVerified(nil, report)
			}
			if err := a.mayAudit(c.Context(), d, args[0]); err != nil {
				return a.noOperation(err)
			}
			report, err := d.VerifyChain(c.Context(), args[0])
			if err != nil {
				return a.noOperation(err)
			}
			return a.showVerified(nil, report)
		})
	}
	return c
}

// mayAudit keeps an operator of some tenants from the others' operations (R46). A
// nightly job has no operator, and verifies them all.
func (a *app) mayAudit(ctx context.Context, d *desk, reference string) error {
	if a.tenants() == nil {
		return nil
	}
	operator, err := a.operator()
	if err == nil {
		_, err = d.queue.Operation(settle.WithOperator(ctx, operator), reference)
	}
	return err
}

func (a *app) auditActs() *cobra.Command {
	return &cobra.Command{Use: "acts", Short: "Show who erased principals, closed tasks, and redelivered or discarded events",
		Long: "Show what was done that belongs to no one operation, with who did it and when: a\nprincipal was erased, a task was closed, an undelivered event was sent again or\ndiscarded. Nothing says whose data it was, so that it is only shown to those who\nmay see all tenants.",
		Args: arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.ofAllTenants("audit acts"); err != nil {
				return err
			}
			return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
				acts, err := d.queue.Acts(ctx)
				if err != nil {
					return err
				}
				a.showActs(acts)
				return nil
			})
		}}
}

func (a *app) showActs(acts []settle.AuditNotice) {
	if a.json {
		a.encode(a.out, map[string]any{"acts": newNotices(acts)})
		return
	}
	t := table{columns: []column{{title: "AT", whole: true}, {title: "WHAT", whole: true}, {title: "BY"}, {title: "DETAIL", last: 1}}}
	for _, n := range acts {
		t.rows = append(t.rows, []string{a.stamped(n.At), shown(n.Kind), shown(n.Actor), shown(n.Detail)})
	}
	if len(t.rows) == 0 && a.out.terminal() {
		fmt.Fprintln(a.out, "Nothing of the kind was done.")
		return
	}
	t.write(a.out, a.bold)
}

// walk verifies all journals and says where it was interrupted.
func (a *app) walk(ctx context.Context, d *desk, after string) (settle.ChainReport, error) {
	meter := a.meter()
	report, err := d.VerifyChains(ctx, after, func(r settle.ChainReport) { meter.show(walked(r)) })
	meter.clear()
	if err != nil && report.After != "" {
		for _, p := range report.Problems {
			fmt.Fprintln(a.err, said(p.Err))
		}
		err = next(fmt.Errorf("%s before it ended: %w", walked(report), err), a.command("audit", "chain", "--after", report.After))
	}
	return report, err
}

func walked(r settle.ChainReport) string {
	return fmt.Sprintf("%s verified, with %s", countOf(r.Operations, "journal"), countOf(r.Events, "event"))
}

type findingView struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Problem string `json:"problem"`
	Advice  string `json:"advice"`
}

type problemView struct {
	Operation string `json:"operation"`
	Problem   string `json:"problem"`
}

func newFindings(found []settle.Finding) []findingView {
	views := []findingView{}
	for _, f := range found {
		views = append(views, findingView{f.Setting, f.Value, f.Problem, f.Advice})
	}
	return views
}

// showVerified reports, and ends with an error where something was found.
func (a *app) showVerified(found []settle.Finding, r settle.ChainReport) error {
	problems := []problemView{}
	for _, p := range r.Problems {
		problems = append(problems, problemView{p.Operation, said(p.Err)})
	}
	if a.json {
		a.encode(a.out, map[string]any{"findings": newFindings(found), "operations": r.Operations, "events": r.Events, "problems": problems, "unseen": unseen})
	} else {
		p := a.page()
		for _, f := range newFindings(found) {
			a.showFinding(p, f)
		}
		for _, problem := range problems {
			p.text(0, "BROKEN "+problem.Problem)
		}
		p.line("%s, %s.", walked(r), ifElse(len(problems) == 0, "all whole", countOf(len(problems), "problem")))
		p.text(0, unseen)
	}
	if len(found)+len(problems) > 0 {
		return errFindings
	}
	return nil
}

func (a *app) showFinding(p page, f findingView) {
	p.text(0, "FOUND "+shown(f.Setting)+" = "+shown(f.Value)+": "+shown(f.Problem))
	p.text(2, "do: "+shown(f.Advice))
}
