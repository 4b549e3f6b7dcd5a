// Package labelled is a program of the test.
package labelled

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	sum := 0
again:
	for i := range 3 {
		a, err := f.Go(ctx, i).Wait(ctx) // want `call of f.Go: left alone: it is a part of a larger statement, or under a label`
		if err != nil {
			return nil, err
		}
		if sum += a; sum < 0 {
			continue again
		}
	}
	return sum, nil
}
