package settlemcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// The host has to look at the tool again; until then the others have to work.
func TestR4AToolWhoseIdentityIsGoneIsImportedAsUnsafe(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	r := f.mapped(f.session(), idempotent)
	renamed := newForeign(t)
	renamed.own.AddTool(&mcp.Tool{Name: "label", InputSchema: json.RawMessage(strings.ReplaceAll(labelSchema, `"issue"`, `"issue_id"`))}, labelled)
	mapped := r.Tools["label"]
	mapped.Contract.Ignore, mapped.Contract.Approval = []string{"trace"}, true
	r.Tools = map[string]settlemcp.Mapped{"label": mapped}
	ex := renamed.imports(r, renamed.session())
	if out := renamed.execute(ex, "tracker_label", `{"issue_id":7,"label":"late"}`); out.Status != settle.StatusAwaitingApproval {
		t.Errorf("the renamed field came to %+v", out)
	}
	if rows := renamed.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe || rows[0].Source != store.FromWhole {
		t.Errorf("the ledger has %+v", rows)
	}
}

// Servers in other languages have patterns that Go doesn't: zod's e-mail address
// looks ahead. The server checks them itself.
func TestAToolWhosePatternGoDoesNotHaveIsImported(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.own.AddTool(&mcp.Tool{Name: "invite", InputSchema: json.RawMessage(`{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!\\.).+@.+$"}},"required":["mail"]}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f.act("invite")
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "invited"}}}, nil
		})
	ex := f.imports(tracker, f.session())
	if out := f.execute(ex, "tracker_invite", `{"mail":5}`); out.Status != settle.StatusInvalidArguments {
		t.Errorf("a number came to %+v", out)
	}
	if out := f.execute(ex, "tracker_invite", `{"mail":"ada@example.com"}`); out.Status != settle.StatusCompleted {
		t.Errorf("the invitation came to %+v", out)
	}
	f.wantActs("invite", 1)
}
