package balancesim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Topologies are the words for how nodes are linked.
var Topologies = []string{"full", "ring", "hypercube", "mesh", "tree"}

// hops returns the number of links between two nodes. A mesh has as many columns
// as the square root of its nodes, rounded up; a hypercube of a number that is no
// power of two lacks the highest corners, and messages go around by way of lower
// ones.
func hops(topology string, powers []float64) func(from, to int) int {
	n := len(powers)
	switch topology {
	case "ring":
		return func(a, b int) int { d := max(a-b, b-a); return min(d, n-d) }
	case "hypercube":
		return func(a, b int) int { return bits.OnesCount(uint(a ^ b)) }
	case "mesh":
		columns := int(math.Ceil(math.Sqrt(float64(n))))
		return func(a, b int) int {
			return max(a/columns-b/columns, b/columns-a/columns) + max(a%columns-b%columns, b%columns-a%columns)
		}
	case "tree":
		return distances(n, bitonic(powers))
	}
	return func(a, b int) int { return min(1, max(a-b, b-a)) }
}

// cluster is a subtree of the cluster tree, by its leaves in order.
type cluster struct {
	leaves []int
	power  float64
	ratio  float64 // balance ratio, definition 6.2
}

// bitonic returns the links of the cluster tree of the CORD thesis (definition
// 6.1, algorithm 6.1): in each round the slowest cluster is paired with the
// fastest, the second slowest with the second fastest, and the rightmost leaf of
// the slower one linked with the leftmost of the faster one, but two leaves with
// each other. An odd one out waits for the next round.
func bitonic(powers []float64) (links [][2]int) {
	var level []cluster
	for i, p := range powers {
		level = append(level, cluster{[]int{i}, p, 0})
	}
	for len(level) > 1 {
		slices.SortStableFunc(level, func(a, b cluster) int {
			return cmp.Or(cmp.Compare(a.power, b.power), cmp.Compare(b.ratio, a.ratio)) // Definition 6.3.
		})
		var next []cluster
		for i := range len(level) / 2 {
			slow, fast := level[i], level[len(level)-1-i]
			links = append(links, [2]int{slow.leaves[len(slow.leaves)-1], fast.leaves[0]})
			c := cluster{slices.Concat(slow.leaves, fast.leaves), slow.power + fast.power, 0}
			if c.power > 0 {
				c.ratio = (fast.power - slow.power) / c.power
			}
			next = append(next, c)
		}
		if len(level)%2 == 1 {
			next = append(next, level[len(level)/2])
		}
		level = next
	}
	return links
}

// distances counts links by breadth-first search from each node.
func distances(n int, links [][2]int) func(from, to int) int {
	next := make([][]int, n)
	for _, l := range links {
		next[l[0]] = append(next[l[0]], l[1])
		next[l[1]] = append(next[l[1]], l[0])
	}
	table := make([][]int, n)
	for from := range n {
		row := slices.Repeat([]int{-1}, n)
		row[from] = 0
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			for _, to := range next[queue[0]] {
				if row[to] < 0 {
					row[to] = row[queue[0]] + 1
					queue = append(queue, to)
				}
			}
		}
		table[from] = row
	}
	return func(from, to int) int { return table[from][to] }
}
