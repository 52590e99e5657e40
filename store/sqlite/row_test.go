package sqlite

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
)

// A field that is added to a record must not be lost on its way to the file.
func TestEveryFieldHasItsColumn(t *testing.T) {
	t.Parallel()
	if n := len(operationColumns); n > 64 {
		t.Errorf("a columnSet can't hold %d columns", n)
	}
	everyField(t, operationColumns, "Read") // which isn't stored
	everyField(t, eventColumns)
	everyField(t, intentColumns)
}

func everyField[T any](t *testing.T, columns []column[T], except ...string) {
	t.Helper()
	var record T
	v := reflect.ValueOf(&record).Elem()
	column := map[any]string{}
	for _, c := range columns {
		if before, twice := column[c.field(&record)]; twice {
			t.Errorf("%s and %s hold one field", before, c.name)
		}
		column[c.field(&record)] = c.name
	}
	for _, name := range except {
		column[v.FieldByName(name).Addr().Interface()] = name
	}
	for i := range v.NumField() {
		if column[v.Field(i).Addr().Interface()] == "" {
			t.Errorf("%T.%s has no column", record, v.Type().Field(i).Name)
		}
	}
}

func TestAValueThatDoesNotFitIsNamedByItsTypeOnly(t *testing.T) {
	t.Parallel()
	var o store.Operation
	for _, c := range []struct {
		field any
		value any
	}{
		{&o.ID, "secret"}, {&o.ID, []byte("secret")}, {&o.Tail, []byte("secret")}, {&o.Slot, int64(7)},
		{&o.Number, "secret"}, {&o.Tool, []byte("secret")}, {&o.Tool, 1.5}, {&o.CreatedAt, "secret"},
	} {
		err := decode(c.field, c.value)
		if err == nil {
			t.Errorf("%v was read into a %T", c.value, c.field)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error %q shows the value", err)
		}
	}
}

// However often the clock is read, it goes on as fast as time does, whether what
// was read is stored or not.
func TestR38TheClockThatIsCountedOnLosesNothing(t *testing.T) {
	for name, stores := range map[string]bool{"stored": true, "read": false} {
		t.Run(name, func(t *testing.T) {
			host := time.Now()
			c := &clock{host: func() time.Time { return host }}
			from := c.read(0)
			stored := from.UnixMicro()
			host = host.Add(-time.Hour)
			began := time.Now()
			for time.Since(began) < 100*time.Millisecond {
				if now := c.read(stored); stores {
					stored = now.UnixMicro()
				}
			}
			passed := time.Since(began)
			if went := c.read(stored).Sub(from); went < passed-5*time.Millisecond {
				t.Errorf("in %v it went on by %v", passed, went)
			}
		})
	}
}
