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
// The stamp is read first. Then every member that has begun a state since it was told
// of last is ticked with [InTick] and All, and handed to [Multiplexer.Told]; what they say
// and [Multiplexer.Evidence] go out behind it, in this order. So at the stamp each
// member on the roster was in the state that it has told last, or in one before it.
type Multiplexer struct {
	version   uint64
	listed    []wire.Listed // whose places are Core.place
	cores     []*Core
	sum       uint64
	altered   bool // the roster has, since it was told
	due       bool // it is to be told before the next evidence
	told      clocksync.Instant
	heartbeat time.Duration
	calls     []wire.Probe // that wait for an answer
}

// NewMultiplexer returns a multiplexer whose roster is empty. Its versions are above the base,
// which is to be larger in every later life of the multiplexer.
func NewMultiplexer(base uint64) *Multiplexer {
	return &Multiplexer{version: base, told: clocksync.MinInstant}
}

// spoken is what a roster has of the member, if a multiplexer can give its evidence:
// all it has said is told, and its states are its own. What is in the ring no more, after
// another schema was declared, may never have arrived, and cannot be asked for.
func (c *Core) spoken() (wire.Listed, bool) {
	ok := c.welcome && !c.leaving && !c.virtual && !c.reopen && c.ring.first < c.ring.next && c.sent == c.ring.next
	return wire.Listed{Member: c.hello.Member, Incarnation: c.hello.Incarnation, Seq: c.seq, Regions: c.regions}, ok
}

// Told takes note of what a member has been ticked to tell. From then on it has no
// heartbeat of its own, while it is on the roster.
func (s *Multiplexer) Told(c *Core) {
	l, ok := c.spoken()
	switch {
	case !ok:
		s.Drop(c)
		return
	case c.place == 0:
		s.listed, s.cores = append(s.listed, wire.Listed{}), append(s.cores, c)
		c.place, c.listed = len(s.cores), true
		c.schedule()
		s.changed()
	case s.listed[c.place-1].Incarnation != l.Incarnation:
		s.changed()
	}
	at := &s.listed[c.place-1]
	s.sum -= at.Share()
	s.sum += l.Share()
	l.Regions = append(at.Regions[:0], l.Regions...)
	*at, s.heartbeat = l, c.heartbeat
}

// Drop takes a member off the roster, if it is on it.
func (s *Multiplexer) Drop(c *Core) {
	i := c.place - 1
	if i < 0 {
		return
	}
	s.sum -= s.listed[i].Share()
	last := len(s.cores) - 1
	s.cores[last].place = c.place
	s.cores[i], s.listed[i] = s.cores[last], s.listed[last]
	s.cores, s.listed = slices.Delete(s.cores, last, last+1), slices.Delete(s.listed, last, last+1)
	c.place, c.listed = 0, false
	c.schedule()
	s.changed()
}

func (s *Multiplexer) changed() {
	if !s.altered {
		s.version++
	}
	s.altered, s.due = true, true
}

// Ask takes a request for evidence.
func (s *Multiplexer) Ask(p *wire.Probe) {
	s.due = s.due || p.Incarnation != s.version
	if len(s.calls) == maxProbes {
		s.calls = slices.Delete(s.calls, 0, 1)
	}
	s.calls = append(s.calls, *p)
}

// Due reports whether evidence is to be told at the instant now of the monotonic clock
// even if there is nothing else.
func (s *Multiplexer) Due(now clocksync.Instant) bool {
	return len(s.calls) > 0 || s.emptied() || len(s.listed) > 0 && now >= s.told.Add(s.heartbeat)
}

// emptied reports whether the last member has gone off the roster, and nobody was told.
func (s *Multiplexer) emptied() bool { return s.altered && len(s.listed) == 0 }

// Wake is when evidence is due though nobody asks; MaxInstant if it is not.
func (s *Multiplexer) Wake() clocksync.Instant {
	if len(s.listed) == 0 {
		return clocksync.MaxInstant
	}
	return s.told.Add(s.heartbeat)
}

// Evidence adds to what is to be sent that the states of all members on the roster still
// held at the stamp, and the roster where that is due. If the stamp answers what was
// asked for it returns a negative wait; else how long it is until one may for the next. If
// nothing else is to be sent then, there is nothing in b.
func (s *Multiplexer) Evidence(now clocksync.Instant, at clocksync.Stamp, b *wire.Bundle) (wait time.Duration) {
	wait = -1
	if len(s.listed) == 0 {
		if s.emptied() {
			b.Roster = wire.Roster{Version: s.version}
		}
		s.calls, s.altered, s.due = s.calls[:0], false, false
		return wait
	}
	asked := len(s.calls)
	s.calls = slices.DeleteFunc(s.calls, func(p wire.Probe) bool {
		lacks := lacks(&p, wire.Evidence{Seq: 1, At: at})
		if lacks >= 0 && (wait < 0 || lacks < wait) {
			wait = lacks
		}
		return lacks < 0
	})
	beat := now >= s.told.Add(s.heartbeat)
	if asked > 0 && len(s.calls) == asked && len(b.Parts) == 0 && !beat {
		return wait
	}
	if s.due || beat {
		b.Roster = wire.Roster{Version: s.version, Total: uint64(len(s.listed)), Listed: s.listed}
		s.altered, s.due, s.told = false, false, now
	}
	b.Held = wire.Held{Of: s.version, Sum: s.sum, At: at}
	return wait
}
