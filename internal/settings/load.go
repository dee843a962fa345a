package settings

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// EnvPrefix begins the name of every environment variable read here.
const EnvPrefix = "REPRISE_"

// Source says where settings come from. The zero value reads nothing.
type Source struct {
	// File is the YAML file (the --config flag). Empty: the one REPRISE_CONFIG
	// names, else none. A file that is named must exist.
	File string
	// Getenv reads the environment; nil = none. An empty variable counts as not set.
	Getenv func(string) string
	// Flags maps keys to the flags that set them; only flags that were given count.
	Flags map[string]*pflag.Flag
	// Shared is for a command that reads a part of the file only: unknown keys
	// belong to other commands and are ignored, unless they look like a slip of
	// the pen in one of this command's keys.
	Shared bool
}

// Load fills into, a pointer to a struct that holds the defaults. It reports
// every wrong key at once; warnings are sentences about what was corrected.
// On an error into is left as it was.
func Load(into any, src Source) (warnings []string, err error) {
	root, err := describe(into)
	if err != nil {
		return nil, err
	}
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00")) // keys of maps may have dots
	warnings, err = readFile(v, src, fields(root.typ))
	if err != nil {
		return nil, err
	}
	env, envErr := environment(root, src.Getenv)
	flags, flagErr := flagValues(root, src.Flags)
	if err := errors.Join(envErr, flagErr); err != nil {
		return nil, err
	}
	for _, layer := range []map[string]any{env, flags} {
		if err := v.MergeConfigMap(layer); err != nil {
			return nil, fmt.Errorf("merge settings: %w", err)
		}
	}
	values := given(v, root.typ)
	c := checker{shared: src.Shared, warnings: warnings}
	c.structure(root.typ, values, "")
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	if err := decode(values, into); err != nil {
		return nil, err
	}
	return c.warnings, nil
}

func readFile(v *viper.Viper, src Source, known []field) (warnings []string, err error) {
	file := src.File
	if file == "" && src.Getenv != nil {
		file = src.Getenv(EnvPrefix + "CONFIG")
	}
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("open settings file: %w", err)
	}
	v.SetConfigType("yaml")
	warnings, err = spelling(text, known)
	if err := errors.Join(v.ReadConfig(bytes.NewReader(text)), err); err != nil {
		return nil, fmt.Errorf("read settings file %s: %w", file, err)
	}
	return warnings, nil
}

// given is everything that was set. viper's AllSettings would leave out keys
// without a value and empty sections: a typing error, and a group that has its
// queue and nothing else.
func given(v *viper.Viper, t reflect.Type) map[string]any {
	out := map[string]any{}
	for _, key := range v.AllKeys() {
		top, _, _ := strings.Cut(key, "\x00")
		out[top] = v.Get(top)
	}
	for _, f := range fields(t) { // an empty section has no keys
		if value := v.Get(f.name); value != nil {
			out[f.name] = value
		}
	}
	return out
}

// decode runs after every value was checked, so it only converts.
func decode(values map[string]any, into any) error {
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:     into,
		DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
	})
	if err != nil {
		return fmt.Errorf("prepare settings: %w", err)
	}
	if err := dec.Decode(values); err != nil {
		// Its text quotes values, which may be secrets.
		return errors.New("settings do not fit their types")
	}
	return nil
}

// environment reads the variables of every key that is a single value or a
// list of texts. Lists and maps of structs come from the file only.
func environment(root node, getenv func(string) string) (map[string]any, error) {
	out := map[string]any{}
	if getenv == nil {
		return out, nil
	}
	var errs []error
	for _, leaf := range root.leaves {
		names := []string{leaf.key}
		if leaf.secret != "" {
			names = append(names, leaf.key+fileSuffix)
		}
		for _, key := range names {
			name := EnvName(key)
			text := getenv(name)
			if text == "" {
				continue
			}
			value, err := leaf.parse(text, key != leaf.key)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s (%s): %w", key, name, err))
				continue
			}
			put(out, key, value)
		}
	}
	return out, errors.Join(errs...)
}

// EnvName is the environment variable of a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

func flagValues(root node, flags map[string]*pflag.Flag) (map[string]any, error) {
	out := map[string]any{}
	var errs []error
	for key, flag := range flags {
		leaf, ok := root.leaf(key)
		if !ok {
			return nil, fmt.Errorf("flag --%s is bound to %q, which is no key", flag.Name, key)
		}
		if !flag.Changed {
			continue
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			put(out, key, anyList(list.GetSlice()))
			continue
		}
		value, err := leaf.parse(flag.Value.String(), false)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s (--%s): %w", key, flag.Name, err))
			continue
		}
		put(out, key, value)
	}
	return out, errors.Join(errs...)
}

// put stores a value under a dotted key in nested maps.
func put(m map[string]any, key string, value any) {
	parts := strings.Split(key, ".")
	for _, part := range parts[:len(parts)-1] {
		next, ok := m[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[part] = next
		}
		m = next
	}
	m[parts[len(parts)-1]] = value
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return 0, errors.New("want a duration such as 30s, 5m or 1h30m")
	}
	return d, nil
}
