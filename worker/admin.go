package worker

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminUser is the user name for basic authentication.
const adminUser = "reprise"

// listen starts the admin listener: /healthz, /readyz, /metrics and asynq's web UI. stop ends it.
func (w *Worker) listen(ctx context.Context) (stop func(), err error) {
	if w.opts.Admin.Addr == "" {
		return func() {}, nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", w.opts.Admin.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on admin.addr %s: %w", w.opts.Admin.Addr, err)
	}
	w.addr = ln.Addr().String()
	ui := newWebUI(w.conn.UniversalClient, w.opts.Admin.AllowChanges)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	mux.HandleFunc("GET /readyz", w.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(w.metrics.registry, promhttp.HandlerOpts{}))
	mux.Handle(uiRoot+"/", ui)
	mux.Handle("GET /{$}", http.RedirectHandler(uiRoot+"/", http.StatusFound))
	srv := &http.Server{
		Handler:           guard(w.opts.Admin, mux),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			w.log.Error("the admin listener failed", "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			_ = srv.Close()
		}
	}, nil
}

// readiness is the response body of /readyz.
type readiness struct {
	Redis    string `json:"redis"`
	Store    string `json:"store"`
	Draining bool   `json:"draining"`
}

// readyz responds 200 while Redis responds, the store can be written and the worker does not stop, else 503. A
// halted source does not matter.
func (w *Worker) readyz(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	state := readiness{Redis: "ok", Store: "ok"}
	ready := true
	if err := w.conn.Ping(ctx).Err(); err != nil {
		state.Redis, ready = "down", false
	}
	if err := w.records.Ping(ctx); err != nil {
		state.Store, ready = "down", false
	}
	if w.stopping.Err() != nil {
		state.Draining, ready = true, false
	}
	rw.Header().Set("Content-Type", "application/json")
	if !ready {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(rw).Encode(state) //nolint:errchkjson // the client has gone
}

// guard requires the password, if one is set, except for /healthz and /readyz. It refuses changes from pages of
// other sites, because asynq's web UI does not.
func guard(a Admin, next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			http.Error(rw, "cross-origin request refused", http.StatusForbidden)
			return
		}
		open := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		if a.Password != "" && !open {
			user, password, ok := r.BasicAuth()
			if !ok || user != adminUser || subtle.ConstantTimeCompare([]byte(password), []byte(a.Password)) != 1 {
				rw.Header().Set("WWW-Authenticate", `Basic realm="reprise"`)
				http.Error(rw, "password required", http.StatusUnauthorized)
				return
			}
		}
		if a.Password == "" && !loopbackHost(r.Host) { // against DNS rebinding
			http.Error(rw, "unknown host name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return isLoopback(host)
}

// sameOrigin reports whether a request is a read, or a change whose Sec-Fetch-Site or Origin names this site.
func sameOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false // browsers send one with each change
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}
