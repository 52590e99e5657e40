package mailtool_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/mailtool"
)

// takeMail is a relay that takes one mail on each connection, and keeps its text.
func takeMail(l net.Listener, mails chan<- string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		in := bufio.NewScanner(conn)
		io.WriteString(conn, "220 relay.test\r\n")
		for in.Scan() {
			if in.Text() != "DATA" {
				io.WriteString(conn, "250 ok\r\n")
				continue
			}
			io.WriteString(conn, "354 go on\r\n")
			var text strings.Builder
			for in.Scan() && in.Text() != "." {
				text.WriteString(in.Text() + "\n")
			}
			mails <- text.String()
			io.WriteString(conn, "250 queued\r\n")
		}
		conn.Close()
	}
}

func Example() {
	ctx := context.Background()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	mails := make(chan string, 10)
	go takeMail(l, mails)
	folder, err := os.MkdirTemp("", "mailtool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ledger, err := sqlite.Open(ctx, filepath.Join(folder, "settle.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()

	send, err := mailtool.New(
		mailtool.Relay{Address: l.Addr().String(), Security: mailtool.Plaintext},
		mailtool.Config{From: "Support <support@example.org>", Contract: settle.Contract{NoLookup: true}},
	)
	if err != nil {
		log.Fatal(err)
	}
	ex, err := settle.New(ledger, settle.WithTools(send))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Shutdown(ctx)

	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	for _, text := range []string{"It is on its way.", "It is on its way.", "Nearly there!"} {
		out, err := ex.Execute(ctx, settle.Call{Tool: "send_mail",
			Args: fmt.Appendf(nil, `{"to":"eve@example.com","purpose":"tracking","subject":"Your parcel","text":%q}`, text)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out.Status, out.Replayed, out.Fields)
	}
	fmt.Println("mails:", len(mails))
	_, text, _ := strings.Cut(<-mails, "\n\n")
	fmt.Print(text)
	// Output:
	// completed false []
	// completed true []
	// conflict false [text]
	// mails: 1
	// It is on its way.
}
