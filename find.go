package settle

import (
	"context"
	"fmt"

	"github.com/settle-go/settle/store"
)

// Find returns the present outcome of the operation that the host named with
// [Call.Node], in the task of the context's principal: its latest one where a
// node has several. It executes and changes nothing. Where the node has no
// operation the error is [store.ErrNotFound]; in a closed task the outcome is
// "expired" (R52).
func (x *Executor) Find(ctx context.Context, tool, node string) (Outcome, error) {
	p, t, err := scope(ctx)
	if err == nil {
		err = checkName("node", node)
	}
	if err != nil {
		return Outcome{}, err
	}
	b, ok := x.tools[tool]
	if !ok {
		return x.noSuchTool(tool), nil
	}
	intent, err := x.intentOf(ctx, p, t)
	if err != nil {
		return Outcome{}, fmt.Errorf("settle: find an operation: %w", err)
	}
	if !intent.ClosedAt.IsZero() {
		return Outcome{Status: StatusExpired, Tool: b.name, Reason: "intent_closed"}, nil
	}
	slot := hostNode(under(intent.TenantKey), node).slot(under(intent.Key), b.identity, 1)
	found, err := x.ledger.Claim(ctx, store.Claim{Look: true, Operation: store.Operation{
		Intent: intent.ID, Tenant: intent.Tenant, Slot: slot, Number: 1, Tool: b.identity}})
	if err != nil {
		return Outcome{}, fmt.Errorf("settle: find an operation: %w", err)
	}
	if len(found[0].Slot) == 0 {
		return Outcome{}, store.ErrNotFound
	}
	row := found[0].Slot[len(found[0].Slot)-1]
	status := statusOf(row)
	if row.Flags&store.FlagPurged != 0 {
		status = StatusExpired
	}
	r := recordedRequest(b, store.Entry{Operation: row, Of: intent})
	r.principal, r.call.CallID = p, row.CallID // whoever asks, it is no repeat
	return x.answer(ctx, r, row, status), nil
}
