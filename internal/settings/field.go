package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var durationType = reflect.TypeFor[time.Duration]()

// field is one field of a settings struct.
type field struct {
	name   string // its key within the struct
	key    string // its full key, set for leaves
	typ    reflect.Type
	secret string // "", "true" or "url"
	isName bool
	share  bool
	index  []int
}

// node is a settings struct with the leaves reachable without lists or maps.
type node struct {
	typ      reflect.Type
	leaves   []field
	fileOnly []string // the keys of lists and maps of structs
}

func (n node) leaf(key string) (field, bool) {
	for _, l := range n.leaves {
		if l.key == key {
			return l, true
		}
	}
	return field{}, false
}

func describe(into any) (node, error) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return node{}, fmt.Errorf("settings: want a pointer to a struct, got %T", into)
	}
	n := node{typ: v.Elem().Type()}
	var walk func(t reflect.Type, prefix string) error
	walk = func(t reflect.Type, prefix string) error {
		for _, f := range fields(t) {
			f.key = join(prefix, f.name)
			switch {
			case f.typ.Kind() == reflect.Struct:
				if err := walk(f.typ, f.key); err != nil {
					return err
				}
			case f.typ == durationType, scalar(f.typ), f.typ.Kind() == reflect.Slice && scalar(f.typ.Elem()):
				n.leaves = append(n.leaves, f)
			default:
				n.fileOnly = append(n.fileOnly, f.key)
				if err := loadable(f.typ, f.key); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return n, walk(n.typ, "")
}

// loadable checks a type that only a file can fill, with all that is in it.
func loadable(t reflect.Type, key string) error {
	switch {
	case t == durationType, scalar(t):
		return nil
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		return loadable(t.Elem(), key)
	case t.Kind() == reflect.Struct:
		for _, f := range fields(t) {
			if err := loadable(f.typ, join(key, f.name)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("settings: field %s has type %s, which cannot be loaded", key, t)
}

// fields lists the loadable fields of a struct; squashed ones count as its own.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, opts, _ := strings.Cut(sf.Tag.Get("mapstructure"), ",")
		if !sf.IsExported() || name == "-" {
			continue
		}
		if strings.Contains(opts, "squash") {
			for _, f := range fields(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		if name == "" {
			name = sf.Name
		}
		out = append(out, field{
			name: strings.ToLower(name), typ: sf.Type, index: []int{i},
			secret: sf.Tag.Get("secret"), isName: sf.Tag.Get("name") == "true",
			share: sf.Tag.Get("share") == "true",
		})
	}
	return out
}

func scalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

// parse turns the text of a variable or flag into a value of the field.
func (f field) parse(text string, isFile bool) (any, error) {
	switch {
	case isFile, f.typ.Kind() == reflect.String, f.typ == durationType:
		return text, nil
	case f.typ.Kind() == reflect.Slice:
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		return anyList(list), nil
	}
	text = strings.TrimSpace(text)
	switch f.typ.Kind() {
	case reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b, nil
		}
		return nil, errors.New("want true or false")
	case reflect.Float32, reflect.Float64:
		if f.share && strings.HasSuffix(text, "%") {
			return text, nil
		}
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x, nil
		}
		return nil, errors.New("want a number")
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		return nil, errors.New("want a whole number")
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}
