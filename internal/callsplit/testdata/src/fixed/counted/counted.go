// Package counted is a program of the test.
package counted

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	n, sum := 40, 0
	for i := 2; i < n; i++ {
		a, err := f.Go(ctx, i*i).Wait(ctx) // want `loop of calls that wait at once: f.Go: keep up to 32 of them open`
		if err != nil {
			return nil, err
		}
		sum += a * i
	}
	return sum, nil
}
