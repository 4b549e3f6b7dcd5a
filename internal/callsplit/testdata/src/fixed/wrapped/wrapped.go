// Package wrapped is a program of the test.
package wrapped

import (
	"context"
	"fmt"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
	if err != nil {
		return nil, fmt.Errorf("the first of %d: %w", 2, err)
	}
	b, err := g.Go(ctx, 2).Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("the second one: %w", err)
	}
	return a + b, nil
}
