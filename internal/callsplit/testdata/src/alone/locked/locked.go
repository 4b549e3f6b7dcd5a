// Package locked is a program of the test.
package locked

import (
	"context"
	"sync"

	"github.com/gopegasus/pegasus/work"
)

var (
	mu     sync.Mutex
	shared int
)

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f, g := work.Client[int, int](s, "f"), work.Client[int, int](s, "g")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*a lock`
	if err != nil {
		return nil, err
	}
	mu.Lock()
	shared++
	mu.Unlock()
	b, err := g.Go(ctx, 2).Wait(ctx) // want `call of g.Go: left alone: .*a lock`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
