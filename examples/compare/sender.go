package main

import (
	"context"
	"fmt"
	"sync"
)

// waiting is how many texts may wait in a sender.
const waiting = 1024

// sender sends texts in order, on a goroutine of its own.
type sender struct {
	texts   chan string
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// newSender starts a sender. send sends one text and waits for the answer. The first error goes to fail, and ends the
// sender.
func newSender(ctx context.Context, send func(ctx context.Context, text string) error, fail func(error)) *sender {
	ctx, cancel := context.WithCancel(ctx)
	s := &sender{texts: make(chan string, waiting), cancel: cancel}
	s.running.Go(func() {
		for {
			select {
			case text := <-s.texts:
				if err := send(ctx, text); err != nil {
					if ctx.Err() == nil {
						fail(fmt.Errorf("message %q to the server: %w", text, err))
					}
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

// enqueue leaves a text to the sender. It does not wait.
func (s *sender) enqueue(text string) error {
	select {
	case s.texts <- text:
		return nil
	default:
		return fmt.Errorf("queue to the server: %d messages wait in it: the server does not answer fast enough; end other programs on this machine", waiting)
	}
}

// close drops what still waits, and waits for the goroutine.
func (s *sender) close() error {
	s.cancel()
	s.running.Wait()
	return nil
}
