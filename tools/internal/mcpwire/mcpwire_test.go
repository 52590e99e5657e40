package mcpwire

import (
	"encoding/json"
	"testing"

	"github.com/settle-go/settle"
)

// S26: over all combinations of hints, nil ones included, only clear words count,
// and none makes a tool Keyed.
func TestS26HintsOfATrustedServer(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	all := []*bool{nil, &yes, &no}
	counted := map[settle.Class]int{}
	for _, readOnly := range all {
		for _, destructive := range all {
			for _, idempotent := range all {
				for _, openWorld := range all {
					got := ClassOf(Hints{readOnly, destructive, idempotent, openWorld})
					want := settle.Unsafe
					if readOnly == &yes && destructive != &yes {
						want = settle.Read
					}
					if readOnly != &yes && idempotent == &yes {
						want = settle.Idempotent
					}
					if got != want {
						t.Errorf("read-only %v, destructive %v, idempotent %v, open world %v: got %v, want %v",
							word(readOnly), word(destructive), word(idempotent), word(openWorld), got, want)
					}
					counted[got]++
				}
			}
		}
	}
	if counted[settle.Read] != 18 || counted[settle.Idempotent] != 18 || counted[settle.Unsafe] != 45 || len(counted) != 3 {
		t.Errorf("the classes are %v", counted)
	}
}

func word(b *bool) string {
	switch {
	case b == nil:
		return "not given"
	case *b:
		return "yes"
	}
	return "no"
}

func TestHintsOfAClassAreWhatTheyAreWorth(t *testing.T) {
	t.Parallel()
	for class, want := range map[settle.Class]settle.Class{
		settle.Read: settle.Read, settle.Idempotent: settle.Idempotent,
		settle.Keyed: settle.Unsafe, settle.Unsafe: settle.Unsafe, settle.Composite: settle.Unsafe,
	} {
		readOnly, idempotent := HintsOf(class)
		if got := ClassOf(Hints{ReadOnly: &readOnly, Idempotent: &idempotent}); got != want {
			t.Errorf("%v comes back as %v, want %v", class, got, want)
		}
	}
}

func TestR47AResultIsStoredAsBusinessAndNothingOfItIsLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ result, stored, loaded string }{
		"typed":             {`{"content":[{"type":"text","text":"{\"id\": 9007199254740993}"}],"structuredContent":{"id":9007199254740993},"resultType":"complete"}`, `{"id":9007199254740993}`, `{"content":[{"text":"{\"id\":9007199254740993}","type":"text"}],"structuredContent":{"id":9007199254740993}}`},
		"structured only":   {`{"content":[],"structuredContent":{"id":1}}`, `{"id":1}`, `{"content":[{"text":"{\"id\":1}","type":"text"}],"structuredContent":{"id":1}}`},
		"other words":       {`{"content":[{"type":"text","text":"done"}],"structuredContent":{"id":1}}`, `{"content":[{"type":"text","text":"done"}],"structuredContent":{"id":1}}`, ``},
		"another number":    {`{"content":[{"type":"text","text":"{\"id\":9007199254740992}"}],"structuredContent":{"id":9007199254740993}}`, `{"content":[{"type":"text","text":"{\"id\":9007199254740992}"}],"structuredContent":{"id":9007199254740993}}`, ``},
		"a rounded number":  {`{"content":[{"type":"text","text":"{\"id\": 9007199254740993}"}],"structuredContent":{"id":9007199254740992}}`, `{"id":9007199254740993}`, `{"content":[{"text":"{\"id\":9007199254740993}","type":"text"}],"structuredContent":{"id":9007199254740993}}`},
		"another form":      {`{"content":[{"type":"text","text":"{\"sum\": 42.10}"}],"structuredContent":{"sum":42.1}}`, `{"sum":42.10}`, `{"content":[{"text":"{\"sum\":42.10}","type":"text"}],"structuredContent":{"sum":42.10}}`},
		"an annotated text": {`{"content":[{"type":"text","text":"{}","annotations":{"priority":1}}],"structuredContent":{}}`, `{"content":[{"type":"text","text":"{}","annotations":{"priority":1}}],"structuredContent":{}}`, ``},
		"a misleading name": {`{"content":[],"structuredContent":{"content":"x"}}`, `{"content":[],"structuredContent":{"content":"x"}}`, ``},
		"the wire's meta":   {`{"_meta":{"io.modelcontextprotocol/serverInfo":{},"io.github.settle-go/outcome":{}},"content":[],"structuredContent":{"id":1}}`, `{"id":1}`, `{"content":[{"text":"{\"id\":1}","type":"text"}],"structuredContent":{"id":1}}`},
		"with meta":         {`{"_meta":{"a":1},"content":[],"structuredContent":{"id":1}}`, `{"_meta":{"a":1},"content":[],"structuredContent":{"id":1}}`, ``},
		"a list":            {`{"content":[],"structuredContent":[1]}`, `{"content":[],"structuredContent":[1]}`, ``},
		"text":              {`{"content":[{"type":"text","text":"done"}]}`, `{"content":[{"type":"text","text":"done"}]}`, ``},
		"nothing":           {`null`, `null`, `{"content":[]}`},
	} {
		stored, err := Stored([]byte(tc.result))
		if err != nil || string(stored) != tc.stored {
			t.Errorf("%s: stored is %s, %v", name, stored, err)
		}
		if tc.loaded == "" {
			tc.loaded = tc.stored
		}
		loaded, err := Loaded(stored)
		if err != nil || string(loaded) != tc.loaded {
			t.Errorf("%s: loaded is %s, %v", name, loaded, err)
		}
	}
}

