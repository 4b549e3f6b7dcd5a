package lease

import (
	"cmp"
	"slices"
)

// Counts is the table in figures.
type Counts struct {
	Open      int // leases not completed, pooled ones included
	Pool      int // of these, in the pool
	Next      ID  // the lowest number in the pool, 0 if it is empty
	Sent      int // leases granted to owners that were not dropped
	Completed int
	Moved     int // subtasks returned or released by their owners
}

// Counts returns the figures.
func (t *Table) Counts() Counts {
	c := Counts{Open: len(t.open), Completed: t.completed, Moved: t.moved}
	for _, l := range slices.Backward(t.open) {
		if l.Owner == "" {
			c.Pool++
			c.Next = l.ID
		}
	}
	for _, n := range t.sent {
		c.Sent += n
	}
	return c
}

// LowerBound returns a value that nothing still to be searched is less than;
// false when no lease is open.
func (t *Table) LowerBound() (int, bool) {
	if len(t.open) == 0 {
		return 0, false
	}
	return slices.MinFunc(t.open, func(a, b Lease) int { return cmp.Compare(a.Bound, b.Bound) }).Bound, true
}

// Leases returns the open leases by number.
func (t *Table) Leases() []Lease { return slices.Clone(t.open) }
