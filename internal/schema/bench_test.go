package schema

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/settle-go/settle/internal/canonical"
)

type benchArgs struct {
	OrderID  string          `json:"order_id" settle:"identity"`
	Amount   decimal.Decimal `json:"amount"`
	Currency string          `json:"currency" jsonschema:"enum=EUR,enum=USD"`
	Lines    []int           `json:"lines"`
	Notify   bool            `json:"notify"`
	Note     string          `json:"note,omitempty" settle:"ignore"`
	Customer struct {
		ID   int64  `json:"id"`
		Mail string `json:"mail,omitempty"`
	} `json:"customer"`
}

// benchText has about 200 bytes.
const benchText = `{"order_id":"ord_8f3a2b","amount":"129.90","currency":"EUR","lines":[1,2,5],"notify":true,` +
	`"note":"parcel came late, refund in full","customer":{"id":9007199254740993,"mail":"someone@example.com"}}`

func benchSchema(b *testing.B) *Schema {
	b.Helper()
	s, err := Of(reflect.TypeFor[benchArgs]())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkValidate(b *testing.B) {
	s, text := benchSchema(b), []byte(benchText)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFits(b *testing.B) {
	s := benchSchema(b)
	v, err := canonical.Parse([]byte(benchText), canonical.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !s.Fits(v) {
			b.Fatal("it doesn't fit")
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(benchText)
	b.ReportAllocs()
	for b.Loop() {
		var into benchArgs
		if err := Decode(text, &into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Of(reflect.TypeFor[benchArgs]()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalAlone(b *testing.B) {
	text := []byte(benchText)
	for b.Loop() {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}
