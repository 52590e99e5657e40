package memory_test

import (
	"testing"

	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.World {
		clock := storetest.NewClock()
		return storetest.World{
			Ledger: memory.New(memory.WithClock(clock.Now)),
			Age:    clock.Age,
		}
	})
}
