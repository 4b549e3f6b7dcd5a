package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// maxEvents is how many calls may wait; what finds no room is lost.
const maxEvents = 1024

// events makes calls one at a time and in order, on a goroutine of its own.
type events struct {
	calls chan func()
	quit  chan struct{}
	done  chan struct{} // Closed when the goroutine ends.
}

func newEvents() *events {
	e := &events{calls: make(chan func(), maxEvents), quit: make(chan struct{}), done: make(chan struct{})}
	go e.run()
	return e
}

func (e *events) run() {
	defer close(e.done)
	for {
		select {
		case <-e.quit:
			return
		case call := <-e.calls:
			if !e.ended() {
				call()
			}
		}
	}
}

func (e *events) ended() bool {
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}

func (e *events) putCall(call func()) {
	select {
	case e.calls <- call:
	default:
	}
}

// endEvents lets the goroutine finish after the call in progress. It does not wait, and is
// called once.
func (e *events) endEvents() { close(e.quit) }

// waitFor returns nil when the goroutines of all have ended, else names those that have
// not when ctx is done.
func waitFor(ctx context.Context, all []*natsSub) error {
	var names []string
	for _, s := range all {
		select {
		case <-s.done:
			continue
		default:
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			names = append(names, strconv.Quote(s.nats.Subject))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("bus: close: %w: %s", ErrDrainTimeout, strings.Join(names, ", "))
}
