package local

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// asker is the half of a strategy that asks, of ALDY's receiver: while the member is
// below its threshold, one neighbour after the other.
type asker struct {
	below          Threshold
	again, longest time.Duration
}

// Look asks the neighbour that has the most to give among those that may be asked. A
// member without slots never asks, nor does one with tasks that wait.
func (a *asker) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	switch {
	case v.Waiting > 0 || v.Activity.Slots() == 0:
		return to, clocksync.MaxInstant
	case !a.below.Below(now, &v.Activity):
		return to, a.below.nextBelow(now, &v.Activity, a.again)
	}
	var best *Neighbour
	next := clocksync.MaxInstant
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		may, from := n.MayAsk(now, a.again, a.longest)
		switch {
		case n.Name == v.Self:
		case n.Pending: // Its answer makes the member look again.
			return to, clocksync.MaxInstant
		case !may:
			next = min(next, from)
		case best == nil || n.loadToCompare() > best.loadToCompare():
			best = n
		}
	}
	if best == nil {
		return to, next
	}
	return append(to, Demand{Member: best.Name}), clocksync.MaxInstant
}

// receiver is the receiver-initiated strategy of ALDY.
type receiver struct {
	asker
	from  Threshold
	share float64
}

// Answer gives a share of the tasks that no slot of this member can start, at least one task;
// without such a task, of the running divisible task. A member that is not above its threshold
// refuses. A member without slots runs no tasks, and has no threshold.
func (r *receiver) Answer(now clocksync.Instant, v *View, d Demand) Share {
	if d.Member == v.Self || v.Activity.Slots() > 0 && !r.from.Exceeded(now, &v.Activity) {
		return Share{}
	}
	if n := v.countSpare(); n > 0 {
		return Share{Tasks: d.limitWanted(r.shareOfSpare(n))}
	}
	if v.Items > 1 {
		return Share{Part: r.share}
	}
	return Share{}
}
