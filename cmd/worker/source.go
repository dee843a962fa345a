package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"reprise/worker"
)

// mainSource is the name of the source whose token is AUDD_API_TOKEN or audd.token.
const mainSource = "main"

var errNoToken = errors.New("no AudD token: set AUDD_API_TOKEN (from dashboard.audd.io), or try `worker dev`, which needs none")

// sources returns the sources of the settings, and main if there is a single token.
func (c config) sources(getenv func(string) string) ([]worker.Source, error) {
	var out []worker.Source
	errs := []error{badURL("audd.base_url", c.AudD.BaseURL), badURL("audd.enterprise_url", c.AudD.EnterpriseURL)}
	if c.AudD.Token != "" {
		out = append(out, source(mainSource, c.AudD.Token, c.AudD.BaseURL, c.AudD.EnterpriseURL))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s, key := c.Sources[name], "sources."+name
		if name == mainSource && c.AudD.Token != "" {
			errs = append(errs, errors.New("sources.main: audd.token or AUDD_API_TOKEN also sets the token of main: use only one"))
		}
		token, err := s.token(key, getenv)
		errs = append(errs, err, badURL(key+".base_url", s.BaseURL), badURL(key+".enterprise_url", s.EnterpriseURL))
		out = append(out, source(name, token, cmp.Or(s.BaseURL, c.AudD.BaseURL), cmp.Or(s.EnterpriseURL, c.AudD.EnterpriseURL)))
	}
	err := errors.Join(errs...)
	if len(out) == 0 && err == nil {
		err = errNoToken
	}
	return out, err
}

// token returns the token of the source with that key.
func (s sourceConfig) token(key string, getenv func(string) string) (string, error) {
	switch {
	case s.Token != "" && s.TokenEnv != "":
		return "", fmt.Errorf("%s: token and token_env are both set: use one", key)
	case s.TokenEnv != "" && getenv(s.TokenEnv) == "":
		return "", fmt.Errorf("%s.token_env: the variable %s is not set", key, s.TokenEnv)
	case s.TokenEnv != "":
		return getenv(s.TokenEnv), nil
	case s.Token == "":
		return "", fmt.Errorf("%s: no token: set token, token_file or token_env", key)
	}
	return s.Token, nil
}

func source(name, token, base, enterprise string) worker.Source {
	return worker.Source{Name: name, Token: func() string { return token }, BaseURL: withSlash(base), EnterpriseURL: withSlash(enterprise)}
}

// badURL returns the error of a URL that cannot be used. It shows no part of the URL.
func badURL(key, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: must be an http or https URL", key)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%s: must be a URL without user, password, query and fragment", key)
	}
	return nil
}

func withSlash(u string) string {
	if u == "" || strings.HasSuffix(u, "/") {
		return u
	}
	return u + "/"
}
