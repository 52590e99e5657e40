package schema

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	invopop "github.com/invopop/jsonschema"
	"github.com/shopspring/decimal"
)

// A typeCase is an argument type with values of it. All tests over types run
// over all of them.
type typeCase struct {
	name   string
	value  any // of the type, for its type only
	strict bool
	// samples are pointers, as encoding/json needs them for methods on pointers.
	samples []any
}

type (
	noArguments struct{}

	refundArgs struct {
		OrderID string          `json:"order_id" settle:"identity" jsonschema:"description=The order\\, as in ord_8f3a,pattern=^ord_[a-z0-9]+$,maxLength=40"`
		Amount  decimal.Decimal `json:"amount" jsonschema_description:"What to pay back"`
		Note    string          `json:"note,omitempty" settle:"ignore"`
		Token   string          `json:"token,omitempty" settle:"ignore, secret"`
	}

	wholeNumbers struct {
		I   int     `json:"i"`
		I8  int8    `json:"i8"`
		I16 int16   `json:"i16"`
		I32 int32   `json:"i32"`
		I64 int64   `json:"i64"`
		U   uint    `json:"u"`
		U8  uint8   `json:"u8"`
		U16 uint16  `json:"u16"`
		U32 uint32  `json:"u32"`
		U64 uint64  `json:"u64"`
		Ptr uintptr `json:"ptr"`
	}

	plainKinds struct {
		Text   string  `json:"text"`
		Flag   bool    `json:"flag"`
		Double float64 `json:"double"`
		Single float32 `json:"single"`
		Named  level   `json:"named"`
		NoTag  string
	}
	level int

	exactNumbers struct {
		Decimal decimal.Decimal     `json:"decimal"`
		Null    decimal.NullDecimal `json:"null"`
		Pointer *decimal.Decimal    `json:"pointer"`
		Int     big.Int             `json:"int"`
		IntPtr  *big.Int            `json:"int_ptr"`
		Rat     big.Rat             `json:"rat"`
		Float   big.Float           `json:"float"`
		Number  json.Number         `json:"number"`
	}

	textTypes struct {
		Addr     netip.Addr     `json:"addr"`
		AddrPort netip.AddrPort `json:"addr_port"`
		Prefix   netip.Prefix   `json:"prefix"`
		IP       net.IP         `json:"ip"`
		ID       uuid.UUID      `json:"id"`
		IDs      []uuid.UUID    `json:"ids"`
		When     time.Time      `json:"when"`
		Color    color          `json:"color"`
		Code     code           `json:"code"`
		Stamp    stamp          `json:"stamp"`
	}

	optionals struct {
		Empty     string          `json:"empty,omitempty"`
		Zero      time.Time       `json:"zero,omitzero"`
		Pointer   *string         `json:"pointer"`
		Both      *int            `json:"both,omitempty"`
		Needed    *bool           `json:"needed" jsonschema:"required"`
		Nullable  string          `json:"nullable" jsonschema:"nullable"`
		List      []string        `json:"list,omitempty"`
		Struct    inner           `json:"struct,omitzero"`
		StructPtr *inner          `json:"struct_ptr"`
		Amount    decimal.Decimal `json:"amount,omitzero"`
		Maybe     maybe           `json:"maybe,omitzero"`
		Choice    string          `json:"choice,omitempty" jsonschema:"enum=a,enum=b"`
	}
	inner struct {
		Name  string   `json:"name"`
		Depth *float64 `json:"depth"`
	}

	lists struct {
		Texts    []string   `json:"texts"`
		Numbers  []int      `json:"numbers" jsonschema:"minItems=1,maxItems=5,uniqueItems=true"`
		Pair     [2]float64 `json:"pair"`
		Nested   [][]int    `json:"nested"`
		Structs  []inner    `json:"structs"`
		Gaps     []*float64 `json:"gaps"`
		Bytes    []byte     `json:"bytes"`
		Digest   [4]byte    `json:"digest"`
		Decimals []decimal.Decimal
		Choices  []string `json:"choices" jsonschema:"enum=x,enum=y"`
	}

	mapKinds struct {
		ByName  map[string]string     `json:"by_name"`
		ByNum   map[int]inner         `json:"by_num"`
		ByUint  map[uint8]bool        `json:"by_uint"`
		ByAddr  map[netip.Addr]int    `json:"by_addr"`
		Amounts map[string]amountOnly `json:"amounts,omitempty"`
		Any     map[string]any        `json:"any"`
	}
	amountOnly struct {
		Amount decimal.Decimal `json:"amount"`
	}

	openValues struct {
		Any    any              `json:"any"`
		Raw    json.RawMessage  `json:"raw"`
		RawPtr *json.RawMessage `json:"raw_ptr"`
		Some   any              `json:"some,omitempty" jsonschema:"description=whatever there is"`
		Typed  any              `json:"typed" jsonschema:"type=string,minLength=2"`
		Forms  any              `json:"forms" jsonschema:"oneof_type=string;integer"`
		List   []any            `json:"list"`
	}

	promoted struct {
		base
		*Extra
		Shared string `json:"shared"`
		Named  inner  `json:"named"`
		label
	}
	base struct {
		ID     string `json:"id" settle:"identity"`
		Shared int    `json:"shared"`
	}
	Extra struct {
		Why  string `json:"why,omitempty"`
		Rank int    `json:"rank,omitempty"`
	}
	label string // embedded and unexported: encoding/json passes over it

	quotedValues struct {
		Int   int         `json:"int,string"`
		Uint  uint8       `json:"uint,string"`
		Float float64     `json:"float,string"`
		Bool  bool        `json:"bool,string"`
		Num   json.Number `json:"num,string"`
		Ptr   *int64      `json:"ptr,string,omitempty"`
	}

	keywords struct {
		Min     int       `json:"min" jsonschema:"minimum=1,maximum=10,multipleOf=2"`
		Open    float64   `json:"open" jsonschema:"exclusiveMinimum=0,exclusiveMaximum=1.5,default=0.5,example=0.25"`
		Wide    uint8     `json:"wide" jsonschema:"maximum=200"`
		Choice  int       `json:"choice" jsonschema:"enum=1,enum=2"`
		Word    string    `json:"word" jsonschema:"title=A word,minLength=2,maxLength=5,default=ab"`
		Lazy    string    `json:"lazy" jsonschema:"pattern=^a+?$"`
		Mail    string    `json:"mail" jsonschema:"format=email"`
		Link    string    `json:"link" jsonschema:"format=uri"`
		Day     string    `json:"day" jsonschema:"format=date"`
		Sum     string    `json:"sum" jsonschema:"format=decimal"`
		Flag    bool      `json:"flag" jsonschema:"default=true"`
		Windows []string  `json:"windows" jsonschema:"minLength=1,pattern=^[a-z]+$,minItems=1"`
		Since   time.Time `json:"since" jsonschema:"description=from when"`
	}

	customSchemas struct {
		Money money         `json:"money"`
		Moni  []money       `json:"moni"`
		Shape shapeUnion    `json:"shape"`
		Point point         `json:"point"`
		Plain selfDescribed `json:"plain"`
		More  selfExtended  `json:"more"`
		Alias aliased       `json:"alias"`
		Open  openObject    `json:"open"`
		Mood  mood          `json:"mood"`
	}

	defaults struct {
		Retry retry `json:"retry"`
	}

	generic[T any] struct {
		Value T             `json:"value"`
		Pairs []pairOf[T]   `json:"pairs"`
		Opt   *pairOf[int8] `json:"opt,omitempty"`
	}
	pairOf[T any] struct {
		Left  T      `json:"left"`
		Right string `json:"right"`
	}

	propertyAliased struct {
		Size fakeSize `json:"size"`
	}
	fakeSize struct{ value string }
)

