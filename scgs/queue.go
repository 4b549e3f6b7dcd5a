package scgs

import "github.com/gopegasus/pegasus/clocksync"

// point is a stamp without its domain: reading and interval. In the states of a
// detector for Possibly lo and hi have changed places ([Detector.frame]).
type point struct {
	m, lo, hi clocksync.Instant
}

// unheard is before everything.
var unheard = point{clocksync.MinInstant, clocksync.MinInstant, clocksync.MinInstant}

var never = clocksync.Interval{Earliest: clocksync.MinInstant, Latest: clocksync.MinInstant}

// forever is after everything.
var forever = point{clocksync.MaxInstant, clocksync.MaxInstant, clocksync.MaxInstant}

func pointOf(s clocksync.Stamp) point {
	return point{s.Mono, s.Within.Earliest, s.Within.Latest}
}

func (p point) stampIn(domain clocksync.Domain) clocksync.Stamp {
	return clocksync.Stamp{
		Domain: domain,
		Mono:   p.m,
		Within: clocksync.Interval{Earliest: p.lo, Latest: p.hi},
	}
}

// sort tells known states from those that stand for "nothing is known".
type sort uint8

const (
	known   sort = iota
	unknown      // an UNKNOWN interval; its end is evidence or the next report
	fiat         // an UNKNOWN interval that holds as long as a tuple needs it, while open
)

// state is one local state, held on [start, end).
type state struct {
	start  point
	end    point // the newest evidence while the state is open
	seq    uint64
	ref    Ref
	sort   sort
	closed bool
	joined bool // began with the very event that ended the known state before it
	moved  bool // from here on the member's stamps are of another domain
}

// isUnbounded reports whether nothing bounds the start from above: such a state is
// in no global state of several domains, and a tuple with such a run has no core.
func (d *Detector) isUnbounded(s *state) bool {
	if d.modality == Possibly {
		return s.start.lo == clocksync.MaxInstant
	}
	return s.sort == known && s.start.hi == clocksync.MaxInstant
}

// endBound is what stands for the end in every comparison.
func (s *state) endBound() point {
	if s.sort == fiat && !s.closed {
		return forever
	}
	return s.end
}

// queue holds the local states of a single member, oldest first. The oldest is the head, only
// the newest may be open.
type queue struct{ ring[state] }

// tail returns the open state, or nil.
func (q *queue) tail() *state {
	if q.n == 0 {
		return nil
	}
	if s := q.at(q.n - 1); !s.closed {
		return s
	}
	return nil
}

// Pending is how many local states of a member the detector keeps: the one it looks
// at and those behind it. It is 0 for a number that is no member.
func (d *Detector) Pending(m Member) int {
	mb := d.findMember(m)
	if mb == nil {
		return 0
	}
	return int(mb.queue.n)
}

// collapseStates makes one UNKNOWN of the n oldest states behind the head. That only
// removes candidates, so nothing false can come of it.
func (d *Detector) collapseStates(m Member, n int32) {
	q := &d.members[m].queue
	u := state{sort: unknown, closed: true, start: q.at(1).start, end: q.at(n).end}
	if u.start.hi == clocksync.MaxInstant {
		u.start.hi = u.start.lo
	}
	moves := 0
	for i := range n {
		s := q.at(1 + i)
		d.releaseRef(s.ref)
		if s.sort == known {
			d.stats.Collapsed++
		}
		if s.moved {
			moves++
		}
	}
	if moves > 0 { // it is one interval on the last of the clocks
		u.moved, u.start.m = true, clocksync.MinInstant
		p := &d.places[m]
		p.moves = p.moves[moves-1:]
	}
	if d.looksAtRuns() { // nothing is known between runs; a run that never held keeps the place
		u.start = u.end
		if u.moved {
			u.start, u.end = unheard, unheard
		}
	}
	head := *q.front()
	q.head = (q.head + n - 1) & int32(len(q.slots)-1)
	q.n -= n - 1
	*q.at(0), *q.at(1) = head, u
	q.at(2).joined = false
}
