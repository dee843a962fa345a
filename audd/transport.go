package audd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newTransport returns a client's transport. It uses HTTP/1.1 only and its connections count written bytes. With
// HTTP/1.1 and a nil GetBody, net/http never repeats a request, and a connection serves one call at a time.
func newTransport(given http.RoundTripper) http.RoundTripper {
	t, ok := given.(*http.Transport)
	switch {
	case given == nil:
		t = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConns:        512,
			MaxIdleConnsPerHost: 128,              // a worker has 64 slots for recognize, and other paths use the same host
			IdleConnTimeout:     30 * time.Second, // shorter than most servers' timeout, so the client closes first
			TLSHandshakeTimeout: 10 * time.Second,
		}
	case !ok:
		return given
	default:
		t = t.Clone()
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	t.Protocols = protocols
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = nil
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // net/http sets the allowed protocols
	}
	dial := t.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err //nolint:wrapcheck // a *net.OpError names operation and address
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

// errProxy replaces net/http's error, which quotes the proxy setting and its password.
var errProxy = errors.New("the proxy setting is not a valid URL")
