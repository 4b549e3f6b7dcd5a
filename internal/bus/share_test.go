package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gopegasus/pegasus/internal/bus"
)

// TestPool: one is made for all that are there together, and ends with the last of them.
func TestPool(t *testing.T) {
	var p bus.Pool[string, *int]
	var mu sync.Mutex
	made, ended := 0, 0
	begin := func() (*int, error) {
		mu.Lock()
		defer mu.Unlock()
		made++
		return &made, nil
	}
	kept := errors.New("kept")
	end := func(*int) error {
		if ended++; ended > 3 {
			return kept
		}
		return nil
	}
	var all sync.WaitGroup
	releases := make([]func() error, 8)
	for i := range releases {
		all.Go(func() {
			_, release, err := p.Take(t.Context(), "k", begin, end)
			if err != nil {
				t.Error(err)
			}
			releases[i] = release
		})
	}
	all.Wait()
	for i, release := range releases {
		if made != 1 || ended != 0 {
			t.Fatalf("%d were made and %d ended before %d have given theirs back", made, ended, i)
		}
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	if ended != 1 {
		t.Errorf("%d have ended after the last", ended)
	}
	boom := errors.New("boom")
	if _, _, err := p.Take(t.Context(), "k", func() (*int, error) { return nil, boom }, end); !errors.Is(err, boom) {
		t.Errorf("a failure is told as %v", err)
	}
	if _, release, err := p.Take(t.Context(), "k", begin, end); err != nil || made != 2 || release() != nil || ended != 2 {
		t.Errorf("after a failure: %v, %d made, %d ended", err, made, ended)
	}

	// Who gives up while somebody makes it leaves that one alone.
	started, finish := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		_, release, err := p.Take(t.Context(), "k", func() (*int, error) { close(started); <-finish; return begin() }, end)
		if err != nil || release() != nil {
			t.Error(err)
		}
	})
	<-started
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(boom)
	if _, _, err := p.Take(ctx, "k", begin, end); !errors.Is(err, boom) {
		t.Errorf("who gives up is told %v", err)
	}
	close(finish)
	all.Wait()
	if made != 3 || ended != 3 {
		t.Errorf("%d were made and %d ended", made, ended)
	}
	if _, release, err := p.Take(t.Context(), "k", begin, end); err != nil || !errors.Is(release(), kept) {
		t.Errorf("%v, or the error of the end is lost", err)
	}
}
