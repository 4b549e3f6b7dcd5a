// Package nested is a program of the test.
package nested

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	sum := 0
	switch n := 3; {
	case n > 2:
		if sum == 0 {
			a, err := f.Go(ctx, n).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
			if err != nil {
				return nil, err
			}
			b, err := g.Go(ctx, n+1).Wait(ctx)
			if err != nil {
				return nil, err
			}
			sum = a - b
		}
	default:
		sum = 1
	}
	return sum, nil
}
