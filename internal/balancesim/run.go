package balancesim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/sim"
)

const (
	reportBytes, entryBytes = 64, 32            // of a report, and of each load in it
	orderBytes              = 32                // of an order to move a load
	lost                    = -1                // no node
	longest                 = math.MaxInt64 / 4 // nanoseconds that anything takes; two of them add up
	maxRounds               = 10_000_000        // of plans, up to the bound of the instance
)

// node is a computer in a run.
type node struct {
	power, share float64
	queue        []int // tasks that wait
	running      int   // task, or lost
	from         clocksync.Instant
	begun        uint64 // counts what makes an end that was foreseen void
	sent         []int  // tasks that have left it and have not been confirmed
	idle         clocksync.Instant
	report       report
	busy         []span
}

// span is a time in which a node did a task.
type span struct{ from, to clocksync.Instant }

// task is a load in a run.
type task struct {
	left     float64 // work
	at       int     // node, or lost while it is on its way, not yet there, or done
	begun    bool
	done     bool
	previous int // the node it came from last

	// What the planner knows.
	decided int // target of a move that is under way, or lost
	landed  clocksync.Instant
	last    int // target of the move before
}

// report is what one node said.
type report struct {
	at      clocksync.Instant
	node    balance.Node
	tasks   []int   // the one that runs, if there is one, those that wait, and those that were sent
	running bool    // the first one does
	left    float64 // weight of that one
	twice   bool    // the target of a task that was sent reports it as well
}

// run is one simulation.
type run struct {
	world    *sim.World
	in       *Instance
	set      Settings
	strategy balance.Strategy
	hops     func(from, to int) int
	names    map[string]int // of nodes
	tasks    map[string]int
	partners [][]Traffic // by task
	nodes    []node
	state    []task
	weights  []float64 // of tasks, as reported
	low      float64   // of the weights about their mean that no node is left alone for
	high     float64
	left     int // tasks that are not done
	traffic  []balance.Traffic
	next     clocksync.Instant // of the last plan that was asked for again
	ended    bool
	stopped  error
	result   Result
}

// Settings is what an instance is run with.
type Settings struct {
	*Scenario // its links, plans, balance and order of tasks, and how long they are steady
	// Plan, if there is one, is called with each plan that has moves or refused
	// any. Where totals say that there would be no move none is made, as in a
	// synchronizer.
	Plan func(*balance.Plan)
	// Stop, if there is one, is asked before each plan; its error ends the run.
	Stop func() error
	// Spans keeps for each node when it was busy, for Result.SVG.
	Spans bool
}

