package storetest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// alternating makes its calls through two handles of one ledger in turn.
type alternating struct {
	store.Ledger
	other store.Ledger
}

func (a *alternating) turn() store.Ledger {
	a.Ledger, a.other = a.other, a.Ledger
	return a.Ledger
}

func (a *alternating) Intent(ctx context.Context, proposed store.Intent) (store.Intent, error) {
	return a.turn().Intent(ctx, proposed)
}

func (a *alternating) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	return a.turn().Claim(ctx, claims...)
}

func (a *alternating) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	return a.turn().Apply(ctx, c)
}

func (a *alternating) Renew(ctx context.Context, lease time.Duration, held ...store.Held) ([]store.Held, error) {
	return a.turn().Renew(ctx, lease, held...)
}

func (a *alternating) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	return a.turn().Take(ctx, t)
}

func (a *alternating) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	return a.turn().Get(ctx, tenant, operation)
}

func (a *alternating) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	return a.turn().List(ctx, f)
}

func (a *alternating) Events(ctx context.Context, operation uuid.UUID, after int) ([]store.Event, error) {
	return a.turn().Events(ctx, operation, after)
}

func (a *alternating) Audit(ctx context.Context, entries ...store.Audit) error {
	return a.turn().Audit(ctx, entries...)
}

func (a *alternating) Audits(ctx context.Context, operation uuid.UUID) ([]store.Audit, error) {
	return a.turn().Audits(ctx, operation)
}

func (a *alternating) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	return a.turn().Cases(ctx, f)
}

func (a *alternating) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	return a.turn().Purge(ctx, p)
}

func (a *alternating) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	return a.turn().CloseIntent(ctx, tenant, intent)
}

func (a *alternating) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	return a.turn().Declare(ctx, tools...)
}

func (a *alternating) Declared(ctx context.Context, tool string) (store.ToolRecord, error) {
	return a.turn().Declared(ctx, tool)
}
