// Package before is a program of the test.
package before

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	sum, count := 0, 0
	for i := range 7 {
		count++
		// The argument is used later as well.
		arg := i*i + 1
		a, err := f.Go(ctx, arg).Wait(ctx) // want `loop of calls that wait at once: f.Go: keep up to 32 of them open`
		if err != nil {
			return nil, err
		}
		sum += a % (arg + 1)
	}
	return []int{sum, count}, nil
}
