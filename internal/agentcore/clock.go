package agentcore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// ClockNews says what a new quality of the member's clock came to.
type ClockNews uint8

// The news of a clock.
const (
	ClockSame ClockNews = iota
	ClockTold           // the next batch tells it
	ClockVoid           // the stamps so far cannot be compared with those to come
)

// takeQuality takes what the stamps rest on from now on.
//
// The stamps of an incarnation are on a single timeline, and none of them is made after the
// clock has contradicted the ones before: in both cases they could not be true and in order. So
// the member comes back as a new incarnation, in which its open state begins again. Only the
// first timeline of a member, whose stamps had no bound before, needs no more than another
// hello.
func (c *Core) takeQuality(now clocksync.Instant, q clocksync.Quality) ClockNews {
	before := c.quality
	if q == before {
		return ClockSame
	}
	c.quality, c.retag = q, true
	lost := q.Status == clocksync.Untrusted && before.Status != clocksync.Untrusted
	switch {
	case q.Timeline != before.Timeline || lost:
		c.clock, c.alive = clocksync.Monotone{}, clocksync.Stamp{}
		if before.Timeline == "" && !lost || !c.once && c.seq == c.base {
			c.recallBatch(now)
		} else {
			c.rejoinWithSame(now)
		}
		return ClockVoid
	case !sameStanding(q, before):
		c.owed = c.owed || c.welcome
		return ClockTold
	}
	return ClockSame
}

// sameStanding leaves out the time at which the status ends, which moves on with
// each measurement.
func sameStanding(p, q clocksync.Quality) bool {
	p.Expires, q.Expires = 0, 0
	return p == q
}

// tagDue says whether a batch has to tell the quality: at once when it is another
// one, and since that batch may be lost, with every heartbeat from then on.
func (c *Core) tagDue(now clocksync.Instant) bool {
	return c.retag && (now >= c.taggedAt.Add(c.heartbeat) || !sameStanding(c.quality, c.tagged))
}

// boundStamp says nothing at all where no latest time is known: the earliest one may
// come from a bound that was refuted since.
func boundStamp(at *clocksync.Stamp) {
	if at.Within.Latest == clocksync.MaxInstant {
		at.Within = clocksync.Unbounded
	}
}

// restartState begins the open state once more, at a stamp at which it still holds, if its
// start had no bound and this has: no other clock could have told when it began. The synchronizer hears
// that it is the same before it hears of it.
func (c *Core) restartState(now clocksync.Instant, at *clocksync.Stamp) {
	if c.open && c.start.Within.Latest == clocksync.MaxInstant && at.Within.Bounded() && at.Mono > c.start.Mono {
		first := c.first()
		c.row = c.ring.newest(c.row)
		c.resumeState(at)
		c.noteChange(now)
		if first.Seq = c.seq; !c.local {
			c.same, c.unsaid = first, true
			c.recallBatch(now)
		}
	}
}

// first is where the open state, or the state to begin again, began first; nothing if that was not told.
func (c *Core) first() wire.Same {
	number := c.seq
	if !c.open {
		number++
	}
	switch {
	case !c.open && (!c.reopen || !c.begun):
		return wire.Same{}
	case c.same.Seq == number:
		return c.same
	case !c.open:
		return wire.Same{}
	}
	return wire.Same{Seq: number, Incarnation: c.hello.Incarnation, Of: number}
}

// isSame is what a hello says of the open state, or of the state to begin again.
func (c *Core) isSame() wire.Same {
	if s := c.first(); s == c.same {
		return s
	}
	return wire.Same{}
}

// rejoinWithSame is rejoin for a mere change of the clock: the open state stays the same.
func (c *Core) rejoinWithSame(now clocksync.Instant) {
	first := c.first()
	c.beginIncarnation(now)
	if first.Seq > 0 && !c.local {
		c.same = wire.Same{Seq: c.seq + 1, Incarnation: first.Incarnation, Of: first.Of}
	}
}
