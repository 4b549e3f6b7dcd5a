// Package unknown is a program of the test.
package unknown

import (
	"context"
	"fmt"
	"os"

	"github.com/gopegasus/pegasus/work"
)

func report(n int) { fmt.Fprintln(os.Stderr, n) }

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*a call of report, with unknown effects`
	if err != nil {
		return nil, err
	}
	report(a)
	b, err := g.Go(ctx, 2).Wait(ctx) // want `call of g.Go: left alone: .*a call of report, with unknown effects`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
