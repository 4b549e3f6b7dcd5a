package span

import (
	"fmt"
	"math"
	"slices"
)

// Worker is a member that several programs share. It works for one of them at a time.
type Worker struct {
	Speed   float64 // 0: it is withdrawn
	Program int     // for which it works now, from 0; negative: for none
	Fixed   bool    // it is the home of its program, and works for no other one
}

// evenPart: the present programs are kept while each of them has its due but for this part of it.
const evenPart = 20

// Arbitrate returns for which program each worker is to work: its index in weights, or -1 for none. The speeds of the
// workers of a program add up to a sum in proportion to its weight, as far as single workers allow. Each worker
// with a speed works for a program, unless no program has a weight above 0. A worker of speed 0 works for none, but
// for a fixed one.
//
// A worker keeps its program while each program has its due within 5 %. Else workers change their program one by one, or
// two change places: each time the change that brings the sums nearest to the weights, until the programs have
// their due or no change brings them nearer. So one worker that returns never has two programs take it in turns.
//
// It is an error if a speed or weight is negative or not finite, or if a fixed worker has no program.
func Arbitrate(workers []Worker, weights []float64) ([]int, error) {
	for p, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return nil, fmt.Errorf("weight of program %d: %v is no weight: give 0 or more", p, w)
		}
	}
	for i, w := range workers {
		switch {
		case !(w.Speed >= 0 && w.Speed <= math.MaxFloat64):
			return nil, fmt.Errorf("speed of worker %d: %v is no speed: give 0 or more", i, w.Speed)
		case w.Fixed && (w.Program < 0 || w.Program >= len(weights)):
			return nil, fmt.Errorf("program of worker %d: it is fixed to program %d, and there are %d: give one of them", i, w.Program, len(weights))
		}
	}
	s := newShares(workers, weights)
	var idle []int
	for i, w := range workers {
		switch {
		case w.Fixed || s.speed[i] > 0 && w.Program >= 0 && w.Program < len(weights) && s.weight[w.Program] > 0:
			s.assign(i, w.Program)
		case s.speed[i] > 0 && s.all > 0:
			idle = append(idle, i)
		}
	}
	slices.SortStableFunc(idle, func(a, b int) int { return compareDown(s.speed[a], s.speed[b]) })
	for _, i := range idle { // The fastest first, so that slower workers even out the rest.
		best := -1
		for p := range s.weight {
			if s.weight[p] > 0 && (best < 0 || s.gain(p, s.speed[i]) > s.gain(best, s.speed[i])) {
				best = p
			}
		}
		s.assign(i, best)
	}
	for !s.even() && s.improve() {
	}
	return s.of, nil
}

func compareDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// shares is an assignment of workers to programs. Speeds and weights are parts of the largest, so that no sum is infinite.
type shares struct {
	workers []Worker
	speed   []float64 // by worker
	weight  []float64 // by program
	all     float64   // of the weights
	due     []float64 // by program: the speed that it is to have
	has     []float64 // by program: the speed of its workers
	of      []int     // by worker: its program, or -1
}

func newShares(workers []Worker, weights []float64) *shares {
	s := &shares{workers: workers, speed: make([]float64, len(workers)), weight: make([]float64, len(weights)), due: make([]float64, len(weights)), has: make([]float64, len(weights)), of: make([]int, len(workers))}
	most, sum := 0.0, 0.0
	for _, w := range workers {
		most = max(most, w.Speed)
	}
	for i, w := range workers {
		if s.of[i] = -1; most > 0 {
			s.speed[i] = w.Speed / most
			sum += s.speed[i]
		}
	}
	most = 0
	for _, w := range weights {
		most = max(most, w)
	}
	for p, w := range weights {
		if most > 0 {
			s.weight[p] = w / most
			s.all += s.weight[p]
		}
	}
	for p := range weights {
		if s.all > 0 {
			s.due[p] = sum * s.weight[p] / s.all
		}
	}
	return s
}

func (s *shares) assign(i, program int) {
	if old := s.of[i]; old >= 0 {
		s.has[old] -= s.speed[i]
	}
	if s.of[i] = program; program >= 0 {
		s.has[program] += s.speed[i]
	}
}

// gain is by how much the sum over programs of (has - due)^2 / weight falls if a program gets more speed.
func (s *shares) gain(p int, speed float64) float64 {
	return speed * (2*(s.due[p]-s.has[p]) - speed) / s.weight[p]
}

// even reports whether each program has its due within a part of it.
func (s *shares) even() bool {
	for p, due := range s.due {
		if s.weight[p] > 0 && math.Abs(s.has[p]-due) > due/evenPart {
			return false
		}
	}
	return true
}

// improve makes the best change, and reports whether there is one.
func (s *shares) improve() bool {
	best, first, second, to := 1e-9, -1, -1, -1 // Less is a matter of rounding.
	for i := range s.of {
		from := s.of[i]
		if !s.moves(i) {
			continue
		}
		for p := range s.weight {
			if p == from || s.weight[p] == 0 {
				continue
			}
			if g := s.gain(p, s.speed[i]) + s.gain(from, -s.speed[i]); g > best {
				best, first, second, to = g, i, -1, p
			}
		}
		for k := i + 1; k < len(s.of); k++ {
			if p := s.of[k]; s.moves(k) && p != from {
				more := s.speed[i] - s.speed[k]
				if g := s.gain(p, more) + s.gain(from, -more); g > best*(1+1e-9) { // One change rather than two that are as good.
					best, first, second, to = g, i, k, p
				}
			}
		}
	}
	if first < 0 {
		return false
	}
	from := s.of[first]
	s.assign(first, to)
	if second >= 0 {
		s.assign(second, from)
	}
	return true
}

// moves reports whether a worker may change its program.
func (s *shares) moves(i int) bool { return !s.workers[i].Fixed && s.of[i] >= 0 && s.speed[i] > 0 }