// Run simulates an instance to the end of its work. It ends early, with
// Result.Unfinished, when the work takes a hundred times the bound.
func Run(in *Instance, set Settings) (*Result, error) {
	strategy, err := balance.New(set.Balance)
	if err != nil {
		return nil, err
	}
	powers := make([]float64, len(in.Nodes))
	for _, s := range slices.Backward(in.Speeds) {
		powers[s.Node] = s.Power
	}
	r := &run{
		world: sim.New(0), in: in, set: set, strategy: strategy, hops: hops(set.Links.Topology, powers),
		names: map[string]int{}, tasks: map[string]int{}, partners: make([][]Traffic, len(in.Tasks)),
		nodes: make([]node, len(in.Nodes)), state: make([]task, len(in.Tasks)), weights: make([]float64, len(in.Tasks)), left: len(in.Tasks),
		next: clocksync.MaxInstant,
	}
	r.result = Result{Strategy: strategy.Name(), Nodes: len(in.Nodes), Tasks: len(in.Tasks), Bound: in.Bound(), Settled: -1}
	if rounds := r.result.Bound / set.Plans.Every.Seconds(); rounds > maxRounds && !math.IsInf(rounds, 1) {
		return nil, fmt.Errorf("the work takes at least %.4gs, in which there are %.4g times plans.every, %v, and %d are the most: give it less work, or plan less often",
			r.result.Bound, rounds, set.Plans.Every, maxRounds)
	}
	for _, t := range in.Tasks {
		r.low += t.Weight / float64(len(in.Tasks))
	}
	r.low /= math.Sqrt(set.Balance.Outlier)
	r.high = r.low * set.Balance.Outlier * (1 - 1e-9)
	for i, name := range in.Nodes {
		r.names[name] = i
		r.nodes[i].running = lost
	}
	for i := range in.Tasks {
		t := &in.Tasks[i]
		r.tasks[t.Name], r.weights[i] = i, t.Weight
		r.state[i] = task{left: t.Work, at: lost, previous: lost, decided: lost, last: lost, landed: clocksync.MinInstant}
		r.at(t.At, func() { r.arrive(i, t.Node) })
	}
	for _, t := range in.Traffic {
		r.partners[t.From] = append(r.partners[t.From], t)
		r.partners[t.To] = append(r.partners[t.To], Traffic{t.To, t.From, t.Volume})
		a, b := in.Tasks[t.From].Name, in.Tasks[t.To].Name
		r.traffic = append(r.traffic, balance.Traffic{From: a, To: b, Volume: t.Volume}, balance.Traffic{From: b, To: a, Volume: t.Volume})
	}
	r.ended = r.left == 0
	for _, s := range in.Speeds {
		r.at(s.At, func() { r.speed(s) })
	}
	r.at(0, func() { r.world.After(0, func() { r.round(0) }) }) // After the first tasks have begun.
	limit := max(1, 100*r.result.Bound)
	if math.IsInf(limit, 1) {
		limit = 3600
	}
	if set.Tasks.Steady > 0 {
		limit = set.Tasks.Steady.Seconds()
	}
	r.world.Run(instant(limit))
	if r.stopped != nil {
		return nil, r.stopped
	}
	r.close(instant(limit))
	return &r.result, nil
}

func instant(seconds float64) clocksync.Instant {
	return clocksync.Instant(min(seconds*1e9, longest))
}

func (r *run) at(seconds float64, do func()) {
	r.world.After(instant(seconds).Sub(r.world.Now()), do)
}

// message counts one and returns how long it takes.
func (r *run) message(hops int, bytes float64) time.Duration {
	r.result.Messages++
	r.result.MessageBytes += bytes
	return r.cost(hops, bytes)
}

func (r *run) cost(hops int, bytes float64) time.Duration {
	link := r.set.Links.Startup + time.Duration(min(float64(r.set.Links.PerKilobyte)*bytes/1000, longest))
	return time.Duration(min(float64(hops)*float64(link), longest))
}

func (r *run) speed(s Speed) {
	n := &r.nodes[s.Node]
	r.progress(n)
	n.power, n.share = s.Power, s.Share
	r.foresee(s.Node)
}

// progress takes off what the running task has done up to now.
func (r *run) progress(n *node) {
	now := r.world.Now()
	if n.running != lost && now > n.from {
		done := n.power * n.share * now.Sub(n.from).Seconds()
		t := &r.state[n.running]
		t.left = max(0, t.left-done)
		n.from = now
	}
}

// foresee puts the end of the running task into the future; it may be moved by
// the next change of speed.
func (r *run) foresee(i int) {
	n := &r.nodes[i]
	n.begun++
	if n.running == lost {
		return
	}
	speed, left := n.power*n.share, r.state[n.running].left
	if speed == 0 && left > 0 {
		return
	}
	wait := max(0, n.from.Sub(r.world.Now()))
	if left > 0 {
		wait += time.Duration(min(left/speed*1e9, longest)) + 1
	}
	mark := n.begun
	r.world.After(wait, func() {
		if n.begun == mark {
			r.finish(i)
		}
	})
}

// arrive puts a task on a node.
func (r *run) arrive(t, i int) {
	s := &r.state[t]
	s.at = i
	r.nodes[i].queue = append(r.nodes[i].queue, t)
	r.world.After(0, func() { r.start(i) }) // After what arrives at the same instant.
}

