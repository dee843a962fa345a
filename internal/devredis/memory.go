package devredis

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// ttlTick is how often the clock of miniredis is advanced. Without that, keys would not expire.
const ttlTick = 250 * time.Millisecond

// StartMemory runs a Redis in this process, whose data is lost at its end. why completes the note.
func StartMemory(why string) (*Instance, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start in-memory redis: %w", err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		passTime(m, stop)
		m.Close()
	}()
	return &Instance{
		URL:  "redis://" + m.Addr() + "/0",
		Note: "Tasks are kept in memory only and are lost when this process ends (" + why + ").",
		done: done,
		end: func() error {
			close(stop)
			<-done
			return nil
		},
	}, nil
}

func passTime(m *miniredis.Miniredis, stop <-chan struct{}) {
	tick := time.NewTicker(ttlTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			now := time.Now()
			m.FastForward(now.Sub(last))
			last = now
		}
	}
}
