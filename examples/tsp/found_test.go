package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

// recorded returns two lengths: the shortest tour that a worker has delivered to a coordinator, and the shortest tour that the space
// has recorded for the coordinator or the worker.
func recorded(c *coordinator, w *worker) (delivered, found int) {
	c.mu.Lock()
	delivered, found = c.best, math.MaxInt
	spaces := []*work.Space{c.space, w.space.Load()}
	c.mu.Unlock()
	for _, s := range spaces {
		if s == nil {
			continue
		}
		if best, err := work.Found[Best](s, bagName); err == nil && best.Length > 0 {
			found = min(found, best.Length)
		}
	}
	return delivered, found
}

// TestFoundIsRecorded (P36): when a worker tells a length, a tour that is no longer is recorded at the coordinator or in the space, so that
// it counts if the worker dies at that instant. Others may prune by it only then.
func TestFoundIsRecorded(t *testing.T) {
	before := kicks
	kicks = 1
	t.Cleanup(func() { kicks = before })
	const spec = "random:60:7"
	in, err := tsplib.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	src, err := configs.Files.ReadFile("tsp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := synchronizer.ParseConfig("tsp.yaml", src, synchronizer.Members("gsync", 2), synchronizer.Members("tsync", 1))
	if err != nil {
		t.Fatal(err)
	}
	c := newCoordinator(runInfo{ID: "tsp-found", Instance: spec, N: in.N, Kind: "edges", Seed: 1, Threads: 1, Strategy: bySignals}, in, 0, newScreen(io.Discard, false, time.Now()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	nc, err := dialData(ctx, srv.URL(), "coordinator")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := c.serve(nc); err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(ctx, srv.URL(), cfg, synchronizer.Options{Name: "gsync", Tenant: c.info.ID, Observe: c.observe})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	w := newWorker(nc, srv.URL(), c.info.ID, "w1", true, slog.New(slog.DiscardHandler))
	last, ofBags := math.MaxInt, 0
	w.bags.tell = func(s processState) { // One at a time.
		if s.Best < last {
			delivered, found := recorded(c, w)
			if min(delivered, found) > s.Best {
				t.Errorf("the length %d is told when %d is delivered and %d recorded", s.Best, delivered, found)
			}
			if last = s.Best; last < delivered {
				ofBags++
			}
		}
		w.tell(s)
	}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		if err := c.search(ctx, srv.URL(), partsPerThread); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		if err := w.live(ctx); err != nil && !errors.Is(err, errOver) {
			t.Error(err)
		}
	})
	both.Wait()
	if ofBags == 0 {
		t.Error("no tour of a bag was told")
	}
}
