package settle_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/settle-go/settle"
)

// A replay's result is the one that the tool returned, ids included (R16, R47).
func TestR47DecodeRoundsNoNumbers(t *testing.T) {
	g := onFile(t)
	const id = int64(9007199254740993)
	x := g.executor(settle.Tool[sayArgs, map[string]any]{Name: "say", Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(context.Context, settle.Op, sayArgs) (map[string]any, error) {
			return map[string]any{"id": id, "rate": 0.5, "count": 2}, nil
		}})
	want := map[string]any{"id": id, "rate": 0.5, "count": 2.0}
	for range 2 {
		out := g.want(x, sayCall("a"), settle.StatusCompleted)
		var plain any
		if err := json.Unmarshal(out.Result, &plain); err != nil || reflect.DeepEqual(plain, want) {
			t.Fatalf("encoding/json alone reads %v, %v", plain, err)
		}
		whole, err := settle.Decode[any](out)
		if err != nil || !reflect.DeepEqual(whole, any(want)) {
			t.Errorf("as an any it is %v, %v", whole, err)
		}
		field, err := settle.Decode[struct{ ID any }](out)
		if err != nil || field.ID != any(id) {
			t.Errorf("its field is %v, %v", field, err)
		}
	}
}
