package devredis

import (
	"context"

	"reprise/internal/devredis/redisproc"
)

// Instance is a running embedded Redis. Its fields do not change; its methods are safe for concurrent use.
type Instance struct {
	// URL is the address for redis.ParseURL, database 0. Other processes of this user can use it while the
	// instance runs.
	URL string
	// Durable reports whether tasks survive the end of this process.
	Durable bool
	// Note tells the user in a sentence where tasks are kept.
	Note string

	done <-chan struct{}
	end  func() error // ends the instance at its first call
}

// Start runs the embedded Redis on the data folder dir, which it creates with mode 0700 if it is missing. It
// returns when Redis answers; ctx bounds the start only. It fails if another instance uses the folder.
func Start(ctx context.Context, dir string) (*Instance, error) {
	if _, err := redisproc.Find(); err != nil {
		return StartMemory("no redis-server on PATH; `apt-get install redis-server` keeps them on disk")
	}
	return startServer(ctx, dir)
}

// Done is closed when the instance has ended, after Close or unexpectedly.
func (i *Instance) Done() <-chan struct{} { return i.done }

// Close ends the instance and waits for it. A child gets SIGTERM, and SIGKILL after 10 s. Calling it again
// returns the first call's error.
func (i *Instance) Close() error { return i.end() }
