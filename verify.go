package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Finding is something that breaks, or loosens, what settle promises.
type Finding struct {
	// Tool is the tool whose contract it concerns, or "" for the ledger.
	Tool string
	// Setting and Value are what was met, Problem what follows, Advice what to do.
	Setting, Value, Problem, Advice string
}

// Verify reports the settings of the ledger that break what settle promises, and
// what the contracts of this executor's tools give up. No finding means that
// nothing was found, as far as this process can see: [Contract] and the ledger's
// documentation say what nobody can see from here.
func (x *Executor) Verify(ctx context.Context) ([]Finding, error) {
	settings, err := x.ledger.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("settle: verify: %w", err)
	}
	var all []Finding
	for _, s := range settings {
		all = append(all, Finding{Setting: s.Setting, Value: s.Value, Problem: s.Problem, Advice: s.Advice})
	}
	tools := make([]*binding, 0, len(x.byKey))
	for _, b := range x.byKey {
		tools = append(tools, b)
	}
	slices.SortFunc(tools, func(a, b *binding) int { return strings.Compare(a.name, b.name) })
	for _, b := range tools {
		all = append(all, b.findings()...)
	}
	return all, nil
}

// findings are what a contract gives up that New accepts because its author said so.
func (b *binding) findings() []Finding {
	var all []Finding
	if b.contract.AcceptDuplicates != "" {
		all = append(all, Finding{Tool: b.name, Setting: "AcceptDuplicates", Value: b.contract.AcceptDuplicates,
			Problem: "an attempt of unknown outcome is repeated past its moment, so the effect may happen twice (R5)",
			Advice:  "give the tool a Lookup, or a far side that deduplicates on a key"})
	}
	if b.contract.hasEffects() && b.hasSecrets() {
		all = append(all, Finding{Tool: b.name, Setting: "Secret", Value: fmt.Sprintf("%d field(s)", len(b.secret)),
			Problem: "secret fields aren't stored without a codec, so only its caller can resume an operation (R56)",
			Advice:  "build the executor with settle.WithCodec"})
	}
	return all
}

// ChainReport is what [Executor.VerifyChains] has found so far.
type ChainReport struct {
	// Operations is how many were verified, Events how many events they have.
	Operations, Events int
	// Problems are the operations whose journal doesn't verify.
	Problems []ChainProblem
	// After is where to go on: the last operation that was looked at.
	After string
}

// ChainProblem is an operation whose journal is not what was written (R57).
type ChainProblem struct {
	Operation string
	Err       error
}

// VerifyChains walks the journals of all operations and compares them with the
// rows (R57). It finds what was changed, added, reordered or taken away within a
// journal. Without an anchor outside the ledger it can't see that the end of a
// journal was cut off together with the row's memory of it, nor that an
// operation was removed as a whole. It calls progress after each page if it
// isn't nil, can be interrupted, and goes on behind report.After.
func (x *Executor) VerifyChains(ctx context.Context, after string, progress func(ChainReport)) (ChainReport, error) {
	r := ChainReport{After: after}
	filter := store.Filter{Limit: maxPage}
	var err error
	if after != "" {
		if filter.After, err = uuid.Parse(after); err != nil {
			return r, ErrCursor
		}
	}
	for {
		// The ledger as the host gave it: a chain is over what is stored, and needs no key.
		entries, err := x.watched.List(ctx, filter)
		if err != nil {
			return r, fmt.Errorf("settle: verify the journals: %w", err)
		}
		for _, e := range entries {
			if err := x.verifyChain(ctx, e.Operation, &r); err != nil {
				return r, fmt.Errorf("settle: verify the journals: interrupted; go on behind %q: %w", r.After, err)
			}
			filter.After, r.After = e.ID, e.ID.String()
		}
		if progress != nil {
			progress(r)
		}
		if len(entries) < filter.Limit {
			return r, nil
		}
	}
}

// VerifyChain walks the journal of one operation; see [Executor.VerifyChains].
// A journal that doesn't verify is in the report, not in the error.
func (x *Executor) VerifyChain(ctx context.Context, reference string) (ChainReport, error) {
	r := ChainReport{After: reference}
	id, err := uuid.Parse(reference)
	if err != nil || id == uuid.Nil {
		return r, store.ErrNotFound
	}
	row, found, err := x.rowOf(ctx, id)
	if err != nil {
		return r, err
	}
	if !found {
		return r, store.ErrNotFound
	}
	return r, x.verifyChain(ctx, row, &r)
}

// chainTries bounds the reads of an operation that moves while it is verified.
const chainTries = 5

var errMoving = errors.New("settle: the operation kept moving while its journal was read: verify it again")

// verifyChain adds one operation to the report. Row and journal are two reads:
// a row that has moved between them is read again.
func (x *Executor) verifyChain(ctx context.Context, row store.Operation, r *ChainReport) error {
	problem := errMoving
	for range chainTries {
		events, err := x.watched.Events(ctx, row.ID, 0)
		if err != nil {
			return err
		}
		wrong := store.VerifyChain(row, events)
		if wrong == nil {
			r.Operations++
			r.Events += len(events)
			return nil
		}
		now, found, err := x.rowOf(ctx, row.ID)
		if err != nil {
			return err
		}
		if !found {
			return nil // its intent was closed meanwhile (R52)
		}
		if now.Version == row.Version {
			problem = wrong
			break
		}
		row = now
	}
	r.Operations++
	r.Problems = append(r.Problems, ChainProblem{Operation: row.ID.String(), Err: problem})
	return nil
}

// rowOf reads one row as it is stored, whatever its tenant.
func (x *Executor) rowOf(ctx context.Context, id uuid.UUID) (store.Operation, bool, error) {
	found, err := x.watched.List(ctx, store.Filter{After: before(id), Limit: 1})
	if err != nil || len(found) == 0 || found[0].ID != id {
		return store.Operation{}, false, err
	}
	return found[0].Operation, true, nil
}
