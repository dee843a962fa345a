package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds one readiness probe on loopback or a unix socket.
const probeTimeout = 2 * time.Second

// errOther is permanent: another server uses the address.
var errOther = errors.New("another redis-server answers at this address")

// Ping returns nil when a Redis answers PING at the address, also when it
// requires a password; a server that still loads its data is an error. It speaks
// the protocol itself because go-redis logs every failed dial.
func Ping(ctx context.Context, network, addr string) error { return probe(ctx, network, addr, 0) }

// probe is Ping that, with pid > 0, also checks that the answer comes from that
// process and not from another server on the same port.
func probe(ctx context.Context, network, addr string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return fmt.Errorf("dial redis: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("set probe deadline: %w", err)
	}
	in := bufio.NewReader(conn)
	line, err := ask(conn, in, "PING")
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(line, "-NOAUTH"):
		return nil // ready, but the process id needs the password
	case line != "+PONG":
		return fmt.Errorf("redis is not ready: %s", line)
	case pid == 0:
		return nil
	}
	return checkPid(conn, in, pid)
}

func ask(conn net.Conn, in *bufio.Reader, command string) (string, error) {
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", fmt.Errorf("send %s: %w", command, err)
	}
	line, err := in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read reply to %s: %w", command, err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func checkPid(conn net.Conn, in *bufio.Reader, pid int) error {
	if _, err := ask(conn, in, "INFO server"); err != nil {
		return err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read redis process id: %w", err)
		}
		value, found := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "process_id:")
		if !found {
			continue
		}
		if value != strconv.Itoa(pid) {
			return errOther
		}
		return nil
	}
}