// color writes itself as text and is an integer in Go.
type color int

func (c color) MarshalText() ([]byte, error) {
	return []byte([]string{"red", "green"}[c%2]), nil
}

func (c *color) UnmarshalText(text []byte) error {
	switch string(text) {
	case "red":
		*c = 0
	case "green":
		*c = 1
	default:
		return errors.New("no such color: " + string(text))
	}
	return nil
}

func (color) JSONSchemaExtend(*invopop.Schema) { panic("never asked: it writes itself") }

// code is a string that only checks what it reads.
type code string

func (c *code) UnmarshalText(text []byte) error {
	if len(text) != 3 {
		return errors.New("bad code " + string(text))
	}
	*c = code(text)
	return nil
}

// stamp takes the methods of the time that it embeds.
type stamp struct{ time.Time }

// maybe can tell null from absent.
type maybe struct {
	Present bool
	Value   string
}

func (m maybe) IsZero() bool { return !m.Present }

func (m maybe) MarshalJSON() ([]byte, error) { return json.Marshal(m.Value) }

func (m *maybe) UnmarshalJSON(text []byte) error {
	m.Present = true
	if string(text) == "null" {
		return nil
	}
	return json.Unmarshal(text, &m.Value)
}

// money writes itself as an object and says what is in it.
type money struct{ units, currency string }

