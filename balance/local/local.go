package local

import (
	"math"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Local is a strategy that a member runs on its own view. It may hold the memory of its own
// decisions, so each member has one of its own, and its calls do not overlap. It neither keeps
// nor changes a view. All instants are from the same clock and do not go back.
type Local interface {
	// Look appends the demands that the member sends now, and returns when to look
	// again if nothing in the view changes before; MaxInstant: only after a change.
	// The member looks when a task starts, ends, arrives or is put, when an answer
	// arrives, when a neighbour tells its load, and when the roster changes.
	Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant)
	// Answer decides what the member gives for a demand of another member, which
	// need not be a neighbour in this view. The zero Share refuses. What the member
	// does not have any more when it carries out the share is not given.
	Answer(now clocksync.Instant, v *View, d Demand) Share
}

// View is all that a strategy knows: the member it runs on, and what the neighbours
// told. The member keeps one view up to date; a strategy only reads it.
type View struct {
	Self string // the name of the member in the roster
	// Activity is when tasks ran, and how many slots there are.
	Activity Activity
	// Waiting is how many tasks wait here and could start here: 0 or more. Tasks that
	// may not leave do not count, and running tasks do not.
	Waiting int
	// Put is how many of Waiting this member has put itself.
	Put int
	// Items is how many items are left in the divisible task that runs here and has
	// the most, by its last Yield: 0 if none is running.
	Items int
	// Done is how many tasks have ended here: with the time that the member was active it is
	// how long a task takes.
	Done int
	// Members is how many members the roster has, with this one: 1 or more.
	Members int
	// Neighbours are those that the topology gives this member, in the order of
	// [Topology.AppendNeighbours], without this member and members that left.
	Neighbours []Neighbour
}

// Neighbour is what a member knows of another member. The zero value, with a name, is
// a neighbour that has just joined.
type Neighbour struct {
	Name string // unique in the roster
	// Load is how much it has to give, as it last told: the tasks that wait, and for each
	// divisible task that runs 1 - 1/items. Numbers that cannot be, such as NaN, infinities and
	// those below 0, mean that it is not known.
	Load float64
	// Told is when it told Load.
	Told clocksync.Instant
	// Offers is how many tasks it offers to this member, for one Look; 0: none. A strategy that
	// wants some sends it a demand, and no demand refuses.
	Offers int
	// Silent says that nothing was heard of it yet, so it may not be there: it is not asked.
	Silent bool
	// Away says that it takes no work: it is withdrawn, or drains. It is asked, and offered nothing.
	Away bool
	// Pending says that a demand to it is open: no answer has arrived, or what it
	// gave is still under way. The member gives up waiting after a time, and then
	// counts the demand as refused.
	Pending bool
	// Refusals is how many of its last answers in a row gave nothing, 0 or more.
	Refusals int
	// Answered is when the last of Refusals arrived.
	Answered clocksync.Instant
}

// doublings is after how many refusals in a row the wait has reached every Longest.
const doublings = 64

// MayAsk reports whether a demand may go to the neighbour, and if not, from when on:
// MaxInstant while a demand is open or nothing was heard of it. After a refusal it is left alone for again. The
// wait doubles with each refusal in a row up to longest, and is again once more when
// the neighbour tells that it has something to give.
func (n *Neighbour) MayAsk(now clocksync.Instant, again, longest time.Duration) (may bool, from clocksync.Instant) {
	switch {
	case n.Pending || n.Silent:
		return false, clocksync.MaxInstant
	case n.Refusals <= 0:
		return true, now
	}
	refusals := n.Refusals
	if n.Told > n.Answered && n.Load != 0 {
		refusals = 1
	}
	from = n.Answered.Add(waitAfter(refusals, again, longest))
	return now >= from, from
}

