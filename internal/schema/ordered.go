package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// member is a member of a JSON object in its order, which encoding/json's maps
// lose.
type member struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("not a JSON object")

// membersOf reads an object's members in their order.
func membersOf(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errNoObject
	}
	var members []member
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errNoObject
		}
		m := member{name: name}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

func find(members []member, name string) int {
	return slices.IndexFunc(members, func(m member) bool { return m.name == name })
}

// object writes members in their order.
func object(members []member) (json.RawMessage, error) {
	text := []byte{'{'}
	for i, m := range members {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, name...), ':'), m.value...)
	}
	return append(text, '}'), nil
}
