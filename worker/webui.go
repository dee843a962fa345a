package worker

import (
	"encoding/json"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"reprise/tasks"
)

// uiRoot is where asynq's web UI is mounted.
const uiRoot = "/ui"

// sharedRedis hands asynqmon a client of ours. Its Close does nothing: the
// connections belong to the worker.
type sharedRedis struct{ redis.UniversalClient }

func (s sharedRedis) MakeRedisClient() any { return s }

// Close leaves the shared client open.
func (sharedRedis) Close() error { return nil }

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
