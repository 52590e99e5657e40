package settle_test

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// sides are the addresses of the far sides.
type sides struct{ Payments, Labels, Mail, Tickets, Balance string }

// desk makes the standard tools of the scenarios, over clients of the far sides.
type desk struct {
	payments *farside.PaymentsClient
	labels   *farside.LabelsClient
	mail     *farside.MailClient
	tickets  *farside.TicketsClient
	balance  *farside.BalanceClient
	// reached is told how far an attempt has got; it may keep it there.
	reached func(tool string, s stage)
}

// stage is a point in an attempt at which a process may be killed.
type stage string

const (
	claimed  stage = "claimed"  // K1: claimed, nothing sent
	answered stage = "answered" // K3: answered, not recorded
	recorded stage = "recorded" // K4: recorded, the caller not told
	between  stage = "between"  // between the steps of a composite
)

func newDesk(s sides) *desk {
	return &desk{
		payments: farside.NewPaymentsClient(s.Payments), labels: farside.NewLabelsClient(s.Labels),
		mail: farside.NewMailClient(s.Mail), tickets: farside.NewTicketsClient(s.Tickets),
		balance: farside.NewBalanceClient(s.Balance), reached: func(string, stage) {},
	}
}

// edit changes a standard tool's contract.
type edit func(*settle.Contract)

// timeout is an edit: the longest time of one attempt.
func timeout(d time.Duration) edit { return func(c *settle.Contract) { c.Timeout = d } }

// attempts is an edit: the most attempts of what isn't Unsafe, which has one a call.
func attempts(n int) edit {
	return func(c *settle.Contract) {
		if c.Class != settle.Unsafe {
			c.Attempts = n
		}
	}
}

// tools are the standard tools.
func (d *desk) tools(edits ...edit) []settle.AnyTool {
	return []settle.AnyTool{d.readBalance(edits...), d.setLabel(edits...), d.refund(edits...), d.sendMail(edits...), d.createTicket(edits...)}
}

func contract(c settle.Contract, edits []edit) settle.Contract {
	for _, e := range edits {
		e(&c)
	}
	return c
}

// send runs an attempt's request between its two stages.
func send[T any](d *desk, tool string, request func() (T, error)) (T, error) {
	d.reached(tool, claimed)
	v, err := request()
	d.reached(tool, answered)
	return v, known(err)
}

// known says what a far side's error proves (R27).
func known(err error) error {
	switch {
	case err == nil:
		return nil
	case farside.WasNotSent(err):
		return settle.NotSent(err)
	case farside.WasRejected(err):
		return settle.Rejected(err)
	}
	return err
}

type balanceArgs struct {
	Account string `json:"account"`
}

// readBalance is Read.
func (d *desk) readBalance(edits ...edit) settle.Tool[balanceArgs, farside.Account] {
	return settle.Tool[balanceArgs, farside.Account]{
		Name: "balance", Description: "Read the balance of an account.",
		Contract: contract(settle.Contract{Class: settle.Read}, edits),
		Do: func(ctx context.Context, _ settle.Op, in balanceArgs) (farside.Account, error) {
			return send(d, "balance", func() (farside.Account, error) { return d.balance.Get(ctx, in.Account) })
		},
	}
}

type labelArgs struct {
	Issue string `json:"issue" settle:"identity"`
	Label string `json:"label"`
}

type labelled struct {
	ID    string `json:"id" settle:"resource"`
	Label string `json:"label"`
}

// setLabel is Idempotent: the issue is the resource, the label the state.
func (d *desk) setLabel(edits ...edit) settle.Tool[labelArgs, labelled] {
	return settle.Tool[labelArgs, labelled]{
		Name: "set_label", Description: "Set the label of an issue.",
		Contract: contract(settle.Contract{Class: settle.Idempotent}, edits),
		Do: func(ctx context.Context, _ settle.Op, in labelArgs) (labelled, error) {
			issue, err := send(d, "set_label", func() (farside.Issue, error) { return d.labels.Set(ctx, in.Issue, in.Label) })
			return labelled{issue.ID, issue.Label}, err
		},
	}
}

