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
	text, shown, err := x.briefOf(ctx, intent)
	for _, id := range shown {
		x.told.set(id, struct{}{})
	}
	return text, err
}

// briefOf is the brief of a task that has an intent, and the operations that it
// shows.
func (x *Executor) briefOf(ctx context.Context, intent store.Intent) (string, []uuid.UUID, error) {
	var b brief
	for after := uuid.Nil; ; {
		page, err := x.ledger.List(ctx, store.Filter{Tenant: intent.TenantName, Intent: intent.ID, After: after})
		if err != nil {
			return "", nil, fmt.Errorf("settle: brief: %w", err)
		}
		if len(page) == 0 {
			text, shown := b.text()
			return text, shown, nil
		}
		for _, e := range page {
			b.add(ctx, x, e)
		}
		after = page[len(page)-1].ID
	}
}

// brief collects the lines of a task's record.
type brief struct {
	done, open, refused []briefLine
}

type briefLine struct {
	operation uuid.UUID
	text      string
}

func (b *brief) add(ctx context.Context, x *Executor, e store.Entry) {
	if isStep(e.Operation) {
		return
	}
	name := e.Tool
	r := recordedRequest(x.byKey[e.Tool], e)
	if r.tool != nil {
		name = r.tool.name
	}
	line := briefLine{e.ID, fmt.Sprintf("- %s (operation %s): %s", name, e.ID, strings.ReplaceAll(string(statusOf(e.Operation)), "_", " "))}
	if e.Resource != "" && r.tool != nil && x.authorize(ctx, r, e.ID.String(), "answer") == nil {
		line.text += fmt.Sprintf(", %q", e.Resource)
	}
	switch {
	case e.State == store.Completed || e.State == store.Superseded:
		b.done = append(b.done, line)
	case e.State == store.Failed, e.State == store.Retryable && e.Told:
		b.refused = append(b.refused, line)
	default:
		b.open = append(b.open, line)
	}
}

// text is the brief and what it shows: of what it leaves out nobody was told.
func (b *brief) text() (string, []uuid.UUID) {
	var out strings.Builder
	var shown []uuid.UUID
	section := func(title string, lines []briefLine) {
		if len(lines) == 0 {
			return
		}
		out.WriteString(title + "\n")
		hidden := max(len(lines)-maxBrief, 0)
		for _, line := range lines[hidden:] {
			out.WriteString(line.text + "\n")
			shown = append(shown, line.operation)
		}
		if hidden > 0 {
			fmt.Fprintf(&out, "- and %d earlier ones\n", hidden)
		}
	}
	section("Done already for this task; don't do these again:", b.done)
	section("Not settled; don't call these again for the same purpose, also not in other words, and don't say that they were done or failed:", b.open)
	section("Had no effect:", b.refused)
	return out.String(), shown
}
