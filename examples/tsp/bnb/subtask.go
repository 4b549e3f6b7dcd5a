package bnb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Kind is how subtasks cut the tours of an instance into parts.
type Kind uint8

const (
	// Edges subtasks require some edges and forbid others.
	Edges Kind = 1 + iota
	// Prefix subtasks fix the first cities of the tour, in order, from city 0
	// (PEGASUS paper 4.3).
	Prefix
)

// String returns "edges" or "prefix".
func (k Kind) String() string {
	switch k {
	case Edges:
		return "edges"
	case Prefix:
		return "prefix"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// ParseKind is the inverse of String.
func ParseKind(s string) (Kind, error) {
	for _, k := range []Kind{Edges, Prefix} {
		if s == k.String() {
			return k, nil
		}
	}
	return 0, fmt.Errorf("bnb: unknown kind of subtasks %q: use edges or prefix", s)
}

// Subtask is a set of tours to search: those with every required and no
// forbidden edge that begin, one way round, with the cities of the prefix. It
// holds the decisions of branching; their consequences are derived again.
type Subtask struct {
	Kind      Kind
	Required  []Edge  // none if Kind is Prefix
	Forbidden []Edge  // for Prefix: first steps that other subtasks cover
	Prefix    []int32 // cities from city 0; none if Kind is Edges
	// LowerBound is a length no tour of the subtask is shorter than, unless
	// one was known that is no longer than it. Receivers trust it. Its distance
	// to the best tour tells the work in the subtask: see Problem.Load.
	LowerBound int
	// Prices are those of the cities to begin the search with, in the units of
	// the Problem; none stands for the Problem's own. Any are valid. Those of the
	// node that the subtask was make the search go on as it would have there,
	// with close to the same nodes; without them it has to find others first.
	Prices []int64
}

// Root returns the subtask of all tours.
func Root(kind Kind) Subtask {
	if kind == Prefix {
		return Subtask{Kind: Prefix, Prefix: []int32{0}}
	}
	return Subtask{Kind: Edges}
}

// MaxSubtaskBytes is the longest encoding of a subtask that DecodeSubtask
// reads. Real ones have some hundred bytes.
const MaxSubtaskBytes = 64 << 10

const subtaskVersion = 2

// AppendBinary appends the encoding of the subtask to b.
func (s Subtask) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, subtaskVersion, byte(s.Kind))
	b = binary.AppendUvarint(b, uint64(s.LowerBound))
	for _, list := range [][]Edge{s.Required, s.Forbidden} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, e := range list {
			b = binary.AppendUvarint(b, uint64(e.U))
			b = binary.AppendUvarint(b, uint64(e.V))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(s.Prefix)))
	for _, c := range s.Prefix {
		b = binary.AppendUvarint(b, uint64(c))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Prices)))
	for _, p := range s.Prices {
		b = binary.AppendVarint(b, p)
	}
	return b, nil
}

// MarshalBinary returns the encoding of the subtask.
func (s Subtask) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// DecodeSubtask decodes a subtask of an instance of n cities. It refuses bytes
// that do not encode one: an error, never a panic, and never more memory than
// a few times the input.
func DecodeSubtask(b []byte, n int) (Subtask, error) {
	if len(b) > MaxSubtaskBytes {
		return Subtask{}, fmt.Errorf("bnb: subtask of %d bytes: at most %d are allowed", len(b), MaxSubtaskBytes)
	}
	if len(b) < 2 || b[0] != subtaskVersion {
		return Subtask{}, fmt.Errorf("bnb: subtask: not an encoding of version %d", subtaskVersion)
	}
	d := decoder{rest: b[2:], n: n}
	s := Subtask{Kind: Kind(b[1]), LowerBound: int(d.number(math.MaxInt64))}
	s.Required, s.Forbidden, s.Prefix, s.Prices = d.edges(), d.edges(), d.cities(), d.prices()
	switch {
	case d.err != nil:
		return Subtask{}, d.err
	case len(d.rest) > 0:
		return Subtask{}, fmt.Errorf("bnb: subtask: %d bytes after its end", len(d.rest))
	}
	if err := s.Validate(n); err != nil {
		return Subtask{}, err
	}
	return s, nil
}

// Validate checks that the subtask makes sense for an instance of n cities.
func (s Subtask) Validate(n int) error {
	switch {
	case s.Kind != Edges && s.Kind != Prefix:
		return fmt.Errorf("bnb: subtask of unknown kind %d", uint8(s.Kind))
	case s.LowerBound < 0:
		return fmt.Errorf("bnb: subtask: lower bound %d is negative", s.LowerBound)
	case s.Kind == Edges && len(s.Prefix) > 0:
		return errors.New("bnb: subtask of kind edges with a prefix")
	case s.Kind == Prefix && (len(s.Required) > 0 || len(s.Prefix) == 0 || s.Prefix[0] != 0):
		return errors.New("bnb: subtask of kind prefix must have a prefix from city 0 and no required edges")
	}
	if len(s.Prices) > 0 && len(s.Prices) != n {
		return fmt.Errorf("bnb: subtask with prices of %d cities: the instance has %d", len(s.Prices), n)
	}
	for c, p := range s.Prices {
		if p < -maxPrice || p > maxPrice {
			return fmt.Errorf("bnb: subtask: price %d of city %d is beyond %d", p, c, maxPrice)
		}
	}
	seen := map[int32]bool{}
	for _, c := range s.Prefix {
		if c < 0 || int(c) >= n || seen[c] {
			return fmt.Errorf("bnb: subtask: city %d in the prefix is unknown or there twice: the instance has %d cities", c, n)
		}
		seen[c] = true
	}
	for _, e := range slices.Concat(s.Required, s.Forbidden) {
		if e.U < 0 || e.U >= e.V || int(e.V) >= n {
			return fmt.Errorf("bnb: subtask: no edge %d-%d: the instance has %d cities", e.U, e.V, n)
		}
	}
	return nil
}

// decoder reads numbers until the first fault, which it keeps.
type decoder struct {
	rest []byte
	n    int
	err  error
}

func (d *decoder) number(below uint64) uint64 {
	x, size := binary.Uvarint(d.rest)
	if d.err == nil && (size <= 0 || x >= below) {
		d.err = errors.New("bnb: subtask: cut short, or a number is out of range")
	}
	if d.err != nil {
		return 0
	}
	d.rest = d.rest[size:]
	return x
}

// count reads the length of a list whose items take at least size bytes each.
func (d *decoder) count(size int) int { return int(d.number(uint64(len(d.rest)/size) + 1)) }

func (d *decoder) edges() []Edge {
	var list []Edge
	for range d.count(2) {
		u, v := d.number(uint64(d.n)), d.number(uint64(d.n))
		list = append(list, Edge{int32(u), int32(v)})
	}
	return list
}

func (d *decoder) prices() []int64 {
	var list []int64
	for range d.count(1) {
		x := d.number(math.MaxUint64)
		list = append(list, int64(x>>1)^-int64(x&1)) // as AppendVarint folds the sign in
	}
	return list
}

func (d *decoder) cities() []int32 {
	var list []int32
	for range d.count(1) {
		list = append(list, int32(d.number(uint64(d.n))))
	}
	return list
}
