package settle

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Events that leave through the outbox (R54): written with the change that they
// tell of, delivered at least once, in order for each operation.

// The types of the events that the library publishes itself, for operations that
// were claimed by an executor with [WithOutbox]. Their data is [EventData].
const (
	// EventSettled: the outcome is known for good or closed by a person. Every way
	// of settling publishes it, so that who must not miss an outcome takes this one.
	EventSettled = "settle.settled"
	// EventCaseOpened: a person has to find out or to allow something, also on an
	// operation that stays settled.
	EventCaseOpened = "settle.case_opened"
	// EventCaseDecided: a person has decided.
	EventCaseDecided = "settle.case_decided"
	// EventCompensated: a compensation has completed. It is published for the
	// compensation; its data names what that corrects.
	EventCompensated = "settle.compensated"
)

// EventData is the data of the library's own events. It has nothing of the
// operation's arguments and result: [Executor.Get] has those.
type EventData struct {
	Operation string `json:"operation"`
	Tool      string `json:"tool"`
	Class     string `json:"class"`
	State     string `json:"state"`
	Status    Status `json:"status"`
	Reason    string `json:"reason,omitempty"`
	// Resource is the effect's id, where it completed.
	Resource string `json:"resource,omitempty"`
	// Decision is the kind of a person's decision.
	Decision string `json:"decision,omitempty"`
	// Corrects is the operation that a compensation corrects.
	Corrects string `json:"corrects,omitempty"`
}

// Event is what a handler publishes.
type Event struct {
	// Type is the host's own, such as "refund.made": 1 to 255 bytes, not beginning
	// with "settle.".
	Type string
	// Data is encoded as JSON, 64 KiB at most.
	Data any
}

// The bounds of what a handler publishes.
const (
	maxEventType = 255
	maxEventData = 64 << 10
	maxEvents    = 100
)

// ErrNoOutbox says that a handler publishes and nobody has asked for an outbox.
var ErrNoOutbox = errors.New("settle: this executor has no outbox: build it with settle.WithOutbox (R54)")

// Publish puts an event into the outbox, with the record of this attempt's return
// and in the same write: if the handler completes or refuses, and that is
// recorded. What a handler published whose outcome is unknown, or came in late, is
// not sent; who must not miss an outcome takes [EventSettled] as well (R54).
//
// The error is [ErrNoOutbox], or says what is wrong with the event, or that the
// handler has returned.
func (o Op) Publish(e Event) error {
	if !o.running.executor.settings.outbox {
		return ErrNoOutbox
	}
	if o.running.binding.contract.Class == Read {
		return errors.New("settle: a Read tool has no record that an event could go with (R54)")
	}
	if err := checkName("event's type", e.Type); err != nil {
		return err
	}
	if len(e.Type) > maxEventType || strings.HasPrefix(e.Type, "settle.") {
		return fmt.Errorf("settle: the event's type must have at most %d bytes and not begin with \"settle.\", which is the library's", maxEventType)
	}
	data, err := encode(e.Data)
	if err != nil {
		return fmt.Errorf("settle: the event's data can't be encoded as JSON: %w", err)
	}
	if len(data) > maxEventData {
		return fmt.Errorf("settle: the event's data has %d bytes and at most %d are allowed: publish a reference to it", len(data), maxEventData)
	}
	return o.running.published.add(store.Announcement{Type: e.Type, Data: data})
}

// published are the events of one attempt, until its return is recorded.
type published struct {
	mu     sync.Mutex
	events []store.Announcement
	ended  bool
}

func (p *published) add(a store.Announcement) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errors.New("settle: the attempt has returned: what it left running can't publish any more (R54)")
	}
	if len(p.events) == maxEvents {
		return fmt.Errorf("settle: an attempt publishes at most %d events", maxEvents)
	}
	p.events = append(p.events, a)
	return nil
}

func (p *published) all() []store.Announcement {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return slices.Clip(p.events)
}

// WithOutbox turns the outbox on (R54): what becomes of the operations that this
// executor claims is announced, by whichever process settles them, handlers may
// [Op.Publish], and [Executor.Run] delivers to the sinks. Each event goes to all of
// them, at the same time; if one doesn't take it, it goes to all of them again, and
// is given up once those that didn't take it never will. Without sinks the
// executor only writes, and another process delivers.
func WithOutbox(sinks ...Sink) Option {
	return optionFunc(func(s *settings) { s.outbox, s.sinks = true, append(s.sinks, sinks...) })
}

