package work_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
	"github.com/gopegasus/pegasus/work"
)

// TestDurableCluster: three servers, of which the one that leads the stream is killed again and again under load. What was
// put has one result each. PEGASUS_KILLS is how often.
func TestDurableCluster(t *testing.T) {
	kills := testcount.Of(t, "KILLS", 3)
	c := testnats.StartCluster(t)
	text := strings.NewReplacer("{slots: 1}", "{slots: 1, store: jetstream, log: {replicas: 3, stream: S}}", "500ms", "5s").Replace(live)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(text), synchronizer.Members("gsync", 2))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), c.URL, cfg, synchronizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	list := make([]*work.Space, 2)
	var all sync.WaitGroup
	for i, name := range []string{"a", "b"} {
		all.Go(func() {
			m, err := agent.Join(t.Context(), c.URL, agent.Config{Group: "g", Name: name}, agent.OwnConn())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = m.Close() })
			if list[i], err = work.Open(t.Context(), m, work.Func("task", func(_ context.Context, n int) (int, error) { return n, nil })); err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		return
	}
	for _, s := range list {
		t.Cleanup(func() { _ = s.Close() })
	}
	serveLive(t, list[1])
	js := c.JetStream(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*patience)
	defer cancel()
	for range kills {
		var next, acknowledged atomic.Int64
		stop := make(chan struct{})
		for range 8 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					n := int(next.Add(1) - 1)
					if err := list[0].Put(ctx, "task", n, work.ID("%d", n)); err != nil {
						t.Error(err)
						return
					}
					acknowledged.Add(1)
				}
			})
		}
		more := func(n int64) { until(t, func() bool { return acknowledged.Load() >= n || t.Failed() }) }
		more(200)
		leader := c.Leader(js, "S")
		c.Kill(leader)
		begun, before := time.Now(), acknowledged.Load()
		more(before + 50)
		t.Logf("tasks are put again %v after the leader was killed", time.Since(begun).Round(time.Millisecond))
		close(stop)
		all.Wait()
		seen := map[int]int{}
		for r, err := range work.Results[int](ctx, list[0], "task") {
			if err != nil {
				t.Fatal(err)
			}
			seen[r.Value]++
		}
		n := int(next.Load())
		for i := range n {
			if seen[i] != 1 {
				t.Errorf("task %d of %d has %d results", i, n, seen[i])
			}
		}
		if len(seen) != n {
			t.Errorf("%d tasks have results, and %d were put", len(seen), n)
		}
		c.Restart(leader)
	}
}
