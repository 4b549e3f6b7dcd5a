// Package working is a program of the test.
package working

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

func tri(n int) int { return n*n + 1 }

// Run has two calls whose arguments take work of the program: neither start has a reason to pass the other one.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	xs := []int{1, 2, 3}
	a, err := g.Go(ctx, 3*tri(1)).Wait(ctx) // want "calls that wait at once"
	if err != nil {
		return nil, err
	}
	b, _ := f.Go(ctx, len(xs)*tri(2)).Wait(ctx)
	c, err := g.Go(ctx, 4).Wait(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := f.Go(ctx, c+c).Wait(ctx); err != nil {
		return nil, err
	}
	return a + b + c, nil
}
