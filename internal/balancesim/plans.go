package balancesim

import (
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
)

// round takes reports, has them planned on, and comes again.
func (r *run) round(number int) {
	if r.ended {
		return
	}
	if r.set.Stop != nil {
		if r.stopped = r.set.Stop(); r.stopped != nil {
			r.ended = true
			return
		}
	}
	if r.set.Balance.Strategy != balance.None {
		r.reports(number)
	}
	r.world.After(r.set.Plans.Every, func() { r.round(number + 1) })
}

// reports takes what the nodes report: all at one instant, or each at another
// within the period, of which the planner knows the newest.
func (r *run) reports(number int) {
	var slowest time.Duration
	for i := range r.nodes {
		if r.set.Plans.View == Consistent {
			slowest = max(slowest, r.report(i))
			continue
		}
		// Golden-ratio steps spread the nodes evenly over the period.
		part := math.Mod(float64(i)*math.Phi, 1)
		r.world.After(time.Duration(part*float64(r.set.Plans.Every)), func() { r.report(i) })
	}
	if r.set.Plans.View == Latest {
		if number > 0 {
			r.plan(r.known())
		}
		return
	}
	list := r.known()
	r.world.After(slowest, func() { r.plan(list) })
}

// known are the newest reports of the nodes.
func (r *run) known() []report {
	list := make([]report, len(r.nodes))
	for i := range r.nodes {
		list[i] = r.nodes[i].report
	}
	return list
}

// report keeps what a node says now and returns how long it takes to the planner.
func (r *run) report(i int) time.Duration {
	n := &r.nodes[i]
	r.progress(n)
	one := report{
		at: r.world.Now(), node: balance.Node{Name: r.in.Nodes[i], Power: n.power, Share: n.share},
		tasks: make([]int, 0, 1+len(n.queue)+len(n.sent)),
	}
	if one.running = n.running != lost; one.running {
		one.tasks, one.left = append(one.tasks, n.running), r.weights[n.running]
		if w := r.in.Tasks[n.running].Work; w > 0 {
			one.left *= r.state[n.running].left / w
		}
	}
	one.tasks = append(append(one.tasks, n.queue...), n.sent...)
	one.twice = slices.ContainsFunc(n.sent, func(t int) bool { return r.state[t].at != lost || r.state[t].done })
	n.report = one
	return r.message(1, reportBytes+entryBytes*float64(len(one.tasks)))
}

// weight is that of one of the tasks of a report.
func (r *run) weight(one *report, j int) float64 {
	if j == 0 && one.running {
		return one.left
	}
	return r.weights[one.tasks[j]]
}

// under is the node that a task of a report is on its way to by what the planner has
// decided since, or lost.
func (r *run) under(one *report, i, j int) int {
	t := &r.state[one.tasks[j]]
	switch {
	case t.decided != lost && t.decided != i:
		return t.decided
	case t.decided == lost && t.landed > one.at && t.last != i:
		return t.last // It has arrived since.
	}
	return lost
}

// view puts reports together with what the planner has decided since.
func (r *run) view(list []report) *balance.State {
	s := &balance.State{Traffic: r.traffic}
	s.Transfer = func(from, to int, size float64) float64 {
		return r.cost(1, orderBytes).Seconds() + r.cost(r.hops(from, to), size).Seconds()
	}
	number := 0
	for i := range list {
		number += len(list[i].tasks)
	}
	s.Loads = make([]balance.Load, 0, number)
	for i := range list {
		one := &list[i]
		if one.node.Name == "" {
			one.node.Name = r.in.Nodes[i] // Nothing was heard of it: no power.
		}
		s.Nodes = append(s.Nodes, one.node)
		for j, t := range one.tasks {
			l := balance.Load{
				Name: r.in.Tasks[t].Name, Node: one.node.Name, Weight: r.weight(one, j), Size: r.in.Tasks[t].Size, Running: j == 0 && one.running,
			}
			if to := r.under(one, i, j); to != lost {
				l.To = r.in.Nodes[to]
			}
			s.Loads = append(s.Loads, l)
		}
	}
	return s
}

// quiet reports that a plan on the reports would have no move, as a synchronizer finds
// out before it makes one.
func (r *run) quiet(list []report) bool {
	if r.set.Plans.View == Latest {
		return false // A task may be reported by two nodes.
	}
	totals := make([]balance.Total, len(list))
	within := make([]int, len(list)) // tasks of weights that count as usual
	for i := range list {
		one := &list[i]
		if one.twice {
			return false
		}
		totals[i].Node = one.node
		for j := range one.tasks {
			weight, on := r.weight(one, j), i
			to := r.under(one, i, j)
			if to != lost {
				on = to
			}
			t := &totals[on]
			t.Work += weight
			t.Loads++
			if to == lost && weight > 0 && (j > 0 || !one.running) {
				if t.Waiting == 0 {
					t.Least, t.Most = weight, weight
				}
				t.Waiting, t.Least, t.Most = t.Waiting+1, min(t.Least, weight), max(t.Most, weight)
				if weight >= r.low && weight <= r.high {
					within[on]++
				}
			}
		}
	}
	for i := range totals {
		if t := &totals[i]; 2*within[i] > t.Waiting {
			t.Low, t.High = r.low, r.high
		}
	}
	return r.set.Balance.Quiet(totals)
}

