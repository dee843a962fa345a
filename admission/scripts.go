package admission

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is the text of its parts in this order. Redis runs it atomically.
var (
	exchangeScript = script("prelude", "budget", "record", "rate", "aimd", "block", "sources", "acquire", "report", "settle", "exchange")
	checkScript    = script("prelude", "budget", "record", "rate", "aimd", "block", "sources", "acquire", "check")
	renewScript    = script("prelude", "budget", "record", "renew")
	limitsScript   = script("prelude", "limits")
	seedScript     = script("prelude", "budget", "record", "seed")
	haltScript     = script("prelude", "block", "halt")
	readScript     = script("prelude", "record", "read")
	pauseScript    = script("prelude", "pause")
)

func script(parts ...string) *redis.Script {
	var text strings.Builder
	for _, part := range parts {
		src, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic("admission: the embedded script " + part + " is missing") // the build lacks its own files
		}
		text.Write(src)
		text.WriteByte('\n')
	}
	return redis.NewScript(text.String())
}

// scripts runs scripts on the keys below a prefix.
type scripts struct {
	rdb    redis.UniversalClient
	prefix string
}

// run sends a JSON request to a script and reads its JSON reply. Every error wraps ErrUnavailable, because nothing is
// admitted without a reply.
func (r scripts) run(ctx context.Context, s *redis.Script, request, reply any) error {
	sent, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("write admission request: %w: %w", ErrUnavailable, err)
	}
	text, err := s.Run(ctx, r.rdb, []string{r.prefix + "state:global"}, r.prefix, sent).Text()
	if err != nil {
		return fmt.Errorf("run admission script: %w: %w", ErrUnavailable, err)
	}
	if err := json.Unmarshal([]byte(text), reply); err != nil {
		return fmt.Errorf("read admission reply: %w: %w", ErrUnavailable, err)
	}
	return nil
}
