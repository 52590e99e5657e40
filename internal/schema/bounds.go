package schema

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// bounds are the least and the greatest integer that a Go type holds.
type bounds struct {
	// format names them in the accepted form. As minimum and maximum they would
	// cost the validator two fractions for each number.
	format    string
	low, high json.Number
	signed    bool
	bits      int
}

func boundsOf(t reflect.Type) *bounds {
	if t.Kind() < reflect.Uint {
		return signedBounds(t.Bits())
	}
	return unsignedBounds(t.Bits())
}

func signedBounds(bits int) *bounds {
	return &bounds{
		format: "int" + strconv.Itoa(bits),
		low:    json.Number(strconv.FormatInt(-1<<(bits-1), 10)),
		high:   json.Number(strconv.FormatInt(1<<(bits-1)-1, 10)),
		signed: true,
		bits:   bits,
	}
}

func unsignedBounds(bits int) *bounds {
	return &bounds{
		format: "uint" + strconv.Itoa(bits),
		low:    "0",
		high:   json.Number(strconv.FormatUint(^uint64(0)>>(64-bits), 10)),
		bits:   bits,
	}
}

// allBounds are those of every integer type.
func allBounds() []*bounds {
	var all []*bounds
	for _, bits := range []int{8, 16, 32, 64} {
		all = append(all, signedBounds(bits), unsignedBounds(bits))
	}
	return all
}

// words say the bounds to the model or in an error.
func (b *bounds) words() string {
	return "a whole number from " + string(b.low) + " to " + string(b.high)
}

// check is the bounds as a format of the validator.
func (b *bounds) check() *santhosh.Format {
	return &santhosh.Format{Name: b.format, Validate: func(v any) error {
		if n, ok := v.(json.Number); ok && !b.hold(string(n)) {
			return errFormat
		}
		return nil
	}}
}

// hold says whether a number is within the bounds; 1.0 and 1e2 are integers too.
func (b *bounds) hold(number string) bool {
	var err error
	if b.signed {
		_, err = strconv.ParseInt(number, 10, b.bits)
	} else {
		_, err = strconv.ParseUint(number, 10, b.bits)
	}
	if err == nil {
		return true
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok || !r.IsInt() {
		return false
	}
	low, _ := new(big.Int).SetString(string(b.low), 10)
	high, _ := new(big.Int).SetString(string(b.high), 10)
	return r.Num().Cmp(low) >= 0 && r.Num().Cmp(high) <= 0
}
