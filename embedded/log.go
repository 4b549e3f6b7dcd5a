//nolint:sloglint // The messages are the texts of nats-server.
package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// logger bridges the server's printf-style log to slog and keeps the first
// fatal line: nats-server reports a port that is taken in no other way, and
// leaves it to the logger to end the process.
type logger struct {
	out *slog.Logger

	mu    sync.Mutex
	first string
}

func newLogger(out *slog.Logger) *logger {
	if out == nil {
		out = slog.New(slog.DiscardHandler)
	}
	return &logger{out: out.With("component", "nats-server")}
}

func (l *logger) debugs() bool { return l.out.Enabled(context.Background(), slog.LevelDebug) }

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *logger) Noticef(format string, v ...any) { l.out.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.out.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.out.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.out.Error(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = text
	}
}
