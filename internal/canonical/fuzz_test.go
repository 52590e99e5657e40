package canonical

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,1.0,"\u0061\ud834\udd1e",null],"b":{"":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data, Limits{})
		if err != nil {
			if v.Kind() != Absent {
				t.Errorf("a value beside the error %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted, and no JSON to encoding/json")
		}
		want := Append(nil, v)
		if got := Append(nil, mustReparse(t, v)); !bytes.Equal(got, want) {
			t.Errorf("bytes %q became %q after writing and reading again", want, got)
		}
		if got := Append(nil, shuffled(v, rand.New(rand.NewPCG(1, uint64(len(data)))))); !bytes.Equal(got, want) {
			t.Errorf("bytes %q became %q after reordering", want, got)
		}
		if rest, ok := skipCanonical(want); !ok || len(rest) > 0 {
			t.Errorf("bytes %q don't read as one value", want)
		}
	})
}

// shuffled returns v with the members of each object in another order.
func shuffled(v Value, random *rand.Rand) Value {
	v.list = slices.Clone(v.list)
	for i := range v.list {
		v.list[i].value = shuffled(v.list[i].value, random)
	}
	if v.kind == Object {
		random.Shuffle(len(v.list), func(i, j int) { v.list[i], v.list[j] = v.list[j], v.list[i] })
	}
	return v
}

// skipCanonical reads one value from canonical bytes and returns what follows:
// that there is one way to read them is why no two values share theirs.
func skipCanonical(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	tag, b := b[0], b[1:]
	switch tag {
	case tagNull, tagTrue, tagFalse:
		return b, true
	case tagNumber, tagString, tagDecimal, tagDateTime, tagDate, tagUUID:
		return skipText(b)
	case tagArray, tagObject:
		n, b, ok := cutLength(b)
		for range n {
			if tag == tagObject && ok {
				b, ok = skipText(b)
			}
			if ok {
				b, ok = skipCanonical(b)
			}
		}
		return b, ok
	default:
		return nil, false
	}
}

func skipText(b []byte) (rest []byte, ok bool) {
	n, b, ok := cutLength(b)
	if !ok || n > len(b) {
		return nil, false
	}
	return b[n:], true
}

func cutLength(b []byte) (n int, rest []byte, ok bool) {
	for shift := 0; shift < 63 && len(b) > 0; shift += 7 {
		c := b[0]
		n, b = n|int(c&0x7f)<<shift, b[1:]
		if c < 0x80 {
			return n, b, true
		}
	}
	return 0, nil, false
}

// FuzzCompare holds the canonical bytes of two inputs against another reader's
// opinion on whether they are the same.
func FuzzCompare(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[2]}`), []byte(`{"b":[2.0],"a":1e0}`))
	f.Add([]byte(`9007199254740992`), []byte(`9007199254740993`))
	f.Fuzz(func(t *testing.T, left, right []byte) {
		a, errA := Parse(left, Limits{})
		b, errB := Parse(right, Limits{})
		if errA != nil || errB != nil {
			return
		}
		want := equalToEncodingJSON(decoded(t, left), decoded(t, right))
		if got := bytes.Equal(Append(nil, a), Append(nil, b)); got != want {
			t.Errorf("%q and %q: equal canonical bytes %v, equal values %v", left, right, got, want)
		}
	})
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func equalToEncodingJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && rational(a).Cmp(rational(b)) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalToEncodingJSON)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			other, there := b[name]
			if !there || !equalToEncodingJSON(a[name], other) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("not a number: " + string(n))
	}
	return r
}

// FuzzNormalize holds the values that strings stand for against the standard
// library's.
func FuzzNormalize(f *testing.F) {
	f.Add("2026-03-01T09:30:00.250+01:00")
	f.Add("1990-12-31T15:59:60-08:00")
	f.Add("-042.10e-3")
	f.Add("{F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6}")
	f.Add("2024-02-29")
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := NewString(text)
		if !ok {
			return
		}
		checkDateTime(t, text)
		if isDecimal(text) {
			canonical := splitNumber(text).appendScientific(nil)
			if rational(json.Number(text)).Cmp(rational(json.Number(canonical))) != 0 {
				t.Errorf("%q became the number %s", text, canonical)
			}
		}
		for _, format := range []string{FormatDateTime, FormatDate, FormatDecimal, FormatUUID} {
			shape := &Shape{Format: format}
			once, _ := Normalize(v, shape)
			twice, _ := Normalize(once, shape)
			again, _ := Normalize(mustReparse(t, once), shape)
			want := Append(nil, once)
			if !bytes.Equal(want, Append(nil, twice)) || !bytes.Equal(want, Append(nil, again)) {
				t.Errorf("%q as %s isn't stable: %q, %q, %q", text, format, want, Append(nil, twice), Append(nil, again))
			}
		}
	})
}
