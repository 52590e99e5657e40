package schema

import (
	"encoding/json"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"time"
)

// wellKnown describes types whose zero value doesn't tell enough about them.
func (b *builder) wellKnown(t reflect.Type, path string) *node {
	switch t {
	case reflect.TypeFor[time.Time]():
		n := ofType("string")
		n.keywords.Format = "date-time"
		return n
	case reflect.TypeFor[json.RawMessage]():
		return anything()
	case reflect.TypeFor[json.Number]():
		return ofType("number")
	case reflect.TypeFor[big.Int]():
		return ofType("integer")
	case reflect.TypeFor[big.Rat]():
		n := ofType("string")
		n.pattern, n.hint = `^-?(0|[1-9][0-9]*)(/[1-9][0-9]*)?$`, `a whole number or a fraction in a string, as in "2/3"`
		return n
	case reflect.TypeFor[big.Float]():
		return decimalNode()
	}
	if t.Name() == "NullDecimal" && t.Kind() == reflect.Struct && t.NumField() > 0 && isDecimal(t.Field(0).Type) && has(t, marshaler) {
		n := b.build(t.Field(0).Type, path)
		n.nullable = true
		return n
	}
	return nil
}

// decimalPackages hold a type Decimal. They are known by name, so that settle
// depends on none of them; another one says jsonschema:"format=decimal".
var decimalPackages = [...]string{
	"github.com/shopspring/decimal",
	"github.com/alpacahq/alpacadecimal",
	"github.com/cockroachdb/apd/v3",
	"github.com/govalues/decimal",
	"github.com/quagmt/udecimal",
}

func isDecimal(t reflect.Type) bool {
	return t.Name() == "Decimal" && slices.Contains(decimalPackages[:], t.PkgPath())
}

// named adds what is known of a type that writes itself as a string.
func named(t reflect.Type, n *node) *node {
	if n.keywords.Type != "string" {
		return n
	}
	switch {
	case isDecimal(t):
		return decimalNode()
	case t == reflect.TypeFor[netip.Addr](), t == reflect.TypeFor[net.IP]():
		n.hint = `an IP address, as in "192.0.2.1" or "2001:db8::1"`
	case t == reflect.TypeFor[netip.AddrPort]():
		n.hint = `an IP address with a port, as in "192.0.2.1:443"`
	case t == reflect.TypeFor[netip.Prefix]():
		n.hint = `an IP network, as in "192.0.2.0/24"`
	}
	return n
}

// decimalNode is a number in a string, compared as a number.
func decimalNode() *node {
	n := ofType("string")
	n.keywords.Format = "decimal"
	return n
}
