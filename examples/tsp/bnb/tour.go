package bnb

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// Verify checks that tour visits every city of the instance once and has the
// given length; the error says what is wrong.
func Verify(in *tsplib.Instance, tour []int, length int) error {
	if err := visitsAll(in, tour); err != nil {
		return err
	}
	if got := in.TourLength(tour); got != length {
		return fmt.Errorf("bnb: tour has length %d, not %d as claimed", got, length)
	}
	return nil
}

func visitsAll(in *tsplib.Instance, tour []int) error {
	if len(tour) != in.N {
		return fmt.Errorf("bnb: tour visits %d cities: the instance has %d", len(tour), in.N)
	}
	seen := make([]bool, in.N)
	for i, c := range tour {
		if c < 0 || c >= in.N {
			return fmt.Errorf("bnb: tour: city %d at place %d: cities are 0 to %d", c, i, in.N-1)
		}
		if seen[c] {
			return fmt.Errorf("bnb: tour visits city %d twice", c)
		}
		seen[c] = true
	}
	return nil
}

// ring is a tour under local search: cities in order, their places, and a log
// of the reversals made, so that a failed attempt can be taken back.
type ring struct {
	order, pos []int32
	log        [][2]int32 // places reversed, oldest first
}

func newRing(order []int32) *ring {
	r := &ring{order: order, pos: make([]int32, len(order))}
	for i, c := range order {
		r.pos[c] = int32(i)
	}
	return r
}

func (r *ring) next(c int32) int32 {
	i := r.pos[c] + 1
	if int(i) == len(r.order) {
		i = 0
	}
	return r.order[i]
}

func (r *ring) prev(c int32) int32 {
	i := r.pos[c]
	if i == 0 {
		i = int32(len(r.order))
	}
	return r.order[i-1]
}

// swap(a, b, c, d) replaces edges a-b and c-d by a-c and b-d. Either b follows a and d
// follows c, or the other way round for both.
func (r *ring) swap(a, b, c, _ int32) {
	if r.next(a) == b {
		r.reverse(r.pos[b], r.pos[c])
	} else {
		r.reverse(r.pos[c], r.pos[b])
	}
}

// reverse turns round the path from place i to place j, or, which gives the
// same tour, the rest if that is shorter.
func (r *ring) reverse(i, j int32) {
	n := int32(len(r.order))
	inner := j - i + 1
	if inner <= 0 {
		inner += n
	}
	if 2*inner > n {
		i, j = j+1, i-1
		if i == n {
			i = 0
		}
		if j < 0 {
			j = n - 1
		}
	}
	r.log = append(r.log, [2]int32{i, j})
	r.turn(i, j)
}

// turn reverses places i to j, around the end if j comes before i.
func (r *ring) turn(i, j int32) {
	n := int32(len(r.order))
	inner := j - i + 1
	if inner <= 0 {
		inner += n
	}
	for range inner / 2 {
		a, b := r.order[i], r.order[j]
		r.order[i], r.order[j] = b, a
		r.pos[a], r.pos[b] = j, i
		if i++; i == n {
			i = 0
		}
		if j--; j < 0 {
			j = n - 1
		}
	}
}

// undo takes back every logged reversal.
func (r *ring) undo() {
	for _, turned := range slices.Backward(r.log) {
		r.turn(turned[0], turned[1])
	}
	r.log = r.log[:0]
}

// carry moves the path s..t, whose outer neighbours are p (beside s) and q,
// between the adjacent cities a and b outside it: s beside a, t beside b.
func (r *ring) carry(p, s, t, q, a, b int32) {
	forward := r.next(p) == s && r.next(t) == q
	step := r.next
	if !forward {
		step = r.prev
	}
	c, d := a, b
	same := step(a) == b // in the direction p, s..t, q
	if !same {
		c, d = b, a
	}
	r.swap(p, s, c, d)
	r.swap(p, c, q, t)
	if same {
		r.swap(c, t, s, d)
	}
}

// nearest lists for every city its k nearest others, nearest first, ties by
// number: k entries a city.
func nearest(in *tsplib.Instance, k int) []int32 {
	n := in.N
	k = min(k, n-1)
	list := make([]int32, n*k)
	for i := range n {
		row, top := in.Row(i), list[i*k:i*k:(i+1)*k]
		for j := range n {
			if j == i || len(top) == k && row[top[k-1]] <= row[j] {
				continue
			}
			if len(top) < k {
				top = append(top, 0)
			}
			at := len(top) - 1
			for at > 0 && row[top[at-1]] > row[j] {
				top[at] = top[at-1]
				at--
			}
			top[at] = int32(j)
		}
	}
	return list
}
