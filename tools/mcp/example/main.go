// Example guards MCP tools on both sides of the wire: a server's own, whose client
// gives up and asks again, and somebody else's, whose stream is cut.
//
//	go run ./tools/mcp/example
//
// It needs no key and no service: both servers, and the payment service behind the
// first, listen on loopback; the ledgers are files in a temporary folder.
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
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store/sqlite"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-mcp-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// Ids and constants of the host: every process that works on the case names the same.
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})

	fmt.Fprintln(out, "A server of our own, with the guard before its tools:")
	if err := ownServer(ctx, out, filepath.Join(folder, "server.db")); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nA server of somebody else's, with its tools imported:")
	return foreignServer(ctx, out, filepath.Join(folder, "agent.db"))
}

// ownServer guards the tools of a server. Its client gives up while a refund is
// being made, and asks again.
func ownServer(ctx context.Context, out io.Writer, file string) (err error) {
	pay := farside.NewPayments()
	defer pay.Close()
	gate := farside.NewGate()
	pay.Writes.Next(farside.Late(gate)) // the refund is made, and the answer takes its time

	ledger, err := sqlite.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, settle.WithGuarded(refundContract), settle.WithTools(ticket))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ex.Shutdown(context.WithoutCancel(ctx))) }()
	guard, err := settlemcp.New(ex, settlemcp.Options{Tenant: "acme"})
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "payments", Version: "v1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "refund", Description: "Refund an order."}, refund(farside.NewPaymentsClient(pay.URL())))
	server.AddReceivingMiddleware(guard.Receiving)
	if err := guard.Offer(server); err != nil {
		return err
	}
	listening := serve(server)
	defer listening.Close()

	session, err := connect(ctx, listening, settlemcp.SendTask)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	const order = `{"order_id":"A-1001","cents":4210}`
	impatient, gone := context.WithCancel(ctx)
	go func() { <-gate.Entered(); gone() }()
	_, err = session.CallTool(impatient, &mcp.CallToolParams{Name: "refund", Arguments: json.RawMessage(order)})
	say(out, "client", "refund "+order)
	say(out, "", fmt.Sprintf("(gives up: %v)", errors.Is(err, context.Canceled)))
	gate.Release()
	for _, call := range [][2]string{{"refund", order}, {"refund", `{"order_id":"A-1001","cents":2410}`}, {"ticket", `{"order_id":"A-1001"}`}} {
		if err := ask(ctx, out, session, call[0], call[1]); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "refunds at the payment service: %d\n", len(pay.Effects()))
	if len(pay.Effects()) != 1 {
		return errors.New("the order wasn't refunded once")
	}
	return nil
}

// foreignServer imports the tools of a server that nobody guards, once as it
// describes itself and once as the host knows it. Its stream is cut both times.
func foreignServer(ctx context.Context, out io.Writer, file string) (err error) {
	var labelled atomic.Int32
	var cut atomic.Bool
	server := mcp.NewServer(&mcp.Implementation{Name: "tracker", Version: "v1"}, nil)
	listening := serve(server)
	defer listening.Close()
	server.AddTool(labelTool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		labelled.Add(1)
		if cut.Swap(false) {
			listening.CloseClientConnections() // it has acted; its answer is lost
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "labelled"}}}, nil
	})
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	session, err := connect(ctx, listening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()

	digest, err := settlemcp.SchemaDigest(labelTool)
	if err != nil {
		return err
	}
	for _, remote := range []settlemcp.Remote{
		{Name: "tracker"},
		{Name: "known-tracker", Tools: map[string]settlemcp.Mapped{"set_label": {Schema: digest,
			Contract: settle.Contract{Class: settle.Idempotent, Identity: []string{"issue"}}}}},
	} {
		before := labelled.Load()
		cut.Store(true)
		said, err := callImported(ctx, file, remote, session, `{"issue":7,"label":"late"}`)
		if err != nil {
			return err
		}
		say(out, "agent", remote.ToolName("set_label")+` {"issue":7,"label":"late"}`)
		say(out, "", said)
		fmt.Fprintf(out, "calls at the server: %d\n", labelled.Load()-before)
	}
	return nil
}

// callImported is an agent whose executor has the server's tools.
func callImported(ctx context.Context, file string, remote settlemcp.Remote, session *mcp.ClientSession, args string) (said string, err error) {
	tools, err := remote.Import(ctx, session)
	if err != nil {
		return "", err
	}
	var options []settle.Option
	for _, t := range tools {
		options = append(options, settle.WithTools(t))
	}
	ledger, err := sqlite.Open(ctx, file)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	ex, err := settle.New(ledger, options...)
	if err != nil {
		return "", err
	}
	result, err := ex.Execute(ctx, settle.Call{Tool: remote.ToolName("set_label"), Args: json.RawMessage(args)})
	return result.ForModel(), errors.Join(err, ex.Shutdown(ctx))
}

// serve runs a server; a bearer token is its user's name.
func serve(server *mcp.Server) *httptest.Server {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	known := auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)
	return httptest.NewServer(known(handler))
}

func connect(ctx context.Context, to *httptest.Server, middleware ...mcp.Middleware) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "v1"}, nil)
	client.AddSendingMiddleware(middleware...)
	return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: to.URL, HTTPClient: &http.Client{Transport: asAda{}}}, nil)
}

// asAda sends ada's token.
type asAda struct{}

func (asAda) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer ada")
	return http.DefaultTransport.RoundTrip(r)
}

// ask calls a tool and says what its text is.
func ask(ctx context.Context, out io.Writer, session *mcp.ClientSession, tool, args string) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return err
	}
	say(out, "client", tool+" "+args)
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			say(out, "", t.Text)
		}
	}
	return nil
}

// say writes what was said, each line of it behind who said it.
func say(out io.Writer, who, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		fmt.Fprintf(out, "  %-6s %s\n", who, strings.TrimSuffix(line, "\n"))
		who = ""
	}
}
