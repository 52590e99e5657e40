package schema

import (
	"reflect"
	"strings"
	"testing"
)

// A struct whose fields all have one name in JSON has that fault, and not also the
// one of a struct that exports nothing.
func TestOneFaultIsToldOnce(t *testing.T) {
	t.Parallel()
	field := func(name string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: `json:"a"`}
	}
	_, err := Of(reflect.StructOf([]reflect.StructField{field("A"), field("B")}))
	if err == nil || !strings.Contains(err.Error(), "rename one") || strings.Contains(err.Error(), "exports none") {
		t.Errorf("the error is %v", err)
	}
}
