package scgs

import (
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/clocksync"
)

// Range is the values from Low to High, both included. Where nothing bounds them
// an end is infinite.
type Range struct {
	Low, High float64 // Low is at most High
}

// Extremes bound what the members' values may be, taken together.
type Extremes struct {
	Sum, Least, Greatest Range // of the sum, the least and the greatest of them
}

// Extent is the possible range of the members' values, from an instant of reference time to the
// instant of the next Extent. Each end of a range was attained in a reality that the stamps
// admit. The exceptions: a value was UNKNOWN, or members share a clock domain.
type Extent struct {
	Epoch uint64 // of the members it is about
	Index uint64 // within its epoch, from 1
	// From is the instant from which on it holds; MinInstant in the first, if
	// nothing was delivered before.
	From clocksync.Instant
	Extremes
}

// ExtentOptions say what an [Extents] goes by.
type ExtentOptions struct {
	// MaxPending is the number of states that may wait for each member. Beyond
	// it many become one with the range of their values. 0 means 1024.
	MaxPending int
	// Declared bounds the value where nothing is known of it. The zero Range is
	// none: then the value may be anything from -Inf to +Inf. It is believed: a
	// known value outside of it is taken as it is.
	Declared Range
}

// Extents finds the possible range of the sum, the least and the greatest of the members'
// values at each instant of reference time, as the clocks are known only within bounds:
// exactly, and as soon as it is certain. For a count, report 1 where the condition holds and 0
// where it does not, and declare 0 to 1.
//
// It is the modality Possibly (Cooper and Marzullo 1991; from interval stamps:
// Stoller 2000) of every predicate that compares a sum, count or extreme with a
// constant. In general that is NP-complete (Chase and Garg 1998); here each
// member may be in any of its possible states whatever the others are in, so it
// is the sum of the members' own extremes. Reports and events cost O(log members).
// The sum is added up in a tree over the members and so rests on the present
// values alone; whole numbers up to 2^53 are exact.
//
// Members of a shared clock domain count as if each had its own clock: then ranges may be wider
// than necessary and never too narrow. It must not be used by two goroutines at once.
type Extents struct {
	maxPending int
	nothing    candidate // an UNKNOWN
	members    []window
	free       []Member   // removed, to be given out again, last first
	marks      []mark     // node k is the least of nodes 2k and 2k+1; the second half are the members
	tree       []Extremes // the same of the extremes of the members' windows
	reached    clocksync.Instant
	until      clocksync.Instant // no later event begins before it
	epoch      uint64
	index      uint64 // of the newest Extent of the epoch
	last       Extremes
	finished   bool
	stats      Stats
}

// NewExtents returns one without members, before its first epoch. It is an error
// to declare a range that is empty or has a NaN.
func NewExtents(o ExtentOptions) (*Extents, error) {
	if o.Declared == (Range{}) {
		o.Declared = Range{math.Inf(-1), math.Inf(1)}
	}
	low, high := o.Declared.Low, o.Declared.High
	if !(low <= high) || low > maxValue || high < -maxValue {
		return nil, fmt.Errorf("scgs: the declared range is from %v to %v: give a Low that is not above High, and make one of them finite", low, high)
	}
	if low < -maxValue {
		low = math.Inf(-1)
	}
	if high > maxValue {
		high = math.Inf(1)
	}
	if o.MaxPending <= 0 {
		o.MaxPending = defaultMaxPending
	}
	return &Extents{
		maxPending: o.MaxPending,
		nothing:    candidate{low: low, high: high, unknown: true},
		reached:    clocksync.MinInstant,
		until:      clocksync.MinInstant,
	}, nil
}

// maxValue keeps the sum over any number of members finite.
const maxValue = 1e290

// Epoch begins the epoch id with other members, as [Detector.Epoch] does. It
// begins at the instant [Extents.Until] that was reached, and its first Extent is
// from there on. Members that join are UNKNOWN before their first report.
func (e *Extents) Epoch(id uint64, remove []Member, add []Spec) []Member {
	for _, m := range remove {
		if win := e.findWindow(m); win != nil {
			*win = window{}
			e.free = append(e.free, m)
		}
	}
	added := make([]Member, 0, len(add))
	for _, s := range add {
		added = append(added, e.joinMember(s))
	}
	e.epoch, e.index = id, 0
	n := len(e.members)
	e.marks, e.tree = make([]mark, 2*n), make([]Extremes, 2*n)
	e.rebuildTrees()
	return added
}

// Start reports that the member had the value from the stamp on, which ends what
// it had before. Sequence numbers, gaps and refusals are as in [Detector.Start].
// A value that is NaN or beyond 1e290 either way is UNKNOWN.
func (e *Extents) Start(m Member, seq uint64, at clocksync.Stamp, value float64) Reason {
	s := e.nothing
	if math.Abs(value) <= maxValue {
		s = candidate{low: value, high: value}
	}
	return e.takeReport(m, seq, at, s)
}

// Next fills x with the next Extent and returns true, or returns false if nothing
// more is certain. Each differs from the one before in what may have been; none
// is taken back, and they depend on the order of arrival only where members are
// lost or join, or states exceed MaxPending.
func (e *Extents) Next(x *Extent) bool {
	for e.advanceInstant() {
		for m := e.findDue(); m != none; m = e.findDue() {
			e.shiftWindow(m)
		}
		now := e.tree[1]
		if e.index > 0 && now == e.last {
			continue
		}
		e.last = now
		e.index++
		*x = Extent{Epoch: e.epoch, Index: e.index, From: e.reached, Extremes: now}
		return true
	}
	return false
}

// extremesOf are what the window comes to. A place without a member, and a member whose window
// is still to come, counts for nothing.
func (win *window) extremesOf() Extremes {
	if win.in == 0 {
		return Extremes{Least: Range{math.Inf(1), math.Inf(1)}, Greatest: Range{math.Inf(-1), math.Inf(-1)}}
	}
	r := Range{-win.low.top(win.base), win.high.top(win.base)}
	return Extremes{r, r, r}
}

func (e *Extents) setLeaf(m Member, leaf Extremes) {
	k := len(e.tree)/2 + int(m)
	if e.tree[k] == leaf {
		return
	}
	e.tree[k] = leaf
	for k /= 2; k > 0; k /= 2 {
		e.tree[k].joinExtremes(&e.tree[2*k], &e.tree[2*k+1])
	}
}

// joinExtremes makes x the extremes of a and b together.
func (x *Extremes) joinExtremes(a, b *Extremes) {
	x.Sum = Range{a.Sum.Low + b.Sum.Low, a.Sum.High + b.Sum.High}
	x.Least = Range{min(a.Least.Low, b.Least.Low), min(a.Least.High, b.Least.High)}
	x.Greatest = Range{max(a.Greatest.Low, b.Greatest.Low), max(a.Greatest.High, b.Greatest.High)}
}

// slidingMax finds the greatest value of a window: it holds those, oldest first,
// that are greater than all after them (a monotonic queue).
type slidingMax struct{ ring[numbered] }

type numbered struct {
	number uint64
	value  float64
}

func (c *slidingMax) pushValue(number uint64, v float64) {
	for c.n > 0 && c.back().value <= v {
		c.n--
	}
	*c.push() = numbered{number, v}
}

// top is the greatest value of those numbered from base on.
func (c *slidingMax) top(base uint64) float64 {
	for c.front().number < base {
		c.pop()
	}
	return c.front().value
}
