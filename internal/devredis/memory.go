package devredis

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"reprise/internal/timer"
)

// ttlTick is how often the clock of miniredis is advanced. Without that, keys would not expire.
const ttlTick = 250 * time.Millisecond

// StartMemory runs a Redis in this process, whose data is lost at its end. why completes the note.
func StartMemory(why string) (*Instance, error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start in-memory redis: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := time.Now()
		timer.Every(running, ttlTick, func(context.Context) {
			now := time.Now()
			m.FastForward(now.Sub(last))
			last = now
		})
		m.Close()
	}()
	return &Instance{
		URL:  "redis://" + m.Addr() + "/0",
		Note: "Tasks are kept in memory only and are lost when this process ends (" + why + ").",
		done: done,
		end: func() error {
			stop()
			<-done
			return nil // also for later calls
		},
	}, nil
}
