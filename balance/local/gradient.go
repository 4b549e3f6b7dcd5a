package local

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// market trades tasks as ALDY names it among further strategies (section 7, economic models). A task that waits costs
// its member the time that it waits, and a move costs latency. A member with a free slot buys from the neighbour that
// pays most, which is the one with most tasks. A member sells to the neighbour where tasks wait least, if both gain:
// the wait there, with the move, is shorter.
type market struct {
	asker
	latency time.Duration
}

// Look buys, or offers what it would gain by.
func (m *market) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	if v.Waiting <= 0 && v.Activity.Slots() > 0 && m.below.Below(now, &v.Activity) {
		if with := takeOffer(v, to); len(with) > len(to) {
			return with, clocksync.MaxInstant
		}
		return m.asker.Look(now, v, to)
	}
	best, next := m.findCoolest(now, v)
	if best == nil {
		return to, next
	}
	if n := m.gain(now, v, best.loadOrZero()); n > 0 {
		return append(to, Demand{Member: best.Name, Tasks: n, Offer: true}), clocksync.MaxInstant
	}
	return to, next
}

// findCoolest is the neighbour with the least load of those that may be offered tasks; nil: none, or a demand is open.
func (a *asker) findCoolest(now clocksync.Instant, v *View) (best *Neighbour, next clocksync.Instant) {
	next = clocksync.MaxInstant
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		switch may, from := n.mayOffer(now, a.again, a.longest); {
		case n.Name == v.Self:
		case n.Pending:
			return nil, clocksync.MaxInstant
		case !may:
			next = min(next, from)
		case best == nil || n.loadToCompare() < best.loadToCompare():
			best = n
		}
	}
	return best, next
}

// gain is how many spare tasks a member had better do that has the load theirs.
func (m *market) gain(now clocksync.Instant, v *View, theirs float64) int {
	cost := 0.0
	if mean := v.meanDuration(now); mean > 0 {
		cost = float64(m.latency) / float64(mean)
	}
	return max(0, min(v.countSpare(), int((v.ownLoad()-theirs-cost)/2)))
}

// Answer sells as many tasks as both gain by, and to a member without any work one at least.
func (m *market) Answer(now clocksync.Instant, v *View, d Demand) Share {
	return shareBy(v, d, func(theirs float64) int { return m.gain(now, v, theirs) })
}

// shareBy gives as many spare tasks as n says for the load of the asking member, and one at least if that has no work.
// Without a spare task it gives half of a divisible one.
func shareBy(v *View, d Demand, n func(theirs float64) int) Share {
	switch {
	case d.Member == v.Self:
		return Share{}
	case v.countSpare() > 0:
		theirs, least := 0.0, 0
		if asks := v.findNeighbour(d.Member); asks != nil {
			theirs = asks.loadOrZero()
		}
		if theirs < 1 {
			least = 1
		}
		return Share{Tasks: d.limitWanted(max(least, n(theirs)))}
	case v.Items > 1:
		return Share{Part: 0.5}
	}
	return Share{}
}

// field lets load flow as heat does, as ALDY names it among further strategies (section 7, physical models): from a
// member to all neighbours with less at once, to each in proportion to the difference. The flow to one neighbour
// is at most the difference over the number of neighbours and itself, so a member never gives more than it has above
// the mean.
type field struct {
	asker
	share float64 // of the difference; 0: the largest that is stable
}

// Look takes an offer of a member with more, offers to all with less, and asks if it has a free slot.
func (f *field) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	from := len(to)
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		if flow := f.flow(n.loadOrZero()-v.ownLoad(), v, n.Offers); flow > 0 && n.Offers > 0 && n.Name != v.Self && !n.Pending && !n.Silent {
			to = append(to, Demand{Member: n.Name, Tasks: flow})
		}
	}
	if len(to) > from {
		return to, clocksync.MaxInstant
	}
	if v.Waiting <= 0 && v.Activity.Slots() > 0 && f.below.Below(now, &v.Activity) {
		return f.asker.Look(now, v, to)
	}
	next, left := clocksync.MaxInstant, v.countSpare()
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		may, again := n.mayOffer(now, f.again, f.longest)
		switch {
		case n.Name == v.Self || n.Pending:
		case !may:
			next = min(next, again)
		default:
			if flow := f.flow(v.ownLoad()-n.loadOrZero(), v, left); flow > 0 {
				left -= flow
				to = append(to, Demand{Member: n.Name, Tasks: flow, Offer: true})
			}
		}
	}
	return to, next
}

// flow is how many of some tasks flow along a difference of loads.
func (f *field) flow(difference float64, v *View, tasks int) int {
	part := 1 / float64(len(v.Neighbours)+1)
	if f.share > 0 {
		part = f.share
	}
	n := int(difference * part)
	if n == 0 && difference >= 2 { // The last tasks flow one by one.
		n = 1
	}
	return max(0, min(n, tasks))
}

// Answer gives what flows to the asking member, and to one without any work one task at least.
func (f *field) Answer(_ clocksync.Instant, v *View, d Demand) Share {
	return shareBy(v, d, func(theirs float64) int { return f.flow(v.ownLoad()-theirs, v, v.countSpare()) })
}
