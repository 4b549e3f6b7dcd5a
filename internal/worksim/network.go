package worksim

import (
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// links are those between the nodes of a network with a topology. A frame takes a shortest path. On each link it waits for the
// frames before it, and its first byte is forwarded before its last one is there.
type links struct {
	nodes    int
	network  *Network
	next     []uint16            // by node and target: the next node on the way
	free     []clocksync.Instant // by node and neighbour: when the link has sent all before
	diameter int
}

// newLinks returns nil for a network without a topology: each pair of nodes has a link of its own.
func newLinks(network *Network, nodes int) *links {
	if network.Topology == "" {
		return nil
	}
	l := &links{nodes: nodes, network: network, next: make([]uint16, nodes*nodes), free: make([]clocksync.Instant, nodes*nodes)}
	topology := local.Topology(network.Topology)
	neighbours := make([][]int, nodes)
	for i := range neighbours {
		neighbours[i] = topology.AppendNeighbours(nil, i, nodes)
	}
	steps := make([]int, nodes)
	for target := range nodes {
		for i := range steps {
			steps[i] = -1
		}
		steps[target] = 0
		for queue := []int{target}; len(queue) > 0; queue = queue[1:] {
			for _, i := range neighbours[queue[0]] {
				if steps[i] < 0 {
					steps[i] = steps[queue[0]] + 1
					l.next[i*nodes+target] = uint16(queue[0]) //nolint:gosec // There are at most 1,024.
					l.diameter = max(l.diameter, steps[i])
					queue = append(queue, i)
				}
			}
		}
	}
	return l
}

// arrivalOf is when a frame is whole at its target that is sent now.
func (l *links) arrivalOf(now clocksync.Instant, from, to, bytes int) clocksync.Instant {
	head, tail := now, now
	for at := from; at != to; {
		next := int(l.next[at*l.nodes+to])
		cost, all := l.network.linkTimes(at, next, bytes)
		free := &l.free[at*l.nodes+next]
		head = max(head, *free)
		*free = head.Add(all)
		head = head.Add(cost)
		tail = max(tail.Add(cost), head.Add(all))
		at = next
	}
	return tail
}

// linkTimes are how long the first byte of a frame takes over a link, and how long its bytes take it up.
func (n *Network) linkTimes(from, to, bytes int) (cost, all time.Duration) {
	cost, all = n.Cost, time.Duration(bytes)*n.PerByte
	if s := &n.Slow; s.Factor > 0 && (s.From == from+1 && s.To == to+1 || s.From == to+1 && s.To == from+1) {
		cost, all = scaled(cost, s.Factor), scaled(all, s.Factor)
	}
	return cost, all
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
