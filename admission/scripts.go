package admission

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is its parts in order; Redis sees one text and runs it atomically.
var (
	exchangeScript = script("prelude", "exchange", "record", "acquire", "settle", "exchange_main")
	renewScript    = script("prelude", "record", "renew")
)

func script(parts ...string) *redis.Script {
	var text strings.Builder
	for _, part := range parts {
		src, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic("admission: embedded script " + part + " is missing") // a build without its own files
		}
		text.Write(src)
		text.WriteByte('\n')
	}
	return redis.NewScript(text.String())
}

// run executes a script and returns its reply list; every failure is ErrUnavailable.
func (g *Gates) run(ctx context.Context, s *redis.Script, args []any) ([]any, error) {
	reply, err := s.Run(ctx, g.rdb, []string{g.cfg.Prefix + "g"}, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("run admission script: %w: %w", ErrUnavailable, err)
	}
	return reply, nil
}
