package local

import (
	"math"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// diffusion is the receiver-initiated diffusion of TDC (section 4.2): a member that has
// less than the mean of itself and its neighbours asks those above the mean.
type diffusion struct {
	activation
	again, longest time.Duration
	loads          []float64 // memory of Look
	demand         []int
	part           []float64
	classes        []taskClass
}

func newDiffusion(c *Config) *diffusion {
	start := float64(c.Start)
	return &diffusion{
		activation: activation{start: start, next: start, factor: c.Factor, latency: c.Latency},
		again:      c.Again, longest: c.Longest, classes: []taskClass{{held: true}},
	}
}

// Look evaluates the imbalance, and asks for as much as the activation allows. It waits for all
// answers before it looks again. All tasks have the same class, which each member has: tasks do
// not name data yet.
func (s *diffusion) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	if v.Activity.Slots() == 0 {
		return to, clocksync.MaxInstant
	}
	s.loads = s.loads[:0]
	own := v.ownLoad()
	have := s.classes[0].have[:0]
	next := clocksync.MaxInstant
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		if n.Pending {
			return to, clocksync.MaxInstant
		}
		load := n.loadOrZero()
		tasks := int(load)
		if n.Answered > n.Told { // What the answer has left there is not known: it counts as the own load.
			load = own
		}
		if may, from := n.MayAsk(now, s.again, s.longest); !may || n.Name == v.Self {
			if tasks = 0; load > 0 && n.Name != v.Self {
				next = min(next, from)
			}
		}
		s.loads, have = append(s.loads, load), append(have, tasks)
	}
	s.classes[0].have = have
	sum := imbalance(own, s.loads)
	if s.activate(own, sum, v.meanDuration(now)) == balances {
		from := len(to)
		s.demand, s.part = demands(own, s.loads, s.demand[:0], s.part[:0])
		for request := range requests(s.demand, s.classes, 0) {
			to = append(to, Demand{Member: v.Neighbours[request.neighbour].Name, Tasks: request.tasks})
		}
		if len(to) > from {
			return to, clocksync.MaxInstant
		}
	}
	if v.Waiting <= 0 && v.Activity.Free() > 0 {
		return s.askOne(now, v, to, next)
	}
	return to, next
}

// askOne is what TDC does not have: a member with a free slot and nothing to start asks the
// neighbour with the most, also where less than one task is missing to the mean.
func (s *diffusion) askOne(now clocksync.Instant, v *View, to []Demand, next clocksync.Instant) ([]Demand, clocksync.Instant) {
	var best *Neighbour
	for i := range v.Neighbours {
		n := &v.Neighbours[i]
		if may, _ := n.MayAsk(now, s.again, s.longest); may && n.Name != v.Self && n.loadOrZero() > 0 && (best == nil || n.loadOrZero() > best.loadOrZero()) {
			best = n
		}
	}
	if best == nil {
		return to, next
	}
	return append(to, Demand{Member: best.Name, Tasks: 1}), clocksync.MaxInstant
}

// Answer gives tasks that no slot here can start, up to the number asked for. The asking member
// always ends with fewer than this one had, except for the last task, so moves end. If no task
// waits, it gives half of a divisible task that runs. Once its tasks take no longer than data take to
// move, it keeps those whose data the asking member lacks: they are done here before.
func (s *diffusion) Answer(now clocksync.Instant, v *View, d Demand) Share {
	if d.Member == v.Self {
		return Share{}
	}
	if n := v.countSpare(); n > 0 {
		if asks := v.findNeighbour(d.Member); asks != nil {
			n = min(n, max(1, v.Waiting-1-int(asks.loadOrZero())))
		}
		n = d.limitWanted(n)
		mean := v.meanDuration(now)
		left := mean * time.Duration(v.Waiting) / time.Duration(max(1, v.Activity.Slots()))
		return Share{Tasks: n, Near: min(left, mean*time.Duration(n)) <= s.latency}
	}
	if v.Items > 1 {
		return Share{Part: 0.5}
	}
	return Share{}
}

