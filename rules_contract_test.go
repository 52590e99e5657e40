package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// What a host may declare.

type plainArgs struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Note   string `json:"note,omitempty"`
}

// declared builds an executor with one tool of a contract, to see what is refused.
func declared(c settle.Contract, lookup bool, options ...settle.Option) error {
	t := settle.Tool[plainArgs, paid]{Name: "pay", Contract: c,
		Do: func(context.Context, settle.Op, plainArgs) (paid, error) { return paid{}, nil }}
	if lookup {
		t.Lookup = func(_ context.Context, q settle.Query[paid], _ plainArgs) (settle.Evidence, error) {
			return q.NotHappened(), nil
		}
	}
	_, err := settle.New(memory.New(), append(options, settle.WithTools(t), settle.Volatile())...)
	return err
}

func TestR02ContractsAreRefusedWhenTheExecutorIsBuilt(t *testing.T) {
	t.Parallel()
	order := []string{"order"}
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		contract settle.Contract
		lookup   bool
		options  []settle.Option
		// says are parts of the error; none means that the contract is fine.
		says []string
	}{
		"zero contract":              {says: []string{"Lookup", "NoLookup", "identity", "WholeArguments"}},
		"unsafe":                     {contract: settle.Contract{Identity: order, NoLookup: true}},
		"unsafe with lookup":         {contract: settle.Contract{Identity: order}, lookup: true},
		"unsafe without lookup":      {contract: settle.Contract{Identity: order}, says: []string{"NoLookup"}},
		"unsafe, no identity":        {contract: settle.Contract{NoLookup: true}, says: []string{"WholeArguments"}},
		"unsafe, whole arguments":    {contract: settle.Contract{NoLookup: true, WholeArguments: true}},
		"unsafe with retries":        {contract: settle.Contract{Identity: order, NoLookup: true, Attempts: 2}, says: []string{"retry policy"}},
		"unsafe with one attempt":    {contract: settle.Contract{Identity: order, NoLookup: true, Attempts: 1}, says: []string{"retry policy"}},
		"unsafe with a key window":   {contract: settle.Contract{Identity: order, NoLookup: true, KeyWindow: day}, says: []string{"KeyWindow is for keyed"}},
		"lookup and NoLookup":        {contract: settle.Contract{Identity: order, NoLookup: true}, lookup: true, says: []string{"take one of them away"}},
		"identity and whole":         {contract: settle.Contract{Identity: order, NoLookup: true, WholeArguments: true}, says: []string{"take one of them away"}},
		"keyed":                      {contract: settle.Contract{Class: settle.Keyed, KeyWindow: day, Identity: order, NoLookup: true}},
		"keyed for ever":             {contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, Identity: order, NoLookup: true}},
		"keyed without window":       {contract: settle.Contract{Class: settle.Keyed, Identity: order, NoLookup: true}, says: []string{"needs KeyWindow", "Permanent"}},
		"keyed, window too short":    {contract: settle.Contract{Class: settle.Keyed, KeyWindow: 35 * time.Second, Identity: order, NoLookup: true}, says: []string{"KeyWindow 35s is too short"}},
		"keyed, window just enough":  {contract: settle.Contract{Class: settle.Keyed, KeyWindow: 35*time.Second + 1, Identity: order, NoLookup: true}},
		"keyed, negative window":     {contract: settle.Contract{Class: settle.Keyed, KeyWindow: -day, Identity: order, NoLookup: true}, says: []string{"KeyWindow is negative"}},
		"keyed without lookup":       {contract: settle.Contract{Class: settle.Keyed, KeyWindow: day, Identity: order}, says: []string{"NoLookup"}},
		"keyed without identity":     {contract: settle.Contract{Class: settle.Keyed, KeyWindow: day, NoLookup: true}, says: []string{"WholeArguments"}},
		"idempotent":                 {contract: settle.Contract{Class: settle.Idempotent, Identity: order}},
		"idempotent, no resource":    {contract: settle.Contract{Class: settle.Idempotent}, says: []string{"name the resource"}},
		"idempotent, whole":          {contract: settle.Contract{Class: settle.Idempotent, WholeArguments: true}, says: []string{"name the resource"}},
		"read":                       {contract: settle.Contract{Class: settle.Read}},
		"no such class":              {contract: settle.Contract{Class: 99, Identity: order}, says: []string{"class 99"}},
		"unique":                     {contract: settle.Contract{Unique: true, Identity: order, NoLookup: true}},
		"unique without identity":    {contract: settle.Contract{Unique: true, WholeArguments: true, NoLookup: true}, says: []string{"Unique needs identity"}},
		"unique read":                {contract: settle.Contract{Class: settle.Read, Unique: true, Identity: order}, says: []string{"Unique needs identity"}},
		"duplicates":                 {contract: settle.Contract{AcceptDuplicates: "a second reminder is fine", Identity: order, NoLookup: true}},
		"duplicates of a keyed":      {contract: settle.Contract{Class: settle.Keyed, KeyWindow: day, AcceptDuplicates: "why", Identity: order, NoLookup: true}, says: []string{"AcceptDuplicates is for unsafe"}},
		"escalates too early":        {contract: settle.Contract{Identity: order, NoLookup: true, EscalateAfter: 15 * time.Second}, says: []string{"EscalateAfter 15s"}},
		"escalates in time":          {contract: settle.Contract{Identity: order, NoLookup: true, EscalateAfter: 15*time.Second + 1}},
		"short retention":            {contract: settle.Contract{Identity: order, NoLookup: true, Retention: day}, says: []string{"Retention 24h0m0s"}},
		"retention under the window": {contract: settle.Contract{Class: settle.Keyed, KeyWindow: 60 * day, Identity: order, NoLookup: true, Retention: 59 * day}, says: []string{"Retention"}},
		"retention, long redelivery": {contract: settle.Contract{Identity: order, NoLookup: true, Retention: 30 * day}, options: []settle.Option{settle.WithRedelivery(31 * day)}, says: []string{"Retention"}},
		"default retention grows":    {contract: settle.Contract{Class: settle.Keyed, KeyWindow: 60 * day, Identity: order, NoLookup: true}},
		"three deciders":             {contract: settle.Contract{Identity: order, NoLookup: true, Deciders: 3}, says: []string{"Deciders is 3"}},
		"negative timeout":           {contract: settle.Contract{Identity: order, NoLookup: true, Timeout: -1}, says: []string{"Timeout is negative"}},
		"negative attempts":          {contract: settle.Contract{Class: settle.Keyed, KeyWindow: day, Identity: order, NoLookup: true, Attempts: -1}, says: []string{"Attempts is negative"}},
		"negative visibility":        {contract: settle.Contract{Identity: order, NoLookup: true, VisibilityDelay: -2}, says: []string{"VisibilityDelay is negative"}},
		"no visibility delay":        {contract: settle.Contract{Identity: order, NoLookup: true, VisibilityDelay: settle.Immediately}},
		"timeout without an end":     {contract: settle.Contract{Identity: order, NoLookup: true, Timeout: math.MaxInt64}, says: []string{"Timeout"}},
		"visibility without an end":  {contract: settle.Contract{Identity: order, NoLookup: true, VisibilityDelay: math.MaxInt64}, says: []string{"VisibilityDelay"}},
		"stale never":                {contract: settle.Contract{Identity: order, NoLookup: true, StaleAfter: math.MaxInt64}, says: []string{"StaleAfter"}},
		"escalates never":            {contract: settle.Contract{Identity: order, NoLookup: true, EscalateAfter: math.MaxInt64}, says: []string{"EscalateAfter"}},
		"a day's timeout":            {contract: settle.Contract{Identity: order, NoLookup: true, Timeout: day}},
		"no such field":              {contract: settle.Contract{Identity: []string{"oder"}, NoLookup: true}, says: []string{`"oder"`, "order, amount, note"}},
		"no such ignored field":      {contract: settle.Contract{Identity: order, Ignore: []string{"nots"}, NoLookup: true}, says: []string{`"nots"`}},
		"no such secret":             {contract: settle.Contract{Identity: order, Secret: []string{"card.number"}, NoLookup: true}, says: []string{`"card.number"`}},
		"optional identity":          {contract: settle.Contract{Identity: []string{"note"}, NoLookup: true}, says: []string{"optional"}},
		"identity and ignored":       {contract: settle.Contract{Identity: order, Ignore: order, NoLookup: true}, says: []string{"identity and ignored"}},
		"empty path":                 {contract: settle.Contract{Identity: []string{""}, NoLookup: true}, says: []string{"no field"}},
		"guidance that is no text":   {contract: settle.Contract{Identity: order, NoLookup: true, Guidance: "ask\xff"}, says: []string{"Guidance"}},
		"guidance with a NUL":        {contract: settle.Contract{Identity: order, NoLookup: true, Guidance: "ask\x00"}, says: []string{"Guidance"}},
		"bad result path":            {contract: settle.Contract{Identity: order, NoLookup: true, Resource: "a..b"}, says: []string{"Resource"}},
		"normaliser elsewhere":       {contract: settle.Contract{Identity: order, NoLookup: true, Normalize: map[string]settle.Normalizer{"amount": {Name: "x", Func: strings.ToLower}}}, says: []string{"normaliser"}},
		"normaliser without a name":  {contract: settle.Contract{Identity: order, NoLookup: true, Normalize: map[string]settle.Normalizer{"order": {Func: strings.ToLower}}}, says: []string{"Name and a Func"}},
		"all at once":                {contract: settle.Contract{Class: settle.Keyed, Attempts: -1, Deciders: 7}, says: []string{"KeyWindow", "Attempts", "Deciders", "WholeArguments", "NoLookup"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := declared(tc.contract, tc.lookup, tc.options...)
			if len(tc.says) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var wrong *settle.ToolError
			if !errors.As(err, &wrong) || wrong.Tool != "pay" {
				t.Fatalf("got %v, want a ToolError of pay", err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error doesn't say %q: %v", part, err)
				}
			}
		})
	}
}

