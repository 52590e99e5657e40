package idempotency

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/settle-go/settle"
)

// problem is an answer of the guard's own (RFC 9457). What it is of is in its
// type; operation and outcome are extension members.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Outcome is the operation's status (R59), Operation its reference.
	Outcome   string `json:"outcome,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Differs names what isn't as it was when the key was first used.
	Differs []string `json:"differs,omitempty"`
	// Ask is where to ask by key what became of the request, with GET.
	Ask string `json:"ask,omitempty"`

	retryAfter int // seconds, 0 for none
	challenge  bool
}

// problemBase is where the types are described: the README's table.
const problemBase = "https://github.com/settle-go/settle/blob/main/tools/idempotency/README.md#"

// kind is a problem's type.
type kind struct {
	name, title, detail string
	status              int
	// soon says that the same request may be sent again, after a second.
	soon bool
}

// The problems. Their names are the anchors of their types.
var (
	methodNotAllowed = kind{name: "method-not-allowed", status: http.StatusMethodNotAllowed, title: "Method not allowed"}
	keyMissing       = kind{name: "key-missing", status: http.StatusBadRequest, title: "Idempotency-Key is missing"}
	keyMalformed     = kind{name: "key-malformed", status: http.StatusBadRequest, title: "Idempotency-Key is malformed"}
	bodyIncomplete   = kind{name: "body-incomplete", status: http.StatusBadRequest, title: "The body ended too early",
		detail: "The body was cut off, so nothing was done and the key is as free as before."}
	bodyUnreadable = kind{name: "body-unreadable", status: http.StatusBadRequest, title: "The body can't be read",
		detail: "The body isn't the JSON that its Content-Type says, or has a duplicate name or invalid UTF-8. Nothing was done."}
	notIdentified = kind{name: "body-unreadable", status: http.StatusBadRequest, title: "The body can't be read",
		detail: "What identifies the request isn't in its body, or can't be read there: it is named in differs. Nothing was done."}
	bodyTooLarge = kind{name: "body-too-large", status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		detail: "The body is larger than this route takes. Nothing was done."}
	unauthenticated = kind{name: "unauthenticated", status: http.StatusUnauthorized, title: "Authentication is needed"}
	denied          = kind{name: "denied", status: http.StatusForbidden, title: "Not allowed",
		detail: "The caller may not do this, or not see what became of it. Nothing was done for this request."}
	misconfigured = kind{name: "misconfigured", status: http.StatusInternalServerError, title: "The service is misconfigured",
		detail: "The request can't be protected, so nothing was done."}
	inProgress = kind{name: "in-progress", status: http.StatusConflict, title: "The request is in flight", soon: true,
		detail: "A request with this key is being carried out. Send it again later with the same key and content to learn its outcome."}
	outcomeUnknown = kind{name: "outcome-unknown", status: http.StatusConflict, title: "The outcome is not known",
		detail: "A request with this key was begun, and nobody knows yet whether it took effect. It isn't run again. Don't send it under another key: ask what became of it."}
	handlerBroke = kind{name: "outcome-unknown", status: http.StatusInternalServerError, title: "The outcome is not known",
		detail: "The service broke while it carried out the request, and nobody knows yet whether it took effect. It isn't run again. Don't send it under another key: ask what became of it."}
	commitUnanswered = kind{name: "outcome-unknown", status: http.StatusServiceUnavailable, title: "The outcome is not known", soon: true,
		detail: "The database didn't answer whether it took the request. Send it again with the same key and content: its record is read back, or it is carried out."}
	awaitingApproval = kind{name: "awaiting-approval", status: http.StatusConflict, title: "A person has to allow this",
		detail: "Nothing was done yet. Send it again with the same key and content once it is allowed."}
	keyReused = kind{name: "key-reused", status: http.StatusUnprocessableEntity, title: "Idempotency-Key is already used",
		detail: "The key was used for a request with other content, and that one stands. Nothing was done. A new purpose takes a new key."}
	notUnique = kind{name: "not-unique", status: http.StatusConflict, title: "There is one already",
		detail: "There may be only one such request, under whatever key, and there is one. Nothing was done."}
	held = kind{name: "held", status: http.StatusConflict, title: "A person has to look first",
		detail: "What identifies a request on this route has changed, so it can't be told whether this one was done. Nothing was done."}
	failed = kind{name: "failed", status: http.StatusConflict, title: "The request had no effect",
		detail: "It is settled that the request with this key had no effect, and it won't have any. A new attempt takes a new key."}
	notDone = kind{name: "not-done", status: http.StatusServiceUnavailable, title: "Nothing was done", soon: true,
		detail: "The request had no effect. Send it again with the same key, not before the time given."}
	superseded = kind{name: "superseded", status: http.StatusConflict, title: "A newer request stands",
		detail: "A newer request on the same resource overtook this one, and its state stands. Nothing was done."}
	abandoned = kind{name: "abandoned", status: http.StatusConflict, title: "Closed without an outcome",
		detail: "A person closed the request with this key without learning whether it took effect. It isn't run again."}
	expired = kind{name: "expired", status: http.StatusGone, title: "The key's record is gone",
		detail: "The key was used before, and what became of it is no longer kept. Nothing was done for this request, and nothing will be under this key."}
	unavailable = kind{name: "unavailable", status: http.StatusServiceUnavailable, title: "The service can't keep record", soon: true,
		detail: "The record of requests can't be written, so nothing was done. Send it again later with the same key."}
	notFound = kind{name: "not-found", status: http.StatusNotFound, title: "No such request",
		detail: "No request of this caller with this key was begun on this route."}
)

// kinds is every problem there is.
var kinds = []kind{methodNotAllowed, keyMissing, keyMalformed, bodyIncomplete, bodyUnreadable, notIdentified, bodyTooLarge, unauthenticated, denied, misconfigured,
	inProgress, outcomeUnknown, handlerBroke, commitUnanswered, awaitingApproval, keyReused, notUnique, held, failed, notDone, superseded, abandoned, expired, unavailable, notFound}

// byStatus is the problem of each outcome that isn't a handler's answer.
var byStatus = map[settle.Status]kind{
	settle.StatusCompleted:        denied, // to whom it may be told
	settle.StatusFailed:           failed,
	settle.StatusNotDone:          notDone,
	settle.StatusInvalidArguments: bodyUnreadable,
	settle.StatusDenied:           denied,
	settle.StatusConflict:         keyReused,
	settle.StatusHeld:             held,
	settle.StatusInProgress:       inProgress,
	settle.StatusUnknown:          outcomeUnknown,
	settle.StatusAwaitingApproval: awaitingApproval,
	settle.StatusManual:           outcomeUnknown,
	settle.StatusSuperseded:       superseded,
	settle.StatusAbandoned:        abandoned,
	settle.StatusExpired:          expired,
	settle.StatusNoSuchTool:       misconfigured,
	settle.StatusUnavailable:      unavailable,
}

func (p *protected) kindOf(out settle.Outcome) kind {
	switch {
	case out.Status == settle.StatusConflict && out.Reason == "unique":
		return notUnique
	case out.Status == settle.StatusUnknown && p.transactional:
		return commitUnanswered
	case out.Status == settle.StatusInvalidArguments && len(out.Fields) > 0:
		return notIdentified
	}
	return byStatus[out.Status]
}

func problemOf(k kind) problem {
	p := problem{Type: problemBase + k.name, Title: k.title, Status: k.status, Detail: k.detail, challenge: k.status == http.StatusUnauthorized}
	if k.soon {
		p.retryAfter = 1
	}
	return p
}

// problem is problemOf with where to ask, which has to do with a recorded request.
func (p *protected) problem(k kind) problem {
	out := problemOf(k)
	if p.options.StatusPath != "" && (k.status == http.StatusConflict || k.name == outcomeUnknown.name) {
		out.Ask = p.options.StatusPath + "?route=" + url.QueryEscape(p.route)
	}
	return out
}

// of adds what the ledger says.
func (p *problem) of(out settle.Outcome) {
	p.Outcome, p.Operation, p.Differs = string(out.Status), out.Operation, out.Fields
	if !out.NotBefore.IsZero() {
		p.retryAfter = max(int(math.Ceil(time.Until(out.NotBefore).Seconds())), 1)
	}
}

// keyProblem is the answer to a key that isn't there or can't be read.
func keyProblem(of func(kind) problem, err error) problem {
	var wrong *KeyError
	k := keyMalformed
	if errors.As(err, &wrong) && wrong.Missing {
		k = keyMissing
	}
	out := of(k)
	if wrong != nil {
		out.Detail = "The key " + wrong.Reason + ". Nothing was done."
	}
	return out
}

// bodyProblem is the answer to a body that didn't arrive as it should.
func (p *protected) bodyProblem(err error) problem {
	switch {
	case errors.Is(err, errTooLarge):
		return p.problem(bodyTooLarge)
	case errors.Is(err, errNotKept):
		p.options.Log.Error("idempotency: a large body can't be kept, so its request was refused", "error", err)
		return p.problem(unavailable)
	}
	return p.problem(bodyIncomplete)
}

// refuse sends a problem.
func (g *Guard) refuse(w http.ResponseWriter, p problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.challenge && g.options.Challenge != "" {
		h.Set("WWW-Authenticate", g.options.Challenge)
	}
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p) //nolint:errcheck // the client may be gone
}
