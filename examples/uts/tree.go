package main

import (
	"crypto/sha1" //nolint:gosec // The benchmark is defined by it.
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// shape is a tree of the Unbalanced Tree Search benchmark (Olivier et al., LCPC 2006): how many children
// a node has follows from a random state, which its place in the tree alone decides.
type shape struct {
	name  string
	kind  kind
	root  float64 // children of the root, or their expectation
	depth float64 // of geometric trees, the d of their formulas
	q     float64 // of binomial trees, the part of the nodes that have children
	m     int     // how many
	seed  uint32
	nodes int64 // of the whole tree, as published
}

// kind says how the number of children is drawn.
type kind uint8

const (
	binomial kind = iota // m with the probability q
	fixed                // geometric, of the same expectation down to a depth
	cyclic               // geometric, of an expectation that rises and falls with the depth
	linear               // geometric, of an expectation that falls with the depth
	falling              // geometric, of an expectation that falls as a power of the depth
)

// shapes are the sample trees of the benchmark; the nodes of T1L are those of its large geometric one.
var shapes = map[string]shape{
	"T1":  {kind: fixed, root: 4, depth: 10, seed: 19, nodes: 4_130_071},
	"T2":  {kind: cyclic, root: 6, depth: 16, seed: 502, nodes: 4_117_769},
	"T3":  {kind: binomial, root: 2000, q: 0.124875, m: 8, seed: 42, nodes: 4_112_897},
	"T1L": {kind: fixed, root: 4, depth: 13, seed: 29, nodes: 102_181_082},
}

// shapeOf is the shape of a name.
func shapeOf(name string) (*shape, error) {
	s, ok := shapes[name]
	if !ok {
		return nil, fmt.Errorf("there is no tree %q: write one of %v", name, slices.Sorted(maps.Keys(shapes)))
	}
	s.name = name
	return &s, nil
}

// state is the random state of a node.
type state [sha1.Size]byte

// children is how many a node has.
func (s *shape) children(at *state, depth int) int {
	u := float64(binary.BigEndian.Uint32(at[16:])&math.MaxInt32) / (1 << 31)
	switch {
	case s.kind == binomial && depth == 0:
		return int(s.root)
	case s.kind == binomial && u < s.q:
		return s.m
	case s.kind == binomial:
		return 0
	}
	expect := s.root
	if depth > 0 {
		expect = s.expectation(float64(depth))
	}
	return min(100, int(math.Log(1-u)/math.Log(1-1/(1+expect))))
}

// expectation is of the children of a node of a geometric tree.
func (s *shape) expectation(depth float64) float64 {
	switch {
	case s.kind == falling:
		return s.root * math.Pow(depth, -math.Log(s.root)/math.Log(s.depth))
	case s.kind == linear:
		return s.root * (1 - depth/s.depth)
	case s.kind == cyclic && depth <= 5*s.depth:
		return math.Pow(s.root, math.Sin(2*math.Pi*depth/s.depth))
	case s.kind == fixed && depth < s.depth:
		return s.root
	default:
		return 0
	}
}

// child is the state of a child.
func (at *state) child(i int) state {
	var text [sha1.Size + 4]byte
	copy(text[:], at[:])
	binary.BigEndian.PutUint32(text[sha1.Size:], uint32(i)) //nolint:gosec // At most 2,000.
	return sha1.Sum(text[:])                                //nolint:gosec // As above.
}

// rootOf is the state of the root.
func rootOf(seed uint32) state {
	var text [sha1.Size]byte
	binary.BigEndian.PutUint32(text[16:], seed)
	return sha1.Sum(text[:]) //nolint:gosec // As above.
}

// siblings are children of one node that are not visited yet, from next to end.
type siblings struct {
	parent    state
	depth     int32 // of the children
	next, end int32
}

// Stack is a bag of nodes: siblings of few places instead of many nodes, so that it fits into a message.
type Stack struct {
	shape *shape
	list  []siblings
}

// Len is how many nodes are known and not visited.
func (b *Stack) Len() int {
	n := 0
	for i := range b.list {
		n += int(b.list[i].end - b.list[i].next)
	}
	return n
}

// Split gives away nodes from the bottom of the stack, which have the largest trees. Of each group of
// siblings it gives a half.
func (b *Stack) Split(n int) Stack {
	part := Stack{shape: b.shape}
	for i := 0; i < len(b.list) && n > 0; i++ {
		s := &b.list[i]
		if k := min(int32(n), (s.end-s.next+1)/2); k > 0 { //nolint:gosec // A split is small.
			part.list = append(part.list, siblings{s.parent, s.depth, s.end - k, s.end})
			s.end -= k
			n -= int(k)
		}
	}
	return part
}

// Visit visits at most n nodes, and counts them.
func (b *Stack) Visit(n int, found *int64) {
	for ; n > 0 && len(b.list) > 0; n-- {
		s := &b.list[len(b.list)-1]
		if s.next == s.end {
			b.list = b.list[:len(b.list)-1]
			continue
		}
		at := s.parent.child(int(s.next))
		depth := s.depth
		s.next++
		*found++
		if k := b.shape.children(&at, int(depth)); k > 0 {
			b.list = append(b.list, siblings{at, depth + 1, 0, int32(k)}) //nolint:gosec // At most 2,000.
		}
	}
}

const siblingsBytes = sha1.Size + 3*4

// MarshalBinary writes the name of the tree and the groups of siblings that have some left.
func (b *Stack) MarshalBinary() ([]byte, error) { //nolint:unparam // encoding.BinaryMarshaler has it.
	data := append([]byte{byte(len(b.shape.name))}, b.shape.name...)
	for _, s := range b.list {
		if s.next < s.end {
			data = append(data, s.parent[:]...)
			for _, v := range []int32{s.depth, s.next, s.end} {
				data = binary.BigEndian.AppendUint32(data, uint32(v)) //nolint:gosec // None is negative.
			}
		}
	}
	return data, nil
}

// UnmarshalBinary reads what MarshalBinary has written.
func (b *Stack) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || len(data) <= int(data[0]) || (len(data)-1-int(data[0]))%siblingsBytes != 0 {
		return errors.New("not a stack of a tree")
	}
	name, data := string(data[1:1+data[0]]), data[1+data[0]:]
	s, err := shapeOf(name)
	if err != nil {
		return err
	}
	*b = Stack{shape: s}
	for ; len(data) > 0; data = data[siblingsBytes:] {
		word := func(i int) int32 { return int32(binary.BigEndian.Uint32(data[sha1.Size+4*i:])) } //nolint:gosec // As written.
		b.list = append(b.list, siblings{state(data[:sha1.Size]), word(0), word(1), word(2)})
	}
	return nil
}
