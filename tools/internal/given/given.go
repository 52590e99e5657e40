// Package given is what the tool of a framework that decodes arguments itself is
// given of them.
package given

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/settle-go/settle"
)

// Members returns a copy of a call's decoded arguments with those members only
// that the call running in ctx has for its tool ([settle.ArgumentsFrom]); sent is
// what the call was made with. Whatever isn't an object stays as it is.
func Members(ctx context.Context, sent json.RawMessage, decoded any) any {
	object, ok := decoded.(map[string]any)
	if !ok {
		return decoded
	}
	own := maps.Clone(object)
	left, ok := settle.ArgumentsFrom(ctx)
	var members map[string]json.RawMessage
	if !ok || bytes.Equal(left, sent) || json.Unmarshal(left, &members) != nil {
		return own
	}
	maps.DeleteFunc(own, func(name string, _ any) bool {
		_, has := members[name]
		return !has
	})
	return own
}
