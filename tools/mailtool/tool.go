package mailtool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// defaultTimeout bounds a submission: relays may look at a mail for a while before
// they answer for it (RFC 5321 section 4.5.3.2).
const defaultTimeout = time.Minute

// Config says what the tool sends, and in whose name.
type Config struct {
	// Name is what the model calls the tool. Default: send_mail.
	Name string
	// Description is shown to the model. Default: Send a mail in plain text.
	Description string
	// From is the sender, "Support <support@example.org>" or a bare address; never
	// the model's choice.
	From string
	// ReplyTo is where answers go, if not to From.
	ReplyTo string
	// Domain is that of the Message-IDs. Default: From's.
	Domain string
	// Contract is the author's promise. Its Class is Unsafe; its Timeout is a
	// minute where it is left out, and Normalize compares recipient and purpose
	// without regard to case. Without Find it has to say NoLookup.
	Contract settle.Contract
	// Allow says whether mail may go to an address. Its error is the refusal that
	// the model is told. Default: to every address.
	Allow func(ctx context.Context, address string) error
	// Find says whether a mail with this Message-ID was sent, from an archive, a
	// journal mailbox, or the relay's log. An error is no answer. The contract's
	// VisibilityDelay is how long a mail may take to get there.
	Find func(ctx context.Context, messageID string) (found bool, err error)
}

// tool is a configured one.
type tool struct {
	relay         Relay
	host          string
	config        Config
	from, replyTo *mail.Address
}

// New makes the tool. The error says everything that is wrong with its
// configuration; what is wrong with the contract, settle.New says.
func New(relay Relay, config Config) (settle.Tool[Message, Sent], error) {
	t := &tool{relay: relay, config: config}
	if err := t.read(); err != nil {
		return settle.Tool[Message, Sent]{}, fmt.Errorf("mailtool: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	contract := t.config.Contract
	if contract.Timeout == 0 {
		contract.Timeout = defaultTimeout
	}
	contract.Normalize = normalized(contract)
	made := settle.Tool[Message, Sent]{Name: t.config.Name, Description: t.config.Description, Contract: contract, Do: t.do}
	if config.Find != nil {
		made.Lookup = t.look
	}
	return made, nil
}

// normalized makes a mail to Ann@Example.org the one to ann@example.org, where the
// host doesn't say otherwise: a model writes an address one way and the other.
func normalized(c settle.Contract) map[string]settle.Normalizer {
	all := map[string]settle.Normalizer{}
	for _, field := range []string{"to", "purpose"} {
		if len(c.Identity) == 0 && !c.WholeArguments || slices.Contains(c.Identity, field) {
			all[field] = settle.Normalizer{Name: "lower", Func: strings.ToLower}
		}
	}
	maps.Copy(all, c.Normalize)
	return all
}

func (t *tool) read() (err error) {
	var problems []error
	note := func(err error) { problems = append(problems, err) }
	t.host, err = t.relay.check()
	note(err)
	if t.config.Name == "" {
		t.config.Name = "send_mail"
	}
	if t.config.Description == "" {
		t.config.Description = "Send a mail in plain text."
	}
	if t.config.Contract.Class != settle.Unsafe {
		note(fmt.Errorf("its class is %s: a relay takes the same mail twice, so the class is Unsafe", t.config.Contract.Class))
	}
	if t.config.Find == nil && !t.config.Contract.NoLookup {
		note(errors.New("it can't be asked for a mail: give it Find, or say NoLookup in its Contract, and an unknown outcome is a person's"))
	}
	if t.from, err = sender(t.config.From); err != nil {
		note(fmt.Errorf("the field From %w", err))
	}
	if t.config.ReplyTo != "" {
		if t.replyTo, err = sender(t.config.ReplyTo); err != nil {
			note(fmt.Errorf("the field ReplyTo %w", err))
		}
	}
	if t.config.Domain == "" && t.from != nil {
		t.config.Domain = t.from.Address[strings.LastIndexByte(t.from.Address, '@')+1:]
	}
	if t.from != nil {
		if _, err := parseAddress("key@" + t.config.Domain); err != nil {
			note(errors.New("the field Domain is no host name"))
		}
	}
	return errors.Join(problems...)
}

// sender reads an address of the host's, which may have a name.
func sender(given string) (*mail.Address, error) {
	a, err := mail.ParseAddress(given)
	if err != nil {
		return nil, errors.New("is no mail address")
	}
	if _, err := parseAddress(a.Address); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(a.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("has a control character in its name")
	}
	return a, nil
}

// messageID is the operation's, whichever attempt sends it.
func (t *tool) messageID(key string) string { return key + "@" + t.config.Domain }

func (t *tool) do(ctx context.Context, op settle.Op, in Message) (Sent, error) {
	to, err := in.recipients()
	if err = errors.Join(err, in.check()); err != nil {
		return Sent{}, settle.Rejected(err)
	}
	if t.config.Allow != nil {
		for _, address := range slices.Compact(to) {
			if err := t.config.Allow(ctx, address); err != nil {
				return Sent{}, settle.Rejected(err)
			}
		}
	}
	id := t.messageID(op.Key())
	letter, err := in.letter(t.from, t.replyTo, id, time.Now())
	if err != nil {
		return Sent{}, settle.NotSent(err)
	}
	if err := t.relay.submit(ctx, t.host, t.from.Address, to, letter); err != nil {
		return Sent{}, err
	}
	return Sent{MessageID: id}, nil
}

func (t *tool) look(ctx context.Context, q settle.Query[Sent], _ Message) (none settle.Evidence, err error) {
	id := t.messageID(q.Key())
	found, err := t.config.Find(ctx, id)
	if err != nil {
		return none, err
	}
	if !found {
		return q.NotHappened(), nil
	}
	return q.Happened(id, Sent{MessageID: id}), nil
}