func TestR02ARefusedToolLeavesNoExecutor(t *testing.T) {
	t.Parallel()
	bad := settle.Tool[plainArgs, paid]{Name: "pay", Do: func(context.Context, settle.Op, plainArgs) (paid, error) { return paid{}, nil }}
	x, err := settle.New(memory.New(), settle.WithTools(bad), settle.Volatile())
	if err == nil || x != nil {
		t.Errorf("got an executor %v and the error %v; a host that overlooks the error must not run on", x, err)
	}
	if _, err := settle.New(nil); err == nil {
		t.Error("an executor without a ledger was built")
	}
}

type misspelt struct {
	Order string `json:"order" settle:"identiy"`
}
type listed struct {
	Order string `json:"order" settle:"identity"`
	Inner struct {
		Secret string `json:"secret" settle:"identity"`
	} `json:"inner"`
}
type twoResources struct {
	ID    string `json:"id" settle:"resource"`
	Other string `json:"other" settle:"resource"`
}

func TestR02TypesAreRefusedWhenTheExecutorIsBuilt(t *testing.T) {
	t.Parallel()
	whole := settle.Contract{WholeArguments: true, NoLookup: true}
	for name, tool := range map[string]settle.AnyTool{
		"misspelt tag":     settle.Tool[misspelt, paid]{Name: "x", Contract: whole, Do: does[misspelt, paid]()},
		"nested identity":  settle.Tool[listed, paid]{Name: "x", Contract: settle.Contract{NoLookup: true}, Do: does[listed, paid]()},
		"two resources":    settle.Tool[sayArgs, twoResources]{Name: "x", Contract: whole, Do: does[sayArgs, twoResources]()},
		"raw, no schema":   settle.RawTool{Name: "x", Contract: whole, Do: does[json.RawMessage, json.RawMessage]()},
		"raw, bad schema":  settle.RawTool{Name: "x", Schema: json.RawMessage(`{"type":7}`), Contract: whole, Do: does[json.RawMessage, json.RawMessage]()},
		"typed and schema": settle.Tool[sayArgs, paid]{Name: "x", Schema: json.RawMessage(`{}`), Contract: whole, Do: does[sayArgs, paid]()},
		"a channel":        settle.Tool[struct{ C chan int }, paid]{Name: "x", Contract: whole, Do: does[struct{ C chan int }, paid]()},
		"no Do":            settle.Tool[sayArgs, paid]{Name: "x", Contract: whole},
		"no name":          settle.Tool[sayArgs, paid]{Contract: whole, Do: does[sayArgs, paid]()},
		"steps of no composite": settle.Tool[sayArgs, paid]{Name: "x", Contract: whole, Do: does[sayArgs, paid](),
			Steps: []settle.AnyTool{settle.Tool[sayArgs, paid]{Name: "y", Contract: whole, Do: does[sayArgs, paid]()}}},
		"a bad step": settle.Tool[sayArgs, paid]{Name: "x", Contract: settle.Contract{Class: settle.Composite}, Do: does[sayArgs, paid](),
			Steps: []settle.AnyTool{settle.Tool[sayArgs, paid]{Name: "y", Do: does[sayArgs, paid]()}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
			if !errors.As(err, new(*settle.ToolError)) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := settle.New(memory.New(), settle.WithGuarded(settle.Tool[sayArgs, paid]{Name: "x", Contract: whole, Do: does[sayArgs, paid]()}), settle.Volatile()); !errors.As(err, new(*settle.ToolError)) {
		t.Errorf("a tool with its own Do was accepted as guarded: %v", err)
	}
}

func does[In, Out any]() func(context.Context, settle.Op, In) (Out, error) {
	return func(context.Context, settle.Op, In) (Out, error) {
		var zero Out
		return zero, nil
	}
}

func TestR02EveryBadToolIsReported(t *testing.T) {
	t.Parallel()
	bad := func(name string) settle.AnyTool {
		return settle.Tool[sayArgs, paid]{Name: name, Do: does[sayArgs, paid]()}
	}
	_, err := settle.New(memory.New(), settle.WithTools(bad("one"), bad("two")), settle.WithGuarded(bad("three")), settle.Volatile())
	for _, name := range []string{`"one"`, `"two"`, `"three"`} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error doesn't name %s: %v", name, err)
		}
	}
}

func TestR03ANameBelongsToOneTool(t *testing.T) {
	t.Parallel()
	named := func(name string, formerly ...string) settle.AnyTool {
		return settle.Tool[sayArgs, paid]{Name: name, Formerly: formerly, Contract: settle.Contract{WholeArguments: true, NoLookup: true}, Do: does[sayArgs, paid]()}
	}
	for name, tools := range map[string][]settle.AnyTool{
		"same name":              {named("a"), named("a")},
		"a former name taken":    {named("b", "a"), named("a")},
		"a name formerly taken":  {named("a"), named("b", "a")},
		"equal former names":     {named("b", "a"), named("c", "a")},
		"equal later names":      {named("c", "a", "b"), named("d", "b")},
		"control character":      {named("a\x00b")},
		"not normalised":         {named("cafe\u0301")},
		"too long":               {named(strings.Repeat("n", 129))},
		"invalid UTF-8":          {named("a\xff")},
		"a former name that bad": {named("a", "b\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := settle.New(memory.New(), settle.WithTools(tools...), settle.Volatile()); !errors.As(err, new(*settle.ToolError)) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := settle.New(memory.New(), settle.WithTools(named("c", "a", "b"), named("d")), settle.Volatile()); err != nil {
		t.Errorf("a renamed tool was refused: %v", err)
	}
}

func TestR03ARenamedToolKeepsItsOperations(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	old := g.executor(p.tool("pay"))
	first := g.want(old, payCall("A-1", 5), settle.StatusCompleted)

	renamed := p.tool("transfer")
	renamed.Formerly = []string{"pay"}
	x := g.executor(renamed)
	call := payCall("A-1", 5)
	call.Tool = "transfer"
	again := g.want(x, call, settle.StatusCompleted)
	if !again.Replayed || again.Operation != first.Operation {
		t.Errorf("under its new name it is %+v", again)
	}
	// A model that remembers the old name means the same tool.
	if again := g.want(x, payCall("A-1", 5), settle.StatusCompleted); !again.Replayed {
		t.Error("under its old name it ran again")
	}
	g.did(p, 1)

	another := g.executor(p.tool("transfer"))
	if out := g.want(another, call, settle.StatusCompleted); out.Replayed {
		t.Error("a tool that doesn't list its former name is another tool")
	}
	g.did(p, 2)
}

func TestR03AnotherClassThanAtTheClaimCountsAsUnsafe(t *testing.T) {
	contracts := map[string]settle.Contract{"unsafe": unsafeContract(), "keyed": keyedContract(), "idempotent": {Class: settle.Idempotent}}
	for before, then := range contracts {
		for after, now := range contracts {
			t.Run(before+", then "+after, func(t *testing.T) {
				g := onFile(t)
				p := &pay{contract: then}
				// The attempt is in doubt, and has others left.
				g.crashed(p.tool(), payCall("A-1", 5))
				entered := p.entered.Load()
				p.contract = now
				x := g.executor(p.tool())
				g.forward(time.Minute)
				g.recover(x)
				out := g.do(g.ctx, x, payCall("A-1", 5))
				again := p.entered.Load() > entered
				if want := before == after && before != "unsafe"; again != want {
					t.Errorf("it was repeated: %v; the call got %s", again, out.Status)
				}
			})
		}
	}
}

func TestR03OfTwoDurationsTheSaferHolds(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{VisibilityDelay: time.Hour}}
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("connection reset")
	}
	out := g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusUnknown)
	p.contract.VisibilityDelay = settle.Immediately
	shorter := g.executor(p.tool())
	g.forward(30 * time.Minute)
	g.recover(shorter)
	if row := g.row(out); row.State != store.Unknown {
		t.Errorf("the recorded delay of 1 h was forgotten: it is %s", row.State)
	}
	p.contract.VisibilityDelay = 3 * time.Hour
	longer := g.executor(p.tool())
	g.forward(time.Hour)
	g.recover(longer)
	if row := g.row(out); row.State != store.Unknown {
		t.Errorf("today's delay of 3 h was not heeded: it is %s", row.State)
	}
	g.forward(3 * time.Hour)
	g.recover(longer)
	if row := g.row(out); row.State != store.Retryable {
		t.Errorf("past both delays it is %s", row.State)
	}
}

