package auddsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxAdminBody is the largest body that the admin endpoints read, in bytes.
const maxAdminBody = 16 << 20

// adminHandler serves /_sim/; doc.go lists the endpoints. Bill and limits do not count its requests.
func (s *Simulator) adminHandler() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(r *http.Request, body []byte) (any, error){
		"GET /_sim/bill":    func(r *http.Request, _ []byte) (any, error) { return s.billed(r.URL.Query().Get("lines") != "0"), nil },
		"GET /_sim/catalog": func(*http.Request, []byte) (any, error) { return s.Catalog(), nil },
		"GET /_sim/held": func(*http.Request, []byte) (any, error) {
			held := s.Held()
			return heldList{Count: len(held), Held: held}, nil
		},
		"GET /_sim/requests": s.adminRequests,
		"GET /_sim/rules":    func(*http.Request, []byte) (any, error) { return s.Rules(), nil },
		"POST /_sim/rules":   func(_ *http.Request, body []byte) (any, error) { return s.adminRules(body, false) },
		"PUT /_sim/rules":    func(_ *http.Request, body []byte) (any, error) { return s.adminRules(body, true) },
		"DELETE /_sim/rules": func(r *http.Request, _ []byte) (any, error) {
			return map[string]int{"removed": s.RemoveRules(r.URL.Query()["id"]...)}, nil
		},
		"GET /_sim/limits": func(r *http.Request, _ []byte) (any, error) {
			path := r.URL.Query().Get("path")
			return s.Limits(path).json(path), nil
		},
		"POST /_sim/limits": s.adminLimits,
		"POST /_sim/tokens": s.adminToken,
		"POST /_sim/hold":   s.adminHold,
		"POST /_sim/release": func(r *http.Request, _ []byte) (any, error) {
			return map[string]int{"released": s.Release(r.URL.Query().Get("id"))}, nil
		},
		"POST /_sim/reset": func(*http.Request, []byte) (any, error) { s.Reset(); return map[string]bool{"reset": true}, nil },
	} {
		mux.HandleFunc(pattern, adminFunc(f))
	}
	return mux
}

type heldList struct {
	Count int    `json:"count"`
	Held  []Held `json:"held"`
}

// adminFunc answers the value of f as JSON. An error is a mistake of the caller and becomes HTTP 400 with its text.
func adminFunc(f func(r *http.Request, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var value any
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
		if err == nil {
			value, err = f(r, body)
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

func (s *Simulator) adminRequests(r *http.Request, _ []byte) (any, error) {
	q := r.URL.Query()
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
	return map[string][]string{"ids": s.rules.add(rules...)}, nil
}

// adminLimits changes the fields that are present.
func (s *Simulator) adminLimits(_ *http.Request, body []byte) (any, error) {
	var in limitsJSON
	if err := decodeStrict(body, &in); err != nil {
		return nil, err
	}
	in = s.Limits(in.Path).json(in.Path)
	if err := decodeStrict(body, &in); err != nil { // absent fields keep their values
		return nil, err
	}
	return in, s.SetLimits(in.Path, in.limits())
}

func (s *Simulator) adminToken(_ *http.Request, body []byte) (any, error) {
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

func (s *Simulator) adminHold(_ *http.Request, body []byte) (any, error) {
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
