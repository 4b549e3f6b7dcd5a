// Package paired is a program of the test.
package paired

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Asker asks.
type Asker struct{ space *work.Space }

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	asker := &Asker{s}
	a, err := asker.Ask(ctx, 1) // want `calls that wait at once: asker.Ask, asker.Ask`
	if err != nil {
		return nil, err
	}
	b, err := asker.Ask(ctx, 2)
	if err != nil {
		return nil, err
	}
	return a + b, nil
}

// Ask waits for an answer.
func (a *Asker) Ask(ctx context.Context, n int) (int, error) { return a.Start(ctx, n).Wait(ctx) }

// Start asks.
func (a *Asker) Start(ctx context.Context, n int) *work.Call[int] {
	return work.Client[int, int](a.space, "asked").Go(ctx, n)
}
