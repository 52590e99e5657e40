// Package exact reads recorded results for frameworks that take decoded values. A
// model that is told a number must be told the one that the tool returned: ids of
// 2^53 and more aren't the same once they were a float64.
package exact

import "github.com/settle-go/settle/internal/schema"

// Value decodes JSON as encoding/json does into an any, but for numbers that a
// float64 doesn't hold: these are an int64 where that does, or a json.Number.
func Value(raw []byte) (any, error) {
	var v any
	if err := schema.Exact(raw, &v); err != nil {
		return nil, err
	}
	return v, nil
}
