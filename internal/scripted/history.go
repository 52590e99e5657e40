package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
)

// checkHistory refuses what the real APIs refuse: a call without a result, a
// result without a call, two results for one call. Ids are counted rather than
// looked up, since a script may repeat them.
func checkHistory(messages []Message) error {
	open := map[string]int{}
	left := 0
	for i, m := range messages {
		if m.Role == ToolRole {
			if open[m.CallID] == 0 {
				return invalid(fmt.Sprintf("message %d: a tool result answers no tool call of the turn before it", i))
			}
			open[m.CallID]--
			left--
			continue
		}
		if left > 0 {
			return invalid(fmt.Sprintf("message %d: %d tool calls of the turn before it have no result", i, left))
		}
		for _, c := range m.Calls {
			open[c.ID]++
			left++
		}
	}
	if left > 0 {
		return invalid(fmt.Sprintf("the last turn has %d tool calls without a result", left))
	}
	return nil
}

// text is content as all three protocols write it: a string, null, or parts of
// which those with a text count.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		var texts []string
		for _, p := range parts {
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
		*t = text(strings.Join(texts, "\n"))
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// halves cuts text in two where it isn't too short, so that a stream has pieces
// to put together. It never cuts through a character.
func halves(s string) []string {
	runes := []rune(s)
	if len(runes) < 2 {
		return []string{s}
	}
	cut := len(string(runes[:len(runes)/2]))
	return []string{s[:cut], s[cut:]}
}

// tokens is a rough count, four bytes each.
func tokens(n int) int { return n/4 + 1 }

// size is the number of bytes that the reply's content has.
func (r Reply) size() int {
	n := len(r.Text)
	for _, c := range r.Calls {
		n += len(c.Name) + len(c.Args)
	}
	return n
}