func (m money) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"units": m.units, "currency": m.currency})
}

func (m *money) UnmarshalJSON(text []byte) error {
	var fields map[string]string
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	m.units, m.currency = fields["units"], fields["currency"]
	return nil
}

func (money) JSONSchema() *invopop.Schema {
	p := invopop.NewProperties()
	p.Set("units", &invopop.Schema{Type: "string", Format: "decimal", Description: "how much"})
	p.Set("currency", &invopop.Schema{Enum: []any{"EUR", "USD", "GBP"}})
	return &invopop.Schema{Type: "object", Properties: p, Required: []string{"units", "currency"}, Description: "an amount of money"}
}

// shapeUnion is one of two objects.
type shapeUnion struct{ raw string }

func (s shapeUnion) MarshalJSON() ([]byte, error) {
	if s.raw == "" {
		return []byte(`{"kind":"circle","radius":1}`), nil
	}
	return []byte(s.raw), nil
}

func (s *shapeUnion) UnmarshalJSON(text []byte) error {
	s.raw = string(text)
	return nil
}

func (shapeUnion) JSONSchema() *invopop.Schema {
	circle := invopop.NewProperties()
	circle.Set("kind", &invopop.Schema{Const: "circle"})
	circle.Set("radius", &invopop.Schema{Type: "number", Minimum: "0"})
	square := invopop.NewProperties()
	square.Set("kind", &invopop.Schema{Const: "square"})
	square.Set("side", &invopop.Schema{Type: "string", Format: "decimal"})
	return &invopop.Schema{OneOf: []*invopop.Schema{
		{Type: "object", Properties: circle, Required: []string{"kind", "radius"}},
		{Type: "object", Properties: square, Required: []string{"kind", "side"}},
	}}
}

// point writes itself as an array.
type point [2]int

func (p point) MarshalJSON() ([]byte, error) { return json.Marshal([2]int(p)) }

func (p *point) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*[2]int)(p)) }

func (*point) JSONSchema() *invopop.Schema {
	two := uint64(2)
	return &invopop.Schema{Type: "array", Items: &invopop.Schema{Type: "integer"}, MinItems: &two, MaxItems: &two}
}

// selfDescribed describes itself and is decoded by its fields.
type selfDescribed struct {
	Count uint8    `json:"count"`
	Words []string `json:"words"`
	Note  string   `json:"note,omitempty"`
}

