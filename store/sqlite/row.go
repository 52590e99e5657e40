package sqlite

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// column pairs a column of T's table with T's field.
type column[T any] struct {
	name  string
	field func(*T) any
}

// operationColumns are at most 62: see [columnSet].
var operationColumns = []column[store.Operation]{
	{"id", func(o *store.Operation) any { return &o.ID }},
	{"intent", func(o *store.Operation) any { return &o.Intent }},
	{"tenant", func(o *store.Operation) any { return &o.Tenant }},
	{"slot", func(o *store.Operation) any { return &o.Slot }},
	{"number", func(o *store.Operation) any { return &o.Number }},
	{"parent", func(o *store.Operation) any { return &o.Parent }},
	{"tool", func(o *store.Operation) any { return &o.Tool }},
	{"class", func(o *store.Operation) any { return &o.Class }},
	{"contract", func(o *store.Operation) any { return &o.Contract }},
	{"source", func(o *store.Operation) any { return &o.Source }},
	{"node", func(o *store.Operation) any { return &o.Node }},
	{"occurrence", func(o *store.Operation) any { return &o.Occurrence }},
	{"taken", func(o *store.Operation) any { return &o.Taken }},
	{"key_until", func(o *store.Operation) any { return &o.KeyUntil }},
	{"escalate", func(o *store.Operation) any { return &o.Escalate }},
	{"created_at", func(o *store.Operation) any { return &o.CreatedAt }},
	{"fingerprint", func(o *store.Operation) any { return &o.Fingerprint }},
	{"fields", func(o *store.Operation) any { return &o.Fields }},
	{"arguments", func(o *store.Operation) any { return &o.Arguments }},
	{"unique_digest", func(o *store.Operation) any { return &o.Unique }},
	{"resource_key", func(o *store.Operation) any { return &o.ResourceKey }},
	{"resource_seq", func(o *store.Operation) any { return &o.ResourceSeq }},
	{"state", func(o *store.Operation) any { return &o.State }},
	{"reason", func(o *store.Operation) any { return &o.Reason }},
	{"version", func(o *store.Operation) any { return &o.Version }},
	{"tail", func(o *store.Operation) any { return &o.Tail }},
	{"tail_at", func(o *store.Operation) any { return &o.TailAt }},
	{"attempt", func(o *store.Operation) any { return &o.Attempt }},
	{"doubts", func(o *store.Operation) any { return &o.Doubts }},
	{"owner", func(o *store.Operation) any { return &o.Owner }},
	{"run", func(o *store.Operation) any { return &o.Run }},
	{"batch", func(o *store.Operation) any { return &o.Batch }},
	{"told", func(o *store.Operation) any { return &o.Told }},
	{"granted", func(o *store.Operation) any { return &o.Granted }},
	{"lease_until", func(o *store.Operation) any { return &o.LeaseUntil }},
	{"due_at", func(o *store.Operation) any { return &o.DueAt }},
	{"moment", func(o *store.Operation) any { return &o.Moment }},
	{"visibility", func(o *store.Operation) any { return &o.Visibility }},
	{"checks", func(o *store.Operation) any { return &o.Checks }},
	{"verdict", func(o *store.Operation) any { return &o.Verdict }},
	{"first_sent", func(o *store.Operation) any { return &o.FirstSent }},
	{"unknown_since", func(o *store.Operation) any { return &o.UnknownSince }},
	{"settled_at", func(o *store.Operation) any { return &o.SettledAt }},
	{"call_id", func(o *store.Operation) any { return &o.CallID }},
	{"trace", func(o *store.Operation) any { return &o.Trace }},
	{"resource", func(o *store.Operation) any { return &o.Resource }},
	{"resource_digest", func(o *store.Operation) any { return &o.ResourceDigest }},
	{"by_attribute", func(o *store.Operation) any { return &o.ByAttribute }},
	{"result", func(o *store.Operation) any { return &o.Result }},
	{"result_version", func(o *store.Operation) any { return &o.ResultVersion }},
	{"flags", func(o *store.Operation) any { return &o.Flags }},
	{"retention", func(o *store.Operation) any { return &o.Retention }},
}

var eventColumns = []column[store.Event]{
	{"operation", func(e *store.Event) any { return &e.Operation }},
	{"seq", func(e *store.Event) any { return &e.Seq }},
	{"at", func(e *store.Event) any { return &e.At }},
	{"move", func(e *store.Event) any { return &e.Move }},
	{"kind", func(e *store.Event) any { return &e.Kind }},
	{"actor", func(e *store.Event) any { return &e.Actor }},
	{"attempt", func(e *store.Event) any { return &e.Attempt }},
	{"reason", func(e *store.Event) any { return &e.Reason }},
	{"decision", func(e *store.Event) any { return &e.Decision }},
	{"body", func(e *store.Event) any { return &e.Body }},
	{"hash", func(e *store.Event) any { return &e.Hash }},
}

// intentColumns are those of an intent's row and of its tenant's.
var intentColumns = []column[store.Intent]{
	{"i.id", func(i *store.Intent) any { return &i.ID }},
	{"i.digest", func(i *store.Intent) any { return &i.Digest }},
	{"i.principal", func(i *store.Intent) any { return &i.Principal }},
	{"i.subject", func(i *store.Intent) any { return &i.Subject }},
	{"i.task", func(i *store.Intent) any { return &i.Task }},
	{"i.goal", func(i *store.Intent) any { return &i.Goal }},
	{"i.key", func(i *store.Intent) any { return &i.Key }},
	{"i.version", func(i *store.Intent) any { return &i.Version }},
	{"i.created_at", func(i *store.Intent) any { return &i.CreatedAt }},
	{"i.closed_at", func(i *store.Intent) any { return &i.ClosedAt }},
	{"t.id", func(i *store.Intent) any { return &i.Tenant }},
	{"t.digest", func(i *store.Intent) any { return &i.TenantDigest }},
	{"t.name", func(i *store.Intent) any { return &i.TenantName }},
	{"t.key", func(i *store.Intent) any { return &i.TenantKey }},
}

