package work

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// TestReport: whoever asks is answered how the space stands now, at most ten times a second.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(config.DefaultWork())
		block := Func("block", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		a, l := g.spaceOf(t, "a", 1, block)
		for i := range 100 {
			if err := a.Put(t.Context(), "block", i); err != nil {
				t.Fatal(err)
			}
		}
		ask := func() {
			for range 10 {
				l.inboxes["asked"] <- [2]string{}
			}
			synctest.Wait()
		}
		ask()
		time.Sleep(reportPause)
		ask()
		if len(g.reports) != 2 {
			t.Fatalf("%d answers to 20 questions at two times, want 2", len(g.reports))
		}
		var r workreport.Report
		if err := json.Unmarshal([]byte(g.reports[1]), &r); err != nil {
			t.Fatal(err)
		}
		s := a.Stats()
		if r.Member != "a" || r.Phase != 1 || r.Idle || r.Settled || r.Open != 100 || r.Put != 100 || r.Running != r.Slots || r.Queued != 100-r.Slots || r.Open != s.Open {
			t.Errorf("%+v", r)
		}
		if len(r.Holders) != 1 || r.Holders[0].Member != "a" || r.Holders[0].Tasks != r.Slots {
			t.Errorf("%+v", r.Holders)
		}
	})
}

// TestReportCalls: a member tells of the functions that it serves and has called.
func TestReportCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 1
		g := newGroup(section)
		a, l := g.spaceOf(t, "a", 1, Server("block", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() }))
		for i := range 3 {
			Client[int, int](a, "block").Go(t.Context(), i)
		}
		Client[int, int](a, "none").Go(t.Context(), 0)
		l.inboxes["asked"] <- [2]string{}
		synctest.Wait()
		var r workreport.Report
		if err := json.Unmarshal([]byte(g.reports[0]), &r); err != nil {
			t.Fatal(err)
		}
		if want := []workreport.Calls{{Name: "block", Open: 3, Waiting: 2, Running: 1}, {Name: "none", Open: 1, Held: 1}}; !slices.Equal(r.Calls, want) {
			t.Errorf("%+v, want %+v", r.Calls, want)
		}
	})
}

// TestQueuedIsReportedSoon: a member reports that no task waits sooner than other estimates.
func TestQueuedIsReportedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		section := config.DefaultWork()
		section.Slots = 1
		g := newGroup(section)
		release := make(chan struct{})
		a, l := g.spaceOf(t, "a", 1, Func("block", func(ctx context.Context, _ int) (int, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return 0, ctx.Err()
		}))
		queued := func() int64 {
			synctest.Wait()
			g.mu.Lock()
			defer g.mu.Unlock()
			return l.told["work.queued"].Int()
		}
		for i := range 3 {
			if err := a.Put(t.Context(), "block", i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, want := range []int64{1, 0} { // The second time little time has passed since the first.
			release <- struct{}{}
			time.Sleep(turnPause)
			if n := queued(); n != want {
				t.Errorf("%d tasks wait in the report, want %d", n, want)
			}
		}
	})
}
