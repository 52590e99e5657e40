package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/store"
)

// claimArgs are the parameters $1 to $28 that the statements claim, claim_first
// and claim_guarded share.
func claimArgs(c *store.Claim, tail []byte) []any {
	o := &c.Operation
	args := make([]any, 0, 39)
	return append(args,
		some(o.ID), some(o.Intent), some(o.Tenant), some(o.Slot), o.Number, o.Tool, o.Class.String(), some(o.Contract),
		string(o.Source), some(o.Node), o.Occurrence,
		maybe(o.Parent), maybe(o.Owner), maybe(o.Run), maybe(o.Batch), int64(o.Visibility), int64(o.Escalate),
		o.Fingerprint[:], o.Fields, o.Arguments, []byte(o.CallID), o.Trace,
		span(c.Lease), span(c.Lease+o.Visibility), window(c.KeyWindow),
		tail, o.Reason, c.Actor)
}

// firstTail is the hash of the claim's event.
func firstTail(c *store.Claim) []byte {
	hash := store.FirstEvent(*c).Hash
	return hash[:]
}

func uuids(n int) []pgtype.UUID { return make([]pgtype.UUID, n) }
func blobs(n int) [][]byte      { return make([][]byte, n) }
