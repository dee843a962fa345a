package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// Share is a part of a whole, from 0 to 1. Settings write it as 70% or 0.7. A bare 70 is refused as ambiguous.
type Share float64

// argument is the value of an environment variable or flag. Unlike a string in a settings file, it is converted to
// a number, boolean or list if the field has that type.
type argument string

// as returns t as a file would hold a value of the type, or as text if t has no such form.
func (t argument) as(typ reflect.Type) any {
	trimmed := strings.TrimSpace(string(t))
	var value any
	err := strconv.ErrSyntax
	switch kind := typ.Kind(); {
	case kind == reflect.String, typ == durationType:
	case kind == reflect.Slice:
		var list []any
		for part := range strings.SplitSeq(string(t), ",") {
			list = append(list, strings.TrimSpace(part))
		}
		return list
	case kind == reflect.Bool:
		value, err = strconv.ParseBool(trimmed)
	case kind == reflect.Float64:
		value, err = strconv.ParseFloat(trimmed, 64)
	default:
		value, err = strconv.ParseInt(trimmed, 10, 64)
	}
	if err != nil {
		return string(t)
	}
	return value
}

// convert is the decode hook. It checks a value against the type of its field. Without it mapstructure reads 1.5 as 1,
// and a duration without a unit as nanoseconds.
func convert(from, to reflect.Value) (any, error) {
	raw := from.Interface()
	if t, ok := raw.(argument); ok {
		raw = t.as(to.Type())
	}
	expect := func(ok bool, what string) (any, error) {
		if ok {
			return raw, nil
		}
		return nil, fmt.Errorf("expected %s, got %s", what, kindOf(raw))
	}
	value := reflect.ValueOf(raw)
	switch kind := to.Kind(); {
	case kind == reflect.Pointer:
		return raw, nil
	case to.Type() == durationType:
		s, _ := raw.(string)
		d, err := time.ParseDuration(strings.TrimSpace(s))
		raw = d
		return expect(err == nil, "a duration such as 30s, 5m or 1h30m")
	case to.Type() == shareType:
		return share(raw)
	case kind == reflect.Struct, kind == reflect.Map:
		_, ok := raw.(map[string]any)
		return expect(ok, "a section with keys")
	case kind == reflect.Slice:
		_, ok := raw.([]any)
		return expect(ok, "a list")
	case kind == reflect.String:
		s, ok := raw.(string)
		if ok && strings.TrimSpace(s) == "" {
			return nil, errBlank
		}
		if value.Kind() == reflect.Map || value.Kind() == reflect.Slice {
			return expect(ok, "a string")
		}
		return expect(ok, "a string in quotes")
	case kind == reflect.Bool:
		return expect(value.Kind() == reflect.Bool, "true or false")
	case kind == reflect.Float64:
		finite := !value.CanFloat() || !math.IsNaN(value.Float()) && !math.IsInf(value.Float(), 0)
		return expect((value.CanFloat() || value.CanInt()) && finite, "a number")
	}
	if value.CanUint() { // YAML has it for what int64 cannot hold
		return nil, fmt.Errorf("%d is out of range", raw)
	}
	return expect(value.CanInt(), "a whole number")
}

// share returns 70% or 0.7 as 0.7.
func share(raw any) (any, error) {
	part, err := 0.0, strconv.ErrSyntax
	switch v := raw.(type) {
	case string:
		if number, ok := strings.CutSuffix(strings.TrimSpace(v), "%"); ok {
			part, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
			part /= 100
		}
	case float64:
		part, err = v, nil
	case int, int64:
		part, err = float64(reflect.ValueOf(v).Int()), nil
	}
	if err != nil || !(part >= 0 && part <= 1) {
		return nil, errors.New("expected a share such as 70% or 0.7, from 0 (off) to 1")
	}
	return part, nil
}

// kindOf returns the kind of a value in a file in words, without the value.
func kindOf(raw any) string {
	switch raw.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case map[string]any:
		return "a section"
	case []any:
		return "a list"
	case float64:
		return "a fraction"
	}
	return "a number"
}

var errBlank = errors.New("is blank: give a value or leave the key out")

// brackets match an element of a list or a map in mapstructure's names.
var brackets = regexp.MustCompile(`\[(.*?)\]`)

// decode writes values into the struct that into points to. It returns an error for each value of a wrong type.
func decode(values map[string]any, into any) []error {
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: into, DecodeHook: convert, MapFieldName: snake})
	if err == nil {
		err = dec.Decode(values)
	}
	return decodeErrors(err)
}

// decodeErrors walks mapstructure's error tree and returns its field errors. Any other error becomes a generic message,
// because its text may contain a secret.
func decodeErrors(err error) (out []error) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
	case *mapstructure.DecodeError:
		out = append(out, fmt.Errorf("%s: %w", dotted(e.Name()), e.Unwrap()))
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			out = append(out, decodeErrors(inner)...)
		}
	case interface{ Unwrap() error }:
		out = decodeErrors(e.Unwrap())
	default:
		out = append(out, errors.New("a setting has a value of the wrong type"))
	}
	return out
}

// dotted returns mapstructure's name of a key with dots before the names in maps.
func dotted(name string) string {
	return brackets.ReplaceAllStringFunc(name, func(s string) string {
		if _, err := strconv.Atoi(s[1 : len(s)-1]); err == nil {
			return s
		}
		return "." + s[1:len(s)-1]
	})
}
