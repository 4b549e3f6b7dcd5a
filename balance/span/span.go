package span

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// Interval is the iterations from Low to High-1.
type Interval struct {
	Low, High int // the first one, and the one after the last
}

// Len returns how many iterations there are: 0 if High is not above Low.
func (i Interval) Len() int { return max(0, i.High-i.Low) }

// Cut divides a total of 0 or more by speeds. The sizes add up to the total exactly. Each is
// its exact part rounded down, or one more for the largest fractions, of equal ones the
// first. A member of speed 0 gets nothing. It is an error if a speed is negative or not
// finite, or if none is above 0 and the total is.
func Cut(total int, speeds []float64) ([]int, error) {
	if total < 0 {
		return nil, fmt.Errorf("total: %d iterations cannot be divided: give 0 or more", total)
	}
	sum := new(big.Rat)
	exact := make([]*big.Rat, len(speeds))
	for i, speed := range speeds {
		if !(speed >= 0 && speed <= math.MaxFloat64) {
			return nil, fmt.Errorf("speed of member %d: %v is no speed: give 0 or more", i, speed)
		}
		exact[i] = new(big.Rat).SetFloat64(speed)
		sum.Add(sum, exact[i])
	}
	sizes := make([]int, len(speeds))
	if total == 0 {
		return sizes, nil
	}
	if sum.Sign() == 0 {
		return nil, errors.New("speeds: no member has a speed above 0: give one at least")
	}
	factor := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(total)), sum)
	left := total
	order := make([]int, len(speeds))
	for i := range exact {
		order[i] = i
		exact[i].Mul(exact[i], factor)
		whole := new(big.Int).Quo(exact[i].Num(), exact[i].Denom())
		sizes[i] = int(whole.Int64())
		exact[i].Sub(exact[i], new(big.Rat).SetInt(whole))
		left -= sizes[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return exact[b].Cmp(exact[a]) })
	for _, i := range order[:left] {
		sizes[i]++
	}
	return sizes, nil
}

// Lay returns one interval for each size, one behind the other from 0, in the order of the
// members.
func Lay(sizes []int) []Interval {
	list := make([]Interval, len(sizes))
	low := 0
	for i, n := range sizes {
		list[i] = Interval{low, low + n}
		low += n
	}
	return list
}

// Lists returns for each member a list of its one interval, or an empty list where it is empty.
func Lists(spans []Interval) [][]Interval {
	lists := make([][]Interval, len(spans))
	for i, s := range spans {
		if s.Len() > 0 {
			lists[i] = []Interval{s}
		}
	}
	return lists
}

// Move gives each member as many iterations as its size says, and moves the fewest: a member
// with too many gives the last ones of its list, and keeps the others. The sizes must add up to
// the iterations of all lists, which must not overlap. A member that joins has an empty list,
// and a withdrawn member the size 0.
func Move(old [][]Interval, sizes []int) ([][]Interval, error) {
	if len(old) != len(sizes) {
		return nil, fmt.Errorf("sizes: there are %d for %d members: give one for each", len(sizes), len(old))
	}
	had, wanted := 0, 0
	lists := make([][]Interval, len(old))
	var free []Interval
	for i, list := range old {
		if sizes[i] < 0 {
			return nil, fmt.Errorf("size of member %d: %d is below 0", i, sizes[i])
		}
		wanted += sizes[i]
		room := sizes[i]
		for _, s := range list {
			had += s.Len()
			keep := min(room, s.Len())
			lists[i] = add(lists[i], Interval{s.Low, s.Low + keep})
			free = add(free, Interval{s.Low + keep, s.High})
			room -= keep
		}
	}
	if had != wanted {
		return nil, fmt.Errorf("sizes: they add up to %d, and the members have %d iterations: cut that many", wanted, had)
	}
	for i := range lists {
		need := sizes[i] - Total(lists[i])
		for need > 0 {
			n := min(need, free[0].Len())
			lists[i] = add(lists[i], Interval{free[0].Low, free[0].Low + n})
			if free[0].Low += n; free[0].Len() == 0 {
				free = free[1:]
			}
			need -= n
		}
	}
	return lists, nil
}

// add appends an interval that is not empty, and joins it with the last one if it follows.
func add(list []Interval, s Interval) []Interval {
	switch n := len(list); {
	case s.Len() == 0:
		return list
	case n > 0 && list[n-1].High == s.Low:
		list[n-1].High = s.High
		return list
	}
	return append(list, s)
}

// Total returns how many iterations a list has.
func Total(list []Interval) (n int) {
	for _, s := range list {
		n += s.Len()
	}
	return n
}

// Moved returns how many iterations the members have now that they did not have before.
func Moved(old, now [][]Interval) (n int) {
	for i := range now {
		n += Total(now[i])
		for _, a := range now[i] {
			for _, b := range old[i] {
				n -= Interval{max(a.Low, b.Low), min(a.High, b.High)}.Len()
			}
		}
	}
	return n
}

// Box is a block of a grid: an interval for each dimension.
type Box []Interval

// Cells returns how many cells it has.
func (b Box) Cells() int {
	n := 1
	for _, s := range b {
		n *= s.Len()
	}
	return n
}

// Grid divides a grid of two or three dimensions, or of any number, among members by speeds:
// it cuts the longest side between the first and the second half of the members, and so on.
// Every cell is in one box. Cuts are between rows of cells, so sizes are not exact.
func Grid(sides []int, speeds []float64) ([]Box, error) {
	whole := make(Box, len(sides))
	for i, n := range sides {
		if n < 0 {
			return nil, fmt.Errorf("side %d: %d cells: give 0 or more", i, n)
		}
		whole[i] = Interval{0, n}
	}
	if len(sides) == 0 {
		return nil, errors.New("sides: there is none: give one for each dimension")
	}
	if _, err := Cut(1, speeds); err != nil {
		return nil, err
	}
	boxes := make([]Box, len(speeds))
	return boxes, divide(whole, speeds, boxes)
}

func divide(b Box, speeds []float64, into []Box) error {
	if len(speeds) == 1 {
		into[0] = b
		return nil
	}
	side := 0
	for i := range b {
		if b[i].Len() > b[side].Len() {
			side = i
		}
	}
	half := len(speeds) / 2
	var sums [2]float64
	for i, s := range speeds {
		sums[min(1, i/half)] += s / float64(len(speeds)) // So that no sum is infinite.
	}
	sizes := []int{0, 0}
	if sums[0]+sums[1] > 0 { // Else the box is empty.
		var err error
		if sizes, err = Cut(b[side].Len(), sums[:]); err != nil {
			return err
		}
	}
	first, second := slices.Clone(b), slices.Clone(b)
	first[side].High = b[side].Low + sizes[0]
	second[side].Low = first[side].High
	if err := divide(first, speeds[:half], into[:half]); err != nil {
		return err
	}
	return divide(second, speeds[half:], into[half:])
}
