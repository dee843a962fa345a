package auddsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

const maxAdminBody = 16 << 20

// adminHandler serves /_sim/; doc.go lists the endpoints. Bill and limits do not count its requests.
func (s *Simulator) adminHandler() http.Handler {
	type object map[string]any
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(q url.Values, body []byte) (any, error){
		"GET /_sim/bill":    func(q url.Values, _ []byte) (any, error) { return s.billed(q.Get("lines") != "0"), nil },
		"GET /_sim/catalog": func(url.Values, []byte) (any, error) { return s.Catalog(), nil },
		"GET /_sim/held": func(url.Values, []byte) (any, error) {
			held := s.Held()
			return object{"count": len(held), "held": held}, nil
		},
		"GET /_sim/requests": s.adminRequests,
		"GET /_sim/rules":    func(url.Values, []byte) (any, error) { return s.Rules(), nil },
		"POST /_sim/rules":   func(_ url.Values, body []byte) (any, error) { return s.adminRules(body, false) },
		"PUT /_sim/rules":    func(_ url.Values, body []byte) (any, error) { return s.adminRules(body, true) },
		"DELETE /_sim/rules": func(q url.Values, _ []byte) (any, error) { return object{"removed": s.RemoveRules(q["id"]...)}, nil },
		"GET /_sim/limits": func(q url.Values, _ []byte) (any, error) {
			limits := s.Limits(q.Get("path"))
			return limits.json(q.Get("path")), nil
		},
		"POST /_sim/limits":  func(_ url.Values, body []byte) (any, error) { return s.adminLimits(body) },
		"POST /_sim/tokens":  func(_ url.Values, body []byte) (any, error) { return s.adminToken(body) },
		"POST /_sim/hold":    func(_ url.Values, body []byte) (any, error) { return s.adminHold(body) },
		"POST /_sim/release": func(q url.Values, _ []byte) (any, error) { return object{"released": s.Release(q.Get("id"))}, nil },
		"POST /_sim/reset":   func(url.Values, []byte) (any, error) { s.Reset(); return object{"reset": true}, nil },
	} {
		mux.HandleFunc(pattern, adminFunc(f))
	}
	return mux
}

// adminFunc sends the value of f as JSON. An error of f is a mistake in the request and becomes HTTP 400 with its text.
func adminFunc(f func(q url.Values, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var value any
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
		if err == nil {
			value, err = f(r.URL.Query(), body)
		}
		w.Header().Set("Content-Type", kindJSON)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			value = map[string]string{"error": err.Error()}
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(value) // an error means that the client has disconnected
	}
}

func (s *Simulator) adminRequests(q url.Values, _ []byte) (any, error) {
	f := Filter{Path: q.Get("path"), Hash: q.Get("hash"), Name: q.Get("name"), Outcome: q.Get("outcome")}
	for name, set := range map[string]func(n int64){
		"audio_id": func(n int64) { f.AudioID = &n },
		"after":    func(n int64) { f.AfterSeq = n },
		"limit":    func(n int64) { f.Limit = int(n) },
	} {
		if text := q.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			set(n)
		}
	}
	return s.Requests(f), nil
}

func (s *Simulator) adminRules(body []byte, replace bool) (any, error) {
	rules, err := parseRules(body)
	if err != nil {
		return nil, err
	}
	if replace {
		s.RemoveRules()
	}
	return map[string][]string{"ids": s.ruleSet.add(rules...)}, nil
}

func (s *Simulator) adminLimits(body []byte) (any, error) {
	in := new(Limits).json("")
	if err := decodeStrict(body, in); err != nil {
		return nil, err
	}
	limits := s.Limits(in.Path)
	in = limits.json(in.Path)
	if err := decodeStrict(body, in); err != nil { // absent fields keep their values
		return nil, err
	}
	return in, s.SetLimits(in.Path, limits)
}

func (s *Simulator) adminToken(body []byte) (any, error) {
	var t Token
	if err := decodeStrict(body, &t); err != nil {
		return nil, err
	}
	if t.Value == "" {
		return nil, errors.New("token is missing")
	}
	s.SetToken(t)
	return t, nil
}

func (s *Simulator) adminHold(body []byte) (any, error) {
	var h Hold
	err := decodeStrict(body, &h)
	if err == nil {
		err = h.Validate()
	}
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": s.Hold(h)}, nil
}
