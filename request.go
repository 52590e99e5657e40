package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// Call is one tool call of a model's turn.
type Call struct {
	// Tool is the tool's name.
	Tool string
	// Args are the arguments, as the exact bytes of JSON that the model sent.
	// Empty means {}.
	Args json.RawMessage
	// CallID is the model's id of the call. It is stored for correlation and
	// identifies nothing (R11).
	CallID string
	// Node names the side effect within the intent, in the host's own words.
	// A tool whose node the host names is always called with one (R8).
	Node string
	// Occurrence tells a meant repeat from a redelivery: 1 (or 0) for the first,
	// 2 for the second (R9).
	Occurrence int
	// Replaces is the reference of a settled operation of the same node that
	// this call takes the place of, because the plan has changed (R10).
	Replaces string
	// Schema is the framework's schema of the arguments, for [Around].
	Schema json.RawMessage
	// Rounded says that numbers in Args went through float64, so that an
	// integer of 2^53 or more may be another one than the model sent; such
	// arguments are refused.
	Rounded bool
	// Wait bounds how long the call waits for another attempt on its operation
	// that is at work (R17). 0 is the contract's timeout, [Immediately] is not at
	// all: the outcome is then "in_progress" at once.
	Wait time.Duration
	// Redelivered hints that the call was probably made before, maybe through
	// another process, so that reading its record should cost no second round
	// trip. It decides nothing.
	Redelivered bool
}

// maxCallID bounds the correlation ids that are stored, in bytes. Longer ones
// are cut and unreadable characters replaced, since they identify nothing and
// stand in traces.
const maxCallID = 256

// request is a call on its way through the executor.
type request struct {
	call      Call
	tool      *binding
	principal Principal
	taskName  Task
	intent    store.Intent
	// byTenant and byIntent digest under the keys of tenant and intent.
	byTenant, byIntent *deriver

	// value is what the model sent, without the occurrence parameter; args the
	// same as plain JSON, in which integers are written as integers.
	value canonical.Value
	args  []byte
	// in is args decoded into the tool's type; invalid says why it isn't. accepted
	// is what in was decoded from, where that isn't args.
	in       any
	accepted []byte
	invalid  error

	node       node
	resource   store.Digest
	unique     store.Digest
	occurrence int
	fromHost   bool
	// stripped says that the model sent the occurrence parameter; keeps, that a
	// framework's own schema has it, so that its tool takes it too.
	stripped, keeps bool
	print           fingerprint
	slot            store.Digest
	definition      store.Digest

	// batch is the model turn; upstream and parent are a step's (R13).
	batch    uuid.UUID
	parent   *running
	step     string
	upstream map[string]string
	// original is the operation that a compensation corrects (R49).
	original *store.Entry
	// run is the tool's own Do, or what replaces it; once says that it can't be
	// entered again within the call.
	run  runner
	once bool
	// span is the call's; nil where an operation is only read.
	span *callSpan
}

// invalidError says that arguments can't be taken. It names fields, not values.
type invalidError struct {
	fields []string
	reason string
	// unreadable says that it is the schema which is wrong: no arguments would do.
	unreadable bool
	// cause is for the log, where it is the host's function that failed.
	cause error
}

func (e *invalidError) Error() string { return e.reason }
func (e *invalidError) Unwrap() error { return e.cause }

// newRequest reads a call's arguments. Its error is an *invalidError: without
// arguments that can be read there is no identity to ask the ledger by.
func newRequest(tool *binding, call Call, p Principal, t Task, limits canonical.Limits) (*request, error) {
	r := &request{call: call, tool: tool, principal: p, taskName: t, occurrence: call.Occurrence, fromHost: call.Occurrence > 0}
	r.call.CallID = cut(strings.ToValidUTF8(call.CallID, "\uFFFD"), maxCallID)
	args := call.Args
	if len(args) == 0 {
		args = []byte("{}")
	}
	value, err := canonical.Parse(args, limits)
	if err != nil {
		return nil, &invalidError{reason: "the arguments can't be read: " + err.Error()}
	}
	if value.Kind() != canonical.Object {
		return nil, &invalidError{reason: "the arguments are no JSON object; send them as the members of one"}
	}
	if call.Rounded {
		if err := canonical.SafeRounded(value); err != nil {
			return nil, &invalidError{reason: "an integer of 2^53 or more came through float64 and may have been rounded; send it as a string, or pass the exact bytes"}
		}
	}
	if call.Occurrence < 0 {
		return nil, &invalidError{reason: "the occurrence is negative; count from 1"}
	}
	if r.value, err = r.takeOccurrence(value); err != nil {
		return nil, err
	}
	r.args = r.value.AppendJSON(make([]byte, 0, len(args)))
	r.occurrence = max(r.occurrence, 1)
	return r, nil
}

