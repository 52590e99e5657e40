package main

import (
	"slices"
	"strings"
	"sync"

	"github.com/settle-go/settle/internal/scripted"
)

// request is what the user asks of the agent.
const request = "Order A-1001 (42.10) is eight days late. Open a ticket with the carrier, " +
	"write to ana@example.com, and refund the order."

// wordings are the arguments that the model gives at its first call of each
// tool, its second, and all later ones. Like a real one it never says the same
// thing twice in the same words, and once it gets a number wrong.
var wordings = map[string][]string{
	"open_ticket": {
		`{"order_id":"A-1001","problem":"late","details":"Please trace it."}`,
		`{"order_id":"A-1001","problem":"late","details":"Eight days overdue!"}`,
		`{"order_id":"A-1001","problem":"late","details":"Where is this parcel?"}`,
	},
	"send_mail": {
		`{"to":"ana@example.com","subject":"Your late parcel","body":"We refund you."}`,
		`{"to":"ana@example.com","subject":"About your parcel","body":"A refund comes."}`,
		`{"to":"ana@example.com","subject":"Order A-1001","body":"You get it all back."}`,
	},
	"refund": {
		`{"order_id":"A-1001","amount":"42.10","note":"late parcel"}`,
		`{"order_id":"A-1001","amount":"24.10","note":"eight days late"}`, // digits swapped
		`{"order_id":"A-1001","amount":"42.1","note":"as it was paid"}`,
	},
}

// agentModel is the language model: it calls the three tools one after the
// other, and again where it was told of an error or a conflict. It sees nothing
// but the conversation, so a worker that starts anew makes it start anew. It
// doesn't heed the brief either, as a model may not.
type agentModel struct {
	mu    sync.Mutex
	calls map[string]int // of each tool, over all conversations
}

// newModel starts the model behind an OpenAI-compatible endpoint.
func newModel() *scripted.Server {
	m := &agentModel{calls: map[string]int{}}
	s := scripted.New()
	s.Otherwise(m.turn)
	return s
}

func (m *agentModel) turn(r scripted.Request) scripted.Reply {
	for _, tool := range []string{"open_ticket", "send_mail", "refund"} {
		told, called := lastResult(r, tool)
		if !called || strings.HasPrefix(told, "error") || strings.HasPrefix(told, "[conflict") {
			return scripted.Reply{Calls: []scripted.Call{m.call(tool)}}
		}
	}
	return scripted.Reply{Text: closing(r)}
}

// call words a call of the tool anew, under an id that no other call has.
func (m *agentModel) call(tool string) scripted.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	words := wordings[tool]
	args := words[min(m.calls[tool], len(words)-1)]
	m.calls[tool]++
	return scripted.Use(tool, args)
}

// lastResult is what the model was told of its last call of the tool in this
// conversation.
func lastResult(r scripted.Request, tool string) (told string, called bool) {
	ofTool := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			ofTool[c.ID] = c.Name == tool
		}
		if m.Role == scripted.ToolRole && ofTool[m.CallID] {
			told, called = m.Text, true
		}
	}
	return told, called
}

// closing is what the model says when there is nothing left to call.
func closing(r scripted.Request) string {
	uncertain := slices.ContainsFunc(r.Messages, func(m scripted.Message) bool {
		return m.Role == scripted.ToolRole && strings.HasPrefix(m.Text, "[held")
	})
	switch {
	case !uncertain:
		return "The ticket is open, the customer has a mail and the order is refunded."
	case r.Messages[len(r.Messages)-1].Role == scripted.User:
		return "The ticket is open and the order is refunded. A colleague finds out about the mail."
	default:
		return "The ticket is open. Of the refund and the mail I don't know yet: I wait for news."
	}
}
