package settlemcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

func TestAResultPassesUntouchedAndAReplaySaysThatItIsOne(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		session := w.connect(l, nil)
		first := w.call(session, "book", `{"seat":1}`)
		if texts(first) != `{"id":"b1"}` || len(first.Meta) > 1 || first.Meta["io.github.settle-go/outcome"] != nil {
			t.Errorf("the first run came to %q, %v", texts(first), first.Meta)
		}
		w.wantReplay(w.call(session, "book", `{"seat":1.0}`), `{"id":"b1"}`)
		w.wantActs("book", 1)

		w.restart(settle.WithGuarded(seat))
		w.addBook(bookIt)
		session = w.connect(l, nil)
		w.wantReplay(w.call(session, "book", `{ "seat": 1 }`), `{"id":"b1"}`)
		w.wantActs("book", 1)
	})
}

// What the ledger keeps is the business result, in which a contract finds the
// resource (R47).
func TestR47TheBusinessResultIsRecorded(t *testing.T) {
	t.Parallel()
	contract := seat
	contract.Contract.Resource = "id"
	w := newWorld(t, settle.WithGuarded(contract))
	w.addBook(bookIt)
	w.call(w.connect(links["http"], nil), "book", `{"seat":1}`)
	rows := w.rows()
	if len(rows) != 1 || rows[0].Resource != "b1" || string(rows[0].Result) != `{"id":"b1"}` {
		t.Errorf("the ledger has %d rows, resource %q, result %s", len(rows), rows[0].Resource, rows[0].Result)
	}
}

// A result is more than its structured content; nothing of it is lost.
func TestAReplayHasAllBlocks(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Meta: mcp.Meta{"example.com/x": "y"}, StructuredContent: map[string]any{"content": "<b>"},
					Content: []mcp.Content{&mcp.TextContent{Text: "booked"}, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}}, nil
			})
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1}`)
		again := w.call(session, "book", `{"seat":1}`)
		w.wantReplay(again, `{"content":"\u003cb\u003e"}`)
		if len(again.Content) != 3 || again.Content[1].(*mcp.TextContent).Text != "booked" ||
			string(again.Content[2].(*mcp.ImageContent).Data) != "png" || again.Meta["example.com/x"] != "y" {
			t.Errorf("the replay has %d blocks, %v", len(again.Content), again.Meta)
		}
	})
}

func TestAnOutcomeThatIsNoResultIsAnOrdinaryResult(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want settle.Status
	}{
		"unknown":  {errors.New("connection reset"), settle.StatusUnknown},
		"not sent": {settle.NotSent(errors.New("no route")), settle.StatusNotDone},
		"rejected": {settle.Rejected(errors.New("sold out")), settle.StatusFailed},
		"refused":  {&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such seat"}, settle.StatusFailed},
		"internal": {&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "oh"}, settle.StatusUnknown},
		// Whose error it is that a handler wraps, nobody knows.
		"wrapped": {errors.Join(errors.New("ask the user"), &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}), settle.StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			everyLink(t, func(t *testing.T, l link) {
				w := newWorld(t, settle.WithGuarded(seat))
				w.addBook(func(context.Context, *mcp.CallToolRequest, bookArgs) (*mcp.CallToolResult, booked, error) {
					return nil, booked{}, tc.err
				})
				w.server.AddTool(&mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object"}`)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, tc.err })
				session := w.connect(l, nil)
				w.wantAnswer(w.call(session, "book", `{"seat":1}`), tc.want)
				w.wantAnswer(w.call(session, "raw", `{}`), tc.want)
			})
		})
	}
}

// A tool's own word that it went wrong proves nothing, unless its contract says so.
func TestR27AnErrorResultIsUnknownUnlessTheContractClassifiesIt(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		sure := settle.RawTool{Name: "sure", Contract: settle.Contract{WholeArguments: true, NoLookup: true, Classify: func(err error) error {
			var result *settlemcp.ResultError
			if errors.As(err, &result) && strings.HasPrefix(result.Error(), "full") {
				return settle.Rejected(err)
			}
			return err
		}}}
		read := settle.RawTool{Name: "read", Contract: settle.Contract{Class: settle.Read}}
		w := newWorld(t, settle.WithGuarded(sure, read))
		for _, name := range []string{"sure", "unsure", "read"} {
			w.server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					w.act(name)
					return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "full"}}}, nil
				})
		}
		session := w.connect(l, nil)
		w.wantAnswer(w.call(session, "sure", `{}`), settle.StatusFailed)
		w.wantAnswer(w.call(session, "unsure", `{}`), settle.StatusUnknown)
		if r := w.call(session, "read", `{}`); !r.IsError || texts(r) != "full" {
			t.Errorf("the error of a tool that only reads came to %q, %v", texts(r), r.IsError)
		}
		w.wantActs("read", 1)
	})
}

