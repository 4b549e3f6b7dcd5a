// Package listed is a program of the test.
package listed

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[[]int, int](s, "g")
	xs := []int{1, 2}
	other := xs
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*which the other one writes`
	if err != nil {
		return nil, err
	}
	other[0] = a
	b, err := g.Go(ctx, xs).Wait(ctx) // want `call of g.Go: left alone: .*memory that the other one uses`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
