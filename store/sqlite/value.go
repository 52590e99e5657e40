package sqlite

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// encode is how a field, given by pointer, is stored. What a record calls
// absent (a zero id, digest, text or instant) is NULL.
func encode(field any) driver.Value {
	switch f := field.(type) {
	case *uuid.UUID:
		if *f == uuid.Nil {
			return nil
		}
		return f[:]
	case *store.Digest:
		if f.IsZero() {
			return nil
		}
		return f[:]
	case *[32]byte:
		if *f == [32]byte{} {
			return nil
		}
		return f[:]
	case *[]byte:
		if len(*f) == 0 {
			return nil
		}
		return *f
	case *string:
		return text(*f)
	case *time.Time:
		if f.IsZero() {
			return nil
		}
		return f.UnixMicro()
	case *time.Duration:
		return f.Microseconds()
	case *int:
		return int64(*f)
	case *int64:
		return *f
	case *uint8:
		return int64(*f)
	case *bool:
		if *f {
			return int64(1)
		}
		return int64(0)
	case *store.State:
		return f.String()
	case *store.Class:
		return f.String()
	case *store.Source:
		return text(string(*f))
	case *store.Move:
		return f.String()
	}
	panic(fmt.Sprintf("sqlite: no column holds a %T", field))
}

// same says whether two fields of one column are stored as the same value.
func same(a, b any) bool {
	switch a := a.(type) {
	case *uuid.UUID:
		return *a == *b.(*uuid.UUID)
	case *store.Digest:
		return *a == *b.(*store.Digest)
	case *[32]byte:
		return *a == *b.(*[32]byte)
	case *[]byte:
		return bytes.Equal(*a, *b.(*[]byte))
	case *string:
		return *a == *b.(*string)
	case *time.Time:
		return a.Equal(*b.(*time.Time))
	case *time.Duration:
		return *a == *b.(*time.Duration)
	case *int:
		return *a == *b.(*int)
	case *int64:
		return *a == *b.(*int64)
	case *uint8:
		return *a == *b.(*uint8)
	case *bool:
		return *a == *b.(*bool)
	case *store.State:
		return *a == *b.(*store.State)
	case *store.Class:
		return *a == *b.(*store.Class)
	case *store.Source:
		return *a == *b.(*store.Source)
	}
	panic(fmt.Sprintf("sqlite: no column holds a %T", a))
}

func text(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// decode is the inverse of encode. A value that doesn't fit is an error: the
// row was written by something else.
func decode(field any, value driver.Value) error {
	switch v := value.(type) {
	case nil:
		return nil // the field is zero already
	case int64:
		return decodeNumber(field, v)
	case []byte:
		return decodeBytes(field, v)
	case string:
		return decodeText(field, v)
	}
	return misfit(field, value)
}

func decodeNumber(field any, v int64) error {
	switch f := field.(type) {
	case *time.Time:
		*f = time.UnixMicro(v).UTC()
	case *time.Duration:
		*f = time.Duration(v) * time.Microsecond
	case *int:
		*f = int(v)
	case *int64:
		*f = v
	case *uint8:
		*f = uint8(v)
	case *bool:
		*f = v != 0
	default:
		return misfit(field, v)
	}
	return nil
}

func decodeBytes(field any, v []byte) error {
	var n int
	switch f := field.(type) {
	case *[]byte:
		*f = v
		return nil
	case *uuid.UUID:
		n = copy(f[:], v)
	case *store.Digest:
		n = copy(f[:], v)
	case *[32]byte:
		n = copy(f[:], v)
		if len(v) == 32 && n == 32 {
			return nil
		}
		return misfit(field, v)
	default:
		return misfit(field, v)
	}
	if n != 16 || len(v) != 16 {
		return misfit(field, v)
	}
	return nil
}

func decodeText(field any, v string) (err error) {
	switch f := field.(type) {
	case *string:
		*f = v
	case *store.State:
		*f, err = store.ParseState(v)
	case *store.Class:
		*f, err = store.ParseClass(v)
	case *store.Source:
		*f = store.Source(v)
	case *store.Move:
		*f, err = parseMove(v)
	default:
		return misfit(field, v)
	}
	return err
}

func parseMove(v string) (m store.Move, err error) {
	from, to, _ := strings.Cut(v, ">")
	if from != "" {
		if m.From, err = store.ParseState(from); err != nil {
			return m, err
		}
	}
	m.To, err = store.ParseState(to)
	return m, err
}

// misfit names the types only: values don't go into errors (R55).
func misfit(field any, value driver.Value) error {
	return fmt.Errorf("the ledger's file holds a %T where %T belongs: it was changed by another program", value, field)
}

func decodeAll(fields []any, values []driver.Value) error {
	for i, f := range fields {
		if err := decode(f, values[i]); err != nil {
			return err
		}
	}
	return nil
}
