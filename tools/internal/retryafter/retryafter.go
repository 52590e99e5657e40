// Package retryafter reads how long an answer asks to be left alone.
package retryafter

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Longest bounds what is read where nothing shorter does, so that no sum with it
// runs over: ten years.
const Longest = 3_650 * 24 * time.Hour

// Wait is the wait that a Retry-After asks for at now, in seconds or as a date (RFC
// 9110 section 10.2.3), and longest at most; it is false where it is neither. A
// number that can't be counted is the longest that there is.
func Wait(value string, now time.Time, longest time.Duration) (time.Duration, bool) {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, longest), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), longest), true
}