type refundArgs struct {
	OrderID string          `json:"order_id" settle:"identity"`
	Amount  decimal.Decimal `json:"amount"`
	Note    string          `json:"note,omitempty" settle:"ignore"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is Keyed, for 24 h, with a lookup by key.
func (d *desk) refund(edits ...edit) settle.Tool[refundArgs, refunded] {
	t := settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "Refund an order.",
		Contract: contract(settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour}, edits),
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			r, err := send(d, "refund", func() (farside.Refund, error) {
				return d.payments.Refund(ctx, op.Key(), in.OrderID, in.Amount.String())
			})
			return refunded{r.ID}, err
		},
	}
	if !t.Contract.NoLookup {
		t.Lookup = d.findRefund
	}
	return t
}

func (d *desk) findRefund(ctx context.Context, q settle.Query[refunded], _ refundArgs) (settle.Evidence, error) {
	found, err := d.payments.FindByKey(ctx, q.Key())
	switch {
	case err != nil:
		return settle.Evidence{}, err
	case len(found) == 0:
		return q.NotHappened(), nil
	case len(found) > 1:
		return q.Several("more than one refund has this key"), nil
	}
	return q.Happened(found[0].ID, refunded{found[0].ID}).Comparing(map[string]any{
		"order_id": found[0].OrderID, "amount": found[0].Amount}), nil
}

type mailArgs struct {
	To      string `json:"to" settle:"identity"`
	Purpose string `json:"purpose" settle:"identity"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

type sent struct {
	ID string `json:"id" settle:"resource"`
}

// keyHeader is where a mail carries its operation's key.
const keyHeader = "X-Operation-Key"

// sendMail is Unsafe, with a lookup by header.
func (d *desk) sendMail(edits ...edit) settle.Tool[mailArgs, sent] {
	t := settle.Tool[mailArgs, sent]{
		Name: "send_mail", Description: "Send a mail.",
		Contract: contract(settle.Contract{}, edits),
		Do: func(ctx context.Context, op settle.Op, in mailArgs) (sent, error) {
			m, err := send(d, "send_mail", func() (farside.Message, error) {
				return d.mail.Send(ctx, farside.Message{To: in.To, Purpose: in.Purpose, Subject: in.Subject, Body: in.Body,
					Headers: map[string]string{keyHeader: op.Key()}})
			})
			return sent{m.ID}, err
		},
	}
	if !t.Contract.NoLookup {
		t.Lookup = d.findMail
	}
	return t
}

func (d *desk) findMail(ctx context.Context, q settle.Query[sent], _ mailArgs) (settle.Evidence, error) {
	found, err := d.mail.FindByHeader(ctx, keyHeader, q.Key())
	switch {
	case err != nil:
		return settle.Evidence{}, err
	case len(found) == 0:
		return q.NotHappened(), nil
	case len(found) > 1:
		return q.Several("more than one mail has this key"), nil
	}
	return q.Happened(found[0].ID, sent{found[0].ID}).Comparing(map[string]any{
		"subject": found[0].Subject, "body": found[0].Body}), nil
}

type ticketArgs struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

type opened struct {
	ID string `json:"id" settle:"resource"`
}

// createTicket is Unsafe, without a lookup and without declared identity.
func (d *desk) createTicket(edits ...edit) settle.Tool[ticketArgs, opened] {
	return settle.Tool[ticketArgs, opened]{
		Name: "create_ticket", Description: "Open a ticket.",
		Contract: contract(settle.Contract{NoLookup: true, WholeArguments: true}, edits),
		Do: func(ctx context.Context, _ settle.Op, in ticketArgs) (opened, error) {
			k, err := send(d, "create_ticket", func() (farside.Ticket, error) { return d.tickets.Open(ctx, in.Title, in.Description) })
			return opened{k.ID}, err
		},
	}
}

type returnArgs struct {
	OrderID  string          `json:"order_id" settle:"identity"`
	Customer string          `json:"customer"`
	Amount   decimal.Decimal `json:"amount"`
}

type returned struct {
	Refund string `json:"refund" settle:"resource"`
	Mail   string `json:"mail"`
}

// handleReturn is a Composite: it refunds an order and tells the customer.
func (d *desk) handleReturn(name string) settle.Tool[returnArgs, returned] {
	repay, tell := d.refund(), d.sendMail()
	return settle.Tool[returnArgs, returned]{
		Name: name, Description: "Refund an order and tell the customer.",
		Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{repay, tell},
		Do: func(ctx context.Context, op settle.Op, in returnArgs) (returned, error) {
			r, err := settle.Step(ctx, op, "repay", repay, refundArgs{OrderID: in.OrderID, Amount: in.Amount})
			if err != nil {
				return returned{}, err
			}
			d.reached(name, between)
			m, err := settle.Step(ctx, op, "tell", tell,
				mailArgs{in.Customer, "return", "Your return", "We have repaid you: " + r.ID}, settle.After("repay"))
			return returned{r.ID, m.ID}, err
		},
	}
}

// The calls of the tools.

func handleReturn(order, customer, amount string) settle.Call {
	return settle.Call{Tool: "handle_return", Args: args(returnArgs{order, customer, decimal.RequireFromString(amount)})}
}

func balance(account string) settle.Call {
	return settle.Call{Tool: "balance", Args: args(balanceArgs{account})}
}

func setLabel(issue, label string) settle.Call {
	return settle.Call{Tool: "set_label", Args: args(labelArgs{issue, label})}
}

func refund(order, amount string) settle.Call {
	return settle.Call{Tool: "refund", Args: args(refundArgs{OrderID: order, Amount: decimal.RequireFromString(amount)})}
}

func sendMail(to, purpose, subject, body string) settle.Call {
	return settle.Call{Tool: "send_mail", Args: args(mailArgs{to, purpose, subject, body})}
}

func createTicket(title, description string) settle.Call {
	return settle.Call{Tool: "create_ticket", Args: args(ticketArgs{title, description})}
}

// withID is a call with the call id that a provider gave it.
func withID(id string, c settle.Call) settle.Call {
	c.CallID = id
	return c
}

// again is a call as its n-th meant occurrence, by the host's word.
func again(n int, c settle.Call) settle.Call {
	c.Occurrence = n
	return c
}
