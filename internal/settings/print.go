package settings

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

const masked = "********"

// Print writes every setting of cfg, a pointer to a struct, as "key: value" in the order of its fields. It masks
// secrets.
func Print(w io.Writer, cfg any) error {
	var text strings.Builder
	visit(reflect.ValueOf(cfg).Elem(), "", func(key string, v reflect.Value, f field) {
		fmt.Fprintf(&text, "%s: %s\n", key, show(v, f))
	})
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	return nil
}

func show(v reflect.Value, f field) string {
	text := fmt.Sprint(v.Interface())
	switch x := v.Interface().(type) {
	case []string:
		text = strings.Join(x, ", ")
	case float64:
		text = strconv.FormatFloat(x, 'f', -1, 64)
	case Share:
		if x != 0 {
			text = strconv.FormatFloat(float64(x)*100, 'g', 12, 64) + "%"
		}
	}
	switch {
	case text == "" || !f.secret():
		return text
	case f.tag.Get("secret") == "url":
		return maskURL(text)
	}
	return masked
}

// maskURL returns only scheme, host and path of a URL. It masks all other text, which may be a secret in the wrong
// place.
func maskURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Opaque != "" || strings.Contains(u.Host+u.Path, "@") {
		return masked
	}
	shown := u.Scheme + "://"
	if u.User != nil {
		shown += masked + "@"
	}
	return shown + u.Host + u.Path
}
