// Command enqueue puts audio into the queue: it expands files, folders, globs
// and URLs, checks them, says what they cost, and enqueues what is new.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends politely; after it the default handling is back, so
	// that a second one ends at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Environ(), stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
