package blackbox

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/tasks"
	"reprise/test/rig"
)

// The secrets consist of letters and digits, so that no encoding but base64
// hides them.
const (
	secretToken     = "SECRETtoken4f8c2b7e"
	secretSignature = "SECRETsignature93ad51"
	secretPassword  = "SECRETpassword6e07cc"
)

// search looks for the secrets in everything that the processes of a rig write.
type search struct {
	t        *testing.T
	payloads []string // of the tasks, in each stored form
	places   int      // searched so far
}

func newSearch(t *testing.T, payloads ...tasks.Payload) *search {
	t.Helper()
	s := &search{t: t}
	for _, p := range payloads {
		task, err := p.Task("")
		require.NoError(t, err)
		s.allow(task.Payload())
	}
	return s
}

// allow lets this payload, as a whole, contain a signature.
func (s *search) allow(payload []byte) {
	s.payloads = append(s.payloads, string(payload), base64.StdEncoding.EncodeToString(payload))
}

// text fails the test if a text contains a secret.
func (s *search) text(where, text string) {
	s.t.Helper()
	s.places++
	for _, secret := range []string{secretToken, secretSignature, secretPassword} {
		for _, form := range forms(secret) {
			if i := strings.Index(text, form); i >= 0 {
				s.t.Errorf("%s contains %s: …%q…", where, secret, text[max(0, i-120):min(len(text), i+len(form)+20)])
				return
			}
		}
	}
}

// forms returns a secret in plain and in base64, at each of the three offsets
// within a group of three bytes.
func forms(secret string) []string {
	out := []string{secret}
	for shift := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		out = append(out, coded[4:len(coded)-4])
	}
	return out
}

// stored is text for places that store payloads.
func (s *search) stored(where, text string) {
	s.t.Helper()
	for _, p := range s.payloads {
		text = strings.ReplaceAll(text, p, "(payload)")
	}
	s.text(where, text)
}

// process searches the output of a command.
func (s *search) process(p *proctest.Process) {
	s.t.Helper()
	s.text(p.Name+"'s stdout", p.Out.String())
	s.text(p.Name+"'s stderr", p.Log.String())
}

// pages searches the pages and metrics of the admin listener.
func (s *search) pages(addr string, payloads []tasks.Payload) {
	s.t.Helper()
	paths := []string{"/metrics", "/readyz", "/ui/", "/ui/api/queues", "/ui/api/servers", "/ui/api/redis_info", "/ui/api/scheduler_entries"}
	for _, path := range tasks.Paths {
		queue := "/ui/api/queues/" + path.Queue("")
		paths = append(paths, queue)
		for _, state := range []string{"pending", "active", "scheduled", "retry", "archived", "completed"} {
			paths = append(paths, queue+"/"+state+"_tasks")
		}
	}
	for _, p := range payloads {
		paths = append(paths, "/ui/api/queues/"+recognize+"/tasks/"+url.PathEscape(p.Key))
	}
	s.pagesOf(addr, paths...)
}

func (s *search) pagesOf(addr string, paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		resp, err := http.Get("http://" + addr + path)
		require.NoError(s.t, err, path)
		raw, err := io.ReadAll(resp.Body)
		require.NoError(s.t, err, path)
		require.NoError(s.t, resp.Body.Close())
		require.NotEqual(s.t, http.StatusForbidden, resp.StatusCode, path)
		s.text(path, string(raw)+fmt.Sprint(resp.Header))
	}
}

// redis searches every key and value, and the files of Redis.
func (s *search) redis(r *rig.Rig) {
	s.t.Helper()
	ctx := s.t.Context()
	keys, err := r.Redis.Keys(ctx, "*").Result()
	require.NoError(s.t, err)
	require.NotEmpty(s.t, keys)
	for _, key := range keys {
		s.stored("the Redis key "+key, key+"\n"+value(ctx, s.t, r.Redis, key))
		id, isTask := strings.CutPrefix(key, asynqkey.Task(recognize, ""))
		if !isTask {
			continue
		}
		if info, err := r.Inspector.GetTaskInfo(recognize, id); err == nil {
			s.text("the task's last error", info.LastErr)
			s.text("the task's result", string(info.Result))
		}
	}
	s.never(r.Server.Dir(), secretToken, secretPassword)
}

// value returns the value of a key as text.
func value(ctx context.Context, t *testing.T, rdb *redis.Client, key string) string {
	t.Helper()
	var v any
	var err error
	switch kind := rdb.Type(ctx, key).Val(); kind {
	case "string":
		v, err = rdb.Get(ctx, key).Result()
	case "hash":
		v, err = rdb.HGetAll(ctx, key).Result()
	case "list":
		v, err = rdb.LRange(ctx, key, 0, -1).Result()
	case "set":
		v, err = rdb.SMembers(ctx, key).Result()
	case "zset":
		v, err = rdb.ZRange(ctx, key, 0, -1).Result()
	case "stream":
		v, err = rdb.XRange(ctx, key, "-", "+").Result()
	case "none": // deleted since
		return ""
	default:
		require.Fail(t, "unknown type of key", "%s: %s", key, kind)
	}
	if err != nil {
		require.ErrorIs(t, err, redis.Nil, key)
	}
	return fmt.Sprint(v)
}

// store searches every column except payloads, and the bytes of the files for
// the secrets that a payload must not contain either.
func (s *search) store(r *rig.Rig) {
	s.t.Helper()
	db := r.Store.DB()
	tables, err := texts(s.t, db, "SELECT name FROM sqlite_master WHERE type = 'table'")
	require.NoError(s.t, err)
	require.Greater(s.t, len(tables), 3)
	for _, table := range tables {
		columns, err := texts(s.t, db, "SELECT name FROM pragma_table_info('"+table+"')")
		require.NoError(s.t, err)
		for _, column := range columns {
			if column == "payload" {
				continue
			}
			values, err := texts(s.t, db, `SELECT CAST("`+column+`" AS TEXT) FROM "`+table+`" WHERE "`+column+`" IS NOT NULL`)
			require.NoError(s.t, err)
			s.text("the store's "+table+"."+column, strings.Join(values, "\n"))
		}
	}
	s.never(filepath.Dir(r.StoreFile()), secretToken, secretPassword)
}

func texts(t *testing.T, db *sql.DB, query string) (out []string, err error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// never fails the test if a file below a folder contains one of these secrets.
func (s *search) never(dir string, secrets ...string) {
	s.t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(file)
		for _, secret := range secrets {
			if strings.Contains(string(raw), secret) {
				s.t.Errorf("the file %s contains %s", file, secret)
			}
		}
		s.places++
		return err
	})
	require.NoError(s.t, err)
}
