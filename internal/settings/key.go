package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// field is one field of a settings struct.
type field struct {
	name  string // its key within the struct: its mapstructure tag, else snake(its name)
	typ   reflect.Type
	tag   reflect.StructTag
	index []int
}

func (f field) secret() bool { return f.tag.Get("secret") != "" }

// fields lists the fields of a struct, with the fields of squashed structs among them.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, opts, _ := strings.Cut(sf.Tag.Get("mapstructure"), ",")
		switch {
		case !sf.IsExported() || name == "-":
		case opts == "squash":
			for _, f := range fields(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
		default:
			out = append(out, field{name: cmp.Or(name, snake(sf.Name)), typ: sf.Type, tag: sf.Tag, index: []int{i}})
		}
	}
	return out
}

// snake returns a field's name as a key: BaseURL is base_url.
func snake(name string) string {
	var out []rune
	runes := []rune(name)
	for i, r := range runes {
		first := i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if first { // of a word
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}

// key is a setting. In its path * stands for an index of a list or a name in a map: sources.*.token.
type key struct {
	path string
	field
}

// paths returns the paths of the key that variables can set: none below a list or map, two for a secret.
func (k key) paths() []string {
	switch {
	case strings.Contains(k.path, "*"):
		return nil
	case k.secret():
		return []string{k.path, k.path + fileSuffix}
	}
	return []string{k.path}
}

// keys lists the settings of a struct type.
type keys []key

func keysOf(t reflect.Type, prefix string) (keys, error) {
	var out keys
	for _, f := range fields(t) {
		path, inner := join(prefix, f.name), f.typ
		for {
			switch kind := inner.Kind(); {
			case kind == reflect.Pointer:
				inner = inner.Elem()
				continue
			case kind == reflect.Map, kind == reflect.Slice && !isScalar(inner.Elem()):
				path, inner = path+".*", inner.Elem()
				continue
			}
			break
		}
		switch {
		case inner.Kind() == reflect.Struct:
			more, err := keysOf(inner, path)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case isScalar(inner), inner == reflect.TypeFor[[]string]():
			out = append(out, key{path, f})
		default:
			return nil, fmt.Errorf("settings: field %s has type %s, which cannot be loaded", path, inner)
		}
	}
	return out, nil
}

func isScalar(t reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64}, t.Kind())
}

func (ks keys) find(path string) (key, bool) {
	for _, k := range ks {
		if k.path == path {
			return k, true
		}
	}
	return key{}, false
}

// within lists the names that the section at path may contain, "*" for any.
func (ks keys) within(path string) []string {
	var out []string
	for _, k := range ks {
		if rest, ok := strings.CutPrefix("."+k.path, strings.TrimSuffix("."+path, ".")+"."); ok {
			name, _, _ := strings.Cut(rest, ".")
			out = append(out, name)
		}
	}
	return out
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// visit calls do for every setting of v, a settings struct, in the order of its fields. It visits lists and maps element
// by element, and skips nil pointers.
func visit(v reflect.Value, prefix string, do func(key string, v reflect.Value, f field)) {
	for _, f := range fields(v.Type()) {
		visitValue(v.FieldByIndex(f.index), join(prefix, f.name), f, do)
	}
}

func visitValue(v reflect.Value, key string, f field, do func(string, reflect.Value, field)) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			visitValue(v.Elem(), key, f, do)
		}
	case v.Kind() == reflect.Struct:
		visit(v, key, do)
	case v.Kind() == reflect.Map:
		names := v.MapKeys()
		slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			value := reflect.New(v.Type().Elem()).Elem() // a value in a map cannot be changed in place
			value.Set(v.MapIndex(name))
			visitValue(value, join(key, name.String()), f, do)
			v.SetMapIndex(name, value)
		}
	case v.Kind() == reflect.Slice && !isScalar(v.Type().Elem()):
		for i := range v.Len() {
			visitValue(v.Index(i), fmt.Sprintf("%s[%d]", key, i), f, do)
		}
	default:
		do(key, v, f)
	}
}

var durationType, shareType = reflect.TypeFor[time.Duration](), reflect.TypeFor[Share]()
