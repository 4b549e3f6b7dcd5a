// Package two is a program of the test.
package two

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	// The first one.
	a, err := f.Go(ctx, 1).Wait(ctx) // want `calls that wait at once: f.Go, g.Go: start them early and wait for them late`
	if err != nil {
		return nil, err
	}

	// The second one.
	b, err := g.Go(ctx, 2).Wait(ctx) // It is as long.
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
