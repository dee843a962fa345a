package redisproc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are below Linux's ephemeral range (32768 and up), so that no outgoing connection takes the port of a
// server that is down for a moment.
const firstPort, lastPort = 18000, 32000

// Listen opens a listener on a free loopback port below the ephemeral range.
func Listen() (net.Listener, error) {
	var last error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort))
		ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
		if err == nil {
			return ln, nil
		}
		last = err
	}
	return nil, fmt.Errorf("find a free loopback port: %w", last)
}

// FreePort returns a loopback port without a listener.
func FreePort() (int, error) {
	ln, err := Listen()
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a TCP listener
}
