// Package taken is a program of the test.
package taken

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	aCall, bCall2 := 1, 2
	a, err := f.Go(ctx, aCall).Wait(ctx) // want `calls that wait at once: f.Go, g.Go: start them early and wait for them late`
	if err != nil {
		return nil, err
	}
	b, err := g.Go(ctx, bCall2).Wait(ctx)
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
