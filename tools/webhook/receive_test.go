package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/tools/webhook"
)

func TestHandlerTakesWhatTheSinkSends(t *testing.T) {
	t.Parallel()
	var got webhook.Event
	receiver := httptest.NewServer(webhook.Handler(verifier(t, time.Now(), vectorSecret), func(_ context.Context, e webhook.Event) error {
		got = e
		return nil
	}))
	sent := delivery()
	err := sinkTo(t, receiver.URL).Deliver(t.Context(), sent)
	receiver.Close() // and with it the handler
	want := webhook.Event{ID: sent.ID, Source: "https://desk.example/agents", Type: sent.Type, Operation: sent.Operation, Tenant: sent.Tenant,
		Subject: sent.Subject, Task: sent.Task, Goal: sent.Goal, Time: sent.At.UTC(), Data: sent.Data}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
}

// captured are the header and body that the sink sends.
func captured(t *testing.T, body string) (http.Header, []byte) {
	t.Helper()
	var header http.Header
	var read []byte
	capture := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		read, _ = io.ReadAll(r.Body)
	}))
	d := delivery()
	sink := sinkTo(t, capture.URL, func(c *webhook.Config) {
		if body != "" {
			c.Client = &http.Client{Transport: replacing(body)}
		}
	})
	err := sink.Deliver(t.Context(), d)
	capture.Close()
	if err != nil {
		t.Fatal(err)
	}
	return header, read
}

// replacing sends another body than the one that was signed.
type replacing string

func (body replacing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	return http.DefaultTransport.RoundTrip(r)
}

func TestHandlerAnswers(t *testing.T) {
	t.Parallel()
	header, body := captured(t, "")
	tampered, other := captured(t, `{"specversion":"1.0","id":"x","source":"y","type":"z"}`)
	json := header.Clone()
	json.Set("Content-Type", "application/json")
	charset := header.Clone()
	charset.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	for name, tc := range map[string]struct {
		method string
		header http.Header
		body   []byte
		fails  bool
		after  time.Duration
		want   int
	}{
		"an event":              {http.MethodPost, header, body, false, 0, http.StatusNoContent},
		"with a charset":        {http.MethodPost, charset, body, false, 0, http.StatusNoContent},
		"not now":               {http.MethodPost, header, body, true, 0, http.StatusServiceUnavailable},
		"another method":        {http.MethodGet, header, nil, false, 0, http.StatusMethodNotAllowed},
		"unsigned":              {http.MethodPost, http.Header{}, body, false, 0, http.StatusUnauthorized},
		"tampered with":         {http.MethodPost, tampered, other, false, 0, http.StatusUnauthorized},
		"replayed an hour late": {http.MethodPost, header, body, false, time.Hour, http.StatusUnauthorized},
		"another content type":  {http.MethodPost, json, body, false, 0, http.StatusUnsupportedMediaType},
		"too large":             {http.MethodPost, header, bytes.Repeat([]byte(" "), 1<<20+1), false, 0, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken := false
			handler := webhook.Handler(verifier(t, time.Now().Add(tc.after), vectorSecret), func(context.Context, webhook.Event) error {
				taken = true
				if tc.fails {
					return errors.New("s3cr3t")
				}
				return nil
			})
			request := httptest.NewRequestWithContext(t.Context(), tc.method, "/", bytes.NewReader(tc.body))
			request.Header = tc.header
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if answer.Code != tc.want || answer.Body.Len() > 0 {
				t.Errorf("the answer is %d %q, want %d", answer.Code, answer.Body, tc.want)
			}
			if taken != (tc.want == http.StatusNoContent || tc.fails) {
				t.Errorf("taken: %v", taken)
			}
		})
	}
}

func TestHandlerRefusesWhatIsNoCloudEvent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no JSON":         `{`,
		"another version": `{"specversion":"0.3","id":"x","source":"y","type":"z"}`,
		"no id":           `{"specversion":"1.0","source":"y","type":"z"}`,
		"no source":       `{"specversion":"1.0","id":"x","type":"z"}`,
		"no type":         `{"specversion":"1.0","id":"x","source":"y"}`,
		"a number":        `{"specversion":"1.0","id":7,"source":"y","type":"z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
			request.Header = signedNow(t, body)
			request.Header.Set("Content-Type", "application/cloudevents+json")
			_, err := verifier(t, time.Now(), vectorSecret).Receive(request)
			var wrong *webhook.RequestError
			if !errors.As(err, &wrong) || wrong.Status != http.StatusUnprocessableEntity {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
