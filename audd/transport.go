package audd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newTransport returns the transport of a client: HTTP/1.1 only, with connections
// that count written bytes. With HTTP/1.1 and a nil GetBody net/http never sends
// a request again, and a connection serves one call at a time.
func newTransport(injected *http.Client) (http.RoundTripper, error) {
	if injected == nil || injected.Transport == nil {
		return pin(&http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConns:        512,
			MaxIdleConnsPerHost: 128,              // a worker has 64 slots for recognize; paths share a host
			IdleConnTimeout:     30 * time.Second, // shorter than that of most servers, so that the client closes first
			TLSHandshakeTimeout: 10 * time.Second,
		}), nil
	}
	t, ok := injected.Transport.(*http.Transport)
	switch {
	case !ok:
		return injected.Transport, nil
	case t == nil:
		return nil, errors.New("HTTPClient.Transport: must not be a nil *http.Transport")
	}
	return pin(t.Clone()), nil
}

// pin restricts a transport to HTTP/1.1, counts written bytes, and hides errors
// about the proxy setting, which may quote its password.
func pin(t *http.Transport) *http.Transport {
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

// errProxy replaces net/http's error, which quotes the setting and its password.
var errProxy = errors.New("the proxy setting is not a valid URL")