// mayOffer is MayAsk for an offer: no load that the neighbour tells shortens the wait.
func (n *Neighbour) mayOffer(now clocksync.Instant, again, longest time.Duration) (may bool, from clocksync.Instant) {
	switch {
	case n.Pending || n.Silent || n.Away:
		return false, clocksync.MaxInstant
	case n.Refusals <= 0:
		return true, now
	}
	from = n.Answered.Add(waitAfter(n.Refusals, again, longest))
	return now >= from, from
}

// waitAfter is the wait after so many refusals in a row: it doubles from again up to longest.
func waitAfter(refusals int, again, longest time.Duration) time.Duration {
	wait := again
	for i := 1; i < min(refusals, doublings) && wait < longest; i++ {
		wait += min(wait, longest-wait)
	}
	return wait
}

// loadToCompare is Load as a number to compare: an unknown load is less than each known load,
// and more than 0.
func (n *Neighbour) loadToCompare() float64 {
	if n.Load >= 0 && n.Load <= math.MaxFloat64 {
		return n.Load
	}
	return math.SmallestNonzeroFloat64
}

// Demand asks another member for work, or offers it some.
type Demand struct {
	// Member is the other member: the member to ask where a strategy makes the demand, the
	// asking member where a strategy answers it.
	Member string
	// Tasks is the most tasks that are wanted; 0 leaves the number to the answer.
	Tasks int
	// Offer says that the member has Tasks to give, 1 or more. The other one sees them in
	// Neighbour.Offers and asks, or refuses. Answer never gets an offer.
	Offer bool
}

// Share is what a member gives for a demand: whole tasks, or a part of a divisible one.
// The zero value gives nothing.
type Share struct {
	// Tasks is how many of the waiting tasks it gives, the first in its order to be
	// given first: from 0 to View.Waiting.
	Tasks int
	// Part is the part to give of the rest of the divisible task of View.Items, from 0 to 1, at
	// the next Yield of that task; [Share.ItemsOf] makes it items.
	Part float64
	// Near restricts Tasks to tasks whose data the asking member has.
	Near bool
}

// ItemsOf returns how many of the items that are left are given: Part of them rounded
// down, but at least one is given and at least one stays. Without a Part, or with fewer
// than two items left, it is 0.
func (s Share) ItemsOf(left int) int {
	const rounding = 1e-9 // n/left*left may be below n by the error of a division.
	if !(s.Part > 0) || left < 2 {
		return 0
	}
	n := math.Floor(min(s.Part, 1)*float64(left) + rounding)
	if n >= float64(left-1) {
		return left - 1
	}
	return max(1, int(n))
}

// ownLoad is how much this member has to give, in the measure of Neighbour.Load.
func (v *View) ownLoad() float64 {
	load := float64(max(0, v.Waiting))
	if v.Items > 1 {
		load += 1 - 1/float64(v.Items)
	}
	return load
}

// loadOrZero is Load, or 0 if it is not known.
func (n *Neighbour) loadOrZero() float64 {
	if n.Silent || !(n.Load >= 0 && n.Load <= maxLoad) {
		return 0
	}
	return n.Load
}

// maxLoad is more than any member has.
const maxLoad = 1e12

// findNeighbour returns the neighbour of that name; nil if there is none.
func (v *View) findNeighbour(name string) *Neighbour {
	for i := range v.Neighbours {
		if v.Neighbours[i].Name == name {
			return &v.Neighbours[i]
		}
	}
	return nil
}

// meanDuration is how long a task has taken here; 0 if none has ended.
func (v *View) meanDuration(now clocksync.Instant) time.Duration {
	if v.Done <= 0 {
		return 0
	}
	return v.Activity.busyUntil(now) / time.Duration(v.Done)
}

// countSpare is how many of the waiting tasks no free slot of the member can start.
func (v *View) countSpare() int { return max(0, max(0, v.Waiting)-v.Activity.Free()) }

// limitWanted is n, or as much of it as the demand asks for.
func (d Demand) limitWanted(n int) int {
	if d.Tasks > 0 {
		return min(n, d.Tasks)
	}
	return n
}
