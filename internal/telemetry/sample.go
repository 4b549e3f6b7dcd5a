package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// ClassKey is the attribute by which a [Sampled] log tells lines apart that a
// stranger can provoke as often as he likes.
const ClassKey = "class"

// SampledLines is how many lines of one message and class a [Sampled] log lets
// through within a second.
const SampledLines = 10

// classesKept bounds what a sampled log remembers. Messages and classes are
// constants of the program, so that it is never reached.
const classesKept = 1024

// Sampled gives a log that lets through at most [SampledLines] lines a second of
// one message and class. The next line that passes says in the attribute
// "suppressed" how many before it did not. Lines without the attribute class all
// pass.
func Sampled(log *slog.Logger) *slog.Logger {
	return slog.New(sampler{log.Handler(), &windows{of: map[line]*window{}}})
}

type sampler struct {
	slog.Handler

	windows *windows
}

// windows are shared by the handlers that are made of one.
type windows struct {
	mu sync.Mutex
	of map[line]*window
}

// line is what makes lines alike.
type line struct{ message, class string }

// window is the second that began with the line at since.
type window struct {
	since      time.Time
	passed     int
	suppressed uint64
}

// Handle implements [slog.Handler].
func (s sampler) Handle(ctx context.Context, r slog.Record) error {
	class, ok := classOf(&r)
	if !ok {
		return s.Handler.Handle(ctx, r)
	}
	suppressed, pass := s.windows.pass(line{r.Message, class}, r.Time)
	if !pass {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("suppressed", suppressed))
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (s sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sampler{s.Handler.WithAttrs(attrs), s.windows}
}

// WithGroup implements [slog.Handler].
func (s sampler) WithGroup(name string) slog.Handler {
	return sampler{s.Handler.WithGroup(name), s.windows}
}

func classOf(r *slog.Record) (class string, ok bool) {
	r.Attrs(func(a slog.Attr) bool {
		if ok = a.Key == ClassKey; ok {
			class = a.Value.String()
		}
		return !ok
	})
	return class, ok
}

// pass reports whether a line at that time is let through, and how many were not
// since the last one that was.
func (w *windows) pass(l line, at time.Time) (suppressed uint64, pass bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.of[l]
	if one == nil {
		if len(w.of) == classesKept {
			clear(w.of)
		}
		one = &window{since: at}
		w.of[l] = one
	}
	// A clock that was set back begins a window too.
	if age := at.Sub(one.since); age >= time.Second || age < 0 {
		one.since, one.passed = at, 0
	}
	if one.passed == SampledLines {
		one.suppressed++
		return 0, false
	}
	one.passed++
	suppressed, one.suppressed = one.suppressed, 0
	return suppressed, true
}
