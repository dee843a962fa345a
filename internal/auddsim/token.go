package auddsim

import (
	"slices"
	"sync"
)

// Token changes what a token may do; see Simulator.SetToken.
type Token struct {
	Value string `json:"token"`
	// Code is the code of every response to the token (900 = revoked). 0: the token is valid.
	Code int `json:"code,omitempty"`
	// Quota is how many units it may be charged before code 902. nil: Config.Quota; 0: no limit.
	Quota *int64 `json:"quota,omitempty"`
	// Deny has the paths whose response is 904.
	Deny []string `json:"deny,omitempty"`
}

type tokens struct {
	mu    sync.RWMutex
	known map[string]Token
	open  bool // unknown tokens are valid
	quota int64
}

func newTokens(cfg Config) *tokens {
	t := &tokens{known: map[string]Token{}, open: len(cfg.Tokens) == 0, quota: cfg.Quota}
	for _, value := range cfg.Tokens {
		t.known[value] = Token{Value: value}
	}
	return t
}

// SetToken adds or changes a token, from the next request on.
func (t *tokens) SetToken(token Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[token.Value] = token
}

// check returns the code that refuses a token on a path (0: admitted) and its quota in units (0: no limit).
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
	case slices.Contains(token.Deny, path):
		return 904, 0
	case token.Quota != nil:
		return 0, *token.Quota
	}
	return 0, t.quota
}

// mask masks a token as AudD does: the first and the last byte stay.
func mask(token string) string {
	if len(token) < 2 {
		return "***"
	}
	return token[:1] + "***" + token[len(token)-1:]
}
