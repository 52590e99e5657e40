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

// Request says how a request is made of a call's arguments. {order_id} stands for
// the argument of that name, {customer.id} for one inside it, {{ for a brace.
// Beside the arguments there are {settle_key}, {settle_uuid} (the key as a UUID),
// {settle_reference}, {settle_tenant}, {settle_subject} and {settle_task}.
type Request struct {
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE. It says nothing about the
	// tool's class (R4).
	Method string
	// Path comes after the client's base URL and begins with a slash. A field in
	// it is one segment or a part of one: it is escaped, and where it is missing,
	// empty, or leads to another segment, nothing is sent and the call is rejected.
	Path string
	// Slashes lists the fields of Path whose values may have slashes and
	// backslashes, such as a file's name. They are sent escaped, and still many
	// servers and proxies decode them before they choose whom to call: the value
	// then names as many segments as it likes below its place.
	Slashes []string
	// Query are the parameters by name. One that is a field and nothing else is
	// left out where the call doesn't have it, and repeated for an array.
	Query map[string]string
	// Header are headers by name. One that is a field and nothing else is left
	// out where the call doesn't have it.
	Header map[string]string
	// Body is JSON in whose strings fields may stand. A string that is a field
	// and nothing else becomes the argument as it is, number or object, and is
	// left out where the call doesn't have it. Without Body the arguments are the
	// body of POST, PUT and PATCH, as they are.
	Body string
	// NoBody sends none.
	NoBody bool
}

// recipe is a Request that was read.
type recipe struct {
	method    string
	path      template
	slashes   []string // the fields in it that may have some
	query     []named
	header    []named
	body      *body
	arguments bool // are the body
	follow    bool
}

type named struct {
	name  string
	value template
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func (r Request) read(d *arguments.Declared) (*recipe, error) {
	made := &recipe{method: r.Method, slashes: slices.Clone(r.Slashes)}
	var problems []error
	note := func(place string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place, err))
		}
	}
	if !slices.Contains(methods, r.Method) {
		note("Method", fmt.Errorf("it is none of %s", strings.Join(methods, ", ")))
	}
	made.path = made.readPath(r.Path, d, note)
	for _, field := range r.Slashes {
		if !slices.Contains(made.path.fields(), field) {
			note("Slashes", fmt.Errorf("%q is no field of Path", field))
		}
	}
	made.query = readNamed("Query", r.Query, d, note)
	made.header = readNamed("Header", r.Header, d, note)
	for name := range r.Header {
		note("Header", checkHeader(name))
	}
	takesBody := slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method)
	switch {
	case r.Body != "" && r.NoBody:
		note("Body", errors.New("there is one, and NoBody: take one of them away"))
	case r.Body != "":
		b, err := parseBody(r.Body)
		note("Body", err)
		note("Body", b.use(d))
		made.body = &b
	case !r.NoBody && takesBody:
		made.arguments = true
		d.UseAll()
	}
	return made, errors.Join(problems...)
}

func (m *recipe) readPath(path string, d *arguments.Declared, note func(string, error)) template {
	t, err := parseTemplate(path)
	note("Path", err)
	note("Path", t.use(d, true))
	if !strings.HasPrefix(path, "/") {
		note("Path", errors.New("it doesn't begin with a slash"))
	}
	for i, p := range t {
		if strings.ContainsAny(p.literal, "?#") {
			note("Path", errors.New("it has a ? or #: parameters go into Query"))
		}
		if p.literal == "" {
			continue
		}
		decoded, err := url.PathUnescape(p.literal)
		note("Path", err)
		t[i].literal = (&url.URL{Path: decoded, RawPath: p.literal}).EscapedPath()
	}
	var filled strings.Builder
	for _, p := range t {
		filled.WriteString(p.literal)
		if p.field != "" {
			filled.WriteByte('x')
		}
	}
	if climbs(filled.String()) {
		note("Path", errors.New("it has a segment that is a dot or two"))
	}
	return t
}

func readNamed(place string, from map[string]string, d *arguments.Declared, note func(string, error)) []named {
	var all []named
	for name, text := range from {
		value, err := parseTemplate(text)
		note(place+" "+name, err)
		_, whole := value.whole()
		note(place+" "+name, value.use(d, !whole))
		all = append(all, named{name, value})
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return all
}

// make makes the request of one call. Its error is an [*ArgumentError].
func (m *recipe) make(v arguments.Values) (*request, error) {
	r := &request{method: m.method, query: url.Values{}, header: http.Header{}, follow: m.follow}
	var err error
	if r.path, err = m.makePath(v); err != nil {
		return nil, err
	}
	for _, q := range m.query {
		if err := q.addTo(r.query, v); err != nil {
			return nil, err
		}
	}
	for _, h := range m.header {
		if field, whole := h.value.whole(); whole {
			if _, there := v.Get(field); !there {
				continue
			}
		}
		value, err := h.value.text(v, "header", headerValue)
		if err != nil {
			return nil, err
		}
		r.header.Set(h.name, value)
	}
	return r, m.makeBody(r, v)
}

// makePath fills the path in. Servers and proxies may decode it before they look at
// it, so that a value must not lead out of its segment even then.
func (m *recipe) makePath(v arguments.Values) (string, error) {
	for _, field := range m.path.fields() {
		if text, err := scalar(v, field); err == nil && strings.ContainsAny(text, `/\`) && !slices.Contains(m.slashes, field) {
			return "", &ArgumentError{Field: field, Place: "path", Reason: "it has a slash or a backslash"}
		}
	}
	path, err := m.path.text(v, "path", escapeSegment)
	if err == nil && climbs(path) {
		err = &ArgumentError{Field: strings.Join(m.path.fields(), ", "), Place: "path", Reason: "it leads to another segment"}
	}
	return path, err
}

func (m *recipe) makeBody(r *request, v arguments.Values) (err error) {
	switch {
	case m.arguments:
		r.body = v.Encoded
	case m.body != nil:
		if r.body, _, err = m.body.appendJSON(nil, v); err != nil {
			return err
		}
	default:
		return nil
	}
	if r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", "application/json")
	}
	return nil
}

// addTo adds a parameter to a query.
func (n named) addTo(query url.Values, v arguments.Values) error {
	field, whole := n.value.whole()
	if !whole {
		text, err := n.value.text(v, "query", literally)
		query.Add(n.name, text)
		return err
	}
	value, there := v.Get(field)
	if !there {
		return nil
	}
	values := []canonical.Value{value}
	if value.Kind() == canonical.Array {
		values = slices.Collect(value.Elements())
	}
	for _, one := range values {
		text, ok := arguments.Text(one)
		if !ok {
			return &ArgumentError{Field: field, Place: "query", Reason: "it holds more than texts, numbers and booleans"}
		}
		query.Add(n.name, text)
	}
	return nil
}

// fields names the fields of a template.
func (t template) fields() (names []string) {
	for _, p := range t {
		if p.field != "" {
			names = append(names, p.field)
		}
	}
	return names
}
