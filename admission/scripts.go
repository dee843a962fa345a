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

// A script is its parts in order; Redis sees one text and runs it atomically.
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
			panic("admission: embedded script " + part + " is missing") // a build without its own files
		}
		text.Write(src)
		text.WriteByte('\n')
	}
	return redis.NewScript(text.String())
}

// runner runs scripts on the keys under a prefix.
type runner struct {
	rdb    redis.UniversalClient
	prefix string
}

// run sends a request to a script and reads its reply, both JSON. Every failure
// wraps ErrUnavailable: without a reply nothing is admitted.
func (r runner) run(ctx context.Context, s *redis.Script, request, reply any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("write admission request: %w: %w", ErrUnavailable, err)
	}
	answer, err := s.Run(ctx, r.rdb, []string{r.prefix + "state:global"}, r.prefix, text).Text()
	if err != nil {
		return fmt.Errorf("run admission script: %w: %w", ErrUnavailable, err)
	}
	if err := json.Unmarshal([]byte(answer), reply); err != nil {
		return fmt.Errorf("read admission reply: %w: %w", ErrUnavailable, err)
	}
	return nil
}
