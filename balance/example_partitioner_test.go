package balance_test

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
)

// partitioner is a strategy of a program's own. It cuts the graph of the traffic into one part for each node, of the
// same weight, so that little traffic is between parts: by recursive bisection, as METIS does. Each bisection is refined
// by the algorithm of Kernighan and Lin.
type partitioner struct {
	weights []float64
	traffic [][]float64 // by two loads
	part    []int       // by load
}

func (p *partitioner) Name() string { return "partitioner" }

func (p *partitioner) Plan(now clocksync.Instant, s *balance.State) balance.Plan {
	p.read(s)
	all := make([]int, len(s.Loads))
	for i := range all {
		all[i] = i
	}
	p.divide(all, 0, len(s.Nodes))
	plan := balance.Plan{Strategy: p.Name(), At: now, Again: clocksync.MaxInstant, Verdict: "the graph of the traffic is cut"}
	nodes := p.nodes(s)
	for i, l := range s.Loads {
		if to := s.Nodes[nodes[p.part[i]]].Name; to != l.Node {
			plan.Moves = append(plan.Moves, balance.Move{Load: l.Name, From: l.Node, To: to, Weight: l.Weight})
		}
	}
	return plan
}

// read makes the graph of a state.
func (p *partitioner) read(s *balance.State) {
	place := map[string]int{}
	*p = partitioner{part: make([]int, len(s.Loads))}
	for i, l := range s.Loads {
		place[l.Name] = i
		p.weights, p.traffic = append(p.weights, l.Weight), append(p.traffic, make([]float64, len(s.Loads)))
	}
	for _, t := range s.Traffic {
		from, to := place[t.From], place[t.To]
		p.traffic[from][to] += t.Volume
		p.traffic[to][from] += t.Volume
	}
}

// divide gives loads to n parts from first on.
func (p *partitioner) divide(loads []int, first, n int) {
	if n == 1 {
		for _, l := range loads {
			p.part[l] = first
		}
		return
	}
	left, right := p.grow(loads, float64(n/2)/float64(n))
	for p.refine(left, right) {
	}
	p.divide(left, first, n/2)
	p.divide(right, first+n/2, n-n/2)
}

// grow begins a bisection: from the first load on, the next one is always that with the most traffic to the left side.
func (p *partitioner) grow(loads []int, share float64) (left, right []int) {
	room := 0.0
	for _, l := range loads {
		room += p.weights[l] * share
	}
	right = slices.Clone(loads)
	for next := 0; len(right) > 1 && room >= p.weights[right[next]]/2; {
		room -= p.weights[right[next]]
		left, right = append(left, right[next]), slices.Delete(right, next, next+1)
		next = 0
		for i := range right {
			if p.to(right[i], left) > p.to(right[next], left) {
				next = i
			}
		}
	}
	return left, right
}

// refine makes a pass of Kernighan and Lin: it swaps the best pairs of the two sides, each load once, also at a loss, and
// keeps the swaps up to the best cut. It reports whether that is a better one than before.
func (p *partitioner) refine(left, right []int) bool {
	var swaps [][2]int
	swapped := map[int]bool{}
	sum, best, kept := 0.0, 0.0, 0
	for range min(len(left), len(right)) {
		gain, i, j := p.bestSwap(left, right, swapped)
		if i < 0 {
			break
		}
		left[i], right[j] = right[j], left[i]
		swapped[left[i]], swapped[right[j]] = true, true
		swaps = append(swaps, [2]int{i, j})
		if sum += gain; sum > best {
			best, kept = sum, len(swaps)
		}
	}
	for _, s := range slices.Backward(swaps[kept:]) {
		left[s[0]], right[s[1]] = right[s[1]], left[s[0]]
	}
	return kept > 0
}

// bestSwap returns the two loads of equal weight that lower the traffic between the parts most if they change places.
func (p *partitioner) bestSwap(left, right []int, swapped map[int]bool) (gain float64, i, j int) {
	i = -1
	for a, l := range left {
		for b, r := range right {
			if swapped[l] || swapped[r] || p.weights[l] != p.weights[r] {
				continue
			}
			g := p.to(l, right) - p.to(l, left) + p.to(r, left) - p.to(r, right) - 2*p.traffic[l][r]
			if i < 0 || g > gain {
				gain, i, j = g, a, b
			}
		}
	}
	return gain, i, j
}

// to is the traffic of a load with others.
func (p *partitioner) to(load int, others []int) (sum float64) {
	for _, o := range others {
		sum += p.traffic[load][o]
	}
	return sum
}

// nodes gives each part to the free node that already has the most loads of that part, so that few loads move.
func (p *partitioner) nodes(s *balance.State) []int {
	chosen := make([]int, len(s.Nodes))
	free := map[int]bool{}
	for n := range s.Nodes {
		free[n] = true
	}
	for part := range chosen {
		best, most := -1, 0.0
		for n := range s.Nodes {
			there := 0.0
			for i, l := range s.Loads {
				if p.part[i] == part && l.Node == s.Nodes[n].Name {
					there += l.Weight
				}
			}
			if free[n] && (best < 0 || there > most) {
				best, most = n, there
			}
		}
		chosen[part], free[best] = best, false
	}
	return chosen
}

// cut is the traffic between nodes.
func cut(s *balance.State) (sum float64) {
	node := map[string]string{}
	for _, l := range s.Loads {
		node[l.Name] = l.Node
	}
	for _, t := range s.Traffic {
		if node[t.From] != node[t.To] {
			sum += t.Volume
		}
	}
	return sum
}

// A program's own strategy is any type with the methods of [balance.Strategy]. This one partitions the graph of the
// traffic: four groups of four loads, each of which is spread over all nodes, come to one node each.
func Example_partitioner() {
	var s balance.State
	for i, name := range []string{"a", "b", "c", "d"} {
		s.Nodes = append(s.Nodes, balance.Node{Name: name, Power: 1, Share: 1})
		for k := range 4 {
			s.Loads = append(s.Loads, balance.Load{Name: fmt.Sprint("g", k, i), Node: name, Weight: 1})
		}
	}
	for k := range 4 {
		for i := range 4 {
			next := (i + 1) % 4
			s.Traffic = append(s.Traffic, balance.Traffic{From: fmt.Sprint("g", k, i), To: fmt.Sprint("g", k, next), Volume: 10})
		}
		s.Traffic = append(s.Traffic, balance.Traffic{From: fmt.Sprint("g", k, 0), To: fmt.Sprint("g", (k+1)%4, 0), Volume: 1})
	}
	var strategy balance.Strategy = &partitioner{}
	before := cut(&s)
	plan := strategy.Plan(0, &s)
	for _, m := range plan.Moves {
		for i := range s.Loads {
			if s.Loads[i].Name == m.Load {
				s.Loads[i].Node = m.To
			}
		}
	}
	count := map[string]int{}
	for _, l := range s.Loads {
		count[l.Node]++
	}
	fmt.Printf("%d moves: traffic between nodes %v -> %v, loads %v\n", len(plan.Moves), before, cut(&s), count)
	fmt.Printf("a second plan has %d moves\n", len(strategy.Plan(0, &s).Moves))
	// Output:
	// 12 moves: traffic between nodes 160 -> 4, loads map[a:4 b:4 c:4 d:4]
	// a second plan has 0 moves
}
