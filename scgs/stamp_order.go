package scgs

import "github.com/gopegasus/pegasus/clocksync"

// stampOrder is what a member's reports are checked against: the newest of them.
type stampOrder struct {
	seq   uint64 // the newest sequence number, 0 before the first
	last  point  // the newest reading and ends; hi is the newest finite one
	clock clocksync.Domain
	floor clocksync.Interval // the ends that earlier incarnations have reached
}

func newStampOrder(clock clocksync.Domain) stampOrder {
	return stampOrder{clock: clock, last: unheard, floor: never}
}

// admitReport checks the stamp of a report that starts or ends a state.
func (t *stampOrder) admitReport(seq uint64, at clocksync.Stamp) (point, Reason) {
	switch {
	case !event(at) || seq == 0:
		return point{}, Malformed
	case at.Domain != t.clock:
		return point{}, Foreign
	case seq <= t.seq:
		return point{}, Duplicate
	}
	p := pointOf(at)
	p.lo, p.hi = max(p.lo, t.floor.Earliest), max(p.hi, t.floor.Latest)
	p.hi = max(p.hi, p.lo) // of an incarnation that its forerunner contradicts
	if p.m < t.last.m || p.lo < t.last.lo || p.hi < t.last.hi {
		return point{}, Regress
	}
	return p, Accepted
}

// admitEvidence checks the stamp of evidence, and makes it no smaller than what the
// member has shown or promised.
func (t *stampOrder) admitEvidence(seq uint64, at clocksync.Stamp) (point, Reason) {
	switch {
	case !at.Within.Valid() || seq == 0:
		return point{}, Malformed
	case at.Domain != t.clock:
		return point{}, Foreign
	case at.Mono < t.last.m:
		return point{}, Regress
	case seq < t.seq:
		return point{}, Stale
	case seq > t.seq && t.holdsForever():
		return point{}, Regress
	}
	return t.raisePoint(pointOf(at)), Accepted
}

// raisePoint makes a point of evidence no smaller than what the member has shown.
func (t *stampOrder) raisePoint(p point) point {
	p.lo = max(p.lo, t.last.lo)
	p.hi = max(p.hi, t.last.hi, p.lo)
	return p
}

// reachedPoint is what no part of a later start is before.
func (t *stampOrder) reachedPoint() point {
	p := t.last
	p.hi = max(p.hi, p.lo)
	return p
}

// followsLoss reports whether a report of that number follows a loss. Nothing is known
// before the first report, so nothing is lost there.
func (t *stampOrder) followsLoss(seq uint64) bool { return t.seq != 0 && seq != t.seq+1 }

// noteHeard notes the member's newest stamp.
func (t *stampOrder) noteHeard(p point) {
	if p.hi == clocksync.MaxInstant {
		p.hi = t.last.hi
	}
	t.last = p
}

// holdsForever reports whether the member's newest state holds for ever.
func (t *stampOrder) holdsForever() bool {
	return t.last.m == clocksync.MaxInstant || t.last.lo == clocksync.MaxInstant
}

// restartIncarnation begins a new incarnation: numbers restart at 1, and reference time goes
// on from what the earlier ones have shown.
func (t *stampOrder) restartIncarnation(clock clocksync.Domain) {
	t.seq = 0
	t.floor = clocksync.Interval{Earliest: t.last.lo, Latest: t.last.hi}
	if clock != t.clock {
		t.clock, t.last.m = clock, clocksync.MinInstant
	}
}

// event reports whether something can have happened at the stamp.
func event(s clocksync.Stamp) bool {
	return s.Within.Valid() && s.Mono != clocksync.MaxInstant &&
		s.Within.Earliest != clocksync.MaxInstant && s.Within.Latest != clocksync.MinInstant
}
