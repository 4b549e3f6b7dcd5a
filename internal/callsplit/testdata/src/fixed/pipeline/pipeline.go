// Package pipeline is a program of the test.
package pipeline

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	h := work.Client[int, string](s, "h")
	out := make([]string, 10)
	for i := range 10 {
		a, err := f.Go(ctx, i).Wait(ctx) // want `loop of calls that wait at once: f.Go, g.Go, h.Go: keep`
		if err != nil {
			return nil, err
		}
		b, err := g.Go(ctx, a).Wait(ctx)
		if err != nil {
			return nil, err
		}
		c, err := h.Go(ctx, b).Wait(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}