// The SDK makes a protocol error of it, which the model never sees.
func TestAnOutputThatDoesNotFitItsSchemaIsUnknownAndNeverRunsAgain(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		mcp.AddTool(w.server, &mcp.Tool{Name: "book", OutputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"maxLength":1}}}`)},
			func(context.Context, *mcp.CallToolRequest, bookArgs) (*mcp.CallToolResult, booked, error) {
				w.act("book")
				return nil, booked{"b1"}, nil
			})
		session := w.connect(l, nil)
		for range 3 {
			r := w.call(session, "book", `{"seat":1}`)
			if s := r.Meta["io.github.settle-go/outcome"].(map[string]any)["status"]; s != "unknown" && s != "manual" {
				t.Errorf("got %q", texts(r))
			}
		}
		w.wantActs("book", 1)
	})
}

func TestArgumentsThatTheServerWillRefuseAreNotClaimed(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		session := w.connect(l, nil)
		for _, args := range []string{`{}`, `{"seat":"one"}`, `{"seat":1,"row":2}`, `{"seat":1,"seat":2}`} {
			w.wantAnswer(w.call(session, "book", args), settle.StatusInvalidArguments)
		}
		if rows := w.rows(); len(rows) != 0 {
			t.Errorf("the ledger has %d rows", len(rows))
		}
		w.wantActs("book", 0)
	})
}

func TestANameThatTheServerDoesNotKnowIsNotClaimed(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		session := w.connect(l, nil)
		for _, name := range []string{"made_up", "book"} {
			_, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(`{"seat":1}`)})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || strings.Contains(wire.Message, name) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if rows := w.rows(); len(rows) != 0 {
			t.Errorf("the ledger has %d rows", len(rows))
		}
	})
}

// R18: what is recorded answers, though the server has the tool no more.
func TestR18ATakenAwayToolsRecordAnswers(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1}`)
		w.server.RemoveTools("book")
		w.wantReplay(w.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("book", 1)
	})
}

// R3: a tool that lists its former name is the same tool.
func TestR3ARenamedToolIsStillTheSame(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		w.call(w.connect(l, nil), "book", `{"seat":1}`)

		renamed := seat
		renamed.Name, renamed.Formerly = "reserve", []string{"book"}
		w.restart(settle.WithGuarded(renamed))
		mcp.AddTool(w.server, &mcp.Tool{Name: "reserve"}, func(ctx context.Context, req *mcp.CallToolRequest, in bookArgs) (*mcp.CallToolResult, booked, error) {
			w.act("book")
			return bookIt(ctx, req, in)
		})
		session := w.connect(l, nil)
		w.wantReplay(w.call(session, "reserve", `{"seat":1}`), `{"id":"b1"}`)
		w.wantReplay(w.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("book", 1)
	})
}

func TestNumbersAreNotRounded(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(settle.RawTool{Name: "book", Contract: seat.Contract}))
		var got []string
		w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object","properties":{"seat":{"type":"integer"}},"required":["seat"]}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got = append(got, string(req.Params.Arguments))
				return &mcp.CallToolResult{}, nil
			})
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":9007199254740993}`)
		w.call(session, "book", `{"seat":9007199254740992}`)
		if len(got) != 2 || got[0] != `{"seat":9007199254740993}` {
			t.Errorf("the tool saw %q", got)
		}
	})
}

// The SDK's own decoding would round what a replay tells.
func TestAReplayIsNotRounded(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{StructuredContent: map[string]any{"id": int64(1<<53 + 1)}}, nil
			})
		var sent []string
		w.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if r, ok := result.(*mcp.CallToolResult); ok {
					encoded, _ := json.Marshal(r.StructuredContent)
					sent = append(sent, string(encoded))
				}
				return result, err
			}
		})
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1}`)
		w.call(session, "book", `{"seat":1}`)
		if want := `{"id":9007199254740993}`; len(sent) != 2 || sent[0] != want || sent[1] != want {
			t.Errorf("the server sent %q", sent)
		}
	})
}

// A tool without a contract is Unsafe, and all of its arguments identify a call (R1).
func TestR1AToolWithoutAContractIsGuarded(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t)
		w.addBook(bookIt)
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1,"note":"a"}`)
		w.wantReplay(w.call(session, "book", `{"note":"a","seat":1}`), `{"id":"b1"}`)
		w.call(session, "book", `{"seat":1,"note":"b"}`)
		w.wantActs("book", 2)
	})
}

