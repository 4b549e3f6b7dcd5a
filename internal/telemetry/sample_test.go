package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/internal/telemetry"
)

// sampledLog is a sampled log and the lines it has let through.
func sampledLog() (slog.Handler, *bytes.Buffer) {
	var out bytes.Buffer
	options := slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}
	return telemetry.Sampled(slog.New(slog.NewTextHandler(&out, &options))).Handler(), &out
}

// say logs a line n times at one time.
func say(t *testing.T, h slog.Handler, n int, at time.Duration, message string, attrs ...slog.Attr) {
	t.Helper()
	for range n {
		r := slog.NewRecord(time.Unix(1000, 0).Add(at), slog.LevelWarn, message, 0)
		r.AddAttrs(attrs...)
		if err := h.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func class(name string) slog.Attr { return slog.String(telemetry.ClassKey, name) }

func TestSampled(t *testing.T) {
	h, out := sampledLog()
	say(t, h, 25, 0, "refused", class("frame"), slog.String("from", "w1"))
	say(t, h, 3, 0, "refused", class("order"))
	say(t, h, 25, 0, "epoch", slog.Int("number", 2))
	say(t, h.WithAttrs([]slog.Attr{slog.String("of", "a")}), 1, 999*time.Millisecond, "refused", class("frame"))
	say(t, h.WithGroup("g"), 1, time.Second, "refused", class("frame"))
	say(t, h, 1, time.Second, "refused", class("frame"))
	say(t, h, 1, time.Minute, "refused", class("order"))
	want := strings.Repeat("msg=refused class=frame from=w1\n", telemetry.SampledLines) +
		strings.Repeat("msg=refused class=order\n", 3) +
		strings.Repeat("msg=epoch number=2\n", 25) +
		"msg=refused g.class=frame g.suppressed=16\n" +
		"msg=refused class=frame\n" +
		"msg=refused class=order\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

// TestSampledTellsAll checks that every line passes or is counted by a later one,
// and that no second has more than it may.
func TestSampledTellsAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, out := sampledLog()
		said, at := 0, time.Duration(0)
		for range rapid.IntRange(1, 8).Draw(rt, "bursts") {
			at += time.Duration(rapid.IntRange(1000, 2000).Draw(rt, "pause")) * time.Millisecond
			n := rapid.IntRange(1, 3*telemetry.SampledLines).Draw(rt, "lines")
			before := strings.Count(out.String(), "\n")
			say(t, h, n, at, "refused", class("frame"))
			said += n
			if got := strings.Count(out.String(), "\n") - before; got != min(n, telemetry.SampledLines) {
				rt.Fatalf("%d of %d lines of one second passed", got, n)
			}
		}
		say(t, h, 1, at+time.Hour, "refused", class("frame"))
		told := 0
		for line := range strings.Lines(out.String()) {
			told++
			if _, count, ok := strings.Cut(strings.TrimSpace(line), "suppressed="); ok {
				n := 0
				for _, digit := range count {
					n = 10*n + int(digit-'0')
				}
				told += n
			}
		}
		if told != said+1 {
			rt.Fatalf("%d lines were said and %d told:\n%s", said+1, told, out)
		}
	})
}
