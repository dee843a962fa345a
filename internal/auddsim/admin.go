package auddsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxAdminBody bounds what the admin endpoints read.
const maxAdminBody = 16 << 20

// adminHandler serves /_sim/; doc.go lists the endpoints. None of them touches the bill or the limits of requests.
func (s *Simulator) adminHandler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc("GET /_sim/"+path, adminFunc(f))
	}
	post := func(path string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc("POST /_sim/"+path, adminFunc(f))
	}
	get("bill", func(r *http.Request) (any, error) { return s.billed(r.URL.Query().Get("lines") != "0"), nil })
	get("catalog", func(*http.Request) (any, error) { return s.Catalog(), nil })
	get("held", func(*http.Request) (any, error) { return heldList{Count: len(s.Held()), Held: s.Held()}, nil })
	get("requests", s.adminRequests)
	get("rules", func(*http.Request) (any, error) { return s.Rules(), nil })
	post("rules", func(r *http.Request) (any, error) { return s.adminRules(r, false) })
	mux.HandleFunc("PUT /_sim/rules", adminFunc(func(r *http.Request) (any, error) { return s.adminRules(r, true) }))
	mux.HandleFunc("DELETE /_sim/rules", adminFunc(func(r *http.Request) (any, error) {
		return map[string]int{"removed": s.RemoveRules(r.URL.Query()["id"]...)}, nil
	}))
	get("limits", func(r *http.Request) (any, error) { return s.Limits(r.URL.Query().Get("path")), nil })
	post("limits", s.adminLimits)
	post("tokens", s.adminToken)
	post("hold", s.adminHold)
	post("release", func(r *http.Request) (any, error) {
		return map[string]int{"released": s.Release(r.URL.Query().Get("id"))}, nil
	})
	post("reset", func(*http.Request) (any, error) { s.Reset(); return map[string]bool{"reset": true}, nil })
	return mux
}

type heldList struct {
	Count int    `json:"count"`
	Held  []Held `json:"held"`
}

// adminFunc answers what f returns as JSON; an error is the caller's and becomes a 400 with its text.
func adminFunc(f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxAdminBody)
		value, err := f(r)
		w.Header().Set("Content-Type", kindJSON)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			value = map[string]string{"error": err.Error()}
		}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(value) // a client that is gone needs no answer
	}
}

func readAdmin(r *http.Request, to any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	return decodeStrict(data, to)
}

func (s *Simulator) adminRequests(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := Filter{Path: q.Get("path"), Hash: q.Get("hash"), Name: q.Get("name"), Outcome: q.Get("outcome")}
	var errs []error
	number := func(name string) (int64, bool) {
		if q.Get(name) == "" {
			return 0, false
		}
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", name, err))
		}
		return n, err == nil
	}
	if id, ok := number("audio_id"); ok {
		f.AudioID = &id
	}
	f.AfterSeq, _ = number("after")
	limit, _ := number("limit")
	f.Limit = int(limit)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s.Requests(f), nil
}

func (s *Simulator) adminRules(r *http.Request, replace bool) (any, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	rules, err := parseRules(data)
	if err != nil {
		return nil, err
	}
	if replace {
		s.RemoveRules()
	}
	return map[string][]string{"ids": s.rules.add(rules...)}, nil
}

// adminLimits changes the fields that are there and leaves the others.
func (s *Simulator) adminLimits(r *http.Request) (any, error) {
	var in limitsJSON
	if err := readAdmin(r, &in); err != nil {
		return nil, err
	}
	l := s.Limits(in.Path)
	if err := in.apply(&l); err != nil {
		return nil, err
	}
	if err := s.SetLimits(in.Path, l); err != nil {
		return nil, err
	}
	return s.Limits(in.Path), nil
}

func (s *Simulator) adminToken(r *http.Request) (any, error) {
	var t Token
	if err := readAdmin(r, &t); err != nil {
		return nil, err
	}
	if t.Value == "" {
		return nil, errors.New("token is missing")
	}
	s.SetToken(t)
	return t, nil
}

func (s *Simulator) adminHold(r *http.Request) (any, error) {
	var h Hold
	if err := readAdmin(r, &h); err != nil {
		return nil, err
	}
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return map[string]string{"id": s.Hold(h)}, nil
}
