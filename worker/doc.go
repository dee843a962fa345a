// Package worker is the engine: it takes tasks from asynq, runs each through
// one AudD call, and answers the queue with a verdict.
//
// handle.go is the story, read top to bottom: decode → settled already? →
// admit → call → classify → decide → settle → release → answer. Everything
// else in the package is a chapter of it (receive, admit, call, settle,
// answer), or the frame around it (worker, serve, admin, metric, check).
//
// Only this package logs errors, and only it exports metrics.
package worker
