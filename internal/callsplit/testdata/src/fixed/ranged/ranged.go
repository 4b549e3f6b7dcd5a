// Package ranged is a program of the test.
package ranged

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	xs := []int{4, 3, 2, 1}
	out := make([]int, len(xs))
	for i, x := range xs {
		a, err := f.Go(ctx, x).Wait(ctx) // want `loop of calls that wait at once: f.Go: keep up to 32 of them open`
		if err != nil {
			return nil, err
		}
		b := a * 2
		out[i] = b
	}
	return out, nil
}
