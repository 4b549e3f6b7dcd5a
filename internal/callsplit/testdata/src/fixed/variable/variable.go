// Package variable is a program of the test.
package variable

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	p := f.Go(ctx, 1) // want `calls that wait at once: f.Go, g.Go`
	a, err := p.Wait(ctx)
	if err != nil {
		return nil, err
	}
	q := g.Go(ctx, 2)
	b, err := q.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
