// Package global is a program of the test.
package global

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Seen is a variable of the package.
var Seen int

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*a store to the package variable Seen`
	if err != nil {
		return nil, err
	}
	Seen = a
	b, err := g.Go(ctx, 2).Wait(ctx) // want `call of g.Go: left alone: .*a store to the package variable Seen`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