// announce adds to a change what it announces: what its handler published, and
// then the library's own.
func (x *Executor) announce(c *store.Change) {
	if c.Of.Flags&store.FlagAnnounced != 0 {
		c.Announce = append(c.Announce, ownEvents(c)...)
	}
	if len(c.Announce) > 0 {
		numberEvents(c.Announce, store.NextEvent(*c).Hash)
	}
}

// ownEvents are the library's events of a change.
func ownEvents(c *store.Change) (events []store.Announcement) {
	data := EventData{Operation: c.Of.ID.String(), Tool: c.Of.Tool, Class: c.Of.Class.String(), State: c.To.String(), Reason: c.Reason, Resource: c.Of.Resource}
	after := c.Of
	after.State, after.Reason, after.Told = c.To, c.Reason, c.Told
	if data.Status = statusOf(after); c.To == store.Completed && c.Of.State != store.Completed {
		data.Resource = c.Resource
	}
	add := func(kind string, data EventData) {
		encoded, err := json.Marshal(data)
		if err == nil { // texts and nothing else: it can't fail
			events = append(events, store.Announcement{Type: kind, Data: encoded})
		}
	}
	if c.Decision != uuid.Nil {
		decided := data
		decided.Decision = c.Kind
		add(EventCaseDecided, decided)
	}
	if c.To.NeedsCase() && c.To != c.Of.State || c.Incident != "" {
		opened := data
		if c.Incident != "" {
			opened.Reason = c.Incident
		}
		add(EventCaseOpened, opened)
	}
	if !c.To.Settled() || c.Of.State.Settled() {
		return events
	}
	add(EventSettled, data)
	if c.To == store.Completed && c.Of.Source == store.FromOriginal {
		data.Corrects = c.Of.Parent.String()
		add(EventCompensated, data)
	}
	return events
}

// announceClaim marks a claim's operation as announced, and announces that it
// waits for a person.
func (x *Executor) announceClaim(c *store.Claim) {
	if !x.settings.outbox {
		return
	}
	o := &c.Operation
	o.Flags |= store.FlagAnnounced
	if !o.State.NeedsCase() {
		return
	}
	c.Announce = ownEvents(&store.Change{Of: store.Operation{ID: o.ID, Tool: o.Tool, Class: o.Class}, To: o.State, Reason: o.Reason})
	numberEvents(c.Announce, store.FirstEvent(*c).Hash)
}

// numberEvents gives events the ids that they have for ever: of the change's own
// event, so that the same change made again announces the same ones.
func numberEvents(events []store.Announcement, hash [32]byte) {
	for n := range events {
		sum := sha256.Sum256(binary.BigEndian.AppendUint32(append([]byte("settle announcement"), hash[:]...), uint32(n)))
		events[n].ID = Key(sum).UUID()
	}
}

// Delivery is an event on its way to a sink.
type Delivery struct {
	// ID is the event's own: the same on every delivery, so that a receiver
	// recognises one that it has (see tools/inbox).
	ID   string
	Type string
	// Operation is the reference of the operation that it tells of. Its events come
	// in their order, one only after the one before was taken.
	Operation string
	// Tenant, Subject, Task and Goal are the operation's, for as long as its intent
	// isn't closed.
	Tenant, Subject, Task, Goal string
	// At is the ledger's time of the change.
	At time.Time
	// Number counts the deliveries of this event, from 1.
	Number int
	// Data is JSON, or empty where it was purged or erased meanwhile.
	Data json.RawMessage
}

// Sink takes events. Deliver returns nil once the event is safe with the
// receiver; it is called from several goroutines, and for one event more than
// once where that can't be known.
//
// Deliver has 10 seconds, then its context ends; the relay doesn't wait for a sink
// that ignores this, and offers it the event again only once it has returned.
//
// An error means that it comes again, later and later, for about a day. With
// [RetryAfter] in a [NotSent] error it doesn't come sooner than that; one that is
// [Rejected] is given up at once. What was given up is dead: it waits for an
// operator ([Queue.Redeliver]), and its operation's later events behind it.
type Sink interface {
	Deliver(ctx context.Context, d Delivery) error
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(ctx context.Context, d Delivery) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, d Delivery) error { return f(ctx, d) }

// ChannelSink delivers into a channel. An event counts as delivered when it was
// received from the channel: what its receiver loses from then on is lost.
func ChannelSink(events chan<- Delivery) Sink {
	return SinkFunc(func(ctx context.Context, d Delivery) error {
		select {
		case events <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
