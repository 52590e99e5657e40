package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// outcomes are the decisions, with what follows from each.
var outcomes = []struct {
	kind    settle.DecisionKind
	follows string
}{
	{settle.DecideHappened, "it happened: the operation completes with --resource, and --result if given; nothing is sent"},
	{settle.DecideRunOnce, "it did not happen: it is run once more, under the same key"},
	{settle.DecideFail, "it did not happen, and won't; nothing is sent"},
	{settle.DecideAbandon, "closed without knowing; it is never executed again"},
	{settle.DecideApprove, "the effect that waits for approval is allowed, once"},
	{settle.DecideDeny, "it is refused; nothing is sent"},
	{settle.DecideHandBack, "the machine looks for evidence again"},
	{settle.DecideAcknowledge, "an incident on a settled operation is closed"},
}

func outcomeNames() []string {
	var names []string
	for _, o := range outcomes {
		names = append(names, string(o.kind))
	}
	return names
}

// decisionFlags are those that decide and confirm share.
type decisionFlags struct {
	version    seenVersion
	reason, id string
}

func (f *decisionFlags) add(c *cobra.Command, reason string) {
	c.Flags().Var(&f.version, "version", "the version of the case that you saw (on a terminal it is asked for)")
	c.Flags().StringVar(&f.reason, "reason", "", reason)
	c.Flags().StringVar(&f.id, "id", "", "the decision's id, a UUID, to send the same decision again (default a new one)")
}

func (a *app) queueDecide() *cobra.Command {
	var f decisionFlags
	var resource, result string
	var none bool
	c := &cobra.Command{Use: "decide OPERATION OUTCOME --version N --reason TEXT", Short: "Settle a case", Args: arguments(2, "OPERATION", "OUTCOME"),
		ValidArgsFunction: a.completeDecision, DisableFlagsInUseLine: true}
	var help strings.Builder
	help.WriteString("Settle a case. There is no default outcome; these exist:\n\n")
	for _, o := range outcomes {
		fmt.Fprintf(&help, "  %-14s %s\n", o.kind, o.follows)
	}
	help.WriteString("\nA decision is for the version that you saw, and is refused where the case has\nmoved on. The same --id again changes nothing: it is safe to repeat.")
	c.Long = help.String()
	f.add(c, "how it was found out, in words")
	c.Flags().StringVar(&resource, "resource", "", "for happened: the effect's id at the far side")
	c.Flags().BoolVar(&none, "no-resource", false, "for happened: the effect has no id")
	c.Flags().StringVar(&result, "result", "", "for happened: the result as JSON, @FILE, or - for standard input")
	c.MarkFlagsMutuallyExclusive("resource", "no-resource")
	c.RunE = func(c *cobra.Command, args []string) error {
		d := settle.Decision{Operation: args[0], Kind: settle.DecisionKind(args[1]), Resource: resource}
		if err := checkOutcome(d.Kind, resource != "" || none, resource != "" || none || result != ""); err != nil {
			return err
		}
		encoded, err := a.resultOf(result)
		if err != nil {
			return err
		}
		d.Result = encoded
		return a.decide(c.Context(), f, d)
	}
	return c
}

// checkOutcome refuses what can't be meant.
func checkOutcome(kind settle.DecisionKind, resource, any bool) error {
	for _, o := range outcomes {
		switch {
		case o.kind != kind:
			continue
		case kind == settle.DecideHappened && !resource:
			return usage("happened needs --resource, the effect's id at the far side, or --no-resource where it has none")
		case kind != settle.DecideHappened && any:
			return usage("--resource and --result are for happened: %s says that nothing is known to have happened", kind)
		}
		return nil
	}
	said := fmt.Sprintf("%q is no outcome; the outcomes are %s", kind, strings.Join(outcomeNames(), ", "))
	if near := strings.ReplaceAll(string(kind), "-", "_"); near != string(kind) && checkOutcome(settle.DecisionKind(near), true, false) == nil {
		said = fmt.Sprintf("%q is no outcome; did you mean %s?", kind, near)
	}
	return usage("%s", said)
}

// resultOf reads --result.
func (a *app) resultOf(text string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "":
		return nil, nil
	case isFile:
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, usage("the result's file can't be read: %w", err)
		}
		return content, nil
	}
	read, err := a.textOf(text)
	return json.RawMessage(read), err
}

// decide settles a case.
func (a *app) decide(ctx context.Context, f decisionFlags, d settle.Decision) error {
	return a.deciding(ctx, &f, d.Operation, string(d.Kind), func(ctx context.Context, desk *desk) (settle.Case, error) {
		if len(d.Result) > 0 {
			if err := a.readable(ctx, desk, d.Operation); err != nil {
				return settle.Case{}, err
			}
		}
		d.Version, d.ID, d.Reason = f.version.n, f.id, f.reason
		return desk.queue.Decide(ctx, d)
	})
}