func (selfDescribed) JSONSchema() *invopop.Schema {
	p := invopop.NewProperties()
	p.Set("count", &invopop.Schema{Type: "integer", Description: "how often"})
	p.Set("words", &invopop.Schema{Type: "array", Items: &invopop.Schema{Type: "string"}})
	p.Set("note", &invopop.Schema{Type: "string"})
	return &invopop.Schema{Type: "object", Properties: p, Required: []string{"count", "words"}}
}

// selfExtended adds to what is derived.
type selfExtended struct {
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Small *int8    `json:"small"`
}

func (selfExtended) JSONSchemaExtend(s *invopop.Schema) {
	s.Description = "extended"
	name, _ := s.Properties.Get("name")
	name.Description = "its name"
}

// aliased is described by another type.
type aliased string

func (aliased) JSONSchemaAlias() any { return uuid.UUID{} }

// openObject says that it takes any member.
type openObject map[string]any

func (openObject) JSONSchema() *invopop.Schema { return &invopop.Schema{Type: "object"} }

// mood may be null by its enum.
type mood string

func (mood) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Title: "Mood", Enum: []any{"good", nil}}
}

// retry sets defaults as it is decoded, so that it could tell null from absent.
type retry struct {
	Times int    `json:"times,omitempty"`
	Mode  string `json:"mode"`
}

func (r *retry) UnmarshalJSON(text []byte) error {
	type plain retry
	p := plain{Times: 3}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	*r = retry(p)
	return nil
}

func (f fakeSize) MarshalText() ([]byte, error) { return []byte(f.value), nil }

func (f *fakeSize) UnmarshalText(text []byte) error {
	f.value = strings.Clone(string(text))
	return nil
}

type sizeWords string

func (sizeWords) JSONSchema() *invopop.Schema { return &invopop.Schema{Enum: []any{"small", "large"}} }

func (propertyAliased) JSONSchemaProperty(name string) any {
	if name == "size" {
		return sizeWords("")
	}
	return nil
}

func pointer[T any](v T) *T { return &v }

func mustRat(text string) big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return *r
}

