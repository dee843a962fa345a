package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are below Linux's ephemeral range (32768 and up), so that no outgoing
// connection takes the port of a server that is down for a moment.
const firstPort, lastPort = 18000, 32000

// listen opens a loopback listener on a free port of that range.
func listen() (net.Listener, error) {
	var last error
	for range 100 {
		ln, err := listenAt(fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort)))
		if err == nil {
			return ln, nil
		}
		last = err
	}
	return nil, fmt.Errorf("find a free loopback port: %w", last)
}

func listenAt(addr string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln, nil
}

// freePort returns a loopback port without a listener.
func freePort() (int, error) {
	ln, err := listen()
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a TCP listener
}
