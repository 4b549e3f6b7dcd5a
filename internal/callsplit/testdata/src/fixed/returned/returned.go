// Package returned is a program of the test.
package returned

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) { return run(ctx, s) }

func run(ctx context.Context, s *work.Space) (int, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	_, err := f.Go(ctx, 1).Wait(ctx) // want `calls that wait at once: f.Go, g.Go`
	if err != nil {
		return 0, err
	}
	return g.Go(ctx, 2).Wait(ctx)
}
