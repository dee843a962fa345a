package worker

import (
	"errors"
	"fmt"
	"log/slog"

	"reprise/tasks"
)

// asynqLog lets asynq write to slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug(fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info(fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn(fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error(fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error(fmt.Sprint(args...)) }

func isAnswer(err error) bool {
	var a *answer
	return errors.As(err, &a)
}

// logAttempt writes one line per AudD call.
func (w *Worker) logAttempt(d *delivery, s settling) {
	if s.reply.started.IsZero() {
		return
	}
	level := slog.LevelInfo
	if s.decision.Verdict != tasks.Done {
		level = slog.LevelWarn
	}
	w.log.LogAttrs(w.halted, level, "attempt", slog.String("task_id", d.id), slog.String("queue", d.queue),
		slog.String("path", string(d.payload.Path)), slog.String("file", d.shownInput()), slog.Int("attempt", d.record().Counted+1),
		slog.String("source", d.permit.Source), slog.String("outcome", string(s.decision.Outcome)),
		slog.String("verdict", string(s.decision.Verdict)), slog.String("reason", s.decision.Reason),
		slog.Duration("latency", s.reply.took), slog.Int64("epoch", d.permit.Epoch))
}

// logVerdict writes what happens to the task next, where that is not the
// attempt's own line: settled before, refused, left for others.
func (w *Worker) logVerdict(d *delivery, a *answer) {
	if a.verdict == tasks.Done {
		return
	}
	w.log.Debug("answer", "task_id", d.id, "queue", d.queue, "outcome", string(a.outcome), "verdict", string(a.verdict),
		"delay", a.delay, "reason", a.reason)
}

// shownInput names the audio without a URL's signature.
func (d *delivery) shownInput() string {
	if d.payload.Input.Kind == tasks.URLInput {
		return tasks.RedactURL(d.payload.Input.URL)
	}
	return d.payload.Input.Path
}
