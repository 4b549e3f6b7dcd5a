package worksim

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Result is what came of a run.
type Result struct {
	Seed       uint64        // of the run
	Nodes      int           // dead ones too
	Tasks      int           // that were put, without parts of bags
	Items      int           // plain tasks, and items of bags
	Work       float64       // units
	Time       time.Duration // until all items were recorded
	Bound      time.Duration // that no strategy can be below
	Why        string        // which bound that is
	Efficiency float64       // Bound / Time
	Parcels    int           // that had tasks
	Moved      int           // tasks in them
	Messages   int           // frames that were sent
	Bytes      int           // of them
	Idle       []float64     // of each node: the part of its time in which its slots did no work
	Done       float64       // units of work that were done
	Again      float64       // of them, those that were done before
	Killed     int           // nodes
	Withdrawn  int           // how often a node was
	Twice      int           // items that were recorded once more
	Faults     []string      // what must never happen
	Waits      []float64     // of each node: the part of its time in which it ran nothing, and tasks waited there for objects
	Objects    int           // that were fetched
	Classes    int           // of tasks: the different objects that they read
	Diameter   int           // of the network: the most links between two nodes
	Load       float64       // the largest work that one node puts, as a multiple of the mean
	Oracle     *Oracle       // nil: there is none for this scenario
	Lanes      []Lane        // of each node
	Traced     time.Duration // of the real run whose trace this run repeats; 0: there is none
}

// The bounds.
const (
	boundWork = "all work on all nodes"
	boundTask = "the longest task on the fastest node"
)

// fillResult fills in what follows from the rest.
func (w *world) fillResult() *Result {
	r := &w.result
	r.Seed, r.Nodes, r.Items, r.Work, r.Faults = w.set.Seed, len(w.nodes), len(w.weights), w.workOf(0, len(w.weights)), w.faults
	r.Efficiency = 1
	if r.Time > 0 {
		r.Efficiency = r.Bound.Seconds() / r.Time.Seconds()
	}
	r.Again = max(0, r.Done-r.Work)
	if r.Again < 1e-6*r.Work {
		r.Again = 0 // Sums are rounded.
	}
	for _, n := range w.nodes {
		idle := 0.0
		if all := n.ended.Sub(0).Seconds() * float64(len(n.slots)); all > 0 {
			idle = max(0, 1-n.busy.Seconds()/all)
		}
		r.Idle = append(r.Idle, idle)
		r.Waits = append(r.Waits, n.lane.shareOfTime(Moving))
		r.Lanes = append(r.Lanes, n.lane.spans)
		if n.data != nil {
			r.Objects += int(n.data.Counts().Fetched) //nolint:gosec // It is a count.
		}
	}
	r.Classes, r.Diameter = w.countClasses(), min(1, len(w.nodes)-1)
	if w.links != nil {
		r.Diameter = w.links.diameter
	}
	for _, s := range w.sharesOf() {
		r.Load = max(r.Load, s.work*float64(len(w.nodes))/r.Work)
	}
	r.Oracle = w.planOracle()
	return r
}

// meanOf is the mean of a list.
func meanOf(list []float64) (mean float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	return mean
}

// IdleOf returns the least, the mean and the largest of Idle.
func (r *Result) IdleOf() (least, mean, most float64) {
	return slices.Min(r.Idle), meanOf(r.Idle), slices.Max(r.Idle)
}

// lowerBound is a time that no strategy can be below: for each instant at which tasks are put, all work that is put
// from then on done by all nodes at once; and for each task, or item of a bag, the time that the fastest node
// takes for it.
func (w *world) lowerBound() (time.Duration, string) {
	best, why := time.Duration(0), boundWork
	from := 0
	type put struct {
		at   time.Duration
		work float64
	}
	var puts []put
	for i := range w.set.Tasks {
		t := &w.set.Tasks[i]
		n := t.Count
		if t.Kind == Bag {
			n *= t.Items
		}
		puts = append(puts, put{t.Put.At, w.workOf(from, from+n)})
		largest := slices.Max(w.weights[from : from+n])
		end := clocksync.MaxInstant
		for _, node := range w.nodes {
			end = min(end, node.speed.endOfWork(clocksync.Instant(0).Add(t.Put.At), largest))
		}
		if d := end.Sub(0); d > best {
			best, why = d, boundTask
		}
		from += n
	}
	for _, p := range puts {
		sum := 0.0
		for _, q := range puts {
			if q.at >= p.at {
				sum += q.work
			}
		}
		if d := w.endOf(clocksync.Instant(0).Add(p.at), sum).Sub(0); d > best {
			best, why = d, boundWork
		}
	}
	return best, why
}

// endOf is when all nodes together have done some work, from an instant on.
func (w *world) endOf(from clocksync.Instant, work float64) clocksync.Instant {
	low, high := time.Duration(0), time.Millisecond
	done := func(d time.Duration) bool {
		sum := 0.0
		for _, n := range w.nodes {
			sum += n.speed.workBetween(from, from.Add(d)) * float64(len(n.slots))
		}
		return sum >= work
	}
	for !done(high) && high < longest {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; done(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return from.Add(high)
}
