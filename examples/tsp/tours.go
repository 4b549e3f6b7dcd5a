package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// bagName is the name of the bags of tours that are to be searched.
const bagName = "tours"

// Tours is a bag of subtasks: partial tours, each of which stands for all tours that go on from it.
type Tours struct {
	list   []bnb.Subtask // that nobody has begun
	search *bnb.Search   // of the one that was begun; nil: there is none
	given  func()        // is called when a part is taken out; nil: nobody wants to know
}

// Best is the shortest tour that was found; Length is 0 if there is none.
type Best struct {
	Length int   `json:"length,omitempty"`
	Tour   []int `json:"tour,omitempty"`
}

// shorter is the better one of two.
func shorter(a, b Best) Best {
	if a.Length == 0 || b.Length > 0 && b.Length < a.Length {
		return b
	}
	return a
}

// Len counts the subtasks that are not begun and the open nodes of the one that is. A search that was begun counts as one at
// least, so that a bag whose last node was a tour can be saved with it.
func (b *Tours) Len() int {
	if b.search == nil {
		return len(b.list)
	}
	return len(b.list) + max(1, b.search.Open())
}

// Split takes subtasks out that are not begun, and then the oldest open nodes, which hold most of the work.
func (b *Tours) Split(n int) Tours {
	k := min(n, len(b.list))
	part := Tours{list: append([]bnb.Subtask(nil), b.list[:k]...)}
	b.list = b.list[k:]
	if b.search != nil && n > k {
		part.list = append(part.list, b.search.Donate(n-k)...)
	}
	if b.given != nil {
		b.given()
	}
	return part
}

// lowest is a length that no tour in the bag is shorter than, unless one was known that is no longer.
func (b *Tours) lowest() int {
	low := math.MaxInt
	if b.search != nil {
		low = b.search.Bound()
	}
	for i := range b.list {
		low = min(low, b.list[i].LowerBound)
	}
	return low
}

// The limits of a bag and of a subtask in it.
const (
	maxBag    = 8 << 20 // bytes
	maxPrices = 1000    // of a subtask; one with more goes without, as a search finds others
)

// MarshalBinary writes the lower bound and then all that is not searched. The rest of a search goes without prices, since
// that is read only if this process dies.
func (b *Tours) MarshalBinary() ([]byte, error) {
	var list []bnb.Subtask
	if b.search != nil {
		list = b.search.Remaining()
	}
	begun := len(list)
	list = append(list, b.list...)
	for i := range list {
		if i < begun || len(list[i].Prices) > maxPrices {
			list[i].Prices = nil
		}
	}
	rest, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("a bag of tours: %w", err)
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(b.lowest())), rest...), nil //nolint:gosec // It is not negative.
}

// UnmarshalBinary reads what MarshalBinary has written. The subtasks are checked when they are searched.
func (b *Tours) UnmarshalBinary(data []byte) error {
	var low lowBound
	if err := low.UnmarshalBinary(data); err != nil {
		return err
	}
	*b = Tours{}
	if err := json.Unmarshal(data[lowBytes:], &b.list); err != nil {
		return fmt.Errorf("a bag of tours: %w", err)
	}
	return nil
}

// lowBound reads a bag only as far as its lower bound.
type lowBound int

const lowBytes = 8

// UnmarshalBinary reads the beginning of what a bag has written.
func (l *lowBound) UnmarshalBinary(data []byte) error {
	if len(data) < lowBytes || len(data) > maxBag {
		return fmt.Errorf("a bag of tours has %d bytes: it needs %d to %d", len(data), lowBytes, maxBag)
	}
	low := binary.BigEndian.Uint64(data)
	if low > math.MaxInt {
		return fmt.Errorf("a bag of tours: lower bound %d is too large", low)
	}
	*l = lowBound(low)
	return nil
}
