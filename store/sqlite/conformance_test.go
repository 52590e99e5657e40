package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.World {
		path := filepath.Join(t.TempDir(), "settle.db")
		clock := storetest.NewClock()
		open := func(t testing.TB) store.Ledger {
			t.Helper()
			l, err := sqlite.Open(t.Context(), path, sqlite.WithClock(clock.Now))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			return l
		}
		return storetest.World{Ledger: open(t), Again: open, Age: clock.Age}
	})
}
