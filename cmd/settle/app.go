package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// app is one run of the command line.
type app struct {
	process
	bold bool

	// The global flags.
	ledger, schema string
	json           bool
}

// run runs one command line to its exit code.
func run(ctx context.Context, p process, args []string) int {
	a := &app{process: p}
	a.bold = p.out.terminal() && p.env("NO_COLOR") == "" && p.env("TERM") != "dumb"
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would be the program's own
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	if slices.Contains(args, "--json") {
		a.json = true // also where reading the flags has failed before it
	}
	return a.end(err)
}

const rootHelp = `settle lists and settles the operations that no machine can settle, and keeps
and checks their ledger.

Environment:
  SETTLE_LEDGER            the ledger, where --ledger isn't given
  SETTLE_SCHEMA            the PostgreSQL schema, where --schema isn't given
  SETTLE_OPERATOR          who you are; the administrator of the host sets it
  SETTLE_OPERATOR_TENANTS  the tenants that you may see, comma-separated (all)
  SETTLE_KEYS              the codec's keys: ID:BASE64,…, the current one first
  NO_COLOR                 no bold text

Exit codes:
  0  done
  1  failed, or verify or doctor have found something
  2  usage
  3  stale version, or a conflict: look again
  4  a second person is needed
  5  refused by a rule`

func (a *app) root() *cobra.Command {
	root := a.group("settle", "The operator's command line of settle",
		a.queueCommands(), a.opsCommands(), a.outboxCommands(), a.migrate(), a.purge(), a.erase(), a.closeTask(), a.verify(), a.auditCommands(), a.doctor())
	root.Long = rootHelp
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w; see: %s --help", err, c.CommandPath())
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		// cobra does this too, but its error isn't known for one of usage.
		if err := c.ValidateFlagGroups(); err != nil {
			return usageError{err}
		}
		return nil
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.ledger, "ledger", "", "the ledger: sqlite:PATH or postgres://USER@HOST/DATABASE (SETTLE_LEDGER)")
	flags.StringVar(&a.schema, "schema", "", "the ledger's PostgreSQL schema (SETTLE_SCHEMA, else \"settle\")")
	flags.BoolVar(&a.json, "json", false, "write JSON")
	root.SetVersionTemplate("settle {{.Version}}\n")
	return root
}

// version is that of the module, as the build has recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// group is a command that only has commands below it. cobra alone would answer
// an unknown one with the help and success.
func (a *app) group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			if !a.json {
				c.SetOut(a.err)
				_ = c.Help() // what can't be written here can't be written below either
			}
			return usage("%s needs a command", c.CommandPath())
		}
		said := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			said += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage("%s; see: %s --help", said, c.CommandPath())
	}
	c.AddCommand(below...)
	return c
}

// arguments are a command's, by name; the last ones may be left out.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s needs %s; see: %s --help", c.CommandPath(), strings.Join(names[len(args):least], " and "), c.CommandPath())
		case len(args) > len(names):
			return usage("%s takes %s, and %q is one too many (a text of several words is quoted)", c.CommandPath(), countOf(len(names), "argument"), args[len(names)])
		}
		return nil
	}
}

// desk is an executor without tools on the ledger, and its queue.
type desk struct {
	*settle.Executor
	queue  *settle.Queue
	ledger store.Ledger
	place  place
	// sealed says that SETTLE_KEYS isn't set, so what is sealed can't be read.
	keyless bool
}

// onLedger opens the ledger for the time of one command.
func (a *app) onLedger(ctx context.Context, how access, do func(*desk) error) (err error) {
	at, err := a.place()
	if err != nil {
		return err
	}
	codec, err := readKeys(a.env("SETTLE_KEYS"))
	if err != nil {
		return err
	}
	ledger, err := a.open(ctx, at, how)
	if err != nil {
		return a.unopened(at, err)
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	options := []settle.Option{settle.WithLogger(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})))}
	if codec != nil {
		options = append(options, settle.WithCodec(codec))
	}
	x, err := settle.New(ledger, options...)
	if err != nil {
		return err
	}
	return do(&desk{Executor: x, queue: x.Queue(), ledger: ledger, place: at, keyless: codec == nil})
}

// onQueue opens the ledger for an operator.
func (a *app) onQueue(ctx context.Context, how access, do func(context.Context, *desk) error) error {
	operator, err := a.operator()
	if err != nil {
		return err
	}
	return a.onLedger(ctx, how, func(d *desk) error { return do(settle.WithOperator(ctx, operator), d) })
}

// place is the ledger that was named.
func (a *app) place() (place, error) {
	return parsePlace(firstOf(a.ledger, a.env("SETTLE_LEDGER")), firstOf(a.schema, a.env("SETTLE_SCHEMA")))
}

// firstOf is the first text that isn't empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// unopened says what to do about a ledger that can't be opened.
func (a *app) unopened(at place, err error) error {
	var schema *store.SchemaError
	switch {
	case errors.Is(err, errNoLedger):
		return next(err, a.command("migrate"))
	case errors.As(err, &schema) && schema.Have < schema.Want:
		return next(err, a.command("migrate"))
	}
	return fmt.Errorf("the %s ledger can't be opened: %w", at.kind(), err)
}

// command is a command line that can be typed, on the same ledger.
func (a *app) command(words ...string) string {
	line := "settle"
	if a.ledger != "" {
		at := quote(a.ledger)
		if secretive(a.ledger) {
			at = "…" // a password isn't repeated
		}
		line += " --ledger " + at
	}
	if a.schema != "" {
		line += " --schema " + quote(a.schema)
	}
	for _, w := range words {
		line += " " + w
	}
	return line
}