// What a lookup or a person gave is no result of MCP's.
func TestResultsOfOthersAreLoaded(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		`"booked"`: `{"content":[{"text":"booked","type":"text"}]}`,
		`7`:        `{"content":[{"text":"7","type":"text"}]}`,
		`[1]`:      `{"content":[{"text":"[1]","type":"text"}]}`,
	} {
		if loaded, err := Loaded([]byte(stored)); err != nil || string(loaded) != want {
			t.Errorf("%s: loaded is %s, %v", stored, loaded, err)
		}
	}
}

func TestArgumentsSayWhetherTheyMayBeRounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given   any
		want    string
		rounded bool
	}{
		"bytes":   {json.RawMessage(`{"n":9007199254740993}`), `{"n":9007199254740993}`, false},
		"decoded": {map[string]any{"list": []any{map[string]any{"n": 1.0}}}, `{"list":[{"n":1}]}`, true},
		"exact":   {map[string]any{"n": int64(9007199254740993), "m": json.Number("1"), "s": []any{"a", nil, true}}, `{"m":1,"n":9007199254740993,"s":["a",null,true]}`, false},
		"a type":  {struct{ N float64 }{1}, `{"N":1}`, true},
		"nothing": {nil, `{}`, false},
	} {
		args, rounded, err := Arguments(tc.given)
		if err != nil || string(args) != tc.want || rounded != tc.rounded {
			t.Errorf("%s: got %s, %v, %v", name, args, rounded, err)
		}
	}
	if _, _, err := Arguments(func() {}); err == nil {
		t.Error("a function is no argument")
	}
}

func TestWhatIsSentStaysTheCallers(t *testing.T) {
	t.Parallel()
	mine := map[string]any{"progressToken": 1}
	sent := WithTask(mine, settle.Task{ID: "a", Goal: "b"})
	if task, ok := TaskOf(sent); !ok || task.ID != "a" || task.Goal != "b" || len(mine) != 1 || sent["progressToken"] != 1 {
		t.Errorf("got %v from %v", sent, mine)
	}
}

func TestASchemaIsWidenedWhereThatCannotBreakIt(t *testing.T) {
	t.Parallel()
	for schema, widened := range map[string]bool{
		`{"type":"object"}`: true, `{"type":"array","items":[{"type":"string"}]}`: true, `true`: true,
		`{"$ref":"#/$defs/a"}`: false, `{"type":"array","items":[{"$dynamicRef":"#a"}]}`: false, `{"$id":"x"}`: false, `{`: false,
	} {
		wide := Widen(json.RawMessage(schema))
		if (wide != nil) != widened || wide != nil && !json.Valid(wide) {
			t.Errorf("%s becomes %s", schema, wide)
		}
	}
}
