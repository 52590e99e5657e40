package httptool

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/tools/internal/retryafter"
)

// maxRefusal bounds the far side's text that a model is told, in bytes.
const maxRefusal = 300

var errNoResult = errors.New("the answer has no result where the declaration says")

// judge says what an answer proves.
func (e *endpoint[In, Out]) judge(a *answer) (out Out, err error) {
	switch failed := (&Error{Status: a.status}); e.meaning(a) {
	case Happened:
		if out, _, err = decode[Out](a, e.spec.Result); err != nil {
			failed.cause = err
			return out, failed // it says that it acted, and not what it did (R27)
		}
		return out, nil
	case NotSent:
		if wait, ok := a.retryAfter(); ok {
			return out, settle.NotSent(failed, settle.RetryAfter(wait))
		}
		return out, settle.NotSent(failed)
	case Rejected:
		failed.Refusal = e.refusal(a)
		return out, settle.Rejected(failed)
	case AlreadySo:
		found, encoded, err := decode[Out](a, e.spec.Result)
		if err != nil {
			return out, settle.AlreadySo("")
		}
		return out, settle.AlreadySo(e.resource(found, encoded))
	default:
		return out, failed
	}
}

// retryAfter is the wait that an answer asks for, if it does.
func (a *answer) retryAfter() (time.Duration, bool) {
	return retryafter.Wait(a.header.Get("Retry-After"), time.Now(), retryafter.Longest)
}

func (e *endpoint[In, Out]) meaning(a *answer) Meaning {
	if m, ok := e.spec.Meanings[a.status]; ok {
		return m
	}
	if _, wait := a.retryAfter(); wait && e.spec.ThrottlesBeforeActing &&
		(a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable) {
		return NotSent
	}
	return MeaningOf(a.status)
}

// refusal is the far side's text for the model, without what could be taken for
// another line of it.
func (e *endpoint[In, Out]) refusal(a *answer) string {
	if e.spec.Refusal == "" || a.readErr != nil {
		return ""
	}
	v, err := parse(a.body)
	if err != nil {
		return ""
	}
	found, _ := v.Path(e.spec.Refusal)
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, found.String())
	for len(text) > maxRefusal {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

func parse(body []byte) (canonical.Value, error) {
	return canonical.Parse(body, canonical.Limits{Bytes: len(body) + 1, Members: math.MaxInt32})
}

// decode reads the result at a path of an answer.
func decode[Out any](a *answer, path string) (out Out, encoded []byte, err error) {
	if a.readErr != nil {
		return out, nil, a.readErr
	}
	if len(a.body) == 0 && path == "" {
		return out, nil, nil
	}
	v, err := parse(a.body)
	if err != nil {
		return out, nil, err
	}
	found, ok := v.Path(path)
	if !ok {
		return out, nil, errNoResult
	}
	return decodeValue[Out](found)
}

func decodeValue[Out any](v canonical.Value) (out Out, encoded []byte, err error) {
	encoded = v.AppendJSON(nil)
	if raw, ok := any(&out).(*json.RawMessage); ok {
		*raw = encoded
		return out, encoded, nil
	}
	if err := schema.Read(encoded, &out); err != nil {
		return out, nil, errors.New("the result isn't of the declared type") // its own text may hold a value
	}
	return out, encoded, nil
}
