package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// oneMeaning refuses what viper would pass over without a word: a key that is
// there twice (viper ignores case, and which value wins depends on chance) and
// a second document, of which it reads nothing.
func oneMeaning(file []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		return nil //nolint:nilerr // empty, or no YAML at all: viper says so
	}
	if !errors.Is(decoder.Decode(&second), io.EOF) {
		return errors.New("a second document (---) in it would not be read")
	}
	return oneSpelling(&first)
}

func oneSpelling(n *yaml.Node) error {
	seen := map[string]*yaml.Node{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			name := strings.ToLower(child.Value)
			if before := seen[name]; before != nil {
				return fmt.Errorf("line %d: %s is there already, as %s in line %d", child.Line, child.Value, before.Value, before.Line)
			}
			seen[name] = child
		}
		if err := oneSpelling(child); err != nil {
			return err
		}
	}
	return nil
}
