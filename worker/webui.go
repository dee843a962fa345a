package worker

import (
	"encoding/json"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"reprise/tasks"
)

// uiRoot is where asynq's web UI is mounted.
const uiRoot = "/ui"

// sharedRedis hands asynqmon a client of ours, bare: it serves its page about
// Redis only to the client types it knows. The handler is never closed, because
// that would close the worker's connections.
type sharedRedis struct{ rdb redis.UniversalClient }

func (s sharedRedis) MakeRedisClient() any { return s.rdb }

// newWebUI is asynq's web UI, read-only unless changes are allowed, with the
// signatures of URLs hidden.
func newWebUI(rdb redis.UniversalClient, allowChanges bool) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath:         uiRoot,
		RedisConnOpt:     sharedRedis{rdb},
		ReadOnly:         !allowChanges,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(shownPayload),
	})
}

// shownPayload is a payload as a page may show it: URLs without their query.
// What does not decode is not shown at all, since it may hold anything.
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
