package sqlite

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	closeCase = `UPDATE settle_case SET closed_at = ? WHERE operation = ? AND closed_at IS NULL AND incident = 0`
	openCase  = `INSERT INTO settle_case (id, operation, tenant, tool, reason, incident, opened_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
)

// fileCases opens and closes the case that a state needs, and opens an incident (R39).
func (w *write) fileCases(before, after *store.Operation, incident string) error {
	moved := before.State != after.State
	if moved && before.State.NeedsCase() {
		if _, err := w.exec(closeCase, w.now.UnixMicro(), after.ID[:]); err != nil {
			return err
		}
	}
	if moved && after.State.NeedsCase() {
		if err := w.openCase(after, after.Reason, 0); err != nil {
			return err
		}
	}
	if incident != "" {
		return w.openCase(after, incident, 1)
	}
	return nil
}

func (w *write) openCase(o *store.Operation, reason string, incident int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = w.exec(openCase, id[:], o.ID[:], o.Tenant[:], o.Tool, text(reason), incident, w.now.UnixMicro())
	return err
}
