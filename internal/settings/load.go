package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Source says where settings come from. The zero value reads nothing.
type Source struct {
	// Environ is the environment, as os.Environ returns it. Default none. An empty variable counts as not set.
	Environ []string
	// Flags are the flags of the command. Only given flags count. --config names the settings file and precedes
	// REPRISE_CONFIG. The file must exist.
	Flags *pflag.FlagSet
	// FlagNames maps keys to the flags that set them.
	FlagNames map[string]string
	// Shared is for a command that reads only a part of the file. Unknown keys and variables belong to other commands and
	// are ignored, unless they look like a mistyped key of this command.
	Shared bool
}

// Loaded describes how settings were loaded.
type Loaded struct {
	// Warnings are sentences about keys and names that are used in lower case.
	Warnings []string

	origins map[string]string // the variable or flag of a key
}

// Load fills into, a pointer to a struct that holds the defaults. Its error has a line for every wrong key and variable.
// An error leaves into unchanged.
func Load(into any, src Source) (*Loaded, error) {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("settings: expected a pointer to a struct, got %T", into)
	}
	ks, err := keysOf(target.Elem().Type(), "")
	if err != nil {
		return nil, err
	}
	l := &Loaded{origins: map[string]string{}}
	values, warnings, err := readFile(src, ks)
	if err != nil {
		return nil, err
	}
	l.Warnings = warnings
	if err := l.override(values, src, ks); err != nil {
		return nil, err
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

// override writes what variables and flags set into the values of the file. Keys below a list or a map are only in
// the file. A secret replaces the file of an earlier source, and the reverse.
func (l *Loaded) override(values map[string]any, src Source, ks keys) error {
	for _, k := range ks {
		given := map[string]string{}
		for _, path := range k.paths() {
			if value := Getenv(src.Environ, EnvName(path)); value != "" {
				given[path] = value
				l.origins[path] = EnvName(path)
			}
		}
		replace(values, k, given)
	}
	for path, name := range src.FlagNames {
		k, ok := ks.find(path)
		if !ok {
			return fmt.Errorf("flag --%s is bound to %q, which is no key", name, path)
		}
		flag := src.Flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		replace(values, k, map[string]string{path: value})
		l.origins[path] = "--" + name
	}
	return nil
}

// replace replaces a key and the key of its secret's file by the given ones, unless none is given. A section of
// another type keeps its value, which decoding refuses.
func replace(values map[string]any, k key, given map[string]string) {
	if len(given) == 0 {
		return
	}
	parts := strings.Split(k.path, ".")
	sections, last := parts[:len(parts)-1], parts[len(parts)-1]
	for _, part := range sections {
		if values[part] == nil {
			values[part] = map[string]any{}
		}
		inner, ok := values[part].(map[string]any)
		if !ok {
			return
		}
		values = inner
	}
	delete(values, last)
	if k.secret() {
		delete(values, last+fileSuffix)
	}
	for path, value := range given {
		values[last+strings.TrimPrefix(path, k.path)] = argument(value)
	}
}

// finish puts names into lower case, checks ranges and reports variables that no setting reads.
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

// Origin returns the variable or flag that set a key; "" for the file and the default.
func (l *Loaded) Origin(key string) string { return l.origins[key] }

// WithOrigin adds to each key at the start of a line of err the flag or variable that set the key.
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

// originError is an error whose text names the origins.
type originError struct {
	text string
	err  error
}

func (e *originError) Error() string { return e.text }
func (e *originError) Unwrap() error { return e.err }

// configFile returns the settings file that --config or REPRISE_CONFIG names.
func configFile(src Source) string {
	if src.Flags != nil {
		if flag := src.Flags.Lookup("config"); flag != nil && flag.Value.String() != "" {
			return flag.Value.String()
		}
	}
	return Getenv(src.Environ, EnvPrefix+"CONFIG")
}
