// Package lists is a program of the test.
package lists

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	l := work.Client[[]int, int](s, "l")
	xs := [][]int{{1}, {2, 3}, {}}
	out := make([]int, len(xs))
	for i := range xs {
		a, err := l.Go(ctx, xs[i]).Wait(ctx) // want `loop of calls that wait at once: l.Go`
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}
