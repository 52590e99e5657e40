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

// claimArrays are the same parameters for several claims, by column, and the
// hashes of their events.
func claimArrays(claims []store.Claim) (args []any, tails [][]byte) {
	n := len(claims)
	id, intent, tenant, slot := uuids(n), uuids(n), uuids(n), uuids(n)
	contract, node, parent, owner, run, batch := uuids(n), uuids(n), uuids(n), uuids(n), uuids(n), uuids(n)
	number, occurrence, flags := make([]int32, n), make([]int32, n), make([]int16, n)
	visibility, escalate, retention := make([]int64, n), make([]int64, n), make([]int64, n)
	tool, class, source, reason, actor := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	fingerprint, fields, arguments, callID, trace, hash := blobs(n), blobs(n), blobs(n), blobs(n), blobs(n), blobs(n)
	lease, moment, keyWindow := spans(n), spans(n), spans(n)
	for i := range claims {
		c := &claims[i]
		o := &c.Operation
		id[i], intent[i], tenant[i], slot[i] = some(o.ID), some(o.Intent), some(o.Tenant), some(o.Slot)
		contract[i], node[i], parent[i] = some(o.Contract), some(o.Node), maybe(o.Parent)
		owner[i], run[i], batch[i] = maybe(o.Owner), maybe(o.Run), maybe(o.Batch)
		number[i], occurrence[i], flags[i] = int32(o.Number), int32(o.Occurrence), int16(o.Flags)
		visibility[i], escalate[i], retention[i] = int64(o.Visibility), int64(o.Escalate), int64(o.Retention)
		tool[i], class[i], source[i], reason[i], actor[i] = o.Tool, o.Class.String(), string(o.Source), o.Reason, c.Actor
		fingerprint[i], fields[i], arguments[i] = o.Fingerprint[:], o.Fields, o.Arguments
		callID[i], trace[i], hash[i] = []byte(o.CallID), o.Trace, firstTail(c)
		lease[i], moment[i], keyWindow[i] = span(c.Lease), span(c.Lease+o.Visibility), window(c.KeyWindow)
	}
	return []any{id, intent, tenant, slot, number, tool, class, contract, source, node, occurrence,
		parent, owner, run, batch, visibility, escalate, fingerprint, fields, arguments, callID, trace,
		lease, moment, keyWindow, hash, reason, actor, retention, flags}, hash
}

func uuids(n int) []pgtype.UUID     { return make([]pgtype.UUID, n) }
func blobs(n int) [][]byte          { return make([][]byte, n) }
func spans(n int) []pgtype.Interval { return make([]pgtype.Interval, n) }
