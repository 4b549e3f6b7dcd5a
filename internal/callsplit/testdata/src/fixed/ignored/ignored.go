// Package ignored is a program of the test.
package ignored

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, _ := f.Go(ctx, 1).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
	b, _ := g.Go(ctx, 2).Wait(ctx)
	return a*2 + b, nil
}
