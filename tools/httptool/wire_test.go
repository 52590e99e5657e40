package httptool

import (
	"net"
	"net/http/httptrace"
	"net/netip"
	"testing"
)

// deadIdle is a connection that takes nothing, as an idle one does whose other
// side has gone.
type deadIdle struct{ net.Conn }

func (deadIdle) Write([]byte) (int, error) { return 0, net.ErrClosed }

// taking takes everything, or the first n bytes.
type taking struct {
	net.Conn
	n int
}

func (t taking) Write(p []byte) (int, error) {
	if len(p) > t.n {
		return t.n, net.ErrClosed
	}
	return len(p), nil
}

func TestR27OnlyARequestWithoutAWrittenByteIsNotSent(t *testing.T) {
	t.Parallel()
	write := []byte("POST / HTTP/1.1")
	for name, tc := range map[string]struct {
		conn    net.Conn
		write   bool
		notSent bool
	}{
		"nothing written":             {taking{n: 100}, false, true},
		"an idle one that is dead":    {deadIdle{}, true, true},
		"one byte of it":              {taking{n: 1}, true, false},
		"all of it":                   {taking{n: 100}, true, false},
		"somebody else's connection":  {nil, false, false},
		"no connection":               {deadIdle{}, false, true},
		"after what was sent earlier": {taking{n: 100}, false, true},
	} {
		var d dispatch
		trace := d.trace()
		if tc.conn == nil {
			trace.GotConn(httptrace.GotConnInfo{Conn: deadIdle{}})
		} else if name != "no connection" {
			w := &wire{Conn: tc.conn}
			if name == "after what was sent earlier" {
				w.Write(write)
			}
			trace.GotConn(httptrace.GotConnInfo{Conn: w, Reused: true})
			if tc.write {
				w.Write(write)
			}
			if got := d.notSent(); got == tc.notSent && got {
				if n, err := w.Write(write); n != 0 || err == nil {
					t.Errorf("%s: it was written after it counted as not sent", name)
				}
			}
		}
		if got := d.notSent(); got != tc.notSent {
			t.Errorf("%s: not sent is %v", name, got)
		}
	}
}

func TestS16NothingIsWrittenToASecondConnection(t *testing.T) {
	t.Parallel()
	var d dispatch
	first, second := &wire{Conn: taking{n: 100}}, &wire{Conn: taking{n: 100}}
	d.trace().GotConn(httptrace.GotConnInfo{Conn: first})
	first.Write([]byte("GET / HTTP/1.1"))
	d.trace().GotConn(httptrace.GotConnInfo{Conn: second})
	if n, err := second.Write([]byte("GET / HTTP/1.1")); n != 0 || err == nil {
		t.Error("the request was written again")
	}
	if d.notSent() {
		t.Error("the request counts as not sent")
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	d := dialer{allowed: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}}
	for address, allowed := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true, "10.2.3.4:80": true, "[::ffff:10.2.3.4]:80": true,
		"10.3.0.1:80": false, "127.0.0.1:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false, "[::127.0.0.1]:80": false,
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "192.168.1.1:80": false, "172.16.0.1:80": false, "[fc00::1]:80": false,
		"0.0.0.0:80": false, "100.64.0.1:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "[ff02::1]:80": false,
		"[64:ff9b::a00:1]:80": false, "[2002:a00:1::]:80": false, "[2001::1]:80": false, "[::]:80": false, "nonsense": false,
	} {
		if err := d.control(t.Context(), "tcp", address, nil); (err == nil) != allowed {
			t.Errorf("%s: error %v", address, err)
		}
	}
}