// recordedRequest is the call that an operation records, as its own principal
// made it. The binding may be nil where this process doesn't know the tool.
func recordedRequest(b *binding, e store.Entry) *request {
	return &request{tool: b, principal: Principal{e.Of.TenantName, e.Of.Subject}, taskName: Task{e.Of.Task, e.Of.Goal},
		intent: e.Of, args: e.Arguments}
}

// takeOccurrence strips the parameter by which a model asks for a meant repeat (R9).
func (r *request) takeOccurrence(v canonical.Value) (canonical.Value, error) {
	if !r.tool.contract.Repeatable {
		return v, nil
	}
	given, ok := v.Member(occurrenceParameter)
	if !ok {
		return v, nil
	}
	v, r.stripped = v.Without(occurrenceParameter), true
	if given.IsNull() || r.fromHost {
		return v, nil
	}
	n, err := strconv.Atoi(string(given.AppendJSON(nil)))
	if err != nil || n < 1 {
		return v, &invalidError{fields: []string{occurrenceParameter}, reason: occurrenceParameter + " must be null or a whole number from 1"}
	}
	r.occurrence = n
	return v, nil
}

// input is what an attempt is given of the arguments. A handler may change what
// slices, maps and pointers lead to, at a time when the next attempt runs already,
// and each attempt sends what was first accepted (R29): only the first one has
// what was decoded with the call.
func (r *request) input(attempt int) (any, error) {
	switch {
	case attempt <= 1:
		return r.in, nil
	case r.accepted != nil:
		return r.tool.decode(r.accepted)
	}
	return r.tool.decode(r.args)
}

// forTool is what the tool of a framework is given of the arguments: the exact
// bytes that were sent, unless the occurrence was among them and the tool doesn't
// take it. A framework that checks the arguments again would refuse it there,
// after the claim.
func (r *request) forTool() []byte {
	if r.stripped && !r.keeps || len(r.call.Args) == 0 {
		return r.args
	}
	return r.call.Args
}

func invalidArguments(err error) error {
	if misbehaved(err) {
		return &invalidError{reason: unreadableArguments, cause: err}
	}
	invalid := &invalidError{reason: err.Error()}
	var v *schema.ValidationError
	if errors.As(err, &v) {
		for _, p := range v.Problems {
			if p.Path != "" {
				invalid.fields = append(invalid.fields, p.Path)
			}
		}
	}
	return invalid
}

// identify computes node and fingerprint under the intent's keys and version.
func (r *request) identify(intent store.Intent) error {
	r.intent = intent
	normal, err := canonical.Normalize(r.value, r.tool.shape())
	if err != nil {
		return &invalidError{reason: err.Error()}
	}
	business := normal
	for _, path := range r.tool.ignored {
		business = business.WithoutPath(path)
	}
	r.byTenant, r.byIntent = under(intent.TenantKey), under(intent.Key)
	parts, err := r.business(business)
	if err != nil {
		return err
	}
	r.print = takeFingerprint(r.byTenant, intent.Version, r.tool.identity, parts, r.upstream)
	if r.node, err = r.findNode(business); err != nil {
		return err
	}
	// A tool may be called by itself and be a composite's step in one intent: that
	// is no change of its definition.
	r.definition = r.tool.digest
	if r.node.source == store.FromHost {
		r.definition = r.tool.definitionUnder(store.FromHost)
	}
	r.slot = r.node.slot(r.byIntent, r.tool.identity, r.occurrence)
	return nil
}

// business is what the fingerprint digests of the arguments.
func (r *request) business(arguments canonical.Value) ([]part, error) {
	parts := make([]part, 0, arguments.Len()+len(r.upstream))
	room := make([]byte, 0, len(r.args)+16*arguments.Len())
	for name, v := range arguments.Members() {
		normal, err := r.tool.normalized(name, v)
		if err != nil {
			return nil, err
		}
		before := len(room)
		room = canonical.Append(room, normal)
		parts = append(parts, part{name, room[before:len(room):len(room)]})
	}
	return parts, nil
}

