// Package settletest helps to test tools and agents that run through settle.
//
//	func TestARefundIsMadeOnce(t *testing.T) {
//		bank := newFakeBank()
//		tool, count := settletest.Count(NewRefund(bank))
//		x := settletest.NewExecutor(t, settletest.LoseAnswer(tool, 1))
//		ctx := settletest.Context(t)
//
//		out := settletest.Execute(t, ctx, x, "refund", RefundArgs{OrderID: "A-1", Amount: 42})
//		settletest.Want(t, out, settle.StatusCompleted)
//		if count.Effects() != 1 { … }
//	}
//
// [NewExecutor] gives each test a SQLite ledger of its own, which is what an
// agent runs on. [NewClock] gives it a ledger in memory whose clock the test
// sets forward, for what takes hours: leases that end, moments that pass, cases
// that come to a person. [LoseAnswer], [LoseRequest] and [Refuse] break a tool's
// attempts in the three ways that matter.
package settletest
