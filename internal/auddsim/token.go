package auddsim

import (
	"slices"
	"sync"
)

// Token changes what a token may do; see Simulator.SetToken.
type Token struct {
	Value string `json:"token"`
	// Code answers every request of the token with it (900 = revoked). 0: the token is good.
	Code int `json:"code,omitempty"`
	// Quota is the number of units it may be charged before 902. nil: Config.Quota; 0: no bound.
	Quota *int64 `json:"quota,omitempty"`
	// Deny lists the paths that answer 904.
	Deny []string `json:"deny,omitempty"`
}

// tokens knows which tokens may do what.
type tokens struct {
	mu    sync.RWMutex
	known map[string]Token
	open  bool // tokens nobody mentioned are good
	quota int64
	deny  map[string][]string
}

func newTokens(cfg Config) *tokens {
	t := &tokens{known: map[string]Token{}, open: len(cfg.Tokens) == 0, quota: cfg.Quota, deny: cfg.Deny}
	for _, value := range cfg.Tokens {
		t.known[value] = Token{Value: value}
	}
	return t
}

func (t *tokens) set(token Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[token.Value] = token
}

// check returns the code a token is answered with on a path (0: go on) and the units it may be charged (0: no bound).
func (t *tokens) check(value, path string) (code int, quota int64) {
	if value == "" {
		return 901, 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	token, known := t.known[value]
	switch {
	case !known && !t.open:
		return 900, 0
	case token.Code != 0:
		return token.Code, 0
	case slices.Contains(token.Deny, path), slices.Contains(t.deny[path], value), slices.Contains(t.deny[path], "*"):
		return 904, 0
	case token.Quota != nil:
		return 0, *token.Quota
	}
	return 0, t.quota
}

// mask shows a token as AudD's echo does: the first and the last character.
func mask(token string) string {
	if len(token) < 2 {
		return "***"
	}
	return token[:1] + "***" + token[len(token)-1:]
}
