package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// boundTimeout is how long Join waits for the first bound of the clock. Without a bound the
// member takes part, but is compared only with members of its own host.
const boundTimeout = 2 * time.Second

// peerStale is the age of measurements from which the bound is degraded: ten in a
// row do not fail by chance. Tests have another.
var peerStale = 10 * time.Second

// autoClock is the clock of a process that was given none: the system's, until
// the member learns that the synchronizer's is another one and measures itself
// against that.
type autoClock struct {
	system   clocksync.Clock
	domain   clocksync.Domain // of all its stamps
	separate bool
	drift    float64
	measured atomic.Pointer[measured]
}

// measured is a clock that is measured, and the same in the domain of its stamps.
type measured struct {
	*source.MeasuredClock

	stamps clocksync.Clock
}

func newAutoClock(cfg *Config) *autoClock {
	c := &autoClock{system: source.System(), separate: cfg.SeparateClock, drift: cfg.Drift}
	if c.separate {
		c.system = source.OwnDomain(c.system)
	}
	c.domain = c.system.Domain()
	return c
}

func (c *autoClock) inner() clocksync.Clock {
	if m := c.measured.Load(); m != nil {
		return m.stamps
	}
	return c.system
}

func (c *autoClock) Domain() clocksync.Domain   { return c.domain }
func (c *autoClock) Now() clocksync.Stamp       { return c.inner().Now() }
func (c *autoClock) Quality() clocksync.Quality { return c.inner().Quality() }

// measure begins to measure the clock against the clock of a synchronizer.
func (c *autoClock) measure(ping source.Ping, synchronizer string) error {
	peer, err := source.Peer(ping, source.PeerOptions{Server: synchronizer, Drift: c.drift})
	if err != nil {
		return err
	}
	clock, err := source.Measured(source.MeasuredOptions{Drift: c.drift, Stale: peerStale}, peer)
	if err != nil {
		return err
	}
	m := &measured{clock, clock}
	if c.separate {
		m.stamps = source.OwnDomain(clock)
	}
	c.measured.Store(m)
	return nil
}

func (c *autoClock) close() {
	if m := c.measured.Load(); m != nil {
		m.Close()
	}
}

// compareStamps makes the stamps of this member comparable with the stamps of a synchronizer with
// another clock. It reports whether it has begun to.
func (m *Member) compareStamps(w *wire.Welcome) (begun bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	auto := m.cfg.auto
	if auto == nil || m.closed || w.Domain == "" || w.Domain == auto.Domain() || auto.measured.Load() != nil {
		return false
	}
	ping, err := m.multiplexer.pinging(m.cfg.Name)
	if err == nil {
		err = auto.measure(ping, w.Synchronizer)
	}
	if err != nil {
		panic("agent: options that were checked are refused: " + err.Error())
	}
	return true
}

// isClockMoved reports whether a synchronizer refuses this member only for a clock that
// is still measured against another synchronizer's, which the next poll ends. The
// lock is held.
func (m *Member) isClockMoved(w *wire.Welcome) bool {
	return m.cfg.auto != nil && w.Refused && w.Timeline != "" && m.quality.Timeline != "" && w.Timeline != m.quality.Timeline
}

// awaitBound waits for the first bound, if it is not long in coming.
func (m *Member) awaitBound(ctx context.Context) error {
	if m.cfg.auto == nil || m.cfg.auto.measured.Load() == nil {
		return nil // It is the synchronizer's.
	}
	waiting, cancel := context.WithTimeout(ctx, boundTimeout)
	defer cancel()
	if err := m.cfg.auto.measured.Load().Wait(waiting); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.log.Warn("the clock cannot be measured against the synchronizer's yet; members of other hosts are not compared with this one until it is", "member", m.cfg.Name, "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stampClock() // So that the synchronizer learns of it.
	return nil
}

// pinging returns what asks the synchronizer for its time. All pings are alike, and work before
// sending would widen the bound.
func (c *multiplexer) pinging(member string) (source.Ping, error) {
	subject := c.subjects.Ping(member)
	ping, err := wire.AppendPing(nil, &wire.Ping{Member: member})
	return func(ctx context.Context) (source.Pong, error) {
		frame, err := c.bus.Request(ctx, subject, ping)
		if err != nil {
			return source.Pong{}, err
		}
		p, err := wire.DecodePong(frame)
		return source.Pong{Reference: string(p.Timeline), Arrived: p.Arrived, Departed: p.Departed, Drift: p.Drift}, err
	}, err
}

// stampClock reads the clock, and lets the machine know first what the stamp rests on.
// The lock is held.
func (m *Member) stampClock() (at clocksync.Stamp) {
	m.readStamp(&at)
	return at
}

// readStamp is stamp for who sets states: to hand a stamp on from call to call costs more than
// to read the clock, and so does to ask the system's clock for one.
func (m *Member) readStamp(at *clocksync.Stamp) {
	m.pace.noteNews() // Before the clock is read: see multiplexer.
	m.readEventStamp(at)
}

// readEventStamp is readStamp for events other than states of this member.
func (m *Member) readEventStamp(at *clocksync.Stamp) {
	if auto := m.cfg.auto; auto != nil && auto.measured.Load() == nil { // It always rests on the same.
		at.Domain, at.Mono, at.Within = auto.domain, source.Reading(), clocksync.Unbounded
		return
	}
	*at = m.noteAndRead()
}

// noteAndRead is stamp for a clock whose quality may change.
func (m *Member) noteAndRead() clocksync.Stamp {
	for {
		before := m.clock.Quality()
		at := m.clock.Now()
		if after := m.clock.Quality(); after.Timeline == before.Timeline && after.Status == before.Status {
			m.noteClock(after)
			return at
		}
	}
}

// noteClock follows a change of the clock's sources. The lock is held.
func (m *Member) noteClock(q clocksync.Quality) {
	if q == m.quality {
		return
	}
	before := m.quality
	m.quality = q
	news := m.stepInput(&agentcore.Input{Kind: agentcore.InClock, Quality: &m.quality}).Clock
	if news == agentcore.ClockSame {
		return
	}
	if news == agentcore.ClockVoid && m.level != nil {
		m.level.past.Clear()
	}
	if q.Status != before.Status {
		m.tellClock(q)
	}
}

// tellClock writes the log line of a new status.
func (m *Member) tellClock(q clocksync.Quality) {
	const until = "; members of this host are compared as before, nothing is certain between hosts until "
	log, what := m.log.Warn, ""
	switch q.Status {
	case clocksync.Synchronized:
		log, what = m.log.Info, "the clock has a bound"
	case clocksync.Degraded:
		what = "the bound of the clock is not renewed or too wide, and grows"
	case clocksync.Unknown:
		what = "the clock has lost its bound" + until + "a bound is known again"
	case clocksync.Untrusted:
		what = "the clock contradicts earlier measurements" + until + "measurements agree again"
	}
	log(what, "member", m.cfg.Name, "source", q.Source, "status", q.Status.String())
}

// Clock tells what the stamps of this member rest on: which source, how good it
// is, and until when.
func (m *Member) Clock() clocksync.Quality {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quality
}
