// Package inplace is a program of the test.
package inplace

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	xs := []int{1, 2, 3}
	for i, x := range xs {
		y, err := f.Go(ctx, x).Wait(ctx) // want `left alone: the loop is no stream: .*a later start uses`
		if err != nil {
			return nil, err
		}
		if i+1 < len(xs) {
			xs[i+1] += y
		}
	}
	return xs, nil
}
