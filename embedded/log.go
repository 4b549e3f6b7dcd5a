//nolint:sloglint // The messages are the texts of nats-server.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// logger bridges the server's printf-style log to slog and keeps the first
// fatal line: nats-server reports a port that is taken in no other way, and
// leaves it to the logger to end the process.
type logger struct {
	out *slog.Logger

	connections int         // that the server may have
	dir         string      // of JetStream
	onExhausted func(error) // nil: nobody is told
	now         func() time.Time

	mu    sync.Mutex
	first string
	told  time.Time // when onExhausted was called last
}

func newLogger(o *Options) *logger {
	out := o.Logger
	if out == nil {
		out = slog.New(slog.DiscardHandler)
	}
	return &logger{out: out.With("component", "nats-server"), connections: o.MaxConnections, dir: o.JetStream, onExhausted: o.OnExhausted, now: time.Now} //nolint:forbidigo // It only keeps lines apart.
}

const (
	exhaustedAgain = 10 * time.Second
	// beside is more file descriptors than a process with a server has open that are no connections.
	beside = 128
)

// exhausted tells that a connection cannot be taken for want of file descriptors. nats-server reports
// it in no other way than by a line of its log, with the error among the arguments, and tries again.
func (l *logger) exhausted(v []any) {
	i := slices.IndexFunc(v, func(a any) bool {
		err, ok := a.(error)
		return ok && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE))
	})
	if i < 0 || l.onExhausted == nil {
		return
	}
	l.mu.Lock()
	now := l.now()
	cause, _ := v[i].(error)
	again := l.told.IsZero() || now.Sub(l.told) >= exhaustedAgain
	if again {
		l.told = now
	}
	l.mu.Unlock()
	if again {
		l.onExhausted(fmt.Errorf("embedded: the NATS server in this process cannot take another connection, as no file descriptors are left: allow %d, which is enough for its limit of %d connections, with ulimit -n %d, and start again: %w",
			l.connections+beside, l.connections, l.connections+beside, cause))
	}
}

// full tells that JetStream takes no more messages for want of room, if that is what the line says.
func (l *logger) full(text string) {
	if l.onExhausted != nil && (strings.HasPrefix(text, outOfRoom) || strings.HasPrefix(text, atLimit)) {
		l.onExhausted(fmt.Errorf("embedded: JetStream of the NATS server in this process takes no more messages, as %s has no room left: free some, and start again: %s", l.dir, text))
	}
}

func (l *logger) debugs() bool { return l.out.Enabled(context.Background(), slog.LevelDebug) }

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

func (l *logger) Noticef(format string, v ...any) { l.out.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.out.Warn(fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.out.Error(text)
	l.exhausted(v)
	l.full(text)
}
func (l *logger) Debugf(format string, v ...any) { l.out.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any) { l.out.Debug(fmt.Sprintf(format, v...)) }

func (l *logger) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.out.Error(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = text
	}
}
