// Package both is a program of the test.
package both

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	total := 0
	for i := range 6 {
		a, err := f.Go(ctx, i).Wait(ctx) // want `loop of calls that wait at once: f.Go, g.Go: keep`
		if err != nil {
			return nil, err
		}
		b, err := g.Go(ctx, i+1).Wait(ctx)
		if err != nil {
			return nil, err
		}
		total += a - b
	}
	return total, nil
}
