package worksim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Oracle is what a balancer comes to that knows all weights before the run, and sends tasks from any node to any other one in
// no time. Only objects take the time of their bytes, and they move while a node computes, unless it has no task whose objects
// are there. It looks for the earliest end, in steps of 0.25 % of the bound, and then for few moves of objects. It is a heuristic,
// so a strategy may come to a little less time or fewer moves.
type Oracle struct {
	Time       time.Duration // until the last node is done
	Efficiency float64       // the bound / Time
	Moves      int           // of objects
	Tasks      int           // that run at another node than the one that put them
	Idle       float64       // the mean over the nodes of the part of the time in which one does no work
	Overhead   float64       // of that, the part in which it waits for objects
}

const (
	// oracleStep is by which part of the bound the oracle tries a later end.
	oracleStep = 0.0025
	// oracleSteps is how many ends it tries.
	oracleSteps = 4000
)

// share is what one node has to do.
type share struct {
	node    *node
	work    float64           // units
	classes map[class][]int32 // items, the heaviest first
	holds   map[int]bool      // objects
	fetched int               // of these, those that another node wrote
}

// planOracle returns nil if nodes are killed or withdrawn, or tasks are put later, or if they come from a trace: it plans before the run.
func (w *world) planOracle() *Oracle {
	s := w.set
	if s.trace != nil || s.Kills.Count > 0 || s.Withdrawals.Count > 0 || slices.ContainsFunc(s.Tasks, func(t Tasks) bool { return t.Put.At > 0 }) {
		return nil
	}
	first := w.sharesOf()
	bound := w.result.Bound.Seconds()
	for step := range oracleSteps {
		end := clocksync.Instant(0).Add(time.Duration(bound * (1 + oracleStep*float64(step)) * float64(time.Second)))
		shares := make([]share, len(first))
		for i, f := range first {
			shares[i] = f
			shares[i].classes, shares[i].holds = maps.Clone(f.classes), maps.Clone(f.holds)
		}
		if o := w.balanceShares(shares, end); o != nil {
			return o
		}
	}
	return nil
}

// sharesOf are the tasks of the nodes that put them.
func (w *world) sharesOf() []share {
	list := make([]share, len(w.nodes))
	for i, n := range w.nodes {
		list[i] = share{node: n, classes: map[class][]int32{}, holds: map[int]bool{}}
	}
	item := 0
	for k := range w.set.Tasks {
		t := &w.set.Tasks[k]
		items := 1
		if t.Kind == Bag {
			items = t.Items
		}
		for i := range t.Count {
			s, c := &list[w.set.putterOf(t, i, len(list))], w.set.classOf(t, i)
			for range items {
				s.classes[c] = append(s.classes[c], int32(item)) //nolint:gosec // There are at most a million.
				s.work += w.weights[item]
				item++
			}
		}
	}
	for i, objects := range w.set.writtenObjects() {
		list[i].holds = objects
	}
	for i := range list {
		for _, items := range list[i].classes {
			slices.SortFunc(items, func(a, b int32) int { return cmp.Or(cmp.Compare(w.weights[b], w.weights[a]), cmp.Compare(a, b)) })
		}
	}
	return list
}

// missing is how many objects of a class the node does not have.
func (s *share) missing(c class) (n int) {
	for i := c.first; i < c.first+c.count; i++ {
		if !s.holds[i] {
			n++
		}
	}
	return n
}

// fetch notes that the node has the objects of a class.
func (s *share) fetch(c class) {
	for i := c.first; i < c.first+c.count; i++ {
		if !s.holds[i] {
			s.holds[i] = true
			s.fetched++
		}
	}
}

