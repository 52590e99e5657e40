// Example guards the tools of a server that is written with mcp-go: one whose
// client gives up and asks again, one that asks its user first, and one of the
// executor's own.
//
//	go run ./tools/mcpgo/example
//
// It needs no key and no service: the server, and the payment service behind it,
// listen on loopback; the ledger is a file in a temporary folder.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store/sqlite"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-mcpgo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	pay := farside.NewPayments()
	defer pay.Close()
	gate := farside.NewGate()
	pay.Writes.Next(farside.Late(gate)) // the refund is made, and the answer takes its time

	ledger, err := sqlite.Open(ctx, filepath.Join(folder, "ledger.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithGuarded(refundContract, bookContract), settle.WithTools(ticket))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ex.Shutdown(context.WithoutCancel(ctx))) }()
	d := &desk{pay: farside.NewPaymentsClient(pay.URL())}
	listening, err := serve(ex, d)
	if err != nil {
		return err
	}
	defer listening.Close()

	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	c, err := connect(ctx, listening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := talk(ctx, out, c, gate); err != nil {
		return err
	}
	fmt.Fprintf(out, "refunds at the payment service: %d, seats booked: %d\n", len(pay.Effects()), d.booked.Load())
	if len(pay.Effects()) != 1 || d.booked.Load() != 1 {
		return errors.New("something wasn't done once")
	}
	return nil
}

// serve runs the server with the guard before its tools. The host's authentication
// is a header here.
func serve(ex *settle.Executor, d *desk) (*httptest.Server, error) {
	guard := settlemcpgo.New(ex, settlemcpgo.Options{})
	s := server.NewMCPServer("desk", "v1", server.WithToolHandlerMiddleware(guard.Middleware))
	s.AddTool(refundTool, d.refund)
	s.AddTool(bookTool, d.book)
	if err := guard.Offer(s); err != nil {
		return nil, err
	}
	return httptest.NewServer(server.NewStreamableHTTPServer(s, server.WithHTTPContextFunc(func(ctx context.Context, r *http.Request) context.Context {
		return settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: r.Header.Get("User")})
	}))), nil
}

func connect(ctx context.Context, to *httptest.Server) (*client.Client, error) {
	way, err := transport.NewStreamableHTTP(to.URL, transport.WithHTTPHeaders(map[string]string{"User": "ada"}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(way, client.WithElicitationHandler(user{}))
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "agent", Version: "v1"}
	_, err = c.Initialize(ctx, hello)
	return c, err
}

// talk is what the agent does.
func talk(ctx context.Context, out io.Writer, c *client.Client, gate *farside.Gate) error {
	const order = `{"order_id":"A-1001","cents":4210}`
	impatient, gone := context.WithCancel(ctx)
	go func() { <-gate.Entered(); gone() }()
	_, err := c.CallTool(impatient, call(ctx, "refund", order))
	say(out, "client", "refund "+order)
	say(out, "", fmt.Sprintf("(gives up: %v)", errors.Is(err, context.Canceled)))
	gate.Release()
	for _, next := range [][2]string{{"refund", order}, {"book", `{"seat":12}`}, {"book", `{"seat":12}`}, {"ticket", `{"order_id":"A-1001"}`}} {
		result, err := c.CallTool(ctx, call(ctx, next[0], next[1]))
		if err != nil {
			return err
		}
		say(out, "client", next[0]+" "+next[1])
		for _, block := range result.Content {
			if t, ok := mcp.AsTextContent(block); ok {
				say(out, "", t.Text)
			}
		}
	}
	return nil
}

func call(ctx context.Context, tool, args string) mcp.CallToolRequest {
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.RawArguments = tool, json.RawMessage(args)
	return settlemcpgo.SendTask(ctx, req)
}

// say writes what was said, each line of it behind who said it.
func say(out io.Writer, who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(out, "  %-6s %s\n", who, strings.TrimSuffix(line, "\n"))
		who = ""
	}
}