// A corrected call under a changed definition finds the refused record in its
// slot and must not go round in circles.
func TestR03AChangedIdentityIsHeldBesideARefusedRecord(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.contract.Normalize = map[string]settle.Normalizer{"order": {Name: "upper-1", Func: strings.ToUpper}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, settle.Rejected(errors.New("too much"))
	}
	g.want(g.executor(p.tool()), payCall("A-1", 500), settle.StatusFailed)
	p.contract.Normalize = map[string]settle.Normalizer{"order": {Name: "upper-2", Func: strings.ToUpper}}
	after := g.executor(p.tool())
	g.want(after, payCall("A-1", 5), settle.StatusHeld)
	g.want(after, payCall("A-1", 500), settle.StatusFailed)
}

func TestR04NothingButTheHostDecidesAClass(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	for _, name := range []string{"get_balance", "read_only_list", "idempotent_put", "GET /orders", "list"} {
		call := rawCall(name, `{"idempotentHint":true,"readOnlyHint":true}`)
		call.Schema = json.RawMessage(`{"type":"object","annotations":{"readOnlyHint":true,"idempotentHint":true}}`)
		_, out, err := settle.Around(g.ctx, x, call, func(context.Context) (string, error) { return "", errors.New("connection reset") })
		if err != nil {
			t.Fatal(err)
		}
		g.wantStatus(out, settle.StatusUnknown)
		if class := g.row(out).Class; class != settle.Unsafe {
			t.Errorf("%s was claimed as %s", name, class)
		}
	}
}

func TestR05AcceptedDuplicatesAreRetriedPastTheMomentAndNamed(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, AcceptDuplicates: "a second reminder does no harm"}}
	lost := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		paid := act()
		if lost {
			return paid, errors.New("connection reset")
		}
		return paid, nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.want(x, payCall("A-1", 5), settle.StatusUnknown) // not before the moment
	g.did(p, 1)
	g.forward(time.Minute)
	g.recover(x) // no worker does it by itself
	g.did(p, 1)
	lost = false
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.did(p, 2)
	if out.Duplicates != 1 || !strings.Contains(out.ForModel(), "duplicate") {
		t.Errorf("the outcome doesn't name the duplicate: %d, %s", out.Duplicates, out.ForModel())
	}
	kinds := strings.Join(g.kinds(g.row(out)), " ")
	if !strings.Contains(kinds, "duplicate_accepted") {
		t.Errorf("the journal doesn't name the duplicate: %s", kinds)
	}
}

func TestR05NothingElseLoosensAClass(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		return act(), errors.New("connection reset")
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for range 3 {
		g.forward(time.Hour)
		g.recover(x)
		g.want(x, payCall("A-1", 5), settle.StatusManual)
	}
	g.did(p, 1)
}
