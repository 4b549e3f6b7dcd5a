package balancesim

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// capacity is the work that a node can do up to a time: straight between its
// changes of speed.
type capacity struct{ at, done, speed []float64 }

func capacities(in *Instance) []capacity {
	list := make([]capacity, len(in.Nodes))
	for _, s := range in.Speeds {
		c := &list[s.Node]
		done := c.until(s.At)
		c.at, c.done, c.speed = append(c.at, s.At), append(c.done, done), append(c.speed, s.Power*s.Share)
	}
	return list
}

func (c *capacity) until(t float64) float64 {
	i := sort.Search(len(c.at), func(i int) bool { return c.at[i] > t }) - 1
	if i < 0 {
		return 0
	}
	return c.done[i] + (t-c.at[i])*c.speed[i]
}

// Bound is a time that no strategy can be below, in seconds; +Inf if the work is
// never done. Up to it, for each k the k nodes that do most have done the k
// largest tasks, as a task is done on one node and a node does one at a time; and
// all nodes have done all work, from each arrival on what arrives then or later.
// With one speed for each node that is T* = max over k of (k largest works) / (k
// fastest speeds), and all work / all speeds.
func (in *Instance) Bound() float64 {
	if len(in.Tasks) == 0 {
		return 0
	}
	nodes := capacities(in)
	works := make([]float64, len(in.Tasks))
	later := make([]float64, len(in.Tasks)) // work that arrives at or after that of a task
	before := make([]float64, len(in.Tasks))
	total := 0.0
	for i := len(in.Tasks) - 1; i >= 0; i-- {
		works[i] = in.Tasks[i].Work
		total += works[i]
		later[i] = total
		if i+1 < len(in.Tasks) && in.Tasks[i+1].At == in.Tasks[i].At {
			before[i] = before[i+1]
			continue
		}
		for n := range nodes {
			before[i] += nodes[n].until(in.Tasks[i].At)
		}
	}
	slices.SortFunc(works, func(a, b float64) int { return cmp.Compare(b, a) })
	done := make([]float64, len(nodes))
	enough := func(t float64) bool {
		sum := 0.0
		for n := range nodes {
			done[n] = nodes[n].until(t)
			sum += done[n]
		}
		for i := range later {
			if sum < before[i]+later[i] {
				return false
			}
		}
		slices.SortFunc(done, func(a, b float64) int { return cmp.Compare(b, a) })
		for k, can, must := 0, 0.0, 0.0; k < min(len(done), len(works)); k++ {
			if can, must = can+done[k], must+works[k]; can < must {
				return false
			}
		}
		return true
	}
	return least(in.Tasks[len(in.Tasks)-1].At, enough)
}

// least is the least time from low on that is enough, to some 1e-12 of it.
func least(low float64, enough func(float64) bool) float64 {
	if enough(low) {
		return low
	}
	high := max(1, 2*low)
	for !enough(high) {
		if low, high = high, 2*high; high > 1e15 {
			return math.Inf(1)
		}
	}
	for range 100 {
		mid := low + (high-low)/2
		if enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}
