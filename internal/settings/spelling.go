package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// spelling refuses what viper would pass over without a word: a key that is
// there twice (viper ignores case, and which value wins depends on chance) and
// a second document, of which it reads nothing. Its warnings name the keys that
// are read in lower case: the known ones, and those within them.
func spelling(file []byte, known []field) (warnings []string, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		return nil, nil //nolint:nilerr // empty, or no YAML at all: viper says so
	}
	if !errors.Is(decoder.Decode(&second), io.EOF) {
		return nil, errors.New("a second document (---) in it would not be read")
	}
	if _, err := spellingOf(&first); err != nil {
		return nil, err
	}
	for _, top := range first.Content {
		var read []*yaml.Node
		for pair := range slices.Chunk(top.Content, 2) {
			if slices.ContainsFunc(known, func(f field) bool { return f.name == strings.ToLower(pair[0].Value) }) {
				read = append(read, pair...)
			}
		}
		top.Content = read
	}
	return spellingOf(&first)
}

func spellingOf(n *yaml.Node) (warnings []string, err error) {
	seen := map[string]*yaml.Node{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			name := strings.ToLower(child.Value)
			if before := seen[name]; before != nil {
				return nil, fmt.Errorf("line %d: %s is there already, as %s in line %d", child.Line, child.Value, before.Value, before.Line)
			}
			seen[name] = child
			if name != child.Value {
				warnings = append(warnings, fmt.Sprintf("line %d of the settings file: %q is used as %q", child.Line, child.Value, name))
			}
		}
		more, err := spellingOf(child)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, more...)
	}
	return warnings, nil
}
