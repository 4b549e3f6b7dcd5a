// Package longer is a program of the test.
package longer

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	var out []int
	for i := range 100 {
		a, err := f.Go(ctx, i).Wait(ctx) // want `loop of calls that wait at once: f.Go: keep up to 32 of them open`
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
