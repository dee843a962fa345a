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
	exchangeScript = script("prelude", "header", "calendar", "budget", "record", "rate", "adapt", "shutter", "choose", "acquire", "report",
		"settle", "exchange")
	renewScript  = script("prelude", "budget", "record", "renew")
	limitsScript = script("prelude", "limits")
	seedScript   = script("prelude", "record", "seed")
	gateScript   = script("prelude", "shutter", "gate")
	peekScript   = script("prelude", "record", "peek")
	pauseScript  = script("prelude", "pause")
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

// run executes a script and returns its reply list; every failure is
// ErrUnavailable: without an answer there is no permit.
func (g *Gates) run(ctx context.Context, s *redis.Script, args []any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	reply, err := s.Run(ctx, g.rdb, []string{g.cfg.Prefix + "g"}, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("run admission script: %w: %w", ErrUnavailable, err)
	}
	return reply, nil
}
