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
	sum := sha256.New()
	if err := sumParts(sum, multipart.NewReader(c.open(), parameters["boundary"])); err != nil {
		return c.digest // no reader takes it for parts
	}
	return hex.EncodeToString(sum.Sum(nil))
}

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
