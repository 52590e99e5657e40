package farside

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Mode is how a far side treats one request. The zero Mode is [OK].
type Mode struct {
	name       string
	before     Pause       // awaited when the request has been read, before anything is done
	skip       bool        // the request isn't acted on
	after      Pause       // awaited when it has been acted on, before the answer
	drop       bool        // the connection is closed instead of an answer
	garble     bool        // the answer is no JSON
	status     int         // answers this instead of what the request came to
	code       string      // the error code in that answer
	header     http.Header // added to the answer
	thenRefuse bool        // the port is closed before the answer leaves
}

// OK acts and answers.
func OK() Mode { return Mode{} }

// CommitThenDrop acts, then closes the connection instead of answering.
func CommitThenDrop() Mode { return Mode{name: "commit_then_drop", drop: true} }

// DropBefore reads the whole request, does nothing and closes the connection.
func DropBefore() Mode { return Mode{name: "drop_before", skip: true, drop: true} }

// Reject does nothing and refuses with a definite 4xx and an error code.
func Reject(status int, code string) Mode {
	return Mode{name: "reject", skip: true, status: status, code: code}
}

// StatusBefore does nothing and answers with the status.
func StatusBefore(status int) Mode {
	return Mode{name: "status_before", skip: true, status: status, code: "fault"}
}

// StatusAfter acts, then answers with the status as though it hadn't.
func StatusAfter(status int) Mode {
	return Mode{name: "status_after", status: status, code: "fault"}
}

// Slow waits, then acts and answers, even where the client has left meanwhile.
func Slow(p Pause) Mode { return Mode{name: "slow", before: p} }

// Late acts at once and answers only after the pause.
func Late(p Pause) Mode { return Mode{name: "late", after: p} }

// Unparsable acts, then answers with the right status and a body that is no JSON.
func Unparsable() Mode { return Mode{name: "unparsable", garble: true} }

// Held is the mode with a pause before anything of it happens.
func (m Mode) Held(p Pause) Mode {
	m.before = p
	return m
}

// RetryAfter is the mode with a Retry-After header, in whole seconds, on its answer.
func (m Mode) RetryAfter(d time.Duration) Mode {
	m.header = m.header.Clone()
	if m.header == nil {
		m.header = http.Header{}
	}
	m.header.Set("Retry-After", strconv.Itoa(int(d/time.Second)))
	return m
}

// ThenRefuse is the mode with [Server.Refuse] called before its answer leaves, so
// that whatever a client sends next meets a closed port.
func (m Mode) ThenRefuse() Mode {
	m.thenRefuse = true
	return m
}

// String is the mode's name as the scenarios write it.
func (m Mode) String() string {
	if m.name == "" {
		return "ok"
	}
	return m.name
}

// Faults says which mode the coming requests meet. Requests are counted in the
// order in which they arrive. It is safe for concurrent use.
type Faults struct {
	mu     sync.Mutex
	always Mode
	next   []Mode
	rules  []*rule
}

type rule struct {
	match func(Request) bool
	modes []Mode
}

// Set gives every request the mode, except those that [Faults.Next] or
// [Faults.When] have one for.
func (f *Faults) Set(m Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always = m
}

// Next appends the modes to the queue: each is met by one coming request.
func (f *Faults) Next(modes ...Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, modes...)
}

// When gives the modes to the next requests that match, one each, before
// [Faults.Next] is asked. match must not call the far side.
func (f *Faults) When(match func(Request) bool, modes ...Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule{match, append([]Mode(nil), modes...)})
}

// Pending is how many modes of Next and When no request has met yet.
func (f *Faults) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.next)
	for _, r := range f.rules {
		n += len(r.modes)
	}
	return n
}

func (f *Faults) take(r Request) Mode {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		if len(rule.modes) > 0 && rule.match(r) {
			return shift(&rule.modes)
		}
	}
	if len(f.next) > 0 {
		return shift(&f.next)
	}
	return f.always
}

func shift(queue *[]Mode) Mode {
	m := (*queue)[0]
	*queue = (*queue)[1:]
	return m
}

// Pause is what a mode waits for: a [Delay] or a [Gate].
type Pause interface {
	// wait reports false where the far side closes first.
	wait(closing <-chan struct{}) bool
}

// Delay is a pause of that long on the wall clock.
type Delay time.Duration

func (d Delay) wait(closing <-chan struct{}) bool {
	t := time.NewTimer(time.Duration(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-closing:
		return false
	}
}

// Gate is a pause that the test ends. It tells when a request has come to it, so
// that neither side has to sleep.
type Gate struct {
	entered chan struct{}
	open    chan struct{}
	release sync.Once
}

// maxAtGate bounds how many arrivals a gate remembers for a test that reads none.
const maxAtGate = 1024

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{entered: make(chan struct{}, maxAtGate), open: make(chan struct{})}
}

// Entered yields one value for each request that has come to the gate; the
// first 1,024 are kept for a reader that comes later.
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Release lets all requests through, those to come included. Again is no change.
func (g *Gate) Release() { g.release.Do(func() { close(g.open) }) }

func (g *Gate) wait(closing <-chan struct{}) bool {
	select {
	case g.entered <- struct{}{}:
	default:
	}
	select {
	case <-g.open:
		return true
	case <-closing:
	}
	select {
	case <-g.open: // released before the far side closed: which select picks is chance
		return true
	default:
		return false
	}
}
