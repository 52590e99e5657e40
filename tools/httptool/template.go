package httptool

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/tools/internal/arguments"
)

// template is text with fields in it: "{order_id}", and "{{" for a brace.
type template []part

// part is literal text, or a field.
type part struct{ literal, field string }

func parseTemplate(text string) (t template, err error) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t = append(t, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			literal.WriteByte(c)
			i++
		case c == '}':
			return nil, errors.New("a } closes no field: write }} for a brace")
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, errors.New("a { opens a field and no } closes it: write {{ for a brace")
			}
			flush()
			t = append(t, part{field: text[i+1 : i+end]})
			i += end
		default:
			literal.WriteByte(c)
		}
	}
	flush()
	return t, nil
}

// whole returns the one field that is all of the template.
func (t template) whole() (field string, ok bool) {
	if len(t) == 1 && t[0].field != "" {
		return t[0].field, true
	}
	return "", false
}

// use notes the template's fields. Needed says that each has to be there in
// every call.
func (t template) use(d *arguments.Declared, needed bool) error {
	var problems []error
	for _, p := range t {
		if p.literal != "" {
			continue
		}
		sure, err := d.Use(p.field)
		if err == nil && needed && !sure && !strings.ContainsAny(p.field, "./") {
			err = fmt.Errorf("%q is optional, and its place needs a value: make it required", p.field)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// text writes the template with the values, each as escape makes it.
func (t template) text(v arguments.Values, place string, escape func(string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.field == "" {
			b.WriteString(p.literal)
			continue
		}
		text, err := scalar(v, p.field)
		if err == nil {
			text, err = escape(text)
		}
		if err != nil {
			return "", &ArgumentError{Field: p.field, Place: place, Reason: err.Error()}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func scalar(v arguments.Values, field string) (string, error) {
	value, ok := v.Get(field)
	if !ok {
		return "", errors.New("it is missing")
	}
	text, ok := arguments.Text(value)
	if !ok {
		return "", errors.New("it is an array or an object, and a text, a number or a boolean is wanted")
	}
	return text, nil
}

// escapeSegment writes a value into a path.
func escapeSegment(value string) (string, error) {
	if value == "" {
		return "", errors.New("it is empty")
	}
	if strings.ContainsFunc(value, isControl) {
		return "", errors.New("it has a control character")
	}
	return url.PathEscape(value), nil
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// climbs says whether a path has a segment that leads up or stays where it is,
// once it is decoded.
func climbs(escaped string) bool {
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return true
	}
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(segments, func(s string) bool {
		name, _, _ := strings.Cut(s, ";") // some servers drop what comes after it
		return name == "." || name == ".."
	})
}

// literally leaves a value as it is.
func literally(value string) (string, error) { return value, nil }

func headerValue(value string) (string, error) {
	if !fitsHeader(value) {
		return "", errors.New("it has a control character")
	}
	return value, nil
}

func fitsHeader(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return isControl(r) && r != '\t' })
}

// reservedHeaders belong to HTTP itself.
var reservedHeaders = []string{"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func checkHeader(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return fmt.Errorf("%q is no name of a header (RFC 9110 section 5.1)", name)
	}
	canonicalName := http.CanonicalHeaderKey(name)
	if slices.Contains(reservedHeaders, canonicalName) || strings.HasPrefix(canonicalName, "Proxy-") {
		return fmt.Errorf("the header %s is set by HTTP itself: leave it out", canonicalName)
	}
	return nil
}

// body is a template of JSON.
type body struct {
	kind canonical.Kind
	// text is a string's; fixed is any other scalar.
	text  template
	fixed canonical.Value
	items []member
}

type member struct {
	name canonical.Value
	body body
}

func parseBody(text string) (body, error) {
	v, err := canonical.Parse([]byte(text), canonical.Limits{})
	if err != nil {
		return body{}, err
	}
	return bodyOf(v)
}

func bodyOf(v canonical.Value) (b body, err error) {
	b = body{kind: v.Kind(), fixed: v}
	switch v.Kind() {
	case canonical.String:
		b.text, err = parseTemplate(v.String())
	case canonical.Array:
		for element := range v.Elements() {
			item, err := bodyOf(element)
			if err != nil {
				return b, err
			}
			b.items = append(b.items, member{body: item})
		}
	case canonical.Object:
		for name, value := range v.Members() {
			item, err := bodyOf(value)
			if err != nil {
				return b, err
			}
			named, _ := canonical.NewString(name)
			b.items = append(b.items, member{named, item})
		}
	}
	return b, err
}

func (b body) use(d *arguments.Declared) error {
	_, whole := b.text.whole()
	problems := []error{b.text.use(d, !whole)}
	for _, item := range b.items {
		problems = append(problems, item.body.use(d))
	}
	return errors.Join(problems...)
}

// appendJSON writes the body with the values. It is false where there is nothing
// to write: a field that the call doesn't have.
func (b body) appendJSON(dst []byte, v arguments.Values) (_ []byte, there bool, err error) {
	switch b.kind {
	case canonical.String:
		return b.appendText(dst, v)
	case canonical.Array, canonical.Object:
		dst, err = b.appendItems(dst, v)
		return dst, true, err
	}
	return b.fixed.AppendJSON(dst), true, nil
}

func (b body) appendText(dst []byte, v arguments.Values) ([]byte, bool, error) {
	if field, ok := b.text.whole(); ok {
		value, there := v.Get(field)
		if !there {
			return dst, false, nil
		}
		return value.AppendJSON(dst), true, nil
	}
	text, err := b.text.text(v, "body", literally)
	if err != nil {
		return dst, false, err
	}
	value, _ := canonical.NewString(text)
	return value.AppendJSON(dst), true, nil
}

func (b body) appendItems(dst []byte, v arguments.Values) ([]byte, error) {
	brackets := "[]"
	if b.kind == canonical.Object {
		brackets = "{}"
	}
	dst = append(dst, brackets[0])
	empty := true
	for _, item := range b.items {
		before := len(dst)
		if !empty {
			dst = append(dst, ',')
		}
		if b.kind == canonical.Object {
			dst = append(item.name.AppendJSON(dst), ':')
		}
		next, there, err := item.body.appendJSON(dst, v)
		if err != nil {
			return dst, err
		}
		if dst = next; !there {
			dst = dst[:before]
			continue
		}
		empty = false
	}
	return append(dst, brackets[1]), nil
}
