//go:build !linux

package farside

import (
	"fmt"
	"net"
)

// port remembers the number of a far side's loopback port. Outside Linux nothing
// keeps the number while the far side refuses: another socket of the machine
// could be given it, and [Server.Accept] would then fail.
type port struct{ number int }

func reservePort() (*port, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("farside: bind a loopback port: %w", err)
	}
	defer l.Close()
	return &port{number: l.Addr().(*net.TCPAddr).Port}, nil
}

func (p *port) listen() (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.number))
}

func (p *port) free() {}
