// Package between is a program of the test.
package between

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

func triangle(n int) (sum int) {
	total := 0
	for i := 0; i < n; i++ {
		total += i
	}
	return total
}

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
	if err != nil {
		return nil, err
	}
	n := triangle(100)
	b, err := g.Go(ctx, n).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
