// Package kept is a program of the test.
package kept

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*a call that is waited for there`
	if err != nil {
		return nil, err
	}
	// callsplit:keep because f has an effect that g needs.
	b, err := g.Go(ctx, 2).Wait(ctx) // want `call of g.Go: left alone: .*the comment callsplit:keep`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
