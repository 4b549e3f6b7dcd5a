// Package hidden is a program of the test.
package hidden

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	work, sum := 1, 0
	for i := range 3 {
		a, err := f.Go(ctx, i+work).Wait(ctx) // want `left alone: the loop is no stream: the type of its handle has no name in this file`
		if err != nil {
			return nil, err
		}
		sum += a
	}
	return sum, nil
}