func TestConflictAndHeldAreOrdinaryResults(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		mcp.AddTool(w.server, &mcp.Tool{Name: "mail"}, func(context.Context, *mcp.CallToolRequest, bookArgs) (*mcp.CallToolResult, any, error) {
			w.act("mail")
			return nil, nil, errors.New("reset")
		})
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1,"note":"a"}`)
		w.wantAnswer(w.call(session, "book", `{"seat":1,"note":"b"}`), settle.StatusConflict)
		w.wantActs("book", 1)
		w.wantAnswer(w.call(session, "mail", `{"seat":1}`), settle.StatusUnknown)
		w.wantAnswer(w.call(session, "mail", `{"seat":2}`), settle.StatusHeld)
		w.wantActs("mail", 1)
	})
}

// Clients check structured content: what stands in a result's place has to fit.
func TestAnAnswerFitsTheOutputSchemaThatTheClientIsShown(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		mcp.AddTool(w.server, &mcp.Tool{Name: "points", OutputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`)},
			func(context.Context, *mcp.CallToolRequest, bookArgs) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
		session := w.connect(l, nil)
		list, err := session.ListTools(w.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			shown, err := json.Marshal(tool.OutputSchema)
			if err != nil {
				t.Fatal(err)
			}
			if tool.Name == "points" && string(shown) != "null" {
				t.Errorf("a schema that points into itself is shown as %s", shown)
			}
			if tool.Name == "book" && (!fits(t, shown, `{"id":"b1"}`) || !fits(t, shown, `{"status":"unknown","message":"…"}`) || fits(t, shown, `{"id":7}`)) {
				t.Errorf("the client is shown %s", shown)
			}
		}
	})
}

// A contract with a schema of its own decides what fits; the server still has no
// such tool.
func TestATypedContractWhoseToolIsGoneDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(settle.Tool[bookArgs, booked]{Name: "book", Contract: seat.Contract}))
	w.wantAnswer(w.call(w.connect(links["http"], nil), "book", `{"seat":1}`), settle.StatusNotDone)
}

// The list is read as it is now, all of its pages.
func TestTheServersListIsReadAsItIsNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(seat))
	w.server = mcp.NewServer(&mcp.Implementation{Name: "bookings", Version: "v1"}, &mcp.ServerOptions{PageSize: 1})
	w.guarded(settlemcp.Options{Tenant: caller.Tenant})
	run := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act("book")
		return &mcp.CallToolResult{}, nil
	}
	w.server.AddTool(&mcp.Tool{Name: "another", InputSchema: json.RawMessage(`{"type":"object"}`)}, run)
	w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object","required":["row"]}`)}, run)
	session := w.connect(links["http"], nil)
	w.wantAnswer(w.call(session, "book", `{"seat":1}`), settle.StatusInvalidArguments)
	w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)}, run)
	if r := w.call(session, "book", `{"seat":1}`); r.IsError {
		t.Errorf("got %q", texts(r))
	}
	w.wantActs("book", 1)
}

// From 2026-07-28 on each result says that it is a final one; before, none does.
func TestAnAnswerSaysThatItIsFinalWhereTheProtocolWantsIt(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1}`)
		for name, args := range map[string]string{"replay": `{"seat":1}`, "answer": `{"seat":"one"}`} {
			encoded, err := json.Marshal(w.call(session, "book", args))
			if err != nil {
				t.Fatal(err)
			}
			if final := strings.Contains(string(encoded), `"resultType":"complete"`); final == l.old {
				t.Errorf("%s: got %s", name, encoded)
			}
		}
	})
}

// The SDK checks a typed tool's arguments once more, after the claim.
func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		again := seat
		again.Contract.Repeatable = true
		w := newWorld(t, settle.WithGuarded(again))
		w.addBook(bookIt)
		session := w.connect(l, nil)
		w.call(session, "book", `{"seat":1,"settle_occurrence":null}`)
		if second := w.call(session, "book", `{"seat":1,"settle_occurrence":2}`); texts(second) != `{"id":"b1"}` {
			t.Errorf("the second booking came to %q", texts(second))
		}
		w.wantActs("book", 2)
	})
}
