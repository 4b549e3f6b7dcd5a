package agentcore_test

import (
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const (
	root  = clocksync.Timeline("root")
	other = clocksync.Timeline("other")
)

// clocked is a member with a clock whose quality changes.
type clocked struct {
	t    *testing.T
	core *machine
	out  agentcore.Output
	now  clocksync.Instant
}

func newClocked(t *testing.T, q clocksync.Quality) *clocked {
	t.Helper()
	c := &clocked{t: t, core: newMachine(agentcore.Options{
		Hello: wire.Hello{Member: "w", Incarnation: 1, Domain: "d", Quality: q},
	})}
	c.hello(q)
	return c
}

func peer(timeline clocksync.Timeline, status clocksync.Status) clocksync.Quality {
	return clocksync.Quality{Source: "peer", Timeline: timeline, Status: status}
}

// hello expects one with that quality and welcomes the member.
func (c *clocked) hello(q clocksync.Quality) wire.Hello {
	c.t.Helper()
	c.flush(clocksync.Unbounded)
	if len(c.out.Hellos) != 1 || c.out.Hellos[0].Quality != q || len(c.out.Batches) > 0 {
		c.t.Fatalf("hellos %+v, batches %+v; want a hello with %+v", c.out.Hellos, c.out.Batches, q)
	}
	h := c.out.Hellos[0]
	stale := wire.Welcome{Synchronizer: "s", Term: 1, Member: "w", Incarnation: h.Incarnation, Accepted: true, Schema: fields, Timeline: q.Timeline + "-before"}
	if r := c.core.OnWelcome(c.now, &stale); r != agentcore.Ignored {
		c.t.Errorf("the answer to an earlier hello is %v", r)
	}
	w := stale
	w.Timeline = q.Timeline
	if r := c.core.OnWelcome(c.now, &w); r != agentcore.Accepted {
		c.t.Fatalf("the welcome is %v", r)
	}
	return h
}

var fields = scgs.Schema{{Name: "n", Type: scgs.Int}}

func (c *clocked) flush(within clocksync.Interval) {
	c.now += clocksync.Instant(10 * time.Second)
	c.core.Flush(c.now, clocksync.Stamp{Domain: "d", Mono: c.now, Within: within}, &c.out)
}

func (c *clocked) set(n int64, within clocksync.Interval) {
	c.t.Helper()
	c.now++
	if err := c.core.Set(c.now, clocksync.Stamp{Domain: "d", Mono: c.now, Within: within}, []scgs.Value{scgs.IntValue(n)}); err != nil {
		c.t.Fatal(err)
	}
}

// batch flushes and expects one.
func (c *clocked) batch(within clocksync.Interval) wire.Batch {
	c.t.Helper()
	c.flush(within)
	if len(c.out.Batches) != 1 {
		c.t.Fatalf("%+v; want one batch", c.out)
	}
	return c.out.Batches[0]
}

// TestFirstTimeline: a bound that comes late needs another hello, and the open
// state begins again where it can be compared.
func TestFirstTimeline(t *testing.T) {
	c := newClocked(t, clocksync.Quality{Source: "system"})
	c.set(1, clocksync.Unbounded)
	if b := c.batch(clocksync.Unbounded); b.Tagged || len(b.Reports) != 1 {
		t.Errorf("%+v", b)
	}
	q := peer(root, clocksync.Synchronized)
	if news := c.core.Clock(c.now, q); news != agentcore.ClockVoid {
		t.Errorf("the first timeline is news %v", news)
	}
	if h := c.hello(q); h.Incarnation != 1 {
		t.Errorf("incarnation %d", h.Incarnation)
	}
	b := c.batch(clocksync.Around(500, 10))
	last := b.Reports[len(b.Reports)-1]
	if last.Seq != 2 || last.Row[0].Int() != 1 || last.At.Within != clocksync.Around(500, 10) || b.Tagged {
		t.Errorf("%+v; want the state again with a bound", b)
	}
}

// TestAnotherTimeline: stamps of two timelines are never in one incarnation, and
// may go back from one to the other.
func TestAnotherTimeline(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.set(1, clocksync.Around(5000, 10))
	c.batch(clocksync.Around(5001, 10))
	q := peer(other, clocksync.Synchronized)
	if news := c.core.Clock(c.now, q); news != agentcore.ClockVoid {
		t.Errorf("another timeline is news %v", news)
	}
	if h := c.hello(q); h.Incarnation != 2 {
		t.Errorf("incarnation %d", h.Incarnation)
	}
	b := c.batch(clocksync.Around(70, 10))
	if len(b.Reports) != 1 || b.Reports[0].Seq != 1 || b.Reports[0].At.Within != clocksync.Around(70, 10) {
		t.Errorf("%+v; want the open state on the new timeline", b)
	}
}

// TestAnotherTimelineWhileRefused: the next synchronizer refuses the timeline of
// the one before, and states go on being set until the clock is measured against
// the next one's. None of them is told to it.
func TestAnotherTimelineWhileRefused(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.set(1, clocksync.Around(5000, 10))
	c.batch(clocksync.Around(5001, 10))
	for _, want := range []agentcore.Reception{agentcore.Ignored, agentcore.Recalled} { // Nothing is heard of the one before.
		c.now = c.now.Add(agentcore.DefaultSilence)
		if r := c.core.OnWelcome(c.now, &wire.Welcome{Synchronizer: "next", Term: 1}); r != want {
			t.Fatalf("the announcement is %v", r)
		}
	}
	for _, want := range []agentcore.Reception{agentcore.Dropped, agentcore.Refused} {
		refusal := wire.Welcome{Synchronizer: "next", Term: 1, Member: "w", Incarnation: c.core.Incarnation(), Refused: true, Reason: "timeline"}
		if r := c.core.OnWelcome(c.now, &refusal); r != want {
			t.Fatalf("the refusal is %v, want %v", r, want)
		}
		c.set(2, clocksync.Around(6000, 10))
	}
	q := peer(other, clocksync.Synchronized)
	c.core.Clock(c.now, q)
	c.hello(q)
	b := c.batch(clocksync.Around(70, 10))
	if len(b.Reports) != 1 || b.Reports[0].Seq != 3 || b.Reports[0].Row[0].Int() != 2 || b.Reports[0].At.Within != clocksync.Around(70, 10) {
		t.Errorf("%+v; want the open state on the new timeline alone", b)
	}
}

// TestAnotherTimelineOfALevel: the state of a level below, too, begins again with a
// stamp of the new timeline.
func TestAnotherTimelineOfALevel(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.core.Virtual(c.now)
	c.set(1, clocksync.Around(5000, 10))
	alive := func(within clocksync.Interval) {
		c.now++
		if err := c.core.Alive(c.now, clocksync.Stamp{Domain: "d", Mono: c.now, Within: within}); err != nil {
			t.Fatal(err)
		}
	}
	alive(clocksync.Around(5001, 10))
	c.batch(clocksync.Unbounded)
	q := peer(other, clocksync.Synchronized)
	c.core.Clock(c.now, q)
	c.hello(q)
	if b := c.batch(clocksync.Unbounded); len(b.Reports) != 0 || b.Evidence.Seq != 0 {
		t.Errorf("%+v; want nothing, as no stamp of the new timeline is there", b)
	}
	alive(clocksync.Around(70, 10))
	if b := c.batch(clocksync.Unbounded); len(b.Reports) != 1 || b.Reports[0].At.Within != clocksync.Around(70, 10) {
		t.Errorf("%+v; want the open state on the new timeline", b)
	}
}

// TestUntrusted: after a contradiction nothing of before is carried over, and no
// interval is told until there is a bound again.
func TestUntrusted(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.set(1, clocksync.Around(5000, 10))
	c.batch(clocksync.Around(5001, 10))
	q := peer(root, clocksync.Untrusted)
	if news := c.core.Clock(c.now, q); news != agentcore.ClockVoid {
		t.Errorf("a contradiction is news %v", news)
	}
	if h := c.hello(q); h.Incarnation != 2 {
		t.Errorf("incarnation %d", h.Incarnation)
	}
	refuted := clocksync.Interval{Earliest: 5001, Latest: clocksync.MaxInstant}
	c.set(2, refuted)
	for _, r := range c.batch(refuted).Reports {
		if r.At.Within != clocksync.Unbounded {
			t.Errorf("told %v by a clock that is not trusted", r.At)
		}
	}
	if news := c.core.Clock(c.now, peer(root, clocksync.Synchronized)); news != agentcore.ClockTold {
		t.Errorf("a bound again is news %v", news)
	}
	b := c.batch(clocksync.Around(70, 10))
	if len(b.Reports) != 1 || b.Reports[0].At.Within != clocksync.Around(70, 10) || b.Incarnation != 2 || !b.Tagged || b.Quality.Status != clocksync.Synchronized {
		t.Errorf("%+v; want the open state with its new bound", b)
	}
}

// TestTag: a change of the quality goes with the next batch, then with each
// heartbeat; what never changed costs nothing.
func TestTag(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.set(1, clocksync.Around(5000, 10))
	if b := c.batch(clocksync.Around(5001, 10)); b.Tagged {
		t.Errorf("%+v is tagged, and nothing changed", b)
	}
	degraded := peer(root, clocksync.Degraded)
	if news := c.core.Clock(c.now, degraded); news != agentcore.ClockTold || c.core.Wake() != clocksync.MinInstant {
		t.Errorf("news %v, wake %v; want a batch at once", news, c.core.Wake())
	}
	for range 3 {
		if b := c.batch(clocksync.Around(5001, 10)); !b.Tagged || b.Quality != degraded {
			t.Errorf("%+v; want the tag", b)
		}
	}
	c.set(2, clocksync.Around(6000, 10))
	c.now -= clocksync.Instant(10 * time.Second)
	if b := c.batch(clocksync.Around(6001, 10)); b.Tagged {
		t.Errorf("%+v; the tag was told in this heartbeat", b)
	}
}
