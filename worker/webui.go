package worker

import (
	"encoding/json"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"

	"reprise/tasks"
)

// uiRoot is where asynq's web UI is mounted.
const uiRoot = "/ui"

// sharedRedis gives asynqmon the worker's client without its wrapper: asynqmon
// shows its Redis page only for the client types it knows. The handler is never
// closed, because that would close the worker's connections.
type sharedRedis struct{ rdb redis.UniversalClient }

func (s sharedRedis) MakeRedisClient() any { return s.rdb }

// newWebUI is asynq's web UI, read-only unless changes are allowed, without
// the signatures of URLs.
func newWebUI(rdb redis.UniversalClient, allowChanges bool) *asynqmon.HTTPHandler {
	return asynqmon.New(asynqmon.Options{
		RootPath:         uiRoot,
		RedisConnOpt:     sharedRedis{rdb},
		ReadOnly:         !allowChanges,
		PayloadFormatter: asynqmon.PayloadFormatterFunc(shownPayload),
	})
}

// shownPayload is a payload for display: URLs without their query. A payload
// that does not decode is not shown, since it may hold a signed URL.
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
