package local

import (
	"math"

	"github.com/gopegasus/pegasus/clocksync"
)

// sender is the sender-initiated strategy that corresponds to ALDY's receiver (sections
// 4.2 and 7): a member above its threshold offers tasks to one neighbour after the other,
// and a neighbour below its threshold takes them.
type sender struct{ receiver }

// Look takes the largest offer, or makes one to the neighbour with the least load.
func (s *sender) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	if v.Waiting <= 0 && v.Activity.Slots() > 0 && s.below.Below(now, &v.Activity) {
		return takeOffer(v, to), clocksync.MaxInstant
	}
	n := s.shareOfSpare(v.countSpare())
	if n == 0 && v.Items > 1 {
		n = 1 // A part of the divisible task.
	}
	switch {
	case n == 0:
		return to, clocksync.MaxInstant
	case v.Activity.Slots() > 0 && !s.from.Exceeded(now, &v.Activity):
		return to, s.from.exceededAgain(now, &v.Activity, s.again)
	}
	return s.offerTasks(now, v, n, to)
}

// offerTasks offers tasks to the neighbour with the least load, unless a demand is open.
func (a *asker) offerTasks(now clocksync.Instant, v *View, tasks int, to []Demand) ([]Demand, clocksync.Instant) {
	best, next := a.findCoolest(now, v)
	if best == nil {
		return to, next
	}
	return append(to, Demand{Member: best.Name, Tasks: tasks, Offer: true}), clocksync.MaxInstant
}

// takeOffer asks for what the neighbour with the largest offer has, unless a demand is open.
func takeOffer(v *View, to []Demand) []Demand {
	var best *Neighbour
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		switch {
		case n.Pending:
			return to
		case n.Offers > 0 && n.Name != v.Self && !n.Silent && (best == nil || n.Offers > best.Offers):
			best = n
		}
	}
	if best == nil {
		return to
	}
	return append(to, Demand{Member: best.Name, Tasks: best.Offers})
}

// shareOfSpare is the share of the spare tasks that is given, at least one if there is one.
func (r *receiver) shareOfSpare(spare int) int {
	if r.share < 1 {
		return min(spare, int(math.Ceil(r.share*float64(spare))))
	}
	return spare
}
