// Package length is a program of the test.
package length

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	xs := make(chan int, 2)
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone`
	if err != nil {
		return nil, err
	}
	b, err := g.Go(ctx, len(xs)).Wait(ctx) // want `call of g.Go: left alone: .*a channel operation`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
