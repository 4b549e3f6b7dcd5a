// Package unnamed is a program of the test.
package unnamed

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	sum := 0
	for range 5 {
		a, err := f.Go(ctx, 9).Wait(ctx) // want `loop of calls that wait at once: f.Go: keep up to 32 of them open`
		if err != nil {
			return nil, err
		}
		sum = sum*3 + a
	}
	return sum, nil
}
