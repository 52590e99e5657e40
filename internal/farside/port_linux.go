package farside

import (
	"fmt"
	"net"
	"syscall"
)

// port keeps a loopback port for one far side, whether it listens or not: while
// a far side refuses, no other socket of the machine may be given its number.
// A bound socket that never listens does that on Linux, and doesn't hinder
// listeners on the same port, which set SO_REUSEADDR too.
type port struct {
	fd     int
	number int
}

func reservePort() (*port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("farside: open a socket to keep a port: %w", err)
	}
	p := &port{fd: fd}
	if err := p.bind(); err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

func (p *port) bind() error {
	if err := syscall.SetsockoptInt(p.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("farside: share a port with its listener: %w", err)
	}
	if err := syscall.Bind(p.fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("farside: bind a loopback port: %w", err)
	}
	name, err := syscall.Getsockname(p.fd)
	if err != nil {
		return fmt.Errorf("farside: read the number of a bound port: %w", err)
	}
	p.number = name.(*syscall.SockaddrInet4).Port
	return nil
}

func (p *port) listen() (net.Listener, error) {
	return net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.number))
}

func (p *port) free() { _ = syscall.Close(p.fd) }
