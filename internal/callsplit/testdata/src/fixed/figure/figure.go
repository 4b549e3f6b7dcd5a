// Package figure is a program of the test.
package figure

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	h := work.Client[int, int](s, "h")
	// Figure 5.1 of CORD, after renaming.
	x, z, v, w := 1, 2, 3, 4
	x, err := f.Go(ctx, x).Wait(ctx) // want `calls that wait at once: f.Go, g.Go, h.Go, h.Go`
	if err != nil {
		return nil, err
	}
	y, err := g.Go(ctx, x+z).Wait(ctx)
	if err != nil {
		return nil, err
	}
	zz, err := h.Go(ctx, v).Wait(ctx)
	if err != nil {
		return nil, err
	}
	xx, err := h.Go(ctx, w).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return []int{x, y, zz, xx}, nil
}
