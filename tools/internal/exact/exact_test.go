package exact

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestOnlyNumbersThatAFloatDoesntHoldAreOthers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]any{
		`null`: nil, `"9007199254740993"`: "9007199254740993", `true`: true, `0`: 0.0, `-0`: 0.0, `1.10`: 1.1, `1e3`: 1000.0, `0.1`: 0.1,
		`9007199254740992`: 9007199254740992.0, `9007199254740993`: int64(9007199254740993), `-9223372036854775808`: int64(math.MinInt64),
		`9223372036854775807`: int64(9223372036854775807), `18446744073709551615`: json.Number("18446744073709551615"),
		`12345678901234567.89`: json.Number("12345678901234567.89"), `1e400`: json.Number("1e400"),
		`{"ids":[9007199254740993,1],"a":{"b":0.5}}`: map[string]any{"ids": []any{int64(9007199254740993), 1.0}, "a": map[string]any{"b": 0.5}},
	} {
		got, err := Value([]byte(raw))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v, want %#v", raw, got, err, want)
		}
	}
	for _, raw := range []string{``, `{`, `1 2`, `{} {}`} {
		if got, err := Value([]byte(raw)); err == nil {
			t.Errorf("%q is %#v", raw, got)
		}
	}
}
