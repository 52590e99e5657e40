package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// contentType is that of a CloudEvent in structured mode (CloudEvents 1.0, JSON
// format, section 3).
const contentType = "application/cloudevents+json"

// Event is an event as its receiver has it.
type Event struct {
	// ID is the same on every delivery, and the source's own: source and id
	// together tell an event (tools/inbox).
	ID, Source string
	// Type is one of package settle's, such as [settle.EventSettled], whose data is
	// [settle.EventData], or a handler's own.
	Type string
	// Operation is the reference of the operation that it tells of.
	Operation string
	// Tenant, Subject, Task and Goal are the operation's, empty where they are
	// unknown.
	Tenant, Subject, Task, Goal string
	// Time is the ledger's instant of the change.
	Time time.Time
	// Data is JSON, or empty where it was erased.
	Data json.RawMessage
}

// envelope is an event on the wire. The names of extension attributes have
// lower-case letters and digits only (CloudEvents 1.0, section 3).
type envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Operation   string          `json:"subject,omitempty"`
	Time        time.Time       `json:"time,omitzero"`
	Tenant      string          `json:"settletenant,omitempty"`
	Subject     string          `json:"settlesubject,omitempty"`
	Task        string          `json:"settletask,omitempty"`
	Goal        string          `json:"settlegoal,omitempty"`
	ContentType string          `json:"datacontenttype,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// encode returns the body of a delivery: the same bytes on every one of them.
func encode(source string, d settle.Delivery) ([]byte, error) {
	e := envelope{SpecVersion: "1.0", ID: d.ID, Source: source, Type: d.Type, Operation: d.Operation, Time: d.At.UTC(),
		Tenant: d.Tenant, Subject: d.Subject, Task: d.Task, Goal: d.Goal, Data: d.Data}
	if len(d.Data) > 0 {
		e.ContentType = "application/json"
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return nil, errors.New("webhook: the event's data isn't JSON")
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}

// decode reads a body. Attributes that aren't known are passed over.
func decode(body []byte) (Event, error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, errors.New("webhook: the body isn't a CloudEvent in JSON")
	}
	if e.SpecVersion != "1.0" {
		return Event{}, errors.New("webhook: the event's specversion isn't 1.0")
	}
	for _, required := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		if required.value == "" {
			return Event{}, fmt.Errorf("webhook: the event has no %s, which CloudEvents requires", required.name)
		}
	}
	return Event{ID: e.ID, Source: e.Source, Type: e.Type, Operation: e.Operation, Tenant: e.Tenant, Subject: e.Subject,
		Task: e.Task, Goal: e.Goal, Time: e.Time, Data: e.Data}, nil
}
