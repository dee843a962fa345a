package audd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newTransport is the transport of a client: HTTP/1.1 only, connections that
// count what they write. HTTP/1.1 because net/http then never sends a request
// again once a body byte was written (and with GetBody nil not before either),
// and because one connection belongs to one call at a time.
func newTransport(injected *http.Client) (http.RoundTripper, error) {
	if injected == nil || injected.Transport == nil {
		t := &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConns:        512,
			MaxIdleConnsPerHost: 128,              // recognize has 64 slots a worker; paths share a host
			IdleConnTimeout:     30 * time.Second, // below the usual server's, so that we close first
			TLSHandshakeTimeout: 10 * time.Second,
		}
		return pin(t), nil
	}
	switch t := injected.Transport.(type) {
	case *http.Transport:
		if t == nil {
			return nil, errors.New("HTTPClient.Transport: a nil *http.Transport")
		}
		return pin(t.Clone()), nil
	default:
		return t, nil
	}
}

// pin changes a transport of our own: protocol, counting connections, and a
// proxy whose errors cannot quote its password.
func pin(t *http.Transport) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t.Protocols = protocols
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // net/http fills in what Protocols allows
	}
	dial := t.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err //nolint:wrapcheck // a *net.OpError that says it all
		}
		return newConn(conn), nil
	}
	if proxy := t.Proxy; proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) {
			u, err := proxy(r)
			if err != nil {
				return nil, errProxy
			}
			return u, nil
		}
	}
	return t
}

// errProxy replaces net/http's error, which quotes the setting with its password.
var errProxy = errors.New("the proxy setting is not a URL")
