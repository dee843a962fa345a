package settings

import (
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Entry is one setting in force, with its secret parts masked.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

const masked = "********"

// Entries lists every setting of cfg, a struct or a pointer to one, in the
// order of its fields. Secrets are masked; "" is a text that is not set.
func Entries(cfg any) []Entry {
	v := reflect.Indirect(reflect.ValueOf(cfg))
	var out []Entry
	entries(v, "", &out)
	return out
}

// Print writes Entries as "key: value" lines.
func Print(w io.Writer, cfg any) error {
	for _, e := range Entries(cfg) {
		if _, err := fmt.Fprintf(w, "%s: %s\n", e.Key, e.Value); err != nil {
			return fmt.Errorf("print settings: %w", err)
		}
	}
	return nil
}

func entries(v reflect.Value, prefix string, out *[]Entry) {
	for _, f := range fields(v.Type()) {
		entry(v.FieldByIndex(f.index), f, join(prefix, f.name), out)
	}
}

func entry(v reflect.Value, f field, key string, out *[]Entry) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() { // nil: not set, and nothing stands in for it
			entry(v.Elem(), f, key, out)
		}
	case v.Kind() == reflect.Struct:
		entries(v, key, out)
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			entry(v.MapIndex(k), f, join(key, k.String()), out)
		}
	case v.Kind() == reflect.Slice && !scalar(v.Type().Elem()):
		for i := range v.Len() {
			entry(v.Index(i), f, fmt.Sprintf("%s[%d]", key, i), out)
		}
	default:
		*out = append(*out, Entry{Key: key, Value: show(v, f)})
	}
}

func show(v reflect.Value, f field) string {
	var text string
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case []string:
		text = strings.Join(x, ", ")
	case float64:
		text = strconv.FormatFloat(x, 'f', -1, 64)
		if f.share && x != 0 {
			text = strconv.FormatFloat(x*100, 'g', 12, 64) + "%"
		}
	default:
		text = fmt.Sprint(x)
	}
	switch {
	case text == "" || f.secret == "":
		return text
	case f.secret == "url":
		return maskURL(text)
	default:
		return masked
	}
}

// maskURL shows scheme, host and path only. A text that is no URL with a host
// or path may be a secret in the wrong place and is masked whole.
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
