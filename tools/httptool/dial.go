package httptool

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// ErrAddress says that a name led to an address that requests mustn't go to. See
// [AllowAddresses].
var ErrAddress = errors.New("httptool: the far side has " + theAddress)

const theAddress = "a private, loopback or other special address, which isn't allowed: name it in AllowAddresses if that is meant"

// special are ranges that netip has no question for: what isn't reached over the
// public internet, and what carries an IPv4 address in an IPv6 one (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// dialer makes the connections. It checks the address at the very connect, so
// that a name that leads elsewhere the second time gains nothing.
type dialer struct {
	net     net.Dialer
	tls     *tls.Config
	allowed []netip.Prefix
}

func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !d.allows(at.Addr()) {
		return ErrAddress
	}
	return nil
}

func (d *dialer) allows(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(at) }
	if slices.ContainsFunc(d.allowed, within) {
		return true
	}
	return at.IsGlobalUnicast() && !at.IsPrivate() && !slices.ContainsFunc(special, within)
}

// neverReaches says that no connection to the host would be allowed, as far as
// that is known without a lookup: of an address, and of localhost. It is there to
// tell the author early; what guards is control.
func (d *dialer) neverReaches(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return !d.allows(netip.IPv6Loopback()) && !d.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	at, err := netip.ParseAddr(host)
	return err == nil && !d.allows(at)
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn}, nil
}

func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{}
	if d.tls != nil {
		config = d.tls.Clone()
	}
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	config.NextProtos = []string{"http/1.1"}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &wire{Conn: secured}, nil
}
