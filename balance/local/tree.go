package local

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
)

// cluster is a member, or two clusters of which the second is faster (CORD, definition 6.1).
type cluster struct {
	name       string  // of a member
	throughput float64 // of both together: theorem 6.3
	slow, fast *cluster
}

// balance is the balance ratio of definition 6.2: 0 if both are equal.
func (c *cluster) balance() float64 {
	if c.slow == nil {
		return 0
	}
	return (c.fast.throughput - c.slow.throughput) / c.throughput
}

// slowest is the leftmost terminal, and fastest the rightmost.
func (c *cluster) slowest() string {
	for c.slow != nil {
		c = c.slow
	}
	return c.name
}

func (c *cluster) fastest() string {
	for c.fast != nil {
		c = c.fast
	}
	return c.name
}

// treeLink is a path from a slower to a faster member; level counts from 1 at the leaves.
type treeLink struct {
	slow, fast string
	level      int
}

// clusterTree pairs the slowest with the fastest, level by level (section 6.2), and links the
// fastest member of the slower cluster to the slowest of the faster one (algorithm 6.1).
// Of equal clusters the more balanced one is faster (definition 6.3), else their order
// stays. An odd cluster in the middle goes up unpaired.
func clusterTree(members []*cluster) (root *cluster, links []treeLink) {
	for level := 1; len(members) > 1; level++ {
		slices.SortStableFunc(members, func(a, b *cluster) int {
			return cmp.Or(cmp.Compare(a.throughput, b.throughput), cmp.Compare(b.balance(), a.balance()))
		})
		var up []*cluster
		n := len(members)
		for i := range n / 2 {
			slow, fast := members[i], members[n-1-i]
			up = append(up, &cluster{throughput: slow.throughput + fast.throughput, slow: slow, fast: fast})
			links = append(links, treeLink{slow.fastest(), fast.slowest(), level})
		}
		if n%2 == 1 {
			up = append(up, members[n/2])
		}
		members = up
	}
	return members[0], links
}

// splitTasks divides tasks among the members by throughput: at each cluster the slower part is
// rounded down (section 6.3.3).
func (c *cluster) splitTasks(tasks int, into map[string]int) {
	if c.slow == nil {
		into[c.name] = tasks
		return
	}
	n := int(math.Floor(float64(tasks)*(c.slow.throughput/c.throughput) + 1e-9))
	c.slow.splitTasks(n, into)
	c.fast.splitTasks(tasks-n, into)
}

// parseSpeeds reads throughputs of members, such as "harvey: 125, bugs: 59".
func parseSpeeds(text string) (map[string]float64, *Fault) {
	speeds := map[string]float64{}
	offset := 0
	for part := range strings.SplitSeq(text, ",") {
		at := argument{strings.TrimSpace(part), columnOf(text, offset+len(part)-len(strings.TrimLeft(part, " \t\n")))}
		offset += len(part) + 1
		i := strings.LastIndex(at.text, ":")
		if i < 1 {
			return nil, at.makeFault("%q is no member with a throughput: write NAME: NUMBER, such as harvey: 125", at.text)
		}
		name, number := strings.TrimSpace(at.text[:i]), strings.TrimSpace(at.text[i+1:])
		speed, err := strconv.ParseFloat(number, 64)
		if err != nil || !(speed >= 1e-9 && speed <= maxLoad) {
			return nil, at.makeFault("%q is not the throughput of %s: write a number above 0", number, name)
		}
		if _, twice := speeds[name]; twice {
			return nil, at.makeFault("%s is there twice: write one throughput", name)
		}
		speeds[name] = speed
	}
	return speeds, nil
}

// tree is CORD's cluster tree. A member asks only when it is short of work: along its links,
// low levels first, and then the neighbour with the most.
type tree struct {
	asker
	share    float64 // 0: by throughput
	speeds   map[string]float64
	names    []string // of the view that the tree is of
	links    []treeLink
	root     *cluster
	portions map[string]int // of the first split, that are not given yet
	put      int            // tasks that this member had put and not begun after its last answer
}