// normalized applies an identity field's declared normaliser (R16). One that
// panics leaves the call without an identity.
func (b *binding) normalized(name string, v canonical.Value) (canonical.Value, error) {
	n, ok := b.contract.Normalize[name]
	if !ok || v.Kind() != canonical.String {
		return v, nil
	}
	text := v.String()
	err := apart(func() error {
		text = n.Func(text)
		return nil
	})
	if err != nil {
		return v, &invalidError{fields: []string{name}, reason: fmt.Sprintf("the identity field %s can't be normalised", name), cause: err}
	}
	if normal, ok := canonical.NewString(text); ok {
		return normal, nil
	}
	return v, nil
}

// findNode digests what identifies the side effect (R8), and the resource of an
// idempotent write (R31).
func (r *request) findNode(business canonical.Value) (node, error) {
	identity, err := r.identityValues(business)
	if err != nil {
		return node{}, err
	}
	if r.tool.contract.Class == Idempotent {
		r.resource = r.tenantDigest("settle resource", identity)
	}
	n := node{source: store.FromIdentity}
	switch {
	case r.original != nil:
		n = originalNode(r.byTenant, r.intent, r.original.Operation)
		if r.tool.contract.Class == Idempotent {
			r.resource = r.original.ResourceKey
		}
	case r.parent != nil:
		n = stepNode(r.byTenant, r.parent.steps.key, r.step)
	case r.call.Node != "":
		if err := checkName("node", r.call.Node); err != nil {
			return n, &invalidError{reason: err.Error()}
		}
		n = hostNode(r.byTenant, r.call.Node)
	case r.tool.source() == store.FromWhole:
		n = node{store.FromWhole, r.tenantDigest("settle node", r.print.whole[:])}
	case r.tool.contract.Class == Idempotent:
		// Another desired state is another operation on the same resource.
		n.digest = r.tenantDigest("settle node", r.print.whole[:])
	default:
		n.digest = r.tenantDigest("settle node", identity)
	}
	if r.tool.contract.Unique {
		r.unique = r.tenantDigest("settle unique", identity)
	}
	return n, nil
}

// operationKey derives the key of an operation that the call stands for. Until it
// has one, the request is its flow's, from then on its job's.
func (r *request) operationKey(o *store.Operation) Key {
	if r.byIntent == nil {
		return operationKeyOf(r.intent, *o)
	}
	return operationKeyUnder(r.byIntent, &r.intent, o)
}

// tenantDigest digests part of a call under the tenant's key, for the tool.
func (r *request) tenantDigest(purpose string, part []byte) store.Digest {
	r.byTenant.begin(purpose)
	r.byTenant.number(uint64(r.intent.Version))
	r.byTenant.text(r.tool.identity)
	r.byTenant.bytes(part)
	return r.byTenant.digest()
}

// identityValues is the canonical form of the identity fields, in their order.
func (r *request) identityValues(business canonical.Value) ([]byte, error) {
	var encoded []byte
	for _, path := range r.tool.identityPaths {
		v, ok := business.Path(path)
		if !ok || v.IsNull() {
			return nil, &invalidError{fields: []string{path}, reason: fmt.Sprintf("the identity field %s is missing", path)}
		}
		if business.HasTwin(path, r.tool.shape()) {
			return nil, &invalidError{fields: []string{path}, reason: fmt.Sprintf("the identity field %s is there twice, in upper and lower case; send it once, as it is written here", path)}
		}
		normal, err := r.tool.normalized(path, v)
		if err != nil {
			return nil, err
		}
		encoded = canonical.Append(encoded, normal)
	}
	return encoded, nil
}

// stored is what the ledger keeps of the arguments: as first accepted, without
// the fields that are secret (R29, R56).
func (r *request) stored() []byte {
	if !r.tool.hasSecrets() {
		return r.args
	}
	v := r.value
	for _, path := range r.tool.secret {
		v = v.WithoutPath(path)
	}
	return v.AppendJSON(nil)
}

// hasSecrets says that the stored arguments lack something, so that only the
// caller can resume the operation.
func (b *binding) hasSecrets() bool { return len(b.secret) > 0 && !b.sealed }
