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
	return c.helloAt(q, clocksync.Unbounded)
}

// helloAt is hello, when the clock says within.
func (c *clocked) helloAt(q clocksync.Quality, within clocksync.Interval) wire.Hello {
	c.t.Helper()
	c.flush(within)
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

// news flushes and expects a batch with news, before repeated reports.
func (c *clocked) news(within clocksync.Interval) wire.Batch {
	c.t.Helper()
	if c.flush(within); len(c.out.Batches) == 0 || c.out.Batches[0].Again || len(c.out.Batches[0].Reports) == 0 {
		c.t.Fatalf("%+v; want a batch with news", c.out)
	}
	return c.out.Batches[0]
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
	if h := c.helloAt(q, clocksync.Around(500, 10)); h.Same != (wire.Same{Seq: 2, Incarnation: 1, Of: 1}) {
		t.Errorf("it says of its state %+v, before it tells it", h.Same)
	}
	b := c.news(clocksync.Around(600, 10))
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
	if h := c.hello(q); h.Incarnation != 2 || h.Same != (wire.Same{Seq: 1, Incarnation: 1, Of: 1}) {
		t.Errorf("incarnation %d, state %+v", h.Incarnation, h.Same)
	}
	b := c.batch(clocksync.Around(70, 10))
	if len(b.Reports) != 1 || b.Reports[0].Seq != 1 || b.Reports[0].At.Within != clocksync.Around(70, 10) {
		t.Errorf("%+v; want the open state on the new timeline", b)
	}
}

// TestSameState: a state that begins again for its clock's sake is the same, however often; one that is
// set meanwhile is not, and neither is one of a member that was dropped.
func TestSameState(t *testing.T) {
	c := newClocked(t, peer(root, clocksync.Synchronized))
	c.set(1, clocksync.Around(5000, 10))
	c.batch(clocksync.Around(5001, 10))
	move := func(to clocksync.Timeline, want wire.Same) {
		t.Helper()
		q := peer(to, clocksync.Synchronized)
		c.core.Clock(c.now, q)
		if h := c.hello(q); h.Same != want {
			t.Errorf("on %s: %+v, want %+v", to, h.Same, want)
		}
	}
	move(other, wire.Same{Seq: 1, Incarnation: 1, Of: 1})
	c.batch(clocksync.Around(70, 10))
	move(root, wire.Same{Seq: 1, Incarnation: 1, Of: 1})
	c.batch(clocksync.Around(5100, 10))
	c.set(2, clocksync.Around(5200, 10))
	c.batch(clocksync.Around(5201, 10))
	move(other, wire.Same{Seq: 2, Incarnation: 3, Of: 2})

	refusal := wire.Welcome{Synchronizer: "s", Term: 1, Member: "w", Incarnation: c.core.Incarnation(), Refused: true, Reason: "timeline", Timeline: root}
	if r := c.core.OnWelcome(c.now, &refusal); r != agentcore.Dropped {
		t.Fatalf("the refusal is %v", r)
	}
	move(root, wire.Same{Seq: 2, Incarnation: 3, Of: 2})
	c.batch(clocksync.Around(5300, 10))
	dropped := wire.Welcome{Synchronizer: "s", Term: 1, Member: "w", Incarnation: c.core.Incarnation(), Reason: "silent"}
	if r := c.core.OnWelcome(c.now, &dropped); r != agentcore.Dropped {
		t.Fatalf("it is %v", r)
	}
	move(other, wire.Same{})
	c.batch(clocksync.Around(90, 10))

	refusal.Incarnation = c.core.Incarnation()
	if r := c.core.OnWelcome(c.now, &refusal); r != agentcore.Dropped {
		t.Fatalf("the refusal is %v", r)
	}
	c.set(3, clocksync.Around(95, 10))
	move(root, wire.Same{Seq: 3, Incarnation: c.core.Incarnation(), Of: 3})
}

// TestSameStateIsSaidFirst: an answer to a hello of before does not have the new report told.
func TestSameStateIsSaidFirst(t *testing.T) {
	c := newClocked(t, clocksync.Quality{Source: "system"})
	c.core.Virtual(c.now)
	c.set(1, clocksync.Unbounded)
	c.batch(clocksync.Unbounded)
	q := peer(root, clocksync.Synchronized)
	c.core.Clock(c.now, q)
	c.hello(q)
	c.now++
	if err := c.core.Alive(c.now, clocksync.Stamp{Domain: "d", Mono: c.now, Within: clocksync.Around(500, 10)}); err != nil {
		t.Fatal(err)
	}
	late := wire.Welcome{Synchronizer: "s", Term: 1, Member: "w", Incarnation: 1, Accepted: true, Schema: fields, Timeline: root}
	if r := c.core.OnWelcome(c.now, &late); r != agentcore.Ignored {
		t.Errorf("an answer to the hello before is %v", r)
	}
	if h := c.hello(q); h.Same != (wire.Same{Seq: 2, Incarnation: 1, Of: 1}) {
		t.Errorf("%+v", h.Same)
	}
	if b := c.news(clocksync.Unbounded); b.Reports[len(b.Reports)-1].Seq != 2 {
		t.Errorf("%+v", b)
	}
}

// TestAnotherTimelineWhileRefused: the next synchronizer refuses the timeline of the one
// before, and states continue to be set until the clock is measured against the next one's.
// None of them is reported to it.
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

// TestUntrusted: after a contradiction nothing of before is carried over, and no interval is
// reported until there is a bound again.
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
	if h := c.helloAt(peer(root, clocksync.Synchronized), clocksync.Around(70, 10)); h.Same != (wire.Same{Seq: 3, Incarnation: 2, Of: 2}) {
		t.Errorf("it says of its state %+v", h.Same)
	}
	b := c.news(clocksync.Around(80, 10))
	if len(b.Reports) != 1 || b.Reports[0].At.Within != clocksync.Around(70, 10) || b.Incarnation != 2 {
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
