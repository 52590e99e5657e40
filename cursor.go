package settle

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// writeCursor and readCursor keep a page's end as text: the instant in
// microseconds and the case's id.
func writeCursor(c store.CaseCursor) string {
	text := fmt.Sprintf("%d.%s", c.OpenedAt.UnixMicro(), c.ID)
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// ErrCursor: the cursor of a page isn't one that a page before it gave.
var ErrCursor = errors.New("settle: the cursor isn't one that a page before it gave")

func readCursor(cursor string) (c store.CaseCursor, err error) {
	if cursor == "" {
		return c, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return c, ErrCursor
	}
	var micros int64
	var id string
	if _, err := fmt.Sscanf(strings.Replace(string(text), ".", " ", 1), "%d %s", &micros, &id); err != nil {
		return c, ErrCursor
	}
	if c.ID, err = uuid.Parse(id); err != nil {
		return c, ErrCursor
	}
	c.OpenedAt = time.UnixMicro(micros).UTC()
	return c, nil
}