// delay is how long a node waits for the first objects: those of the class of which the fewest are missing.
func (w *world) delay(s *share, written map[int]bool) time.Duration {
	least := -1
	for c := range s.classes {
		if len(s.classes[c]) == 0 {
			continue
		}
		n := 0
		for i := c.first; i < c.first+c.count; i++ {
			if !written[i] {
				n++
			}
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return time.Duration(max(0, least)*w.set.Data.Bytes) * w.set.Network.PerByte
}

// room is how much work a node can do until end.
func (w *world) room(s *share, written map[int]bool, end clocksync.Instant) float64 {
	return s.node.speed.workBetween(clocksync.Instant(0).Add(w.delay(s, written)), end) * float64(len(s.node.slots))
}

// balanceShares moves tasks from the nodes that have too many to those that have room until end. It returns nil if that is too early.
func (w *world) balanceShares(shares []share, end clocksync.Instant) *Oracle {
	written, rooms := make([]map[int]bool, len(shares)), make([]float64, len(shares))
	order := make([]int, len(shares))
	for i := range shares {
		written[i] = maps.Clone(shares[i].holds)
		for c := range shares[i].classes {
			shares[i].fetch(c)
		}
		rooms[i], order[i] = w.room(&shares[i], written[i], end), i
	}
	excess := func(i int) float64 { return shares[i].work - rooms[i] }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(excess(b), excess(a)) })
	moved := 0
	for _, i := range order {
		from := &shares[i]
		refused := map[int]map[class]bool{}
		for excess(i) > 1e-9*rooms[i] {
			to, best := w.receiver(shares, rooms, i, refused)
			if to < 0 {
				return nil
			}
			s := &shares[to]
			if len(s.classes) == 0 { // The time until its first objects are here is lost.
				rooms[to] = s.node.speed.workBetween(clocksync.Instant(0).Add(time.Duration(s.missing(best)*w.set.Data.Bytes)*w.set.Network.PerByte), end) * float64(len(s.node.slots))
			}
			n := w.give(from, s, best, min(excess(i), rooms[to]-s.work), rooms[to]-s.work)
			if moved += n; n == 0 {
				if refused[to] == nil {
					refused[to] = map[class]bool{}
				}
				refused[to][best] = true
			}
		}
	}
	o := &Oracle{Tasks: moved}
	for i := range shares {
		s := &shares[i]
		o.Moves += s.fetched
		done := s.node.speed.endOfWork(clocksync.Instant(0).Add(w.delay(s, written[i])), s.work/float64(len(s.node.slots)))
		if s.work > 0 {
			o.Time = max(o.Time, done.Sub(0))
		}
	}
	o.Efficiency = w.result.Bound.Seconds() / o.Time.Seconds()
	for i := range shares {
		s, delay := &shares[i], w.delay(&shares[i], written[i])
		from := clocksync.Instant(0).Add(delay)
		busy := s.node.speed.endOfWork(from, s.work/float64(len(s.node.slots))).Sub(from).Seconds()
		o.Idle += (1 - busy/o.Time.Seconds()) / float64(len(shares))
		o.Overhead += delay.Seconds() / o.Time.Seconds() / float64(len(shares))
	}
	return o
}

// receiver is the node that takes tasks of node i, and their class: that which misses the fewest objects, of these the one with
// the most room.
func (w *world) receiver(shares []share, rooms []float64, i int, refused map[int]map[class]bool) (to int, best class) {
	to = -1
	least, most := 0, 0.0
	for j := range shares {
		room := rooms[j] - shares[j].work
		if j == i || room <= 0 {
			continue
		}
		for c, items := range shares[i].classes {
			if len(items) == 0 || refused[j][c] || w.weights[items[len(items)-1]] > room {
				continue
			}
			n := shares[j].missing(c)
			if to < 0 || n < least || n == least && (room > most || room == most && (j < to || j == to && c.first < best.first)) {
				to, best, least, most = j, c, n, room
			}
		}
	}
	return to, best
}

// give moves the heaviest tasks of a class that fit into wanted units, or one that fits into room if none does.
func (w *world) give(from, to *share, c class, wanted, room float64) (n int) {
	var left []int32
	items := from.classes[c]
	took := slices.Clone(to.classes[c])
	take := func(item int32) {
		took = append(took, item)
		from.work -= w.weights[item]
		to.work += w.weights[item]
		wanted -= w.weights[item]
		n++
	}
	for k, item := range items {
		if wanted < w.weights[items[len(items)-1]] {
			left = append(left, items[k:]...)
			break
		}
		if w.weights[item] <= wanted {
			take(item)
		} else {
			left = append(left, item)
		}
	}
	if last := len(left) - 1; n == 0 && last >= 0 && w.weights[left[last]] <= room {
		take(left[last])
		left = left[:last]
	}
	if n == 0 {
		return 0
	}
	slices.SortFunc(took, func(a, b int32) int { return cmp.Or(cmp.Compare(w.weights[b], w.weights[a]), cmp.Compare(a, b)) })
	from.classes[c], to.classes[c] = left, took
	to.fetch(c)
	return n
}
