package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
)

// digestOf is what a body that isn't compared as values counts by. A body of
// several parts counts by these and not by what stands between them: a client that
// sends a form again, as fetch and curl do, makes up another boundary for it.
func digestOf(c *content, contentType, encoding string) string {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || encoding != "" || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return c.digest
	}
	sum, body := sha256.New(), io.MultiReader(c.open(), strings.NewReader("\r\n"), cutOff{})
	if err := sumParts(sum, multipart.NewReader(body, parameters["boundary"])); err != nil {
		return c.digest // no reader takes it for parts
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// cutOff is where a body ends without its last boundary. For the reader of parts
// that is an end like any other, where it looks for a part: bodies without a
// boundary would all be the same, and so would those that are cut there.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// sumParts adds each part's headers, their names in order, and its content as it
// was sent.
func sumParts(sum hash.Hash, parts *multipart.Reader) error {
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(part.Header)) {
			for _, value := range part.Header[name] {
				sumText(sum, name)
				sumText(sum, value)
			}
		}
		body := sha256.New()
		if _, err := io.Copy(body, part); err != nil {
			return err
		}
		sumText(sum, "") // no header has an empty name
		sum.Write(body.Sum(nil))
	}
}

// sumText adds a text so that no two sequences of texts read the same.
func sumText(sum hash.Hash, text string) {
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	sum.Write([]byte(text))
}
