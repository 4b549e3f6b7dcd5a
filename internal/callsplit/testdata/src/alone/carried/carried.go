// Package carried is a program of the test.
package carried

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	x := 1
	for range 4 {
		y, err := f.Go(ctx, x).Wait(ctx) // want `left alone: the loop is no stream: a later start uses x, which an iteration writes`
		if err != nil {
			return nil, err
		}
		x = y + 1
	}
	return x, nil
}
