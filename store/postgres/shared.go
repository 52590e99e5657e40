package postgres

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/settle-go/settle/store"
)

// shared sends statements that write one row by its key and wait for nobody
// else's transaction: the claim of a first execution, and its end. A few are on
// their way at once, each by itself. What comes meanwhile waits until one of them
// is back, and then travels together: one round trip, one transaction, one
// commit. Nothing waits for others who aren't ready to run, so that a caller who
// is alone is never held up.
//
// PostgreSQL joins the commits of several sessions by itself. What it can't join
// is what each of them costs beside the disk: on two cores with 32 callers that is
// a third of the client's time and a fifth of the server's.
type shared struct {
	ledger *Ledger
	// limit is how many fly at once, patience how long a statement waits for them.
	limit    int
	patience time.Duration

	mu      sync.Mutex
	flying  int
	waiting []*passenger
	// company says that the last who could fly alone met others, or that somebody
	// has come to wait since.
	company bool
}

const (
	// maxShared bounds how many statements travel together, maxBaggage what one of
	// them may bring, in bytes: a large value would hold up all others.
	maxShared  = 64
	maxBaggage = 32 << 10
	// impatience is how long a statement waits for those before it: a commit that
	// takes longer, or a row that somebody has locked, holds up nobody else.
	impatience = 100 * time.Millisecond
)

// newShared lets half as many statements fly alone as the process has cores to
// work on them, and no more than half of the pool's connections: the other half is
// for those of the other kind.
func newShared(l *Ledger) *shared {
	limit := max(1, min(runtime.GOMAXPROCS(0), int(l.pool.Config().MaxConns))/2)
	return &shared{ledger: l, limit: limit, patience: impatience}
}

// passenger is a statement on its way. Its place puts those that travel together
// in an order: two groups that took the same rows in different ones would wait for
// one another.
type passenger struct {
	statement
	place [32]byte
	ctx   context.Context
	// done is closed when the statement has come back, with err, or is to go on
	// alone: with a place of its own where it is seated, else beside those that
	// have one.
	done          chan struct{}
	alone, seated bool
	err           error
}

func placeOf(first, second uuid.UUID) (place [32]byte) {
	copy(place[:], first[:])
	copy(place[16:], second[:])
	return place
}

// send sends a statement and scans the row that it answers with, if it does. After
// an error the statement may be on its way still, and write where it scans to.
func (s *shared) send(ctx context.Context, place [32]byte, st statement) error {
	p, company := s.board(ctx, place, st)
	if company {
		p = s.gather(ctx, place, st)
	}
	if p == nil {
		defer s.landed()
		return s.ledger.fetch(ctx, st)
	}
	patience := time.NewTimer(s.patience)
	defer patience.Stop()
	for {
		select {
		case <-p.done:
			return s.called(p)
		case <-patience.C:
			if s.leave(p) {
				return s.ledger.fetch(ctx, st)
			}
		case <-ctx.Done():
			if s.leave(p) {
				return &store.UnwrittenError{Err: ctx.Err()}
			}
			select {
			case <-p.done:
				return s.called(p)
			default:
				return ctx.Err() // it is on its way
			}
		}
	}
}

// called ends a wait.
func (s *shared) called(p *passenger) error {
	if !p.alone {
		return p.err
	}
	if p.seated {
		defer s.landed()
	}
	return s.ledger.fetch(p.ctx, p.statement)
}

// board queues a statement, or returns nil where it may fly alone at once, and
// whether others may be about to come: landed must follow then. What is queued gets
// bytes that the caller can't change: it may have left by the time that they are
// sent.
func (s *shared) board(ctx context.Context, place [32]byte, st statement) (p *passenger, company bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying < s.limit {
		s.flying++
		return nil, s.company
	}
	p = newPassenger(ctx, place, st)
	s.waiting = append(s.waiting, p)
	s.company = true
	return p, false
}

// gather lets those go first who are ready to run, as the other calls of a model
// turn are. Where they have come to wait, who had the place waits with them and
// leaves it to all. Otherwise it is nil: they fly alone, and so do those after
// them, until somebody has to wait again. To yield wakes a thread of the runtime,
// which a caller who never has company would pay for twice in each operation.
func (s *shared) gather(ctx context.Context, place [32]byte, st statement) *passenger {
	for came := 0; ; {
		runtime.Gosched()
		s.mu.Lock()
		n := len(s.waiting)
		if n > came && n < maxShared {
			came = n
			s.mu.Unlock()
			continue
		}
		var p *passenger
		if s.company = n > 0; s.company {
			p = newPassenger(ctx, place, st)
			s.waiting = slices.Insert(s.waiting, 0, p)
		}
		s.mu.Unlock()
		if p != nil {
			s.landed()
		}
		return p
	}
}

func newPassenger(ctx context.Context, place [32]byte, st statement) *passenger {
	for i, arg := range st.args {
		if b, ok := arg.([]byte); ok {
			st.args[i] = bytes.Clone(b)
		}
	}
	return &passenger{statement: st, place: place, ctx: ctx, done: make(chan struct{})}
}

// leave takes a statement out of the queue, where it is still there.
func (s *shared) leave(p *passenger) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, p)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// landed leaves the place of a flight to those that wait.
func (s *shared) landed() {
	if group := s.next(); group != nil {
		go s.carry(group)
	}
}

func (s *shared) carry(group []*passenger) {
	for ; group != nil; group = s.next() {
		s.together(group)
		for _, p := range group {
			close(p.done)
		}
	}
}

// next takes those who travel next. A single one gets the place for itself, and
// where nobody waits it is free again.
func (s *shared) next() []*passenger {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := min(len(s.waiting), maxShared); n {
	case 0:
		s.waiting = nil // so that it doesn't keep what it held
		s.flying--
		return nil
	case 1:
		p := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		p.alone, p.seated = true, true
		close(p.done)
		return nil
	default:
		group := slices.Clone(s.waiting[:n])
		s.waiting = slices.Delete(s.waiting, 0, n)
		return group
	}
}

// together sends a group in one transaction. Where the server refuses one of its
// statements, or one of them meets a lock, nothing of it is written and each goes
// on alone, without what the group was answered until then: it may come too late
// now, and a row that isn't there scans nothing.
func (s *shared) together(group []*passenger) {
	slices.SortFunc(group, func(a, b *passenger) int { return bytes.Compare(a.place[:], b.place[:]) })
	ctx, cancel := contextOf(group)
	defer cancel()
	var b pgx.Batch
	b.Queue(s.ledger.sql.lockBriefly)
	for _, p := range group {
		p.queue(&b)
	}
	err := s.ledger.send(ctx, &b)
	if err == nil {
		return
	}
	var refused *pgconn.PgError
	back := errors.As(err, &refused) && store.Unwritten(fromWrite(err))
	for _, p := range group {
		p.forget()
		p.err, p.alone = err, back
	}
}

// contextOf is the context that a group travels under: no caller who leaves takes
// the connection from the others, and the most patient says how long it takes.
func contextOf(group []*passenger) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(group[0].ctx)
	var latest time.Time
	for _, p := range group {
		deadline, ok := p.ctx.Deadline()
		if !ok {
			return ctx, func() {}
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return context.WithDeadline(ctx, latest)
}
