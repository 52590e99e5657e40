package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func storm(s suite) {
	for seed := range uint64(3) {
		s.test(fmt.Sprintf("R19R30R31WorkersNeverMeetInsideAnEffect/seed%d", seed), func(w *world) { runStorm(w, seed) })
	}
}

// weather is what the workers of a storm share: how many are at work in each
// place that only one may be in, and how many attempts the ledger has granted.
type weather struct {
	w       *world
	intents []store.Intent
	slots   [3][]store.Operation // by place: exclusive operations, held tools, resources

	calls   atomic.Int32
	inside  sync.Map // place -> *atomic.Int32
	granted sync.Map // operation -> *atomic.Int32
}

// runStorm lets workers claim, start, settle and give up at random on a few
// slots of several processes, and looks for two in one place.
func runStorm(w *world, seed uint64) {
	s := &weather{w: w}
	for _, tenant := range []string{"acme", "umbrella"} {
		s.intents = append(s.intents, w.intentOf(tenant, "t"))
	}
	for n := range 8 {
		i := s.intents[n%2]
		s.slots[0] = append(s.slots[0], Operation(i, keeps(time.Microsecond)))
		s.slots[1] = append(s.slots[1], Operation(i, Tool("mail"), Whole, func(o *store.Operation) { o.Batch = uuid.Nil }))
		s.slots[2] = append(s.slots[2], Operation(i, Tool("door"), Writes(DigestOf(fmt.Sprint("door ", n%3)))))
	}
	w.race(6, func(n int, l store.Ledger) error {
		worker := stormWorker{weather: s, ledger: l, Rand: rand.New(rand.NewPCG(seed, uint64(n))), run: uuid.New()}
		for range 40 {
			if err := worker.work(); err != nil {
				return err
			}
		}
		return nil
	})
	s.inspect()
}

// stormWorker is one process that calls tools.
type stormWorker struct {
	*weather
	*rand.Rand
	ledger store.Ledger
	run    uuid.UUID
}

// work makes one call: claim the newest number of a slot or the one after it,
// take over what was left, be inside for a moment, and record an outcome.
func (s *stormWorker) work() error {
	s.calls.Add(1)
	if s.IntN(8) == 0 {
		_, err := s.ledger.Purge(s.w.ctx, store.Purge{Limit: 1 + s.IntN(40)})
		return again(err)
	}
	place := s.IntN(len(s.slots))
	model := s.slots[place][s.IntN(len(s.slots[place]))]
	c := s.claimOf(model, 1)
	if place == 1 {
		c.Hold = &store.Hold{Told: s.settled(model.Intent)}
	}
	a, err := s.w.claimBy(s.ledger, c)
	if err != nil {
		return again(err)
	}
	if !a.Won && len(a.Slot) > 0 && a.Slot[len(a.Slot)-1].State.Settled() {
		last := a.Slot[len(a.Slot)-1]
		c.Operation.Number = last.Number + 1
		After(last)(&c)
		if a, err = s.w.claimBy(s.ledger, c); err != nil {
			return again(err)
		}
	}
	row, mine, err := s.begin(a)
	if err != nil || !mine {
		return err
	}
	return s.effect(row)
}

func (s *stormWorker) claimOf(model store.Operation, number int) store.Claim {
	o := model
	o.ID, o.Number, o.Owner, o.Run = ID(), number, uuid.New(), s.run
	return Claim(o)
}

// settled lists what is completed in the intent, as told in this run.
func (s *stormWorker) settled(intent uuid.UUID) []uuid.UUID {
	entries, _ := s.ledger.List(s.w.ctx, store.Filter{Intent: intent, Tool: "mail", States: []store.State{store.Completed}})
	var ids []uuid.UUID
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// begin starts an attempt where the claim hasn't done so.
func (s *stormWorker) begin(a store.Claimed) (row store.Operation, mine bool, err error) {
	switch {
	case a.Won:
		row = a.Operation
	case a.Refused == store.NotRefused && len(a.Slot) > 0:
		row = a.Slot[len(a.Slot)-1]
	default:
		return row, false, nil
	}
	if a.Won && row.State == store.Running {
		return row, true, nil
	}
	if row.State != store.Retryable {
		return row, false, nil
	}
	c := Attempt(row, func(c *store.Change) { c.Start.Run, c.Start.Batch = s.run, uuid.Nil })
	row, err = s.ledger.Apply(s.w.ctx, c)
	return row, err == nil, again(err)
}

// effect is the part that only one may be in at a time.
func (s *stormWorker) effect(row store.Operation) error {
	s.count(&s.granted, row.ID.String(), 1)
	places := []string{"operation " + row.ID.String()}
	if row.Tool == "mail" {
		places = append(places, "tool of "+row.Intent.String())
	}
	if !row.ResourceKey.IsZero() {
		places = append(places, fmt.Sprint("resource ", row.ResourceKey))
	}
	for _, p := range places {
		if s.count(&s.inside, p, 1) > 1 {
			s.w.Errorf("two attempts at once inside the %s", p)
		}
	}
	// Stay until others have made some calls, or have none left to make.
	for n, before := 0, s.calls.Load(); n < 1000 && s.calls.Load() < before+8; n++ {
		runtime.Gosched()
	}
	if s.IntN(3) == 0 {
		_, err := s.ledger.Renew(s.w.ctx, 2*Lease, held(row))
		if err := again(err); err != nil {
			return err
		}
	}
	for _, p := range places {
		s.count(&s.inside, p, -1)
	}
	c := Completion(row, "r-"+row.ID.String())
	if s.IntN(2) == 0 {
		c = Change(row, []store.State{store.Retryable, store.Failed}[s.IntN(2)], returned)
	}
	for {
		_, err := s.ledger.Apply(s.w.ctx, c)
		var unwritten *store.UnwrittenError
		if errors.As(err, &unwritten) && unwritten.Again {
			continue
		}
		return err // nobody else may have moved it
	}
}

func (s *weather) count(in *sync.Map, key string, by int32) int32 {
	n, _ := in.LoadOrStore(key, new(atomic.Int32))
	return n.(*atomic.Int32).Add(by)
}

// again drops the errors after which a worker simply goes on to its next call.
func again(err error) error {
	if err != nil && store.Unwritten(err) {
		return nil
	}
	return err
}

// inspect looks at what was recorded when the storm is over.
func (s *weather) inspect() {
	w := s.w
	type place struct {
		intent uuid.UUID
		slot   store.Digest
		number int
	}
	slots := map[place]bool{}
	numbers := map[store.Digest]map[int64]bool{}
	for _, i := range s.intents {
		for _, o := range w.inIntent(i) {
			w.verify(o)
			if o.Flags&store.FlagPurged != 0 {
				w.wantRow(o, tombstone(o))
				want(w, "a purged operation is settled", o.State.Settled(), true)
			}
			at := place{o.Intent, o.Slot, o.Number}
			if slots[at] {
				w.Errorf("number %d of a slot was recorded twice", o.Number)
			}
			slots[at] = true
			want(w, "attempts that were granted", int(s.count(&s.granted, o.ID.String(), 0)), o.Attempt)
			if o.ResourceKey.IsZero() {
				continue
			}
			if numbers[o.ResourceKey] == nil {
				numbers[o.ResourceKey] = map[int64]bool{}
			}
			numbers[o.ResourceKey][o.ResourceSeq] = true
		}
	}
	want(w, "resources", len(numbers), 3)
	for _, seen := range numbers {
		for n := range int64(len(seen)) {
			if !seen[n+1] {
				w.Errorf("no write has the number %d of %d", n+1, len(seen))
			}
		}
	}
}
