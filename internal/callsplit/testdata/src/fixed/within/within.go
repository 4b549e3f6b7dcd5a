// Package within is a program of the test.
package within

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	if _, err := f.Go(ctx, 1).Wait(ctx); err != nil { // want `calls that wait at once: f.Go, g.Go`
		return nil, err
	}
	if _, err := g.Go(ctx, 2).Wait(ctx); err != nil {
		return nil, err
	}
	return "done", nil
}
