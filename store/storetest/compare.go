package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/settle-go/settle/store"
)

// differences names the stored fields in which two operations differ. No bytes
// and empty bytes are one, instants are compared as instants, and Read isn't
// stored.
func differences(got, want store.Operation) []string {
	got.Read, want.Read = time.Time{}, time.Time{}
	return fields(reflect.ValueOf(got), reflect.ValueOf(want))
}

func eventDifferences(got, want store.Event) []string {
	return fields(reflect.ValueOf(got), reflect.ValueOf(want))
}

func intentDifferences(got, want store.Intent) []string {
	return fields(reflect.ValueOf(got), reflect.ValueOf(want))
}

func caseDifferences(got, want store.Case) []string {
	return fields(reflect.ValueOf(got), reflect.ValueOf(want))
}

func toolDifferences(got, want store.ToolRecord) []string {
	return fields(reflect.ValueOf(got), reflect.ValueOf(want))
}

func fields(got, want reflect.Value) []string {
	var all []string
	for i := range got.NumField() {
		g, w := got.Field(i).Interface(), want.Field(i).Interface()
		if !equal(g, w) {
			all = append(all, fmt.Sprintf("%s is %s, want %s", got.Type().Field(i).Name, short(g), short(w)))
		}
	}
	return all
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case time.Time:
		return a.Equal(b.(time.Time))
	case []byte:
		return bytes.Equal(a, b.([]byte))
	}
	return reflect.DeepEqual(a, b)
}

// short prints a value so that a megabyte doesn't fill the screen.
func short(v any) string {
	const enough = 64
	switch v := v.(type) {
	case []byte:
		if len(v) > enough {
			return fmt.Sprintf("%q… (%d bytes)", v[:enough], len(v))
		}
		return fmt.Sprintf("%q", v)
	case string:
		return short([]byte(v))
	}
	return fmt.Sprintf("%v", v)
}
