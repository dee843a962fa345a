package upkeep

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestOneOfTwoWorkersLeads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	second := NewLeader(r.rdb, "second")
	r.start(r.leader.Run)
	r.start(second.Run)
	proctest.Eventually(t, func() bool { return r.leader.Leads() || second.Leads() })
	proctest.Never(t, 2*leaderTerm, func() bool { return r.leader.Leads() == second.Leads() })
}

func TestLeaseOfALeaderEndsWhileItsRenewalHangs(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	r := &rig{t: t}
	leader := NewLeader(rdb, "hangs")
	r.start(leader.Run)
	proctest.Eventually(t, leader.Leads)
	proxy.Blackhole()
	proctest.Eventually(t, func() bool { return !leader.Leads() })
	other := NewLeader(server.Client(), "other")
	r.start(other.Run)
	proctest.Eventually(t, other.Leads)
	require.False(t, leader.Leads())
	proxy.Cut()
}
