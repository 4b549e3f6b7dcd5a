// Package printed is a program of the test.
package printed

import (
	"context"
	"fmt"
	"os"

	"github.com/gopegasus/pegasus/work"
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[int, int](s, "f")
	for i := range 3 {
		y, err := f.Go(ctx, i).Wait(ctx) // want `left alone: the loop is no stream: a call of Fprintln, with unknown effects`
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, y)
	}
	return 1, nil
}
