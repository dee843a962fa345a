package worker

import (
	"fmt"
	"log/slog"
)

// asynqLog lets asynq write to slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug(fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info(fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn(fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error(fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error(fmt.Sprint(args...)) }
