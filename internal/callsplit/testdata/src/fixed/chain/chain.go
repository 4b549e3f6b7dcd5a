// Package chain is a program of the test.
package chain

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	h := work.Client[int, int](s, "h")
	a, err := f.Go(ctx, 5).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
	if err != nil {
		return nil, err
	}
	b, err := g.Go(ctx, a).Wait(ctx)
	if err != nil {
		return nil, err
	}
	c, err := h.Go(ctx, 6).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return b + c, nil
}