// plan asks the strategy, and sends its moves to the nodes that have the loads.
func (r *run) plan(list []report) {
	if r.ended {
		return
	}
	r.result.Plans++
	if !slices.ContainsFunc(list, func(one report) bool { return len(one.tasks) > 0 }) && r.left > 0 && r.arrived() {
		r.result.WrongStops++
	}
	if r.quiet(list) {
		return
	}
	now := r.world.Now()
	p := r.strategy.Plan(now, r.view(list))
	if r.set.Plan != nil && len(p.Moves)+len(p.Refused) > 0 {
		r.set.Plan(&p)
	}
	queues := r.queues()
	type pair struct{ from, to int }
	var order []pair
	batches := map[pair][]int{}
	for _, m := range p.Moves {
		t, at := r.tasks[m.Load], pair{r.names[m.From], r.names[m.To]}
		r.state[t].decided = at.to
		if len(batches[at]) == 0 {
			order = append(order, at)
		}
		batches[at] = append(batches[at], t)
		r.judge(t, at.from, at.to, queues)
		r.result.Settled = now.Sub(0).Seconds()
	}
	for _, at := range order {
		r.world.After(r.message(1, orderBytes*float64(len(batches[at]))), func() { r.send(batches[at], at.from, at.to) })
	}
	if p.Again < now.Add(r.set.Plans.Every) {
		r.again(p.Again)
	}
}

// again plans once more where a strategy asks to be, before the next round.
func (r *run) again(at clocksync.Instant) {
	if r.set.Plans.View == Latest || at == r.next {
		return
	}
	r.next = at
	r.world.After(at.Sub(r.world.Now()), func() {
		if !r.ended {
			r.reports(1)
		}
	})
}

// arrived reports whether some task that is there is not done.
func (r *run) arrived() bool {
	now := r.world.Now().Sub(0).Seconds()
	for i := range r.state {
		if !r.state[i].done && r.in.Tasks[i].At < now {
			return true
		}
	}
	return false
}

// queues are the true seconds of work on each node, with what is on its way there.
func (r *run) queues() []float64 {
	list := make([]float64, len(r.nodes))
	for i := range r.nodes {
		r.progress(&r.nodes[i])
	}
	for i := range r.state {
		t := &r.state[i]
		switch {
		case t.done:
		case t.decided != lost:
			list[t.decided] += t.left
		case t.at != lost:
			list[t.at] += t.left
		}
	}
	for i := range list {
		if list[i] > 0 {
			list[i] /= r.nodes[i].power * r.nodes[i].share
		}
	}
	return list
}

// judge counts a move that is wrong by what is true when it is decided: the load
// is not there or has begun, or the target ends later with it than the source did
// without the move.
func (r *run) judge(t, from, to int, queues []float64) {
	s := &r.state[t]
	speed := func(i int) float64 { return r.nodes[i].power * r.nodes[i].share }
	if after := queues[to] + s.left/speed(to); s.at != from || s.begun || after > queues[from] || math.IsInf(after, 1) {
		r.result.WrongMoves++
	}
	if s.at == from && speed(from) > 0 { // Else it stays without end.
		queues[from] -= s.left / speed(from)
	}
	queues[to] += s.left / speed(to)
}

// send lets those tasks go that still wait, in one message.
func (r *run) send(list []int, from, to int) {
	n := &r.nodes[from]
	var gone []int
	size := 0.0
	for _, t := range list {
		s := &r.state[t]
		i := slices.Index(n.queue, t)
		if i < 0 {
			r.result.Late++
			s.decided = lost
			continue
		}
		n.queue = slices.Delete(n.queue, i, i+1)
		n.sent = append(n.sent, t)
		gone = append(gone, t)
		size += r.in.Tasks[t].Size
		if s.previous == to {
			r.result.Returned++
		}
		s.previous, s.at = from, lost
	}
	if len(gone) == 0 {
		return
	}
	r.result.Migrations++
	r.result.Units += len(gone)
	r.result.Bytes += size
	r.world.After(r.message(r.hops(from, to), size), func() {
		for _, t := range gone {
			r.arrive(t, to)
			s := &r.state[t]
			s.decided, s.last, s.landed = lost, to, r.world.Now()
		}
		r.world.After(r.message(r.hops(from, to), orderBytes), func() {
			n.sent = slices.DeleteFunc(n.sent, func(t int) bool { return slices.Contains(gone, t) })
		})
	})
}
