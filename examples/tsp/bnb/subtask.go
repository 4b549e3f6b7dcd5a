package bnb

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Kind      Kind    `json:"kind"`
	Required  []Edge  `json:"required,omitempty"`  // none if Kind is Prefix
	Forbidden []Edge  `json:"forbidden,omitempty"` // for Prefix: first steps that other subtasks cover
	Prefix    []int32 `json:"prefix,omitempty"`    // cities from city 0; none if Kind is Edges
	// LowerBound is a length no tour of the subtask is shorter than, unless
	// one was known that is no longer than it. Receivers trust it. Its distance
	// to the best tour tells the work in the subtask: see Problem.Load.
	LowerBound int `json:"bound"`
	// Prices are those of the cities to begin the search with, in the units of
	// the Problem; none stands for the Problem's own. Any are valid. Those of the
	// node that the subtask was make the search go on as it would have there,
	// with close to the same nodes; without them it has to find others first.
	Prices []int64 `json:"prices,omitempty"`
}

// Root returns the subtask of all tours.
func Root(kind Kind) Subtask {
	if kind == Prefix {
		return Subtask{Kind: Prefix, Prefix: []int32{0}}
	}
	return Subtask{Kind: Edges}
}

// MaxSubtaskBytes is the longest encoding of a subtask that DecodeSubtask reads. Real
// ones have some thousand bytes.
const MaxSubtaskBytes = 256 << 10

// DecodeSubtask decodes the JSON of a subtask of an instance of n cities. It refuses
// what is none.
func DecodeSubtask(b []byte, n int) (s Subtask, err error) {
	if len(b) > MaxSubtaskBytes {
		return Subtask{}, fmt.Errorf("bnb: subtask of %d bytes: at most %d are allowed", len(b), MaxSubtaskBytes)
	}
	if err = json.Unmarshal(b, &s); err != nil {
		return Subtask{}, fmt.Errorf("bnb: subtask: %w", err)
	}
	if err = s.Validate(n); err != nil {
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
