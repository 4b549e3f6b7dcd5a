package bnb

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Status says how far a search is.
type Status uint8

const (
	// Running says that there are open nodes left.
	Running Status = iota
	// Improved is as Running, and Tour returns a tour that is shorter than any
	// known before.
	Improved
	// Done says that no tour shorter than the upper bound is in the subtask.
	Done
)

// Search looks through one subtask, depth first, a node at a time.
// It is not safe for concurrent use; what it shares with other searches is the
// Problem and the incumbent.
type Search struct {
	p         *Problem
	kind      Kind
	incumbent *atomic.Int64
	poll      func() bool
	open      []*node // oldest first
	pool      []*node
	nodes     int64

	tour  []int // best found here
	found int   // its length
	own   int   // least of found and the problem's length

	// Scratch.
	up    *ascent
	set   *settler // of the node
	probe *settler // of a branch on trial
	state []uint8  // likewise
	fix   *fixer
	aside [2][]int64 // prices of the branches on trial, with and without the edge
	pick  [2][]int64 // of the best so far
	worth []worth
	ways  []way
	list  []int32
}

// NewSearch prepares to search a subtask of a problem. The incumbent is the
// length of the best tour known anywhere, or more (math.MaxInt64 if none is
// known); it is read before every ascent, so that a lower value takes effect
// within microseconds, and never written: publish a tour found here first, then
// lower the incumbent. It refuses a subtask that is not one of the instance.
func NewSearch(p *Problem, t Subtask, incumbent *atomic.Int64) (*Search, error) {
	if err := t.Validate(p.in.N); err != nil {
		return nil, fmt.Errorf("bnb: cannot search %s: %w", p.in.Name, err)
	}
	n := p.in.N
	s := &Search{
		p: p, kind: t.Kind, incumbent: incumbent, own: p.length,
		up: newAscent(p.graph), set: newSettler(p.graph), probe: newSettler(p.graph),
		fix: newFixer(n), state: make([]uint8, len(p.graph.edges)),
		aside: [2][]int64{make([]int64, n), make([]int64, n)}, pick: [2][]int64{make([]int64, n), make([]int64, n)},
	}
	if p.sum <= s.limit() {
		if nd := s.root(t); nd != nil {
			s.open = append(s.open, nd)
		}
	}
	return s, nil
}

// SetPoll sets a function that is called before every ascent of a few
// microseconds. When it returns true, Step leaves its node open and returns.
func (s *Search) SetPoll(poll func() bool) { s.poll = poll }

// upper is the length of the best tour known.
func (s *Search) upper() int {
	return min(s.own, int(s.incumbent.Load()))
}

func (s *Search) limit() int64 { return s.p.limit(s.upper()) }

// ask is limit with the poll, as an ascent wants it.
func (s *Search) ask() (int64, bool) { return s.limit(), s.poll != nil && s.poll() }

// Step works on one node, the one opened last, for about 1 ms with a hundred
// cities, seldom above 3 ms. After anything but Done, call it again.
func (s *Search) Step() Status { return s.step(len(s.open) - 1) }

// Split searches nodes breadth first, the oldest first, until at least k are
// open. It returns earlier with Improved, with Done, or with Running when stop,
// which may be nil, returns true after a node.
func (s *Search) Split(k int, stop func() bool) Status {
	for st := Running; ; st = s.step(0) {
		if st != Running {
			return st
		}
		if len(s.open) >= k || stop != nil && stop() {
			return Running
		}
	}
}

func (s *Search) step(at int) Status {
	if len(s.open) == 0 {
		return Done
	}
	nd := s.open[at]
	s.open = slices.Delete(s.open, at, at+1)
	before := s.own
	if nd.sum > s.limit() {
		s.release(nd)
	} else {
		if !nd.seen {
			s.nodes++
		}
		s.visit(nd)
	}
	if s.own < before {
		return Improved
	}
	if len(s.open) == 0 {
		return Done
	}
	return Running
}

// improve takes a tour found by an ascent.
func (s *Search) improve(order []int32) {
	tour := widen(order)
	if length := s.p.in.TourLength(tour); length < s.own {
		s.tour, s.found, s.own = tour, length, length
	}
}

// Tour returns the best tour this search found and its length, or nil and 0.
func (s *Search) Tour() ([]int, int) { return slices.Clone(s.tour), s.found }

// Open returns the number of open nodes that may hold a shorter tour than the
// best known.
func (s *Search) Open() int {
	s.prune()
	return len(s.open)
}

// prune drops the open nodes that a better tour has made hopeless since.
func (s *Search) prune() {
	limit := s.limit()
	s.open = slices.DeleteFunc(s.open, func(nd *node) bool {
		hopeless := nd.sum > limit
		if hopeless {
			s.release(nd)
		}
		return hopeless
	})
}

// Nodes returns the number of nodes searched.
func (s *Search) Nodes() int64 { return s.nodes }

// Bound returns a length that no tour in the subtask is shorter than, unless
// it is the best one known; when Done, the length of that.
func (s *Search) Bound() int {
	best := s.upper()
	bound := best
	for _, nd := range s.open {
		bound = min(bound, s.p.lower(nd.sum, best))
	}
	return bound
}

// Remaining returns all open nodes as subtasks, oldest first. They stay open.
func (s *Search) Remaining() []Subtask {
	var list []Subtask
	for _, nd := range s.open {
		list = append(list, s.subtask(nd))
	}
	return list
}

// Donate removes up to k of the oldest open nodes, which hold most of the work,
// and returns them as subtasks; at least one node stays, if one is open. What is returned and
// what stays open are together all that was open before.
func (s *Search) Donate(k int) []Subtask {
	s.prune()
	k = max(0, min(k, len(s.open)-1))
	var list []Subtask
	for _, nd := range s.open[:k] {
		list = append(list, s.subtask(nd))
		s.release(nd)
	}
	s.open = slices.Delete(s.open, 0, k)
	return list
}
