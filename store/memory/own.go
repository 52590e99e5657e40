package memory

import (
	"bytes"
	"time"

	"github.com/settle-go/settle/store"
)

// The ledger keeps bytes of its own, as a database does: what a caller writes
// into its slices later changes nothing that was recorded, nor does what it
// writes into an answer.

func (l *Ledger) read(row *store.Operation, now time.Time) store.Operation {
	o := ownRow(*row)
	o.Read = now
	return o
}

func (l *Ledger) entry(row *store.Operation, now time.Time) store.Entry {
	return store.Entry{Operation: l.read(row, now), Of: ownIntent(l.intent[row.Intent])}
}

func ownRow(o store.Operation) store.Operation {
	o.Fields, o.Arguments = bytes.Clone(o.Fields), bytes.Clone(o.Arguments)
	o.Trace, o.Result = bytes.Clone(o.Trace), bytes.Clone(o.Result)
	return o
}

func ownEvent(e store.Event) store.Event {
	e.Body = bytes.Clone(e.Body)
	return e
}

func ownCase(c store.Case) store.Case {
	c.Proposal = bytes.Clone(c.Proposal)
	return c
}

func ownTool(t store.ToolRecord) store.ToolRecord {
	t.ResultSchema = bytes.Clone(t.ResultSchema)
	return t
}

func ownIntent(i store.Intent) store.Intent {
	i.Key, i.TenantKey = bytes.Clone(i.Key), bytes.Clone(i.TenantKey)
	return i
}
