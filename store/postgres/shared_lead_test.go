package postgres_test

import (
	"testing"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// Who may fly alone flies with those who have come meanwhile, and alone where
// nobody has.
func TestWhoIsReadyTravelsWithTheFirst(t *testing.T) {
	t.Parallel()
	c := &crossing{ledgerWorld: newLedgerWorld(t, pgtest.MaxConns(4))}
	c.intent = c.ledgerWorld.intent()
	c.won(storetest.Claim(storetest.Operation(c.intent)))
	postgres.OneFlight(c.Ledger, forever)
	for _, others := range []int{0, 1, 5, 0} {
		ops := c.running(1 + others)
		var ends []<-chan error
		together, err := postgres.Leading(t.Context(), c.Ledger, storetest.Completion(ops[0], "r-0"), func() {
			for _, o := range ops[1:] {
				ends = append(ends, c.inBackground(t.Context(), storetest.Completion(o, "r")))
			}
			c.wait(others)
		})
		if err != nil || together != (others > 0) {
			t.Errorf("with %d others: together %v, error %v", others, together, err)
		}
		for _, end := range ends {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		transactions := map[string]bool{}
		for _, o := range ops {
			var by string
			if err := c.pool.QueryRow(t.Context(), `SELECT xmin::text FROM "`+c.schema+`".operation WHERE id = $1 AND state = 'completed'`, o.ID.String()).Scan(&by); err != nil {
				t.Error(err)
			}
			transactions[by] = true
		}
		if len(transactions) != 1 {
			t.Errorf("with %d others: %d transactions", others, len(transactions))
		}
		// The next one lets others go first only if this one met some.
		if postgres.Expects(c.Ledger) != (others > 0) {
			t.Errorf("after %d others: company is expected: %v", others, others == 0)
		}
		c.idle()
	}
}
