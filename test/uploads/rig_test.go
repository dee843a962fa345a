package uploads

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
)

// rig is what enqueuing and a worker need: a redis-server, with a proxy before
// it for the enqueuer, a SQLite file, a simulator.
type rig struct {
	t      *testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	rdb    *redis.Client
	sim    *auddsim.Server
	dir    string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, server: redistest.NewServer(t, redistest.AOF("always")), sim: auddsim.Start(t), dir: t.TempDir()}
	r.proxy = redistest.NewProxy(t, r.server.Addr())
	r.rdb = r.server.Client()
	return r
}

func (r *rig) storeURL() string { return "sqlite:" + filepath.Join(r.dir, "reprise.db") }

func (r *rig) env(redisURL string) []string {
	return []string{
		"REPRISE_REDIS_URL=" + redisURL, "REPRISE_STORE_URL=" + r.storeURL(), "AUDD_API_TOKEN=uploads-token-3b7c",
		"REPRISE_LOG_LEVEL=debug", "REPRISE_LOG_FORMAT=json", "USER=ann",
	}
}

// worker starts `worker run` against the simulator and waits until it is ready.
func (r *rig) worker() *proctest.Process {
	r.t.Helper()
	p := proctest.Start(r.t, r.env(r.server.URL()), "worker", "run", "--admin", "127.0.0.1:0", "--base-url", r.sim.URL, "--enterprise-url", r.sim.EnterpriseURL)
	p.Line("ready", patience)
	return p
}

// enqueue starts `enqueue upload` behind the proxy.
func (r *rig) enqueue(args ...string) *proctest.Process {
	r.t.Helper()
	url := strings.Replace(r.server.URL(), r.server.Addr(), r.proxy.Addr(), 1)
	return proctest.Start(r.t, r.env(url), "enqueue", append([]string{"upload", "--quiet"}, args...)...)
}

// entered counts the uploads that ever came into the queue: what ends stays
// for a day.
func (r *rig) entered() int {
	r.t.Helper()
	c, err := redistest.CountTasks(r.t.Context(), r.rdb, "upload")
	require.NoError(r.t, err)
	return c.Total()
}

// catalog writes n tracks of distinct content and their manifest, with ids
// from 1,000, and returns the hashes by id.
func (r *rig) catalog(n int) (manifest string, hashes map[int64]string) {
	r.t.Helper()
	var rows bytes.Buffer
	rows.WriteString("audio_id,file,external_id\n")
	hashes = map[int64]string{}
	require.NoError(r.t, os.Mkdir(filepath.Join(r.dir, "tracks"), 0o700))
	for i := range n {
		content := wav(uint64(i))
		id, name := int64(1000+i), fmt.Sprintf("tracks/%03d.wav", i)
		require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), content, 0o600))
		fmt.Fprintf(&rows, "%d,%s,track-%d\n", id, name, i)
		sum := sha256.Sum256(content)
		hashes[id] = hex.EncodeToString(sum[:])
	}
	manifest = filepath.Join(r.dir, "catalog.csv")
	require.NoError(r.t, os.WriteFile(manifest, rows.Bytes(), 0o600))
	return manifest, hashes
}

// ledger is every upload the ledger knows, by audio_id, and how often each key
// was latched.
func (r *rig) ledger() (entries map[int64]idempotency.Entry, sends map[int64]int) {
	r.t.Helper()
	cfg := store.DefaultConfig()
	cfg.URL = r.storeURL()
	st, err := store.Open(r.t.Context(), cfg)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, st.Close()) }()
	l, err := idempotency.New(r.t.Context(), st.DB(), idempotency.DefaultConfig())
	require.NoError(r.t, err)
	found, err := l.List(r.t.Context(), idempotency.Filter{Limit: 10_000})
	require.NoError(r.t, err)
	entries, sends = map[int64]idempotency.Entry{}, map[int64]int{}
	for _, e := range found {
		require.NotContains(r.t, entries, e.AudioID)
		entries[e.AudioID] = e
		d, err := l.Show(r.t.Context(), e.Key)
		require.NoError(r.t, err)
		for _, s := range d.Sends {
			if s.State != idempotency.Released { // released: it was not sent
				sends[e.AudioID]++
			}
		}
	}
	return entries, sends
}

// wav is a tenth of a second of noise as PCM, 8 kHz, 8 bit, mono.
func wav(seed uint64) []byte {
	noise := make([]byte, 800)
	random := rand.New(rand.NewPCG(seed, 7))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	b.WriteString("RIFF")
	little(&b, uint32(36+len(noise)))
	b.WriteString("WAVEfmt ")
	little(&b, uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8))
	b.WriteString("data")
	little(&b, uint32(len(noise)))
	b.Write(noise)
	return b.Bytes()
}

func little(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a Buffer takes everything
	}
}
