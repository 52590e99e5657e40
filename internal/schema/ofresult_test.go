package schema

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestR40ResultsHaveASchemaOfTheirOwn(t *testing.T) {
	t.Parallel()
	type receipt struct {
		ID   string `json:"id" settle:"resource"`
		Note string `json:"note,omitempty"`
	}
	s, err := OfResult(reflect.TypeFor[receipt]())
	if err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		`{"id":"r-1"}`:              true,
		`{"id":"r-1","note":"x"}`:   true,
		`{"id":1}`:                  false,
		`{}`:                        false,
		`{"id":"r-1","other":true}`: false,
	} {
		if err := s.Validate(json.RawMessage(text)); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
	type wrong struct {
		ID string `json:"id" settle:"identity"`
	}
	if _, err := OfResult(reflect.TypeFor[wrong]()); err == nil {
		t.Error("a result whose field is tagged identity has a schema")
	}
	if _, err := Of(reflect.TypeFor[receipt]()); err == nil {
		t.Error("arguments with a resource have a schema")
	}
}
