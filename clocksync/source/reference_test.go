package source

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// TestReference: the timeline continues whatever is done to the wall clock, and ends
// where the machine sleeps.
func TestReference(t *testing.T) {
	h := newHost(func() clocksync.Instant { return 5 })
	r := newReference("d", h.readings())
	for _, step := range []struct {
		what                 string
		passed, wall, asleep time.Duration
		want                 clocksync.Timeline
	}{
		{"nothing", 0, 0, 0, "d"},
		{"a moment", time.Millisecond, 0, 0, "d"},
		{"a step", time.Second, 10 * time.Second, 0, "d"},
		{"a step back", 2 * time.Second, -20 * time.Second, 0, "d"},
		{"sleep", time.Millisecond, 3 * time.Second, 3 * time.Second, "d+3000ms"},
		{"an hour", time.Hour, 0, 0, "d+3000ms"},
		{"sleep again", 0, time.Second, time.Second, "d+4000ms"},
	} {
		h.pass(step.passed)
		h.step(step.wall, step.asleep)
		if got := r.Timeline(); got != step.want {
			t.Errorf("after %s: %q, want %q", step.what, got, step.want)
		}
	}
	// Another process finds the same.
	if again := newReference("d", h.readings()); again.Timeline() != r.Timeline() || again.Now() != r.Now() || again.Domain() != "d" {
		t.Errorf("%q is %q to another process", r.Timeline(), again.Timeline())
	}
}

func BenchmarkReference(b *testing.B) {
	r := NewReference("d")
	b.ReportAllocs()
	for b.Loop() {
		r.Timeline()
	}
}
