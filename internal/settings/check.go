package settings

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const fileSuffix = "_file"

// checker walks raw values along the struct they are meant for, so that every
// error names its key and none quotes a value. It replaces KEY_file by the
// file's content and normalises names in place.
type checker struct {
	shared   bool
	errs     []error
	warnings []string
}

func (c *checker) fail(key, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", key, fmt.Errorf(format, args...)))
}

func (c *checker) blank(key string) {
	c.fail(key, "is blank: give a value or leave the key out")
}

func (c *checker) structure(t reflect.Type, values map[string]any, prefix string) {
	fs := fields(t)
	byName := map[string]field{}
	var known []string
	for _, f := range fs {
		byName[f.name] = f
		known = append(known, f.name)
	}
	for _, name := range sortedKeys(values) {
		if _, ok := byName[name]; ok {
			continue
		}
		if base, isFile := strings.CutSuffix(name, fileSuffix); isFile && byName[base].secret != "" {
			c.fromFile(values, base, name, prefix)
			continue
		}
		near := nearest(name, known)
		if !c.shared || near != "" {
			c.unknown(join(prefix, name), near, prefix)
		}
		delete(values, name)
	}
	for _, f := range fs {
		if raw, set := values[f.name]; set {
			values[f.name] = c.value(f, f.typ, raw, join(prefix, f.name))
		}
	}
}

func (c *checker) unknown(key, near, prefix string) {
	if near == "" {
		c.fail(key, "unknown key")
		return
	}
	c.fail(key, "unknown key, did you mean %s?", join(prefix, near))
}

// fromFile replaces KEY_file by KEY with the file's content.
func (c *checker) fromFile(values map[string]any, base, name, prefix string) {
	key := join(prefix, name)
	path, ok := values[name].(string)
	delete(values, name)
	switch {
	case !ok || strings.TrimSpace(path) == "":
		c.fail(key, "want the path of a file")
		return
	case values[base] != nil:
		c.fail(key, "set together with %s: use one", join(prefix, base))
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: read secret: %w", key, err))
		return
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if strings.TrimSpace(text) == "" {
		c.fail(key, "the file %s is empty", path)
		return
	}
	values[base] = text
}

// value checks raw against t and returns what is to be decoded.
func (c *checker) value(f field, t reflect.Type, raw any, key string) any {
	if raw == nil {
		c.blank(key)
		return nil
	}
	if t.Kind() == reflect.Pointer { // a value that may be left out
		t = t.Elem()
	}
	switch {
	case t == durationType:
		return c.duration(raw, key)
	case t.Kind() == reflect.Struct:
		if m, ok := raw.(map[string]any); ok {
			c.structure(t, m, key)
			return m
		}
		c.fail(key, "want a section with keys, got %s", kindOf(raw))
	case t.Kind() == reflect.Map:
		return c.mapping(f, t, raw, key)
	case t.Kind() == reflect.Slice:
		return c.list(f, t, raw, key)
	default:
		return c.scalar(f, t, raw, key)
	}
	return nil
}

func (c *checker) duration(raw any, key string) any {
	text, ok := raw.(string)
	if !ok {
		c.fail(key, "want a duration such as 30s, 5m or 1h30m, got %s", kindOf(raw))
		return nil
	}
	d, err := parseDuration(text)
	if err != nil {
		c.fail(key, "%w", err)
	}
	return d
}

func (c *checker) mapping(f field, t reflect.Type, raw any, key string) any {
	m, ok := raw.(map[string]any)
	if !ok {
		c.fail(key, "want a section with keys, got %s", kindOf(raw))
		return nil
	}
	for _, name := range sortedKeys(m) {
		m[name] = c.value(f, t.Elem(), m[name], join(key, name))
	}
	return m
}

func (c *checker) list(f field, t reflect.Type, raw any, key string) any {
	l, ok := raw.([]any)
	if !ok {
		c.fail(key, "want a list, got %s", kindOf(raw))
		return nil
	}
	for i := range l {
		l[i] = c.value(f, t.Elem(), l[i], fmt.Sprintf("%s[%d]", key, i))
	}
	return l
}

func (c *checker) scalar(f field, t reflect.Type, raw any, key string) any {
	rv := reflect.ValueOf(raw)
	switch k := t.Kind(); {
	case k == reflect.String:
		text, ok := raw.(string)
		switch {
		case !ok && (rv.Kind() == reflect.Map || rv.Kind() == reflect.Slice):
			c.fail(key, "want a text, got %s", kindOf(raw))
		case !ok:
			c.fail(key, "want a text, got %s: put it in quotes", kindOf(raw))
		case strings.TrimSpace(text) == "":
			c.blank(key)
		case f.isName:
			return c.name(text, key)
		}
	case k == reflect.Bool:
		if rv.Kind() != reflect.Bool {
			c.fail(key, "want true or false, got %s", kindOf(raw))
		}
	case f.share:
		return c.part(raw, key)
	case k == reflect.Float32 || k == reflect.Float64:
		if x, ok := raw.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) || !rv.CanFloat() && !rv.CanInt() {
			c.fail(key, "want a number, got %s", kindOf(raw))
		}
	case !rv.CanInt() && !rv.CanUint():
		c.fail(key, "want a whole number, got %s", kindOf(raw))
	case rv.CanInt() && !fits(t, rv.Int()), rv.CanUint() && (rv.Uint() > math.MaxInt64 || !fits(t, int64(rv.Uint()))):
		c.fail(key, "%v is out of range", raw)
	}
	return raw
}

// part reads 70% or 0.7. A bare 70 could mean either and is refused, as
// anything but 0 to 1.
func (c *checker) part(raw any, key string) any {
	var x float64
	var err error
	switch v := raw.(type) {
	case string:
		text, percent := strings.CutSuffix(strings.TrimSpace(v), "%")
		x, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
		x /= 100
		if err == nil && !percent {
			err = strconv.ErrSyntax // a number in quotes
		}
	case float64:
		x = v
	case int:
		x = float64(v)
	default:
		err = strconv.ErrSyntax
	}
	if err != nil || !(x >= 0 && x <= 1) {
		c.fail(key, "want a share such as 70%% or 0.7, from 0 (off) to 1")
	}
	return x
}

func fits(t reflect.Type, n int64) bool {
	zero := reflect.New(t).Elem()
	if zero.CanUint() {
		return n >= 0 && !zero.OverflowUint(uint64(n))
	}
	return !zero.OverflowInt(n)
}

func (c *checker) name(text, key string) string {
	clean := strings.ToLower(strings.TrimSpace(text))
	if clean != text {
		c.warnings = append(c.warnings, fmt.Sprintf("%s: %q is used as %q", key, text, clean))
	}
	return clean
}

func kindOf(raw any) string {
	switch raw.(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case map[string]any:
		return "a section"
	case []any:
		return "a list"
	case float64:
		return "a fraction"
	}
	if reflect.ValueOf(raw).CanInt() {
		return "a number"
	}
	return "something else"
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
