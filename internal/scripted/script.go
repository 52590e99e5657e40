package scripted

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Turn answers one request. It must return by itself: [Server.Close] waits for it.
type Turn func(Request) Reply

// Reply is what the model answers: text, tool calls, or both.
type Reply struct {
	Text  string
	Calls []Call

	status int  // an API error instead
	drop   bool // no answer at all
}

// Call is a tool call.
type Call struct {
	ID   string // as on the wire; FreshID makes a new one
	Name string
	Args json.RawMessage // as on the wire; needn't be JSON where the protocol carries it as a string
}

// FreshID stands for a call id that no other call has.
const FreshID = "\x00fresh"

// Use is a call of the tool with a fresh id. Args given as json.RawMessage,
// []byte or string are sent as they are (numbers keep their digits, and in the
// OpenAI protocols spaces and broken JSON stay too); anything else is marshalled,
// and it panics where that fails.
func Use(tool string, args any) Call {
	return Call{ID: FreshID, Name: tool, Args: exact(args)}
}

func exact(args any) json.RawMessage {
	switch a := args.(type) {
	case json.RawMessage:
		return a
	case []byte:
		return a
	case string:
		return json.RawMessage(a)
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return b
}

// As is the call with that id: a constant, one used before, or none ("").
func (c Call) As(id string) Call {
	c.ID = id
	return c
}

// Say answers with text.
func Say(text string) Turn { return func(Request) Reply { return Reply{Text: text} } }

// CallTools answers with tool calls.
func CallTools(calls ...Call) Turn { return func(Request) Reply { return Reply{Calls: calls} } }

// Fail answers with an API error of that status. Clients retry some of them by
// themselves, and each try takes a turn.
func Fail(status int) Turn { return func(Request) Reply { return Reply{status: status} } }

// Drop closes the connection instead of answering.
func Drop() Turn { return func(Request) Reply { return Reply{drop: true} } }

// IfResult takes the first turn where the last tool result contains the text, the
// second one where it doesn't or where there is no result.
func IfResult(contains string, then, otherwise Turn) Turn {
	return func(r Request) Reply {
		if last, ok := r.LastResult(); ok && strings.Contains(last.Text, contains) {
			return then(r)
		}
		return otherwise(r)
	}
}

// Protocol is the API that a request came by.
type Protocol string

const (
	Chat      Protocol = "chat"      // POST /v1/chat/completions
	Responses Protocol = "responses" // POST /v1/responses
	Messages  Protocol = "messages"  // POST /v1/messages
)

// Request is what the model is told, alike for all protocols.
type Request struct {
	Protocol Protocol
	Model    string
	Stream   bool
	Messages []Message // the whole conversation, oldest first
	Tools    []Tool
	Raw      json.RawMessage // the body as received
}

// Role is who a message is from.
type Role string

const (
	System    Role = "system" // developer messages and instructions included
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // one tool result
)

// Message is one message of the conversation.
type Message struct {
	Role    Role
	Text    string // the text parts, joined by a newline
	Calls   []Call // of an assistant
	CallID  string // of a tool result
	IsError bool   // of a tool result, where the protocol can say so
}

// Tool is a tool that the model is offered.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      bool
}

// Results lists the tool results at the end of the conversation: those that the
// model hasn't seen before.
func (r Request) Results() []Message {
	i := len(r.Messages)
	for i > 0 && r.Messages[i-1].Role == ToolRole {
		i--
	}
	return r.Messages[i:]
}

// LastResult is the newest tool result of the whole conversation.
func (r Request) LastResult() (Message, bool) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == ToolRole {
			return r.Messages[i], true
		}
	}
	return Message{}, false
}

// refusal is an API error.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func invalid(message string) *refusal { return &refusal{http.StatusBadRequest, message} }
