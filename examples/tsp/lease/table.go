package lease

import (
	"cmp"
	"fmt"
	"slices"
)

// ID numbers leases from 1; a number is never used twice.
type ID int64

// Item is one subtask: its encoding, and a value that nothing in it is less
// than.
type Item struct {
	Bound int    `json:"bound"`
	Body  []byte `json:"body"`
}

// Lease is a list of subtasks that one owner searches.
type Lease struct {
	ID     ID     `json:"id"`
	Parent ID     `json:"parent,omitempty"` // the lease it was returned from, 0 for none
	Owner  string `json:"-"`                // empty: it is in the pool
	Items  []Item `json:"items"`
	Bound  int    `json:"bound"` // of all of it; at least the least of its items
}

// Table holds the open leases. It is not safe for concurrent use; items are
// kept, not copied, and must not change.
type Table struct {
	open      []Lease // by number
	last      ID
	sent      map[string]int // leases granted to each owner that was not dropped
	completed int
	moved     int
}

// NewTable returns a table with a lease in the pool for each item.
func NewTable(items []Item) *Table {
	t := &Table{sent: map[string]int{}}
	t.add(0, items)
	return t
}

func (t *Table) add(parent ID, items []Item) {
	for _, it := range items {
		t.last++
		t.open = append(t.open, Lease{ID: t.last, Parent: parent, Items: []Item{it}, Bound: it.Bound})
	}
}

// Grant gives an owner at most n leases of the pool: those with the
// lowest numbers from first on, and if they do not suffice, from the lowest on.
// It stops before the bodies exceed size bytes, but not before the first lease;
// 0 is no limit.
func (t *Table) Grant(owner string, first ID, n, size int) []Lease {
	if owner == "" {
		panic("lease: a grant to nobody")
	}
	start, _ := t.find(first)
	var granted []Lease
	total := 0
	for k := range t.open {
		l := &t.open[(start+k)%len(t.open)]
		if l.Owner != "" {
			continue
		}
		total += l.size()
		if len(granted) >= n || size > 0 && len(granted) > 0 && total > size {
			break
		}
		l.Owner = owner
		t.sent[owner]++
		granted = append(granted, *l)
	}
	return granted
}

func (l *Lease) size() int {
	n := 0
	for _, it := range l.Items {
		n += len(it.Body)
	}
	return n
}

func (t *Table) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(t.open, id, func(l Lease, id ID) int { return cmp.Compare(l.ID, id) })
}

// held finds a lease that an owner holds.
func (t *Table) held(owner string, id ID) (int, error) {
	i, ok := t.find(id)
	if !ok || t.open[i].Owner != owner || owner == "" {
		return 0, fmt.Errorf("lease %d is not held by %q: it was completed, or queued again when its owner was dropped", id, owner)
	}
	return i, nil
}

// Complete ends a lease: its owner has searched all of its body.
func (t *Table) Complete(owner string, id ID) error {
	i, err := t.held(owner, id)
	if err != nil {
		return err
	}
	t.open = slices.Delete(t.open, i, i+1)
	t.completed++
	return nil
}

// Return takes back a part of a lease: each item of given becomes a lease of
// its own in the pool, and kept is what its owner goes on with. Together they
// must cover what is left to search of the body. A nil kept leaves the body as
// it was, where it would be too large to send: if the owner is then dropped, what
// it gave is searched twice.
func (t *Table) Return(owner string, id ID, given, kept []Item) error {
	i, err := t.held(owner, id)
	if err != nil {
		return err
	}
	if kept != nil {
		l := &t.open[i]
		l.Items = kept
		l.raise(leastBound(kept))
	}
	t.add(id, given)
	t.moved += len(given)
	return nil
}

func leastBound(items []Item) int {
	if len(items) == 0 {
		return 0
	}
	return slices.MinFunc(items, func(a, b Item) int { return cmp.Compare(a.Bound, b.Bound) }).Bound
}

// Release puts leases that their owner has not begun back into the pool. What
// the owner does not hold is passed over. It returns how many went back.
func (t *Table) Release(owner string, ids []ID) int {
	n := 0
	for _, id := range ids {
		if i, err := t.held(owner, id); err == nil {
			t.open[i].Owner = ""
			n++
		}
	}
	t.moved += n
	return n
}

// Raise notes that nothing below bound is left in a lease that an owner holds;
// what it does not hold is passed over. A bound never goes down.
func (t *Table) Raise(owner string, id ID, bound int) {
	if i, err := t.held(owner, id); err == nil {
		t.open[i].raise(bound)
	}
}

func (l *Lease) raise(bound int) { l.Bound = max(l.Bound, bound) }

// Drop takes all leases from an owner that is gone, puts them back into the
// pool, and forgets what was sent to it. It returns their numbers.
func (t *Table) Drop(owner string) []ID {
	if owner == "" {
		return nil
	}
	var ids []ID
	for i := range t.open {
		if l := &t.open[i]; l.Owner == owner {
			l.Owner = ""
			ids = append(ids, l.ID)
		}
	}
	delete(t.sent, owner)
	return ids
}