func (s *tree) speedOf(name string) float64 {
	if speed, ok := s.speeds[name]; ok {
		return speed
	}
	return 1
}

// update builds the tree again if the members of the view have changed.
func (s *tree) update(v *View) {
	same := s.root != nil && len(s.names) == len(v.Neighbours)+1 && s.names[0] == v.Self
	for i := 0; same && i < len(v.Neighbours); i++ {
		same = s.names[i+1] == v.Neighbours[i].Name
	}
	if same {
		return
	}
	s.names = append(s.names[:0], v.Self)
	for i := range v.Neighbours {
		s.names = append(s.names, v.Neighbours[i].Name)
	}
	s.buildTree(s.names)
}

// Look asks when the member is short of work.
func (s *tree) Look(now clocksync.Instant, v *View, to []Demand) ([]Demand, clocksync.Instant) {
	switch {
	case v.Waiting > 0 || v.Activity.Slots() == 0:
		return to, clocksync.MaxInstant
	case !s.below.Below(now, &v.Activity):
		return to, s.below.nextBelow(now, &v.Activity, s.again)
	}
	s.update(v)
	for i := range s.links {
		l := &s.links[i]
		other := l.fast
		if l.fast == v.Self {
			other = l.slow
		} else if l.slow != v.Self {
			continue
		}
		n := v.findNeighbour(other)
		if n == nil || n.loadOrZero() == 0 {
			continue
		}
		if n.Pending {
			return to, clocksync.MaxInstant
		}
		if may, _ := n.MayAsk(now, s.again, s.longest); may && !s.anyPending(v) {
			return append(to, Demand{Member: n.Name}), clocksync.MaxInstant
		}
	}
	return s.asker.Look(now, v, to)
}

func (s *tree) anyPending(v *View) bool {
	return slices.ContainsFunc(v.Neighbours, func(n Neighbour) bool { return n.Pending })
}

// Answer gives the asking member its part of the first split of the tasks that this member has
// put, once. Later it gives a share of the tasks that no slot here can start: by throughput, so
// that both end at the same time, or as configured. It gives none that would end later there.
func (s *tree) Answer(_ clocksync.Instant, v *View, d Demand) Share {
	if d.Member == v.Self {
		return Share{}
	}
	s.update(v)
	spare := v.countSpare()
	if put := min(v.Put, spare); put > s.put {
		clear(s.portions)
		s.root.splitTasks(v.Put, s.portions)
	}
	given := 0
	if n := min(s.portions[d.Member], spare); n > 0 {
		given = n
		delete(s.portions, d.Member)
	} else if spare > 0 {
		given = s.balanced(v, d.Member, spare)
	}
	if given > 0 {
		given = d.limitWanted(given)
		s.put = max(0, min(v.Put, spare)-given)
		return Share{Tasks: given}
	}
	if s.put = 0; v.Items > 1 {
		return Share{Part: s.gammaOf(v.Self, d.Member)}
	}
	return Share{}
}

// gammaOf is the part that i gives to j. By throughput it is t_j / (t_i + t_j), which balances
// the pair in one move; the paper prints t_i / t_j, and uses the other one in example 6.3.
func (s *tree) gammaOf(i, j string) float64 {
	if s.share > 0 {
		return s.share
	}
	return s.speedOf(j) / (s.speedOf(i) + s.speedOf(j))
}

// balanced is how many of the spare tasks a member gets. By throughput that is the number after which both end together. The
// task that runs here counts as half a task. The number is rounded up only if the member could do one task more in that
// time, as the work of tasks is not known. It is 0 if this member ends sooner alone.
func (s *tree) balanced(v *View, member string, spare int) int {
	if s.share > 0 || v.Activity.Slots() == 0 {
		return max(1, int(math.Floor(s.gammaOf(v.Self, member)*float64(spare)+1e-9)))
	}
	own, other := s.speedOf(v.Self), s.speedOf(member)
	left := float64(spare) + float64(v.Activity.Slots()-v.Activity.Free())/2
	n := math.Floor(left*other/(own+other) + 1e-9)
	if (n+2)/other < (left-n)/own {
		n++
	}
	return min(int(n), spare)
}
