package httptool

import "net/http"

// Meaning is what an answer's status proves about the effect (R27).
type Meaning uint8

const (
	// Unknown: it may have happened. A lookup or a person finds out.
	Unknown Meaning = iota
	// Happened: it is done, and the answer is the result.
	Happened
	// NotSent: the far side refuses before it acts, and the same call may be made
	// again. A Retry-After of the answer is waited for.
	NotSent
	// Rejected: the far side understood and won't do it. The operation fails, and
	// a corrected call may follow.
	Rejected
	// AlreadySo: the desired state is in place, for an Idempotent tool.
	AlreadySo
)

// MeaningOf is what a status means where the declaration doesn't say otherwise:
//
//	200, 201, 203, 204, 205    Happened
//	other 2xx, 202 included    Unknown: accepted is not done, and parts are not all
//	3xx                        Unknown: 303 follows an effect, 307 replaces one
//	408, 409, 425, 429         Unknown: an earlier attempt may be what it met
//	other 4xx                  Rejected
//	5xx                        Unknown: a gateway's 502 says nothing of what is behind it
func MeaningOf(status int) Meaning {
	switch status {
	case http.StatusOK, http.StatusCreated, http.StatusNonAuthoritativeInfo, http.StatusNoContent, http.StatusResetContent:
		return Happened
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return Unknown
	}
	if status/100 == 4 {
		return Rejected
	}
	return Unknown
}
