package schema

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/settle-go/settle/internal/canonical"
)

// Exact is [Read], but a number that goes into an any is what encoding/json makes
// of it, a float64, wherever that holds it: else it is an int64 where that does, or
// a json.Number. An id of 2^53 or more isn't the same once it was a float64.
func Exact(data []byte, into any) error {
	if err := Read(data, into); err != nil {
		return err
	}
	if v := reflect.ValueOf(into).Elem(); holdsInterface(v.Type(), nil) {
		exactly(v)
	}
	return nil
}

// exactly replaces the json.Numbers in the interfaces within v, which can be set.
// What a type's own method has read is left alone.
func exactly(v reflect.Value) {
	if t := v.Type(); has(t, unmarshaler) || has(t, textUnmarshaler) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.CanSet() && v.NumMethod() == 0 && !v.IsNil() {
			v.Set(reflect.ValueOf(numbers(v.Interface())))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			exactly(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			exactly(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if !holdsInterface(v.Type().Elem(), nil) {
			return
		}
		for i := range v.Len() {
			exactly(v.Index(i))
		}
	case reflect.Map:
		if !holdsInterface(v.Type().Elem(), nil) {
			return
		}
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			exactly(value)
			v.SetMapIndex(key, value)
		}
	}
}

// numbers replaces those in what encoding/json makes of an any.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return exactNumber(v)
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

func exactNumber(n json.Number) any {
	if f, err := n.Float64(); err == nil && sameNumber(n, f) {
		return f
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	return n
}

// sameNumber says that a floating point number is written as this one.
func sameNumber(n json.Number, f float64) bool {
	want, err := canonical.Parse([]byte(n), canonical.Limits{})
	if err != nil {
		return false
	}
	got, err := canonical.Parse(strconv.AppendFloat(nil, f, 'g', -1, 64), canonical.Limits{})
	return err == nil && got.String() == want.String()
}