// imbalance is d_sum of equations 1 and 7: what the member lacks to the mean.
func imbalance(own float64, loads []float64) float64 {
	sum := own
	for _, l := range loads {
		sum += l
	}
	return max(0, sum/float64(len(loads)+1)-own)
}

// demands appends how many tasks to ask each neighbour for: equation 2 in whole tasks. They
// add up to d_sum rounded down; the largest fractions are rounded up, of equal ones the
// first. part is memory, returned with the exact d_i.
func demands(own float64, loads []float64, to []int, part []float64) ([]int, []float64) {
	sum := imbalance(own, loads)
	mean, above := own+sum, 0.0
	for _, l := range loads {
		above += max(0, l-mean)
	}
	left := int(math.Floor(sum + 1e-9))
	for _, l := range loads {
		d := 0.0
		if above > 0 {
			d = sum * max(0, l-mean) / above
		}
		n := int(math.Floor(d + 1e-9)) // Sums and quotients are rounded.
		left -= n
		to, part = append(to, n), append(part, d)
	}
	for ; left > 0 && above > 0; left-- {
		best := 0
		for i := range part {
			if part[i]-float64(to[i]) > part[best]-float64(to[best])+1e-9 {
				best = i
			}
		}
		to[best]++
	}
	return to, part
}

// taskClass is tasks that read the same data.
type taskClass struct {
	cost float64 // C_j: to move the data here
	held bool    // the data are here
	have []int   // a_ij, by neighbour
}

// request asks a neighbour for tasks of a class.
type request struct{ class, neighbour, tasks int }

// requests yields what to ask for (equations 3 to 6): the class with the least cost a task,
// as much of it as is wanted and there, and so on. So many classes as room may be new here.
// It takes from d what was asked for: equation 6, which the paper prints as a_i - r_ik.
func requests(d []int, classes []taskClass, room int) func(func(request) bool) {
	return func(yield func(request) bool) {
		taken := make([]bool, 0, 16)
		for range classes {
			taken = append(taken, false)
		}
		for {
			best, least := -1, math.Inf(1)
			for j := range classes {
				number := 0 // R_j
				for i, wanted := range d {
					number += min(wanted, classes[j].have[i])
				}
				if number == 0 || taken[j] || !classes[j].held && room == 0 {
					continue
				}
				if cost := costPerTask(classes[j], number); cost < least {
					best, least = j, cost
				}
			}
			if best < 0 {
				return
			}
			taken[best] = true
			if !classes[best].held {
				room--
			}
			for i := range d {
				if r := min(d[i], classes[best].have[i]); r > 0 {
					if d[i] -= r; !yield(request{best, i, r}) {
						return
					}
				}
			}
		}
	}
}

// costPerTask is c_j of equation 5, which the text of the paper lacks: C_j / R_j.
func costPerTask(c taskClass, number int) float64 {
	if c.held {
		return 0
	}
	return c.cost / float64(number)
}

// activation decides when a member looks at the imbalance, and when that is enough to
// balance: the algorithm that the paper prints. Its prose has phase 1 by the load instead of
// by l_bal.
type activation struct {
	start, next float64 // l_bal at first, and now
	factor      float64 // f_a
	latency     time.Duration
	last        float64 // the load at the last look
}

// action is what follows from a change of the load.
type action int

const (
	waits action = iota
	looks
	balances
)

// activate takes a change: the own load, d_sum, and how long a task takes, 0 if not known. l_bal is start
// again where the load rises above l_latency: tasks were put after phase 1.
func (a *activation) activate(own, sum float64, mean time.Duration) action {
	latency := math.Inf(1) // l_latency of equation 8
	if mean > 0 {
		latency = a.latency.Seconds() / mean.Seconds()
	}
	if own > a.last && own > latency && a.next <= latency {
		a.next = a.start
	}
	a.last = own
	if a.next <= latency { // Phase 2.
		if sum >= 1 {
			return balances
		}
		return looks
	}
	did := waits
	for a.next > latency && own <= a.next {
		did = looks
		if sum > latency {
			did = balances
		}
		a.next *= a.factor
	}
	return did
}
