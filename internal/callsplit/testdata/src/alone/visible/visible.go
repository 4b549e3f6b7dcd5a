// Package visible is a program of the test.
package visible

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	box := s
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*the program may panic or store there, although the call fails`
	if err != nil {
		return nil, err
	}
	box.Most = 5
	b, err := g.Go(ctx, box.Most).Wait(ctx) // want `call of g.Go: left alone: .*memory that the other one uses`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
