// Package guarded is a program of the test.
package guarded

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	var xs []int
	if s.Fail == "" {
		xs = []int{1}
	}
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*nothing runs beside it|cannot move`
	if err != nil {
		return nil, err
	}
	b, err := g.Go(ctx, xs[0]).Wait(ctx) // want `call of g.Go: left alone: .*its arguments may panic`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
