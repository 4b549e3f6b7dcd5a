package agentcore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Multiplexer is the machine of a multiplexer, which speaks for the members of a process: it
// has the roster of those whose evidence it gives, one stamp for all of them. It must
// not be used by two goroutines at once.
//
// The stamp is read first. Then every member that has begun a state since its last report is
// ticked with [InTick] and All, and handed to [Multiplexer.Told]; what they say and
// [Multiplexer.Evidence] go out behind it, in this order. So at the stamp each member on the
// roster was in the state that it has told last, or in one before it.
type Multiplexer struct {
	version   uint64
	listed    []wire.Listed // whose places are Core.place
	cores     []*Core
	sum       uint64 // of the shares of listed: who changes an entry takes its share out first
	altered   bool   // the roster has, since it was sent
	due       bool   // it is to be told before the next evidence
	told      clocksync.Instant
	heartbeat time.Duration
	calls     []wire.Probe // that wait for an answer
}

// NewMultiplexer returns a multiplexer whose roster is empty. Its versions are above the base,
// which is to be larger in every later life of the multiplexer.
func NewMultiplexer(base uint64) *Multiplexer {
	return &Multiplexer{version: base, told: clocksync.MinInstant}
}

// listing is what a roster has of the member, if a multiplexer can give its evidence: all its
// states are reported, and they are its own. A state no longer in the ring, after another
// schema was declared, may never have arrived, and cannot be asked for.
func (c *Core) listing() (wire.Listed, bool) {
	ok := c.welcome && !c.leaving && !c.virtual && !c.reopen && c.ring.first < c.ring.next && c.sent == c.ring.next
	return wire.Listed{Member: c.hello.Member, Incarnation: c.hello.Incarnation, Seq: c.seq, Regions: c.regions}, ok
}

// Told notes that a member was ticked to report its states. From then on it has no heartbeat of
// its own, while it is on the roster.
func (x *Multiplexer) Told(c *Core) {
	l, ok := c.listing()
	switch {
	case !ok:
		x.Drop(c)
		return
	case c.place == 0:
		x.listed, x.cores = append(x.listed, wire.Listed{}), append(x.cores, c)
		c.place, c.listed = len(x.cores), true
		c.scheduleBatch()
		x.changed()
	case x.listed[c.place-1].Incarnation != l.Incarnation:
		x.changed()
	}
	at := &x.listed[c.place-1]
	x.sum -= at.Share()
	x.sum += l.Share()
	l.Regions = append(at.Regions[:0], l.Regions...)
	*at, x.heartbeat = l, c.heartbeat
}

// Drop takes a member off the roster, if it is on it.
func (x *Multiplexer) Drop(c *Core) {
	i := c.place - 1
	if i < 0 {
		return
	}
	x.sum -= x.listed[i].Share()
	last := len(x.cores) - 1
	x.cores[last].place = c.place
	x.cores[i], x.listed[i] = x.cores[last], x.listed[last]
	x.cores, x.listed = slices.Delete(x.cores, last, last+1), slices.Delete(x.listed, last, last+1)
	c.place, c.listed = 0, false
	c.scheduleBatch()
	x.changed()
}

func (x *Multiplexer) changed() {
	if !x.altered {
		x.version++
	}
	x.altered, x.due = true, true
}

// Ask takes a request for evidence.
func (x *Multiplexer) Ask(p *wire.Probe) {
	x.due = x.due || p.Incarnation != x.version
	if len(x.calls) == maxProbes {
		x.calls = slices.Delete(x.calls, 0, 1)
	}
	x.calls = append(x.calls, *p)
}

// Due reports whether evidence is to be told at the instant now of the monotonic clock
// even if there is nothing else.
func (x *Multiplexer) Due(now clocksync.Instant) bool {
	return len(x.calls) > 0 || x.emptied() || len(x.listed) > 0 && now >= x.told.Add(x.heartbeat)
}

// emptied reports whether the last member has gone off the roster, and no message has said so.
func (x *Multiplexer) emptied() bool { return x.altered && len(x.listed) == 0 }

// Wake is when evidence is due though nobody asks; MaxInstant if it is not.
func (x *Multiplexer) Wake() clocksync.Instant {
	if len(x.listed) == 0 {
		return clocksync.MaxInstant
	}
	return x.told.Add(x.heartbeat)
}

// Evidence adds to the messages that the states of all members on the roster still held at the
// stamp, and the roster where that is due. If the stamp answers a request it returns a negative
// wait; else how long it is until one may for the next. If nothing else is to be sent then,
// there is nothing in b.
func (x *Multiplexer) Evidence(now clocksync.Instant, at clocksync.Stamp, b *wire.Bundle) (wait time.Duration) {
	wait = -1
	if len(x.listed) == 0 {
		if x.emptied() {
			b.Roster = wire.Roster{Version: x.version}
		}
		x.calls, x.altered, x.due = x.calls[:0], false, false
		return wait
	}
	asked := len(x.calls)
	x.calls = slices.DeleteFunc(x.calls, func(p wire.Probe) bool {
		lacks := lacksEvidence(&p, wire.Evidence{Seq: 1, At: at})
		if lacks >= 0 && (wait < 0 || lacks < wait) {
			wait = lacks
		}
		return lacks < 0
	})
	beat := now >= x.told.Add(x.heartbeat)
	if asked > 0 && len(x.calls) == asked && len(b.Parts) == 0 && !beat {
		return wait
	}
	if x.due || beat {
		b.Roster = wire.Roster{Version: x.version, Total: uint64(len(x.listed)), Listed: x.listed}
		x.altered, x.due, x.told = false, false, now
	}
	b.Held = wire.Held{Of: x.version, Sum: x.sum, At: at}
	return wait
}
