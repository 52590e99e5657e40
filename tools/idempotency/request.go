package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/settle-go/settle/internal/canonical"
)

// Request is what the ledger keeps of a request: the arguments of its operation,
// as a lookup and the operator's queue see them. Two requests with one key mean
// the same where these are equal, with the body's JSON compared as values:
// the order of members doesn't count, 1.0 is 1 (R15, R16).
//
// A body that must not be stored is declared as Secret, {"body"} or a part of it
// such as {"body.card"}: it counts, and only a digest of it is kept (R56).
type Request struct {
	// Key is the caller's key, without quotes.
	Key string `json:"key"`
	// Target is the path and the query, with its parameters in order.
	Target string `json:"target"`
	// ContentType is the body's media type, without parameters, or "".
	ContentType string `json:"content_type,omitempty"`
	// ContentEncoding is how the body was compressed, or "". Such a body counts as
	// it was sent, byte for byte.
	ContentEncoding string `json:"content_encoding,omitempty"`
	// Body is a body of JSON of up to 256 KiB, which has no more values, depth or
	// digits than can be compared: 9,990 values, 63 levels.
	Body json.RawMessage `json:"body,omitempty"`
	// Digest is the SHA-256 of any other body, byte for byte, in hexadecimal; of a
	// multipart body it is that of its parts, without their boundary.
	Digest string `json:"digest,omitempty"`
}

const (
	// largestInline bounds the JSON that is compared, and stored, as values.
	largestInline = 256 << 10
	// largestInMemory bounds what is held in memory; more is in a file.
	largestInMemory = 1 << 20
)

// content is a request's body, read to its end before anything is claimed: its
// digest is a part of what the key stands for.
type content struct {
	memory []byte
	file   *os.File
	size   int64
	digest string
}

var (
	// errTooLarge says that a body is longer than the guard takes.
	errTooLarge = errors.New("idempotency: the body is too large")
	// errNotKept says that a large body can't be kept while the request runs.
	errNotKept = errors.New("idempotency: the body can't be kept in a temporary file")
)

// readBody takes a body of at most limit bytes. Its error is errTooLarge,
// errNotKept, or the one that ended the upload.
func readBody(r *http.Request, limit int64) (*content, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	c, sum := &content{}, sha256.New()
	err := c.take(io.LimitReader(r.Body, limit+1), sum)
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond), err == nil && c.size > limit:
		err = errTooLarge
	case err == nil:
		c.digest = hex.EncodeToString(sum.Sum(nil))
		return c, nil
	}
	c.close()
	return nil, err
}

func (c *content) take(body io.Reader, sum hash.Hash) error {
	var memory bytes.Buffer
	n, err := io.Copy(io.MultiWriter(&memory, sum), io.LimitReader(body, largestInMemory))
	c.memory, c.size = memory.Bytes(), n
	if err != nil || n < largestInMemory {
		return err
	}
	if c.file, err = os.CreateTemp("", "settle-request-"); err != nil {
		return errors.Join(errNotKept, err)
	}
	n, err = io.Copy(io.MultiWriter(onDisk{c.file}, sum), body)
	c.size += n
	return err
}

// onDisk tells a disk's errors from a client's.
type onDisk struct{ file *os.File }

func (d onDisk) Write(b []byte) (int, error) {
	n, err := d.file.Write(b)
	if err != nil {
		err = errors.Join(errNotKept, err)
	}
	return n, err
}

// open is the body for the handler.
func (c *content) open() io.ReadCloser {
	if c.size == 0 {
		return http.NoBody
	}
	readers := []io.Reader{bytes.NewReader(c.memory)}
	if c.file != nil {
		readers = append(readers, io.NewSectionReader(c.file, 0, c.size-int64(len(c.memory))))
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// close removes what is on the disk. The handler has returned by then, or never ran.
func (c *content) close() {
	if c.file != nil {
		c.file.Close() //nolint:errcheck // it is removed
		os.Remove(c.file.Name())
	}
}

var errNoJSON = errors.New("idempotency: the body isn't the JSON that its Content-Type says")

// arguments are what the key stands for, as JSON. A body of JSON goes in byte for
// byte, for the ledger's own strict reader.
func arguments(r *http.Request, key string, c *content) (json.RawMessage, error) {
	contentType := r.Header.Get("Content-Type")
	in := Request{Key: key, Target: target(r.URL), ContentType: mediaType(contentType), ContentEncoding: encoding(r.Header)}
	inline := c.size > 0 && c.size <= largestInline && isJSON(in.ContentType) && in.ContentEncoding == ""
	if inline && !json.Valid(c.memory) {
		return nil, errNoJSON
	}
	inline = inline && comparable(c.memory)
	if c.size > 0 && !inline {
		in.Digest = digestOf(c, contentType, in.ContentEncoding)
	}
	encoded, err := json.Marshal(in)
	if err != nil || !inline {
		return encoded, err
	}
	encoded = append(encoded[:len(encoded)-1], `,"body":`...)
	return append(append(encoded, c.memory...), '}'), nil
}

// comparable says that JSON isn't beyond what can be compared as values. What else
// is wrong with it, the ledger's reader says.
func comparable(body []byte) bool {
	// The ledger's reader has one more level, and the request's other parts.
	_, err := canonical.Parse(body, canonical.Limits{Depth: 63, Members: 9_990})
	var beyond *canonical.LimitError
	return !errors.As(err, &beyond)
}

// target is the path as it was sent and the query with its parameters sorted.
// A query that can't be read counts as it was sent.
func target(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	query := u.RawQuery
	if values, err := url.ParseQuery(query); err == nil {
		query = values.Encode()
	}
	return u.EscapedPath() + "?" + query
}

// mediaType is a Content-Type without its parameters.
func mediaType(value string) string {
	if parsed, _, err := mime.ParseMediaType(value); err == nil {
		return parsed
	}
	return strings.ToLower(strings.TrimSpace(value))
}

// encoding is a body's Content-Encoding, "" for none.
func encoding(h http.Header) string {
	value := strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ", ")))
	if value == "identity" {
		return ""
	}
	return value
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
