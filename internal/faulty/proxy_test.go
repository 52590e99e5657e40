package faulty

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// echo starts a server that sends back what it gets.
func echo(t *testing.T, network, addr string) (target string) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// exchange sends the bytes and reads as many back.
func exchange(t *testing.T, conn net.Conn, sent string) {
	t.Helper()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != sent {
		t.Fatalf("sent %q, got %q and error %v", sent, got, err)
	}
}

func TestBytesPassAndAreCounted(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			addr := "127.0.0.1:0"
			if network == "unix" {
				addr = filepath.Join(t.TempDir(), "s")
			}
			p := NewProxy(t, echo(t, network, addr))
			conn := dial(t, p)
			exchange(t, conn, "four")
			exchange(t, dial(t, p), "and six more")
			if p.Sent() != 16 || p.Received() != 16 || p.Connections() != 2 {
				t.Errorf("counted %d bytes sent, %d received, %d connections; want 16, 16, 2", p.Sent(), p.Received(), p.Connections())
			}
			// The end of what a client sends is passed on, and so is the answer to it.
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
				t.Errorf("after the client's end the server sent %q and error %v, want its own end", rest, err)
			}
		})
	}
}

func TestMatchLiesAcrossReads(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t, "tcp", "127.0.0.1:0"))
	fault := p.Arm(Fault{Request: "needle", Do: CutBefore})
	conn := dial(t, p)
	exchange(t, conn, "a need, a nee")
	if _, err := io.WriteString(conn, "dle in hay"); err != nil {
		t.Fatal(err)
	}
	<-fault.Done()
	if rest, err := io.ReadAll(iotest.DataErrReader(conn)); len(rest) > 0 {
		t.Errorf("the server got and echoed %q (and error %v), want nothing from the match on", rest, err)
	}
	if want := int64(len("a need, a nee")); p.Sent() != want {
		t.Errorf("%d bytes were sent to the server, want %d", p.Sent(), want)
	}
}

func TestWhatPrecedesTheMatchIsForwarded(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t, "tcp", "127.0.0.1:0"))
	fault := p.Arm(Fault{Request: "needle", Do: HoldRequest})
	conn := dial(t, p)
	if _, err := io.WriteString(conn, "hay needle hay"); err != nil {
		t.Fatal(err)
	}
	<-fault.Done()
	if p.Sent() != int64(len("hay ")) {
		t.Errorf("%d bytes were sent while the match is held, want those before it", p.Sent())
	}
	fault.Release()
	got := make([]byte, len("hay needle hay"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hay needle hay" {
		t.Errorf("got %q and error %v after the release, want all of it once", got, err)
	}
}

func TestCutEndsPresentConnections(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t, "tcp", "127.0.0.1:0"))
	conn := dial(t, p)
	exchange(t, conn, "before")
	p.Cut()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes on a connection that was cut", n)
	}
	exchange(t, dial(t, p), "after")
}

// verdict records what a test would have been failed for, and runs its cleanups
// when told to.
type verdict struct {
	testing.TB
	cleanups []func()
	said     []string
}

func (v *verdict) Helper()          {}
func (v *verdict) Cleanup(f func()) { v.cleanups = append(v.cleanups, f) }
func (v *verdict) Errorf(format string, args ...any) {
	v.said = append(v.said, fmt.Sprintf(format, args...))
}

func (v *verdict) finish() {
	for _, f := range v.cleanups {
		f()
	}
}

func TestFaultThatNeverHappenedFailsTheTest(t *testing.T) {
	t.Parallel()
	v := &verdict{TB: t}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := NewProxy(v, server.Addr().String())
	p.Arm(Fault{Request: "never sent", Do: CutBefore})
	p.Arm(Fault{Request: "sent", Do: LoseAnswer})
	if _, err := io.WriteString(dial(t, p), "sent"); err != nil {
		t.Fatal(err)
	}
	silent, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := io.ReadFull(silent, make([]byte, len("sent"))); err != nil {
		t.Fatal(err)
	}
	v.finish()
	all := strings.Join(v.said, "\n")
	if len(v.said) != 2 || !strings.Contains(all, `no request held "never sent"`) || !strings.Contains(all, "never answered the request") {
		t.Errorf("the test would have been failed for:\n%s\nwant both faults", all)
	}
}

func TestTakeCountsEveryMatchInABuffer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		faults       []*Armed
		window       string
		seen         int
		turn         bool
		taken        int
		start, end   int
		skipsLeftFor []int
	}{
		{"none", []*Armed{{fault: Fault{Request: "x"}}}, "abc", 0, true, -1, 0, 0, []int{0}},
		{"first", []*Armed{{fault: Fault{Request: "b"}}}, "abcb", 0, true, 0, 1, 2, []int{0}},
		{"skips in one buffer", []*Armed{{fault: Fault{Request: "b"}, skip: 1}}, "abcb", 0, true, 0, 3, 4, []int{0}},
		{"skips more than there are", []*Armed{{fault: Fault{Request: "b"}, skip: 3}}, "abcb", 0, true, -1, 0, 0, []int{1}},
		{"earliest in the bytes", []*Armed{{fault: Fault{Request: "c"}}, {fault: Fault{Request: "b"}}}, "abc", 0, true, 1, 1, 2, []int{0, 0}},
		{"first armed of equals", []*Armed{{fault: Fault{Request: "b"}}, {fault: Fault{Request: "b"}}}, "abc", 0, true, 0, 1, 2, []int{0, 0}},
		{"taken ones are out", []*Armed{{fault: Fault{Request: "b"}, taken: true}, {fault: Fault{Request: "b"}}}, "abc", 0, true, 1, 1, 2, []int{0, 0}},
		{"seen before", []*Armed{{fault: Fault{Request: "ab"}}}, "abc", 2, true, -1, 0, 0, []int{0}},
		{"begun before", []*Armed{{fault: Fault{Request: "bc"}}}, "abc", 2, false, 0, 1, 3, []int{0}},
		{"next request", []*Armed{{fault: Fault{}}}, "abc", 1, true, 0, 1, 3, []int{0}},
		{"middle of a request", []*Armed{{fault: Fault{}}}, "abc", 1, false, -1, 0, 0, []int{0}},
		{"skipped request", []*Armed{{fault: Fault{}, skip: 1}}, "abc", 1, true, -1, 0, 0, []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			taken, start, end := take(tc.faults, []byte(tc.window), tc.seen, tc.turn)
			at := -1
			for i, a := range tc.faults {
				if a == taken {
					at = i
				}
				if a.skip != tc.skipsLeftFor[i] {
					t.Errorf("fault %d has %d matches left to skip, want %d", i, a.skip, tc.skipsLeftFor[i])
				}
			}
			if at != tc.taken || start != tc.start || end != tc.end {
				t.Errorf("took fault %d at [%d, %d), want fault %d at [%d, %d)", at, start, end, tc.taken, tc.start, tc.end)
			}
		})
	}
}
