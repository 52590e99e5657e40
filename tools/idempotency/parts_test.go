package idempotency_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/settle-go/settle/tools/idempotency"
)

// form is a body of two parts, each time with another boundary.
func form(t *testing.T, order, file string) (body string, edit func(*http.Request)) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	err := w.WriteField("order", order)
	part, failed := w.CreateFormFile("scan", "scan.png")
	if err = errors.Join(err, failed); err == nil {
		_, err = io.WriteString(part, file)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String(), func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) }
}

// A client that sends a form again makes up another boundary for it: curl and fetch do.
func TestAFormIsTheSameUnderAnyBoundary(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"in memory": "png", "in a file": strings.Repeat("x", 2<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, created(), func(o *idempotency.Options) { o.MaxBody = 4 << 20 })
			body, asForm := form(t, "A-1", file)
			first := s.pay(201, "k", body, asForm)
			again, asForm := form(t, "A-1", file)
			s.replayed(first, "k", again, asForm)
			for _, other := range [][2]string{{"A-2", file}, {"A-1", file + "x"}, {"A-1" + "\r\n", file}} {
				body, asForm := form(t, other[0], other[1])
				s.refused(422, "key-reused", "k", body, asForm)
			}
			s.runs(1)
		})
	}
}

// What isn't the parts that its type says counts byte for byte.
func TestAFormThatIsNoneCountsByteForByte(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	body, asForm := form(t, "A-1", "png")
	body = body[:len(body)-20]
	s.replayed(s.pay(201, "k", body, asForm), "k", body, asForm)
	s.refused(422, "key-reused", "k", body+"x", asForm)
	s.runs(1)
}

// A body that ends where a part is looked for is as little of one as a body that
// ends within a part.
func TestAFormWithoutItsLastBoundaryCountsByteForByte(t *testing.T) {
	t.Parallel()
	asForm := func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=b") }
	const part = "--b\r\nContent-Disposition: form-data; name=\"order\"\r\n\r\nA-1\r\n"
	for name, bodies := range map[string][2]string{
		"no boundary at all":    {"order=A-1", "order=A-2"},
		"another boundary":      {strings.ReplaceAll(part, "--b", "--c") + "--c--\r\n", strings.ReplaceAll(part, "--b", "--d") + "--d--\r\n"},
		"cut before a boundary": {part + "--b", part + "--b\r\n"},
		"cut among headers":     {part + "--b\r\nContent-Disposition: form-data; name=\"a\"", part + "--b\r\nContent-Disposition: form-data; name=\"b\""},
		"cut before headers":    {part + "--b\r\n", part + "--b\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, created())
			s.replayed(s.pay(201, "k", bodies[0], asForm), "k", bodies[0], asForm)
			s.refused(422, "key-reused", "k", bodies[1], asForm)
			s.runs(1)
		})
	}
}

// The line break after the last boundary isn't the body's (RFC 2046 section 5.1.1).
func TestAFormMayEndWithItsLastBoundary(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	body, asForm := form(t, "A-1", "png")
	first := s.pay(201, "k", strings.TrimSuffix(body, "\r\n"), asForm)
	again, asForm := form(t, "A-1", "png")
	s.replayed(first, "k", again, asForm)
	s.runs(1)
}

// A compressed body is the handler's to read. It counts as it was sent.
func TestACompressedBodyCountsByteForByte(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, `{"order":"A-1"}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, unsafe, func(rw http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		if got, err := io.ReadAll(unpacked); string(got) != `{"order":"A-1"}` || err != nil {
			t.Errorf("the handler reads %q, %v", got, err)
		}
		rw.WriteHeader(http.StatusCreated)
	})
	packed := func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }
	first := s.pay(201, "k", b.String(), packed)
	s.replayed(first, "k", b.String(), packed)
	s.refused(422, "key-reused", "k", `{"order":"A-1"}`)
	s.runs(1)
}

// A header's value needn't be UTF-8: a file's name in ISO 8859-1 isn't.
func TestAHeaderThatIsNoTextIsReplayed(t *testing.T) {
	t.Parallel()
	const disposition = "attachment; filename=\"rechnung-\xe4.pdf\""
	s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Disposition", disposition) })
	for range 2 {
		if got := s.pay(200, "k", `{}`); got.header.Get("Content-Disposition") != disposition {
			t.Errorf("got %q, want %q", got.header.Get("Content-Disposition"), disposition)
		}
	}
}