// start begins the next task of a node that has none.
func (r *run) start(i int) {
	n, now := &r.nodes[i], r.world.Now()
	if n.running != lost || len(n.queue) == 0 || r.set.Tasks.Steady > 0 {
		return
	}
	if r.set.Tasks.Order == "largest" {
		r.toFront(n)
	}
	n.running, n.queue = n.queue[0], n.queue[1:]
	r.state[n.running].begun = true
	r.result.Idle += now.Sub(n.idle).Seconds()
	n.from = now.Add(r.talk(n.running, i))
	r.result.Talk += n.from.Sub(now).Seconds()
	r.result.lastStart = now
	if r.set.Spans {
		n.busy = append(n.busy, span{now, now})
	}
	r.foresee(i)
}

// toFront puts the task of the greatest reported weight in front, of equal ones
// the one that came first.
func (r *run) toFront(n *node) {
	best := 0
	for i, t := range n.queue {
		if r.weights[t] > r.weights[n.queue[best]] {
			best = i
		}
	}
	t := n.queue[best]
	copy(n.queue[1:], n.queue[:best])
	n.queue[0] = t
}

// talk is the time that the messages between a task and its partners on other
// nodes take, half of it for each.
func (r *run) talk(t, i int) (wait time.Duration) {
	for _, p := range r.partners[t] {
		on := r.state[p.To].at
		r.result.Volume += p.Volume
		if on != lost && on != i {
			r.result.Cut += p.Volume
			wait = min(longest, wait+r.message(r.hops(i, on), p.Volume))
		}
	}
	return wait
}

// finish ends the running task of a node. Where the last is done the run ends.
func (r *run) finish(i int) {
	n, now := &r.nodes[i], r.world.Now()
	t := &r.state[n.running]
	t.left, t.done = 0, true
	if r.set.Spans {
		n.busy[len(n.busy)-1].to = now
	}
	n.running, n.idle = lost, now
	r.left--
	if r.left == 0 {
		r.ended = true
		r.result.Time = now.Sub(0).Seconds()
		return
	}
	r.start(i)
}

// close fills in what is known at the end.
func (r *run) close(limit clocksync.Instant) {
	res := &r.result
	end := instant(res.Time)
	if !r.ended {
		end = limit
		res.Time, res.Unfinished = limit.Sub(0).Seconds(), r.left
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.running == lost {
			res.Idle += max(0, end.Sub(n.idle).Seconds())
		}
		if r.set.Spans {
			if n.running != lost {
				n.busy[len(n.busy)-1].to = end
			}
			res.busy = append(res.busy, n.busy)
		}
	}
	if res.lastStart > 0 || r.ended {
		res.Tail = end.Sub(res.lastStart).Seconds()
	}
	switch {
	case r.set.Tasks.Steady > 0:
		r.steady()
	case res.Unfinished > 0: // The efficiency is 0.
	case res.Time == 0:
		res.Efficiency = 1
	default:
		res.Efficiency = min(1, res.Bound/res.Time) // Instants are whole nanoseconds, the bound is not.
	}
}

// steady judges where a steady load has come to: the best longest queue over the
// longest queue.
func (r *run) steady() {
	res := &r.result
	longest, still := 0.0, Instance{Nodes: r.in.Nodes}
	for i := range r.nodes {
		n := &r.nodes[i]
		still.Speeds = append(still.Speeds, Speed{0, i, n.power, n.share})
		sum := 0.0
		for _, t := range n.queue {
			sum += r.state[t].left
		}
		if sum > 0 {
			longest = max(longest, sum/(n.power*n.share))
		}
	}
	for i := range r.in.Tasks {
		if t := r.in.Tasks[i]; r.state[i].at != lost {
			t.At = 0
			still.Tasks = append(still.Tasks, t)
		}
	}
	res.Bound, res.Time, res.Idle, res.Tail, res.Efficiency = still.Bound(), longest, 0, 0, 1
	if longest > 0 {
		res.Efficiency = res.Bound / longest
	}
}
