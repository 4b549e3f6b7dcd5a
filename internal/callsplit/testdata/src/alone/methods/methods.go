// Package methods is a program of the test.
package methods

import (
	"context"

	"github.com/gopegasus/pegasus/work"
)

// Odd has a method that writes it as bytes.
type Odd int

// Written counts them.
var Written int

// MarshalJSON counts.
func (o Odd) MarshalJSON() ([]byte, error) {
	Written++
	return []byte{byte('0' + Written)}, nil
}

// Run makes the calls.
func Run(ctx context.Context, s *work.Space) (any, error) {
	f := work.Client[Odd, int](s, "f")
	a, err := f.Go(ctx, 1).Wait(ctx) // want `call of f.Go: left alone: .*methods that write it as bytes`
	if err != nil {
		return nil, err
	}
	b, err := f.Go(ctx, 2).Wait(ctx) // want `call of f.Go: left alone: .*methods that write it as bytes`
	if err != nil {
		return nil, err
	}
	return a + b, nil
}
