package settle

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// What was decided before, and in which words.

// checkWords bounds what an operator writes. Nothing of it is cut: the end of a
// reason may say the contrary of its beginning, and half a resource is another one.
func checkWords(reason, resource string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return ErrBlankReason
	case len(reason) > maxNote || len(resource) > maxResource:
		return ErrTooLong
	}
	return nil
}

// said is the body of a decision's event.
type said struct {
	Decision string `json:"decision"`
	Resource string `json:"resource,omitempty"`
	Reason   string `json:"reason"`
}

func (d Decision) words() said {
	w := said{string(d.Kind), "", d.Reason}
	if d.Kind == DecideHappened {
		w.Resource = d.Resource
	}
	return w
}

func (d Decision) body() ([]byte, error) { return json.Marshal(d.words()) }

// journaled is an event of a decision that was taken, or proposed, and those after it.
type journaled struct {
	store.Event
	after []store.Event
}

// decided finds what was done under a decision's id.
func (q *Queue) decided(ctx context.Context, c *opened, id string) (*journaled, error) {
	decision, err := uuid.Parse(id)
	if err != nil || decision == uuid.Nil {
		return nil, errors.New("settle: a decision needs an id: a UUID of its own, the same when it is sent again (R41)")
	}
	events, err := q.x.ledger.Events(ctx, c.entry.ID, 0)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Decision == decision {
			return &journaled{e, events[i+1:]}, nil
		}
	}
	return nil, nil
}

// again is what a decision is told whose id was used: that it is no change, or that
// the id stands for something else, or for what came to nothing.
func (j *journaled) again(d Decision) error {
	before, now := words(j.Event), d.words()
	switch {
	case before.Decision != now.Decision || before.Resource != now.Resource:
		return ErrOtherDecision
	case j.Kind == "proposed" && !j.stands():
		return ErrVoid
	}
	return nil
}

// stands says that a proposal still waits, or was confirmed.
func (j *journaled) stands() bool {
	for _, e := range j.after {
		if !slices.Contains(passings, e.Kind) {
			return e.Kind == "decided" && words(e).Decision == words(j.Event).Decision
		}
	}
	return true
}

func words(e store.Event) (w said) {
	_ = json.Unmarshal(e.Body, &w) //nolint:errcheck // a body of another shape names no decision
	return w
}