func typeCases() []typeCase {
	when := time.Date(2026, 3, 1, 12, 30, 0, 5e8, time.FixedZone("", 3600))
	id := uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	raw := json.RawMessage(`[1,{"a":null}]`)
	return []typeCase{
		{"no_arguments", noArguments{}, true, []any{&noArguments{}}},
		{"refund", refundArgs{}, true, []any{
			&refundArgs{OrderID: "ord_1", Amount: decimal.RequireFromString("42.10")},
			&refundArgs{OrderID: "ord_2", Amount: decimal.RequireFromString("-0.5"), Note: "n", Token: "t"},
		}},
		{"whole_numbers", wholeNumbers{}, true, []any{
			&wholeNumbers{},
			&wholeNumbers{I: -1 << 63, I8: -128, I16: -1 << 15, I32: -1 << 31, I64: 1<<63 - 1, U: 1<<64 - 1, U8: 255, U16: 65535, U32: 1<<32 - 1, U64: 1<<64 - 1, Ptr: 7},
		}},
		{"plain_kinds", plainKinds{}, true, []any{&plainKinds{}, &plainKinds{"x", true, 1e300, -0.5, 3, "y"}}},
		{"exact_numbers", exactNumbers{}, true, []any{
			&exactNumbers{Number: "1"},
			&exactNumbers{
				Decimal: decimal.RequireFromString("12.50"), Null: decimal.NewNullDecimal(decimal.New(5, -1)), Pointer: pointer(decimal.New(1, 20)),
				Int: *huge, IntPtr: big.NewInt(-7), Rat: mustRat("2/3"), Float: *big.NewFloat(1e30), Number: "1e400",
			},
		}},
		{"text_types", textTypes{}, true, []any{
			&textTypes{Code: "abc", IP: net.IPv4(192, 0, 2, 1)},
			&textTypes{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddrPort("192.0.2.1:443"), netip.MustParsePrefix("10.0.0.0/8"), net.ParseIP("::1"), id, []uuid.UUID{id}, when, 1, "xyz", stamp{when}},
		}},
		{"optionals", optionals{}, true, []any{
			&optionals{Needed: pointer(false)},
			&optionals{"e", when, pointer("p"), pointer(0), pointer(true), "n", []string{"l"}, inner{"i", pointer(1.5)}, &inner{}, decimal.New(1, 0), maybe{true, "m"}, "a"},
		}},
		{"lists", lists{}, true, []any{
			&lists{Numbers: []int{1}},
			&lists{[]string{"a"}, []int{1, 2}, [2]float64{1, 2.5}, [][]int{{1}, nil, {}}, []inner{{}}, []*float64{nil, pointer(1.0)}, []byte("hi"), [4]byte{1, 2, 3, 4}, []decimal.Decimal{decimal.New(1, 0)}, []string{"x"}},
		}},
		{"maps", mapKinds{}, false, []any{
			&mapKinds{},
			&mapKinds{map[string]string{"a": "b"}, map[int]inner{-1: {}, 20: {}}, map[uint8]bool{7: true}, map[netip.Addr]int{netip.MustParseAddr("::1"): 1}, map[string]amountOnly{"x": {decimal.New(5, 0)}}, map[string]any{"k": []any{"v"}}},
		}},
		{"open_values", openValues{}, false, []any{
			&openValues{Raw: json.RawMessage("1"), Typed: "ok", Forms: "f"},
			&openValues{map[string]any{"a": "b"}, raw, &raw, "s", "ok", json.Number("3"), []any{nil, true}},
		}},
		{"promoted", promoted{}, true, []any{
			&promoted{base: base{ID: "i"}, Shared: "s"},
			&promoted{base: base{ID: "i"}, Extra: &Extra{"w", 2}, Shared: "s", Named: inner{"n", nil}, label: "passed over"},
		}},
		{"quoted", quotedValues{}, true, []any{
			&quotedValues{Num: "1"},
			&quotedValues{-12, 255, 1.5, true, "42.10", pointer(int64(-1 << 63))},
		}},
		{"keywords", keywords{}, true, []any{
			&keywords{Min: 2, Open: 0.5, Choice: 1, Word: "ab", Lazy: "aaa", Mail: "a@b.example", Link: "https://b.example/x", Day: "2026-02-28", Sum: "1.50", Windows: []string{"a"}, Wide: 200},
		}},
		{"custom_schemas", customSchemas{}, false, []any{
			&customSchemas{Money: money{"1.50", "EUR"}, Alias: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", Mood: "good"},
			&customSchemas{money{"2", "USD"}, []money{{"3", "GBP"}}, shapeUnion{`{"kind":"square","side":"2.0"}`}, point{1, 2}, selfDescribed{255, []string{"w"}, "n"}, selfExtended{"n", []string{"t"}, pointer(int8(-3))}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", openObject{"a": "b"}, "good"},
		}},
		{"described_root", selfDescribed{}, true, []any{&selfDescribed{}, &selfDescribed{255, []string{"w"}, "n"}}},
		{"extended_root", selfExtended{}, true, []any{&selfExtended{}, &selfExtended{"n", []string{"t"}, pointer(int8(1))}}},
		{"money_root", money{}, true, []any{&money{"1", "EUR"}}},
		{"defaults", defaults{}, true, []any{&defaults{retry{5, "m"}}}},
		{"generic", generic[decimal.Decimal]{}, true, []any{
			&generic[decimal.Decimal]{},
			&generic[decimal.Decimal]{decimal.New(1, 0), []pairOf[decimal.Decimal]{{decimal.New(2, 0), "r"}}, &pairOf[int8]{-1, "o"}},
		}},
		{"property_aliased", propertyAliased{}, true, []any{&propertyAliased{fakeSize{"small"}}}},
	}
}

func (c typeCase) schema(t testing.TB) *Schema {
	t.Helper()
	s, err := Of(reflect.TypeOf(c.value))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
