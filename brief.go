package settle

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// maxBrief bounds the operations that a brief lists one by one.
const maxBrief = 100

// Brief says what the context's task has done, what is open and what must not
// be repeated: for the first turn after a restart, when the model's own memory
// of its calls may be gone (R60). It is empty for a task that has done nothing.
// What it tells of counts as told in this process (R30).
func (x *Executor) Brief(ctx context.Context) (string, error) {
	p, t, err := scope(ctx)
	if err != nil {
		return "", err
	}
	intent, err := x.intentOf(ctx, p, t)
	if err != nil {
		return "", fmt.Errorf("settle: brief: %w", err)
	}
	return x.briefOf(ctx, intent, func(done uuid.UUID) { x.told.set(done, struct{}{}) })
}

// briefOf is the brief of a task that has an intent. It tells of what is done.
func (x *Executor) briefOf(ctx context.Context, intent store.Intent, tells func(done uuid.UUID)) (string, error) {
	b := brief{tells: tells}
	for after := uuid.Nil; ; {
		page, err := x.ledger.List(ctx, store.Filter{Tenant: intent.TenantName, Intent: intent.ID, After: after})
		if err != nil {
			return "", fmt.Errorf("settle: brief: %w", err)
		}
		if len(page) == 0 {
			return b.text(), nil
		}
		for _, e := range page {
			b.add(ctx, x, e)
		}
		after = page[len(page)-1].ID
	}
}

// brief collects the lines of a task's record.
type brief struct {
	tells               func(done uuid.UUID)
	done, open, refused []string
}

func (b *brief) add(ctx context.Context, x *Executor, e store.Entry) {
	if isStep(e.Operation) {
		return
	}
	name := e.Tool
	r := &request{tool: x.byKey[e.Tool], principal: Principal{e.Of.TenantName, e.Of.Subject}, taskName: Task{e.Of.Task, e.Of.Goal}, args: e.Arguments}
	if r.tool != nil {
		name = r.tool.name
	}
	line := fmt.Sprintf("- %s (operation %s): %s", name, e.ID, strings.ReplaceAll(string(statusOf(e.Operation)), "_", " "))
	if e.Resource != "" && r.tool != nil && x.authorize(ctx, r, e.ID.String(), "answer") == nil {
		line += fmt.Sprintf(", %q", e.Resource)
	}
	switch {
	case e.State == store.Completed || e.State == store.Superseded:
		b.tells(e.ID)
		b.done = append(b.done, line)
	case e.State == store.Failed:
		b.refused = append(b.refused, line)
	default:
		b.open = append(b.open, line)
	}
}

func (b *brief) text() string {
	var out strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		out.WriteString(title + "\n")
		hidden := max(len(lines)-maxBrief, 0)
		for _, line := range lines[hidden:] {
			out.WriteString(line + "\n")
		}
		if hidden > 0 {
			fmt.Fprintf(&out, "- and %d earlier ones\n", hidden)
		}
	}
	section("Done already for this task; don't do these again:", b.done)
	section("Not settled; don't call these again for the same purpose, also not in other words, and don't say that they were done or failed:", b.open)
	section("Had no effect:", b.refused)
	return out.String()
}
