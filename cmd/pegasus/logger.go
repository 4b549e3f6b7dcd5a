package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/gopegasus/pegasus/internal/show"
)

// logger makes entries of the log lines of a synchronizer that are not also
// events: that the server is away, and that it is back.
func (w *watcher) logger() *slog.Logger { return slog.New(logHandler{w}) }

type logHandler struct{ *watcher }

// Enabled implements slog.Handler.
func (logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "epoch", "clock", "refused", "reloaded":
		return nil // Told as events.
	case "leads":
		if h.leads != nil {
			h.leads()
		}
		return nil
	}
	line := strings.Builder{}
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line.WriteString("; " + a.Key + ": " + a.Value.String())
		return true
	})
	h.put(show.Notice(line.String()))
	return nil
}

// WithAttrs implements slog.Handler; a synchronizer adds none.
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler; a synchronizer opens none.
func (h logHandler) WithGroup(string) slog.Handler { return h }
