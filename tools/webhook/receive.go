package webhook

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
)

// maxBody is how many bytes of a request are read. An event has at most 64 KiB
// of data.
const maxBody = 1 << 20

// RequestError says why a request isn't an event for this receiver.
type RequestError struct {
	// Status is the answer that tells the sender what to do: 401 for a wrong
	// signature or time, which it repeats; 413, 415 or 422 for what it must not.
	Status int
	err    error
}

func (e *RequestError) Error() string { return e.err.Error() }

// Unwrap returns [ErrSignature] or [ErrTimestamp] where it is one of them.
func (e *RequestError) Unwrap() error { return e.err }

// Receive reads a request, checks its signature and returns its event. It is for a
// handler of one's own: answer 2xx once the event is safe, [RequestError.Status]
// after that error, and 503 where the event can't be taken now. Any other error
// is that of reading the request.
func (v *Verifier) Receive(r *http.Request) (Event, error) {
	if r.Method != http.MethodPost {
		return Event{}, &RequestError{http.StatusMethodNotAllowed, errors.New("webhook: events come by POST")}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return Event{}, err
	}
	if len(body) > maxBody {
		return Event{}, &RequestError{http.StatusRequestEntityTooLarge, errors.New("webhook: the request has more than 1 MiB")}
	}
	if err := v.Verify(r.Header, body); err != nil {
		return Event{}, &RequestError{http.StatusUnauthorized, err}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != contentType {
		return Event{}, &RequestError{http.StatusUnsupportedMediaType, errors.New("webhook: the request's content type isn't " + contentType)}
	}
	event, err := decode(body)
	if err != nil {
		return Event{}, &RequestError{http.StatusUnprocessableEntity, err}
	}
	return event, nil
}

// Handler receives events. Take is given each one whose signature is right, and
// returns nil once the event is safe, which is answered with 204, or was received
// before: the same event comes again where that answer is lost, so take begins
// with inbox.Once in its transaction. After an error the answer is 503, without
// the error's text, and the event comes again for about a day.
//
// Take's context ends when the sender breaks off, after 10 s with settle's relay:
// long work belongs behind the answer.
func Handler(v *Verifier, take func(ctx context.Context, e Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(receive(v, r, take))
	})
}

// receive returns the status to answer with.
func receive(v *Verifier, r *http.Request, take func(ctx context.Context, e Event) error) int {
	event, err := v.Receive(r)
	var wrong *RequestError
	switch {
	case errors.As(err, &wrong):
		return wrong.Status
	case err != nil:
		return http.StatusBadRequest
	}
	if err := take(r.Context(), event); err != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusNoContent
}
