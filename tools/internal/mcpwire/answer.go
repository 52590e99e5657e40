package mcpwire

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/settle-go/settle"
)

// Answer is an outcome as structured content. Message is what the text says too,
// for hosts that show the model the one and not the other.
type Answer struct {
	Status    settle.Status   `json:"status"`
	Operation string          `json:"operation,omitempty"`
	Replayed  bool            `json:"replayed,omitempty"`
	Resource  string          `json:"resource,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	NotBefore string          `json:"not_before,omitempty"`
	Message   string          `json:"message"`
}

// AnswerOf is the outcome of a call.
func AnswerOf(out settle.Outcome) Answer {
	a := Answer{Status: out.Status, Operation: out.Operation, Replayed: out.Replayed, Message: out.ForModel()}
	if out.Status == settle.StatusCompleted {
		a.Resource, a.Result = out.Resource, out.Result
	}
	if !out.NotBefore.IsZero() {
		a.NotBefore = out.NotBefore.UTC().Format(time.RFC3339)
	}
	return a
}

// OutcomeMeta is the outcome in a result's _meta, by which a client that is
// guarded too tells it from what a tool returned.
func OutcomeMeta(out settle.Outcome) map[string]any {
	said := map[string]any{"status": string(out.Status)}
	if out.Operation != "" {
		said["operation"] = out.Operation
	}
	if out.Replayed {
		said["replayed"] = true
	}
	return map[string]any{OutcomeKey: said}
}

// StatusOf is the status in a result's _meta, "" where the tool ran unguarded.
func StatusOf(meta map[string]any) settle.Status {
	said, _ := meta[OutcomeKey].(map[string]any)
	status, _ := said["status"].(string)
	return settle.Status(status)
}

// IsError says whether a result is marked as an error, which invites the model to
// correct itself and call again: only where that is meant (R59). With a reason, it
// is the tool's schema that is wrong.
func IsError(out settle.Outcome) bool {
	return out.Status == settle.StatusInvalidArguments && out.Reason == ""
}

const answerSchema = `{"type":"object","description":"What is known instead of a result.",` +
	`"properties":{"status":{"type":"string"},"operation":{"type":"string"},"replayed":{"type":"boolean"},` +
	`"resource":{"type":"string"},"not_before":{"type":"string"},"message":{"type":"string"}},"required":["status","message"]}`

// Widen returns an output schema that allows an answer in the result's place:
// many clients check structured content and throw away what doesn't fit. It is
// nil, and the tool is better shown without one, where the schema points into
// itself, which it can't once it is part of another.
func Widen(schema json.RawMessage) json.RawMessage {
	var doc any
	if json.Unmarshal(schema, &doc) != nil || pointsIntoItself(doc) {
		return nil
	}
	object := ""
	if top, ok := doc.(map[string]any); ok && top["type"] == "object" {
		object = `"type":"object",` // clients before 2026-07-28 take nothing else at the top
	}
	return json.RawMessage(`{` + object + `"anyOf":[` + string(schema) + `,` + answerSchema + `]}`)
}

// Widened says whether a schema comes from [Widen].
func Widened(schema json.RawMessage) bool {
	return bytes.HasSuffix(schema, []byte(answerSchema+"]}"))
}

func pointsIntoItself(doc any) bool {
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			if pointsIntoItself(item) {
				return true
			}
		}
	case map[string]any:
		for name, item := range v {
			switch name {
			case "$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor":
				return true
			}
			if pointsIntoItself(item) {
				return true
			}
		}
	}
	return false
}