// deciding is what decide and confirm have in common: the version, the id, and
// what is said at the end.
func (a *app) deciding(ctx context.Context, f *decisionFlags, reference, what string, do func(context.Context, *desk) (settle.Case, error)) error {
	if strings.TrimSpace(f.reason) == "" {
		return usage("a decision needs --reason: say in words how it was found out (R40)")
	}
	if f.version.n == 0 && (!a.asks || !a.err.terminal()) {
		return usage("a decision needs --version, the one that %q prints (R41)", a.command("queue", "show", quote(reference)))
	}
	if f.id == "" {
		f.id = a.newID()
	}
	if id, err := uuid.Parse(f.id); err != nil || id == uuid.Nil {
		return usage("--id takes a UUID of the decision's own (R41)")
	}
	return a.onQueue(ctx, writes, func(ctx context.Context, d *desk) error {
		if f.version.n == 0 {
			if err := a.askVersion(ctx, d, f, reference, what); err != nil {
				return err
			}
		}
		c, err := do(ctx, d)
		if err != nil {
			return a.undecided(ctx, d, reference, f.id, err)
		}
		return a.decided(c, f.id, what)
	})
}

// askVersion shows how the case stands and asks for its version: whoever types
// it has seen it.
func (a *app) askVersion(ctx context.Context, d *desk, f *decisionFlags, reference, what string) error {
	c, err := d.queue.Get(ctx, reference)
	if err != nil {
		return a.advise(ctx, d, reference, err)
	}
	fmt.Fprintf(a.err, "%s of %s, task %s: %s, because: %s, open for %s.\n", shown(c.Tool), shown(c.Tenant), shown(c.Task), stateOf(c.CaseSummary), shown(c.Reason), a.openFor(c.CaseSummary))
	fmt.Fprintf(a.err, "The case is at version %d. To decide %q, type the version: ", c.Version, what)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && line == "" {
		return usage("no version was typed; nothing was decided")
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 {
		return usage("that is no version; nothing was decided")
	}
	f.version.n = n
	return nil
}

// undecided says what to do where a decision wasn't taken, or nobody knows.
func (a *app) undecided(ctx context.Context, d *desk, reference, id string, err error) error {
	if exit, _ := meaning(err); exit == exitFailed && !store.Unwritten(err) {
		return next(fmt.Errorf("nobody knows whether the decision was recorded; with the same id it can be repeated and is taken once: %w", err),
			"the same command with --id "+id)
	}
	return a.advise(ctx, d, reference, err)
}

// decidedView is a decision that was taken, or proposed.
type decidedView struct {
	caseLine
	Decision string `json:"decision"`
	// ID is the decision's: sending it again changes nothing.
	ID string `json:"decision_id"`
	// Next confirms what was proposed.
	Next string `json:"next,omitempty"`
}

func (a *app) decided(c settle.Case, id, what string) error {
	v := decidedView{caseLine: newCaseLine(c.CaseSummary), Decision: what, ID: id}
	if c.Proposed {
		v.Next = a.confirmCommand(c)
	}
	switch {
	case a.json:
		a.encode(a.out, v)
	case c.Proposed:
		fmt.Fprintf(a.out, "Proposed: %s. The operation is still %s, at version %d (decision %s).\n", what, c.State, c.Version, id)
		fmt.Fprintf(a.out, "A second person confirms it:\n  %s\n", v.Next)
	default:
		fmt.Fprintf(a.out, "%s. The operation is %s, at version %d (decision %s).\n", taken(c, what), c.State, c.Version, id)
	}
	if c.Proposed {
		return errSecondPerson
	}
	return nil
}

// taken says what was decided; of a confirmation, what was confirmed.
func taken(c settle.Case, what string) string {
	if what != confirms {
		return "Decided: " + what
	}
	for _, e := range slices.Backward(c.Events) {
		if kind, _, _ := strings.Cut(e.Text, ":"); e.Kind == "decided" {
			return "Confirmed: " + shown(kind)
		}
	}
	return "Confirmed"
}

// confirms is the second person's decision.
const confirms = "confirm"

func (a *app) queueConfirm() *cobra.Command {
	var f decisionFlags
	c := &cobra.Command{Use: "confirm OPERATION --version N --reason TEXT", Short: "Confirm what another person has proposed",
		Long: "Confirm what another person has proposed, where the tool asks for two (R41). The\nproposal is void where anything has happened to the case since.",
		Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeCases, DisableFlagsInUseLine: true}
	f.add(c, "how you made sure, in words")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.deciding(c.Context(), &f, args[0], confirms, func(ctx context.Context, d *desk) (settle.Case, error) {
			return d.queue.Confirm(ctx, args[0], f.version.n, f.id, f.reason)
		})
	}
	return c
}

// completeDecision offers cases, then the outcomes.
func (a *app) completeDecision(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeCases(c, args, prefix)
	}
	var found []string
	for _, o := range outcomes {
		found = append(found, cobra.CompletionWithDesc(string(o.kind), o.follows))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