var (
	selectOperation = "SELECT " + names("o.", operationColumns) + " FROM settle_operation o "
	selectEntry     = "SELECT " + names("o.", operationColumns) + ", " + names("", intentColumns) +
		" FROM settle_operation o JOIN settle_intent i ON i.id = o.intent JOIN settle_tenant t ON t.id = i.tenant "
	selectIntent = "SELECT " + names("", intentColumns) + " FROM settle_intent i JOIN settle_tenant t ON t.id = i.tenant "
	// selectEvents is the journal of an operation: the events that its row stands
	// for, which have no hash until it is computed, and the others.
	selectEvents = "SELECT id, 1, claimed_at, '>running', 'claimed', claimed_by, 1, NULL, NULL, NULL, NULL" +
		" FROM settle_operation WHERE id = ?1 AND claimed_at IS NOT NULL AND ?2 < 1 UNION ALL" +
		" SELECT id, 2, ended_at, 'running>completed', ended_kind, ended_by, 1, NULL, NULL, ended_body, NULL" +
		" FROM settle_operation WHERE id = ?1 AND ended_at IS NOT NULL AND ?2 < 2 UNION ALL" +
		" SELECT " + names("", eventColumns) + " FROM settle_event WHERE operation = ?1 AND seq > ?2 ORDER BY 2"
	insertEvent = "INSERT INTO settle_event (" + names("", eventColumns) + ") VALUES (" + marks(len(eventColumns)) + ")"
)

func names[T any](prefix string, columns []column[T]) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = prefix + c.name
	}
	return strings.Join(all, ", ")
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// encoded appends the values of the columns to args.
func encoded[T any](args []driver.Value, columns []column[T], record *T) []driver.Value {
	for i := range columns {
		args = append(args, encode(columns[i].field(record)))
	}
	return args
}

// decoded reads the columns' values into record and returns the values behind them.
func decoded[T any](values []driver.Value, columns []column[T], record *T) ([]driver.Value, error) {
	for i := range columns {
		if err := decode(columns[i].field(record), values[i]); err != nil {
			return nil, err
		}
	}
	return values[len(columns):], nil
}

// columnSet is a set of operationColumns, by index, and of those in which a row
// stands for its own first events (R57). An operation that is claimed as running
// and completed by its first attempt has no other: rows of their own would say
// nothing else, and took a third of what the file has to take in.
type columnSet uint64

const (
	ownClaimed columnSet = 1 << 62
	ownEnded   columnSet = 1 << 63
)

var ownColumns = map[columnSet][]string{
	ownClaimed: {"claimed_at", "claimed_by"},
	ownEnded:   {"ended_at", "ended_kind", "ended_by", "ended_body"},
}

// ownEvent appends what a row says of an event that it can stand for; all else in
// the event is fixed.
func ownEvent(args []driver.Value, e *store.Event) ([]driver.Value, columnSet) {
	switch {
	case e.Reason != "" || e.Decision != uuid.Nil || e.Attempt != 1:
	case e.Seq == 1 && e.Move == store.Move{To: store.Running}:
		return append(args, encode(&e.At), text(e.Actor)), ownClaimed
	case e.Seq == 2 && e.Move == store.Move{From: store.Running, To: store.Completed}:
		return append(args, encode(&e.At), text(e.Kind), text(e.Actor), encode(&e.Body)), ownEnded
	}
	return args, 0
}

// changed appends to args the values of those columns in which two rows differ,
// and says which they are. Against the zero row it is what an insert has to
// say: the columns' defaults are the zero row's values.
func changed(args []driver.Value, before, after *store.Operation) ([]driver.Value, columnSet) {
	var set columnSet
	for i := range operationColumns {
		if was, is := operationColumns[i].field(before), operationColumns[i].field(after); !same(was, is) {
			set |= 1 << i
			args = append(args, encode(is))
		}
	}
	return args, set
}

func (s columnSet) names() []string {
	var all []string
	for i := range operationColumns {
		if s&(1<<i) != 0 {
			all = append(all, operationColumns[i].name)
		}
	}
	return slices.Concat(all, ownColumns[s&ownClaimed], ownColumns[s&ownEnded])
}

// shapes are the statements that write a set of columns. An operation takes few
// of them, and each is built once.
type shapes struct{ inserts, updates map[columnSet]string }

func newShapes() shapes {
	return shapes{inserts: map[columnSet]string{}, updates: map[columnSet]string{}}
}

// insert adds a row, unless another one has its place.
func (s shapes) insert(set columnSet) string {
	sql, ok := s.inserts[set]
	if !ok {
		names := set.names()
		sql = "INSERT INTO settle_operation (" + strings.Join(names, ", ") + ") VALUES (" + marks(len(names)) + ")" +
			" ON CONFLICT (intent, slot, number) DO NOTHING"
		s.inserts[set] = sql
	}
	return sql
}

// update changes a row; the last two arguments are its id and version.
func (s shapes) update(set columnSet) string {
	sql, ok := s.updates[set]
	if !ok {
		sql = "UPDATE settle_operation SET " + strings.Join(set.names(), " = ?, ") + " = ? WHERE id = ? AND version = ?"
		s.updates[set] = sql
	}
	return sql
}
