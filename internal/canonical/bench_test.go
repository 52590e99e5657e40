package canonical

import "testing"

// benchmarkInput is a call's arguments of a usual size: 200 bytes.
var benchmarkInput = []byte(`{"order_id":"ord_20418","amount":"129.90","currency":"EUR","customer":{"id":"cus_8812","tier":3},` +
	`"lines":[{"sku":"A-100","quantity":2},{"sku":"B-7","quantity":1.0}],"reason":"arrived broken","notify":true}`)

// BenchmarkParseAppend is what each call costs before the ledger is asked: read
// the arguments, and write the bytes that are digested.
func BenchmarkParseAppend(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchmarkInput)))
	dst := make([]byte, 0, 512)
	for b.Loop() {
		v, err := Parse(benchmarkInput, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		dst = Append(dst[:0], v)
	}
}

func BenchmarkNormalize(b *testing.B) {
	shape := &Shape{Fields: map[string]*Shape{"amount": {Format: FormatDecimal}, "due": {Format: FormatDateTime}, "note": {NullIsAbsent: true}}}
	v, err := Parse([]byte(`{"amount":"129.90","due":"2026-03-01T09:30:00.250+01:00","note":null,"order_id":"ord_20418"}`), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Normalize(v, shape); err != nil {
			b.Fatal(err)
		}
	}
}
