package sqlite

import (
	"bytes"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// recent holds rows as the writer's connection last wrote them: the outcome of
// an attempt mostly follows its claim at once, and then needs no SELECT. The
// rows are good for as long as no other connection has committed anything,
// which SQLite says by its data_version; the writer forgets them all when it
// changes, when a transaction is rolled back, and one by one where a statement
// changes a row without reading it.
type recent struct {
	rows    map[uuid.UUID]store.Operation
	version int64
}

// maxRecent bounds the rows, and maxRecentBytes what each may weigh.
const (
	maxRecent      = 1024
	maxRecentBytes = 8 << 10
)

const dataVersion = "PRAGMA data_version"

// refresh forgets everything if another connection has written. It is called
// under the database's write lock, so that nobody writes after it.
func (r *recent) refresh(c *conn) error {
	var version int64
	if _, err := c.first([]any{&version}, dataVersion); err != nil {
		return err
	}
	if version != r.version {
		r.clear()
		r.version = version
	}
	return nil
}

func (r *recent) clear() { clear(r.rows) }

func (r *recent) forget(id uuid.UUID) { delete(r.rows, id) }

// keep remembers a row that was just written. Settled ones seldom change again.
func (r *recent) keep(o *store.Operation) {
	if o.State.Settled() || len(o.Fields)+len(o.Arguments)+len(o.Result) > maxRecentBytes {
		r.forget(o.ID)
		return
	}
	if len(r.rows) >= maxRecent {
		for id := range r.rows {
			r.forget(id)
			break
		}
	}
	r.rows[o.ID] = owned(*o)
}

// get returns a row whose bytes are still the ledger's.
func (r *recent) get(id uuid.UUID) (store.Operation, bool) {
	o, ok := r.rows[id]
	return o, ok
}

// owned gives a row bytes of its own: the ledger and its callers share none.
func owned(o store.Operation) store.Operation {
	o.Fields, o.Arguments = bytes.Clone(o.Fields), bytes.Clone(o.Arguments)
	o.Trace, o.Result = bytes.Clone(o.Trace), bytes.Clone(o.Result)
	return o
}
