package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/agent"
)

const (
	halves  = 2       // of the divisors of a number, each a block
	threads = 4       // of a block
	none    = 1e18    // no divisor was found: above all of them
	look    = 1 << 12 // divisors between two checks
)

// state is what a thread tells of itself.
type state struct {
	From, Found int64
	Open        bool
}

// place is what a process tells of itself before its threads tell more.
type place struct {
	Number, Half int
	Found        int64
	By           uint64
}

// part is what a thread has come to.
type part struct {
	Found    int64 // the least divisor in its share, or none
	Needless bool  // it was cancelled
}

// share is the i-th of equal shares of the odd numbers from 3 to the root of n.
func share(n int64, i int) (from, to int64) {
	const shares = halves * threads
	root := int64(math.Sqrt(float64(n))) + 1 // May be one too many.
	bound := func(i int) int64 { return 3 + (root-3)*int64(i)/shares/2*2 }
	if from, to = bound(i), bound(i+1); i == shares-1 {
		to = root + 1
	}
	return from, to
}

// divide is a thread of a block: it looks for the least divisor in its share. Its
// synchronizer cancels the region if another thread has found a smaller one.
func divide(ctx context.Context, t *agent.BlockThread, numbers []int64) (part, error) {
	at := t.Run().Replicas()
	p, n := part{Found: none}, numbers[at[0]]
	from, to := share(n, at[1]*threads+t.Index())
	if t.Index() == 0 {
		// What the processor has found for another number is over.
		if err := t.Run().Set(place{at[0], at[1], none, t.Run().Number()}); err != nil {
			return p, err
		}
	}
	err := t.Region(ctx, "try", func(_ context.Context, r *agent.Region) error {
		if err := t.Set(state{from, none, true}); err != nil {
			return err
		}
		for d, tried := from, 1; d < to; d, tried = d+2, tried+1 {
			if tried%look == 0 {
				if err := r.Check(); err != nil {
					return err
				}
			}
			if n%d == 0 {
				p.Found = d
				break
			}
		}
		return nil
	})
	var c *agent.Canceled
	if p.Needless = errors.As(err, &c) && c.Predicate == "needless"; err != nil && !p.Needless {
		return p, err
	}
	return p, t.Set(state{from, p.Found, false})
}

// half is what a block has come to, beside nothing where it was cancelled.
type half struct {
	Found    int64
	Needless int // threads
}

// joined puts the threads of a block together.
func joined(_ context.Context, _ *agent.Run, _ []int64, parts []part) (half, error) {
	h := half{Found: none}
	for _, p := range parts {
		h.Found = min(h.Found, p.Found)
		if p.Needless {
			h.Needless++
		}
	}
	return h, nil
}

// total is the result of the program.
type total struct {
	Factors  []int64 // the least of each number, none for a prime
	Needless int     // threads
	Canceled int     // blocks
}

// collect puts the halves of all numbers together.
func collect(_ context.Context, _ *agent.Run, numbers [][]*half) (total, error) {
	var all total
	for i, halves := range numbers {
		least := int64(none)
		for k, h := range halves {
			switch {
			case h != nil:
				least = min(least, h.Found)
				all.Needless += h.Needless
			case k == 0:
				return all, fmt.Errorf("the lower half of number %d was cancelled", i)
			default:
				all.Canceled++
			}
		}
		all.Factors = append(all.Factors, least)
	}
	return all, nil
}

// alone is the least odd divisor of a number as one loop finds it, or none.
func alone(n int64) int64 {
	for d := int64(3); d*d <= n; d += 2 {
		if n%d == 0 {
			return d
		}
	}
	return none
}
