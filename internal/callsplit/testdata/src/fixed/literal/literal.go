// Package literal is a program of the test.
package literal

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	both := func(n int) (any, error) {
		a, err := f.Go(ctx, n).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
		if err != nil {
			return nil, err
		}
		b, err := g.Go(ctx, n).Wait(ctx)
		if err != nil {
			return nil, err
		}
		return a + b, nil
	}
	return both(3)
}
