// Package exact reads recorded results for frameworks that take decoded values. A
// model that is told a number must be told the one that the tool returned: ids of
// 2^53 and more aren't the same once they were a float64.
package exact

import (
	"encoding/json"
	"strconv"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
)

// Value decodes JSON as encoding/json does into an any, but for numbers that a
// float64 doesn't hold: these are an int64 where that does, or a json.Number.
func Value(raw []byte) (any, error) {
	var v any
	if err := schema.Read(raw, &v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	}
	return v
}

func number(n json.Number) any {
	if f, err := n.Float64(); err == nil && same(n, f) {
		return f
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	return n
}

// same says that a floating point number is written as this one.
func same(n json.Number, f float64) bool {
	want, err := canonical.Parse([]byte(n), canonical.Limits{})
	if err != nil {
		return false
	}
	got, err := canonical.Parse(strconv.AppendFloat(nil, f, 'g', -1, 64), canonical.Limits{})
	return err == nil && got.String() == want.String()
}
