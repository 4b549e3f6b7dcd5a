// Package shadowed is a program of the test.
package shadowed

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	x := 1
	if x > 0 {
		a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone`
		if err != nil {
			return nil, err
		}
		x := x + a
		b, err := g.Go(ctx, x).Wait(ctx) // want `call of g.Go: left alone: .*which the other one writes`
		if err != nil {
			return nil, err
		}
		return a + b, nil
	}
	return x, nil
}
