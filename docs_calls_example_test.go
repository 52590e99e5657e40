package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
)

// A repeat that is meant, and one that isn't.
func Example_repeatable() {
	sent := 0 // what the far side did

	type args struct {
		Channel string `json:"channel" settle:"identity"`
		Text    string `json:"text"`
	}
	remind := settle.Tool[args, struct{}]{
		Name:     "remind",
		Contract: settle.Contract{NoLookup: true, Repeatable: true},
		Do: func(ctx context.Context, op settle.Op, in args) (struct{}, error) {
			sent++
			return struct{}{}, nil
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(remind), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []settle.Call{
		{Tool: "remind", CallID: "call_1", Args: json.RawMessage(`{"channel":"ops","text":"Standup","settle_occurrence":null}`)},
		{Tool: "remind", CallID: "call_2", Args: json.RawMessage(`{"channel":"ops","text":"Standup"}`)},
		{Tool: "remind", CallID: "call_3", Args: json.RawMessage(`{"channel":"ops","text":"Standup","settle_occurrence":2}`)},
	} {
		out, err := x.Execute(docsContext("case-45"), call)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status, "replayed:", out.Replayed, "possible repeat:", out.PossibleRepeat, "sent:", sent)
	}
	// Output:
	// completed replayed: false possible repeat: false sent: 1
	// completed replayed: true possible repeat: true sent: 1
	// completed replayed: false possible repeat: false sent: 2
}

// What an intent is wide enough for.
func Example_intent() {
	sent := 0 // what the far side did

	type args struct {
		To      string `json:"to" settle:"identity"`
		Purpose string `json:"purpose" settle:"identity"`
		Body    string `json:"body"`
	}
	mail := settle.Tool[args, struct{}]{
		Name:     "send_mail",
		Contract: settle.Contract{NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in args) (struct{}, error) {
			sent++
			return struct{}{}, nil
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(mail), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "billing-agent"})
	call := settle.Call{Tool: "send_mail", Args: json.RawMessage(`{"to":"a@example.org","purpose":"invoice","body":"…"}`)}
	for _, task := range []settle.Task{
		{ID: "invoices", Goal: "send"},        // too wide: one task for every month
		{ID: "invoices", Goal: "send"},        // the next month's is taken for a redelivery
		{ID: "invoice-2026-07", Goal: "send"}, // what is meant: the thing that happens once
		{ID: "invoice-2026-07", Goal: "send"}, // a worker that starts again
		{ID: "run-8842", Goal: "send"},        // too narrow: a new id for each run
		{ID: "run-8843", Goal: "send"},        // the restarted run mails again
	} {
		out, err := x.Execute(settle.WithTask(ctx, task), call)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(task.ID, "replayed:", out.Replayed, "sent:", sent)
	}
	// Output:
	// invoices replayed: false sent: 1
	// invoices replayed: true sent: 1
	// invoice-2026-07 replayed: false sent: 2
	// invoice-2026-07 replayed: true sent: 2
	// run-8842 replayed: false sent: 3
	// run-8843 replayed: false sent: 4
}

// A tool with two side effects, corrected after one of them was refused.
func Example_composite() {
	var opened, attached []string // what the far side did

	type ticketArgs struct {
		Title string `json:"title"`
	}
	type ticket struct {
		ID string `json:"id" settle:"resource"`
	}
	open := settle.Tool[ticketArgs, ticket]{
		Name:     "open_ticket",
		Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in ticketArgs) (ticket, error) {
			opened = append(opened, in.Title)
			return ticket{ID: fmt.Sprintf("T-%d", len(opened))}, nil
		},
	}
	type fileArgs struct {
		Ticket string `json:"ticket"`
		File   string `json:"file"`
	}
	attach := settle.Tool[fileArgs, struct{}]{
		Name:     "attach_file",
		Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in fileArgs) (struct{}, error) {
			if strings.HasSuffix(in.File, ".exe") {
				return struct{}{}, settle.Rejected(errors.New("executables are refused"))
			}
			attached = append(attached, in.Ticket+"/"+in.File)
			return struct{}{}, nil
		},
	}
	type reportArgs struct {
		Case  string `json:"case" settle:"identity"`
		Title string `json:"title"`
		File  string `json:"file"`
	}
	report := settle.Tool[reportArgs, ticket]{
		Name:     "report",
		Contract: settle.Contract{Class: settle.Composite},
		Steps:    []settle.AnyTool{open, attach},
		Do: func(ctx context.Context, op settle.Op, in reportArgs) (ticket, error) {
			t, err := settle.Step(ctx, op, "ticket", open, ticketArgs{in.Title})
			if err != nil {
				return ticket{}, err
			}
			_, err = settle.Step(ctx, op, "file", attach, fileArgs{t.ID, in.File}, settle.After("ticket"))
			return t, err
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(report), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range []string{"log.exe", "log.txt", "log.txt"} {
		out, err := x.Execute(docsContext("case-46"), settle.Call{Tool: "report", Args: json.RawMessage(`{"case":"46","title":"Crash","file":"` + file + `"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(file, out.Status, "replayed:", out.Replayed, "opened:", len(opened), "attached:", attached)
	}
	// Output:
	// log.exe failed replayed: false opened: 1 attached: []
	// log.txt completed replayed: false opened: 1 attached: [T-1/log.txt]
	// log.txt completed replayed: true opened: 1 attached: [T-1/log.txt]
}

// A tool that a framework owns, with a contract of the host's.
func Example_guarded() {
	paid := map[string]int{} // the provider's: from key to amount

	contract := settle.RawTool{
		Name:     "pay_invoice",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, Identity: []string{"invoice"}, NoLookup: true},
	}
	x, err := settle.New(memory.New(), settle.WithGuarded(contract), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	// The framework's own way of running the tool.
	run := func(ctx context.Context) (string, error) {
		key, ok := settle.KeyFrom(ctx)
		if !ok {
			return "", settle.NotSent(errors.New("called outside of settle.Around"))
		}
		paid[key]++
		return "paid", nil
	}
	for _, id := range []string{"call_0", "call_0"} { // some providers give each round's first call the same id
		result, out, err := settle.Around(docsContext("case-47"), x,
			settle.Call{Tool: "pay_invoice", Args: json.RawMessage(`{"invoice":"R-9"}`), CallID: id}, run)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result, out.Status, "replayed:", out.Replayed, "payments:", len(paid))
	}
	// Output:
	// paid completed replayed: false payments: 1
	// paid completed replayed: true payments: 1
}

// What the model is told begins with a code that doesn't change.
func Example_forModel() {
	type args struct {
		To string `json:"to" settle:"identity"`
	}
	mail := settle.Tool[args, struct{}]{
		Name:     "send_mail",
		Contract: settle.Contract{NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in args) (struct{}, error) {
			if in.To == "lost@example.org" {
				return struct{}{}, errLost
			}
			return struct{}{}, nil
		},
	}
	x, err := settle.New(memory.New(), settle.WithTools(mail), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []settle.Call{
		{Tool: "send_mail", Args: json.RawMessage(`{"to":"a@example.org"}`)},
		{Tool: "send_mail", Args: json.RawMessage(`{"to":"a@example.org"}`)},
		{Tool: "send_mail", Args: json.RawMessage(`{"to":"lost@example.org"}`)},
		{Tool: "send_mail", Args: json.RawMessage(`{}`)},
		{Tool: "send_fax", Args: json.RawMessage(`{}`)},
	} {
		out, err := x.Execute(docsContext("case-48"), call)
		if err != nil {
			fmt.Println(err)
			return
		}
		code, _, _ := strings.Cut(out.ForModel(), "]")
		code, _, recorded := strings.Cut(code, "; operation ")
		fmt.Println(code+"]", "recorded:", recorded)
	}
	// Output:
	// [completed] recorded: true
	// [completed, replayed] recorded: true
	// [unknown] recorded: true
	// [invalid_arguments] recorded: false
	// [no_such_tool] recorded: false
}

// Why an outcome isn't known is nobody's to log but the author's.
func Example_classify() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	refund := settle.RawTool{
		Name: "refund",
		Contract: settle.Contract{
			WholeArguments: true, NoLookup: true,
			Classify: func(err error) error {
				logger.Warn("refund failed", "error", err)
				return err
			},
		},
		Do: func(ctx context.Context, op settle.Op, in json.RawMessage) (json.RawMessage, error) {
			return nil, errLost
		},
		Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}}}`),
	}
	x, err := settle.New(memory.New(), settle.WithTools(refund), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := x.Execute(docsContext("case-49"), settle.Call{Tool: "refund", Args: json.RawMessage(`{"order":"A-7"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Status)
	// Output:
	// level=WARN msg="refund failed" error="connection reset before the answer came"
	// unknown
}
