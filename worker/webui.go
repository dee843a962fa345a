package worker

import (
	"encoding/json"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"reprise/tasks"
)

// uiRoot is the path of asynq's web UI.
const uiRoot = "/ui"

// sharedRedis gives asynqmon the worker's client without its wrapper, because asynqmon has a Redis page only for
// the client types that it knows. The handler is never closed: that would close the worker's connections.
type sharedRedis struct{ rdb redis.UniversalClient }

func (s sharedRedis) MakeRedisClient() any { return s.rdb }

// newWebUI returns asynq's web UI. It is read-only unless changes are allowed, and shows no signatures of URLs.
func newWebUI(rdb redis.UniversalClient, allowChanges bool) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath:         uiRoot,
		RedisConnOpt:     sharedRedis{rdb},
		ReadOnly:         !allowChanges,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(shownPayload),
	})
}

// shownPayload returns a payload for display, with URLs without their query. It does not show a payload that
// cannot be decoded, because that may contain a signed URL.
func shownPayload(typ string, raw []byte) string {
	p, err := tasks.Decode(typ, raw)
	if err != nil {
		return "(not shown: " + err.Error() + ")"
	}
	if p.Input.URL != "" {
		p.Input.URL = tasks.RedactURL(p.Input.URL)
	}
	shown, err := json.Marshal(p)
	if err != nil {
		return "(not shown)"
	}
	return string(shown)
}
