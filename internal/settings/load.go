package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Source says where settings come from. The zero value reads nothing.
type Source struct {
	// Environ is the environment, as os.Environ returns it. Default none. An empty
	// variable counts as not set.
	Environ []string
	// Flags are the flags of the command; only those that were given count.
	// --config names the settings file, before REPRISE_CONFIG; the file must exist.
	Flags *pflag.FlagSet
	// FlagNames maps keys to the flags that set them.
	FlagNames map[string]string
	// Shared is for a command that reads a part of the file only: unknown keys and
	// variables belong to other commands and are ignored, unless they look like a
	// typo of a key of this command.
	Shared bool
}

// Loaded is how settings were loaded.
type Loaded struct {
	// Warnings are sentences about values that are used in another spelling.
	Warnings []string

	origins map[string]string // the variable or flag of a key
}

// Load fills into, a pointer to a struct that holds the defaults. Its error has
// a line for every wrong key and variable; into is not changed then.
func Load(into any, src Source) (*Loaded, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("settings: expected a pointer to a struct, got %T", into)
	}
	ks, err := keysOf(target.Elem().Type(), "")
	if err != nil {
		return nil, err
	}
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00")) // the names in maps may have dots
	l := &Loaded{origins: map[string]string{}}
	if l.Warnings, err = readFile(v, src, ks); err != nil {
		return nil, err
	}
	given, err := l.given(src, ks)
	if err != nil {
		return nil, err
	}
	if err := v.MergeConfigMap(given); err != nil {
		return nil, fmt.Errorf("merge settings: %w", err)
	}
	values := map[string]any{}
	for _, name := range append(v.AllKeys(), ks.within("")...) { // an empty section has no keys in viper
		top, _, _ := strings.Cut(name, "\x00")
		if value := v.Get(top); value != nil || v.InConfig(top) {
			values[top] = value
		}
	}
	check := keyCheck{keys: ks, shared: src.Shared}
	check.section(values, "", "")
	fresh := reflect.New(target.Elem().Type())
	fresh.Elem().Set(target.Elem())
	errs := slices.Concat(check.errs, decode(values, fresh.Interface()))
	if len(errs) == 0 {
		errs = l.finish(fresh.Elem(), ks, src)
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, l.WithOrigin(errors.Join(errs...))
	}
	target.Elem().Set(fresh.Elem())
	return l, nil
}

// given is what variables and flags set, as nested maps. Lists and maps of
// sections come from the file only.
func (l *Loaded) given(src Source, ks keys) (map[string]any, error) {
	out := map[string]any{}
	put := func(key, origin string, value any) {
		section, parts := out, strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			if section[part] == nil {
				section[part] = map[string]any{}
			}
			section, _ = section[part].(map[string]any)
		}
		section[parts[len(parts)-1]] = value
		l.origins[key] = origin
	}
	for _, k := range ks {
		for _, path := range []string{k.path, k.path + fileSuffix} {
			value := Getenv(src.Environ, EnvName(path))
			if value != "" && !k.fileOnly() && (path == k.path || k.secret()) {
				put(path, EnvName(path), argument(value))
			}
		}
	}
	for key, name := range src.FlagNames {
		flag := src.Flags.Lookup(name)
		if _, ok := ks.find(key); !ok {
			return nil, fmt.Errorf("flag --%s is bound to %q, which is no key", name, key)
		}
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		put(key, "--"+name, argument(value))
	}
	return out, nil
}

// finish lower-cases names, checks ranges and looks for variables that no
// setting reads.
func (l *Loaded) finish(v reflect.Value, ks keys, src Source) (errs []error) {
	var variables []string
	visit(v, "", func(key string, v reflect.Value, f field) {
		switch {
		case f.tag.Get("name") != "":
			clean := strings.ToLower(strings.TrimSpace(v.String()))
			if clean != v.String() {
				l.Warnings = append(l.Warnings, fmt.Sprintf("%s: %q is used as %q", key, v.String(), clean))
			}
			v.SetString(clean)
		case f.tag.Get("variable") != "":
			variables = append(variables, v.String())
		case f.tag.Get("min") != "":
			least, err := strconv.ParseFloat(f.tag.Get("min"), 64)
			if n, _ := strconv.ParseFloat(fmt.Sprint(v.Interface()), 64); err != nil || n < least {
				errs = append(errs, fmt.Errorf("%s %v: must be %v or more", key, v.Interface(), least))
			}
		}
	})
	return append(errs, unknownVariables(ks, src, variables)...)
}

// Origin is the variable or flag that set a key; "" for the file and the default.
func (l *Loaded) Origin(key string) string { return l.origins[key] }

// WithOrigin adds to each key at the start of a line of err the flag or variable
// that set it.
func (l *Loaded) WithOrigin(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if cut := strings.IndexAny(line, ": "); cut > 0 && l.origins[line[:cut]] != "" {
			lines[i] = fmt.Sprintf("%s (%s)%s", line[:cut], l.origins[line[:cut]], line[cut:])
		}
	}
	return &originError{text: strings.Join(lines, "\n"), err: err}
}

// originError is an error with the origins in its text.
type originError struct {
	text string
	err  error
}

func (e *originError) Error() string { return e.text }
func (e *originError) Unwrap() error { return e.err }

// configFile is the settings file that --config or REPRISE_CONFIG names.
func configFile(src Source) string {
	if src.Flags != nil {
		if flag := src.Flags.Lookup("config"); flag != nil && flag.Value.String() != "" {
			return flag.Value.String()
		}
	}
	return Getenv(src.Environ, EnvPrefix+"CONFIG")
}
