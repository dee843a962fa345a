package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"reprise/internal/text"
)

const fileSuffix = "_file"

// quotedText is where an error of the YAML reader quotes the file, which may hold a secret.
var quotedText = regexp.MustCompile("(?s) '.{2,}'|`.*`")

// readFile returns the values of the settings file with keys in lower case, and a warning for each key of ks that
// the file spells in another case. It refuses what viper ignores: a key that occurs in two spellings, and a second
// document.
func readFile(src Source, ks keys) (values map[string]any, warnings []string, err error) {
	values = map[string]any{}
	file := configFile(src)
	if file == "" {
		return values, nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("open settings file: %w", err)
	}
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00")) // names in maps may have dots
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(raw)); err != nil {
		return nil, nil, fmt.Errorf("read settings file %s: %s", file, quotedText.ReplaceAllString(err.Error(), ""))
	}
	if warnings, err = checkSpelling(raw, ks); err != nil {
		return nil, nil, fmt.Errorf("read settings file %s: %w", file, err)
	}
	for _, name := range append(v.AllKeys(), ks.within("")...) { // viper lists no key for an empty section
		top, _, _ := strings.Cut(name, "\x00")
		if value := v.Get(top); value != nil || v.InConfig(top) {
			values[top] = value
		}
	}
	return values, warnings, nil
}

// checkSpelling returns the warnings and the errors of readFile about the spelling of keys.
func checkSpelling(file []byte, ks keys) (warnings []string, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		return nil, nil //nolint:nilerr // the file is empty: viper has reported other errors
	}
	if !errors.Is(decoder.Decode(&second), io.EOF) {
		return nil, errors.New("it has a second YAML document (---), which is not supported")
	}
	return lowerCased(first.Content[0], ks.within(""))
}

// lowerCased returns a warning for every key of n that is not in lower case. known are the keys of n to report, nil =
// all.
func lowerCased(n *yaml.Node, known []string) (warnings []string, err error) {
	seen := map[string]*yaml.Node{}
	for i, child := range n.Content {
		var found []string
		name := strings.ToLower(n.Content[i-i%2].Value) // of the pair
		switch {
		case n.Kind != yaml.MappingNode || i%2 == 1:
			if found, err = lowerCased(child, nil); err != nil {
				return nil, err
			}
		case seen[name] != nil:
			return nil, fmt.Errorf("line %d: %s is a duplicate of %s in line %d", child.Line, child.Value, seen[name].Value, seen[name].Line)
		case name != child.Value:
			found = []string{fmt.Sprintf("line %d of the settings file: %q is used as %q", child.Line, child.Value, name)}
			fallthrough
		default:
			seen[name] = child
		}
		if known == nil || slices.Contains(known, name) {
			warnings = append(warnings, found...)
		}
	}
	return warnings, nil
}

// keyCheck checks the values of the file, variables and flags before they are decoded. It refuses unknown keys and keys
// without a value. For every secret it replaces KEY_file by KEY with the content of the file.
type keyCheck struct {
	keys   keys
	shared bool // unknown keys are those of other commands
	errs   []error
}

func (c *keyCheck) fail(key string, err error) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", key, err))
}

// section checks the values of a section or list. pattern is its path among the keys.
func (c *keyCheck) section(values any, path, pattern string) {
	known := c.keys.within(pattern)
	anyName := slices.Contains(known, "*")
	switch values := values.(type) {
	case []any:
		for i, value := range values {
			if anyName {
				c.value(value, fmt.Sprintf("%s[%d]", path, i), pattern+".*")
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(values)) {
			at, inner := join(path, name), join(pattern, name)
			secret, isFile := strings.CutSuffix(name, fileSuffix)
			switch k, _ := c.keys.find(join(pattern, secret)); {
			case isFile && k.secret():
				if err := readSecret(values, secret, join(path, secret)); err != nil {
					c.fail(at, err)
				}
			case anyName:
				c.value(values[name], at, pattern+".*")
			case slices.Contains(known, name):
				c.value(values[name], at, inner)
			case len(known) > 0:
				c.unknown(name, path, known)
			}
		}
	}
}

func (c *keyCheck) value(value any, path, pattern string) {
	if value == nil {
		c.fail(path, errBlank)
	}
	c.section(value, path, pattern)
}

func (c *keyCheck) unknown(name, section string, known []string) {
	if near := text.Nearest(name, known); near != "" {
		c.fail(join(section, name), fmt.Errorf("unknown key, did you mean %s?", join(section, near)))
	} else if !c.shared {
		c.fail(join(section, name), errors.New("unknown key"))
	}
}

// readSecret replaces base_file by base, whose path is key, in a section.
func readSecret(section map[string]any, base, key string) error {
	file, ok := section[base+fileSuffix].(string)
	if t, given := section[base+fileSuffix].(argument); given {
		file, ok = string(t), true
	}
	delete(section, base+fileSuffix)
	if section[base] != nil {
		return fmt.Errorf("set together with %s: use one", key)
	}
	if !ok || strings.TrimSpace(file) == "" {
		return errors.New("expected the path of a file")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read secret: %w", err)
	}
	content := strings.TrimRight(string(raw), "\r\n")
	if strings.TrimSpace(content) == "" {
		return fmt.Errorf("the file %s is empty", file)
	}
	section[base] = content
	return nil
}
