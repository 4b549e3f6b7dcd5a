package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// TestServerAway: the program continues, its states are kept within the ring, and
// told when the server is back.
func TestServerAway(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, local *bustest.Server) {
		set := func(load int) {
			if err := m.Set(state{Load: float64(load), Phase: "search"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		set(-1)
		local.Stop()
		synctest.Wait()
		const total = agentcore.RingTransitions + 50
		for i := range total {
			set(i)
		}
		time.Sleep(10 * time.Minute)
		known := uint64(1)
		f.answer = func(h *wire.Hello) *wire.Welcome {
			return &wire.Welcome{Synchronizer: "s", Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: declared, NextSeq: known + 1}
		}
		local.Start()
		time.Sleep(time.Second) // The synchronizer may be back after the member, by half a second at most.
		synctest.Wait()
		rows := f.rows()
		if len(rows) != 1+agentcore.RingTransitions {
			t.Fatalf("%d states were told", len(rows))
		}
		if newest := rows[1][1].Float(); newest != total-1 {
			t.Errorf("the first state told is %v, not the newest", newest)
		}
		if s := m.Stats(); s.Dropped != 50 || s.Unavailable != 1 || s.PublishErrors == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDroppedMemberComesBack: with its state, its region, and a higher
// incarnation, in which signals reach it.
func TestDroppedMemberComesBack(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		if err := m.Set(state{Phase: "idle"}); err != nil {
			t.Fatal(err)
		}
		err := m.Region(t.Context(), "idle", func(ctx context.Context, r *agent.Region) error {
			synctest.Wait()
			old := f.last(t, "w")
			f.welcome(&wire.Welcome{Synchronizer: "s", Term: 1, Epoch: 1, Member: "w", Incarnation: old.Incarnation, Reason: "silent for 2s"})
			synctest.Wait()
			b := f.last(t, "w")
			if b.Incarnation != old.Incarnation+1 || len(b.Reports) != 1 || b.Reports[0].Seq != 1 || b.Reports[0].Row[0].Text() != "idle" {
				t.Errorf("it comes back with %+v", b)
			}
			if len(b.Regions) != 1 || b.Regions[0] != (wire.Region{Name: "idle", Entry: 1}) {
				t.Errorf("in regions %v", b.Regions)
			}
			f.signal(t, "w", "idle", "a", control.Activate)
			return r.Wait(ctx)
		}, agent.OnActivate("a", func(context.Context, agent.Signal) error { return nil }))
		synctest.Wait()
		if err != nil || f.fate(1) != control.Applied || m.Stats().Rejoins != 1 {
			t.Errorf("%v, fate %v, %+v", err, f.fate(1), m.Stats())
		}
	})
}

func TestCloseTellsTheGroup(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		if err := m.Set(state{Phase: "idle"}); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if b := f.last(t, "w"); !b.Leaving {
			t.Errorf("the last batch is %+v", b)
		}
	})
}

func TestCloseWhileTheServerIsAway(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, local *bustest.Server) {
		local.Stop()
		synctest.Wait()
		start := time.Now()
		if err := m.Close(); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestStrangeMessagesAreCounted(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		for _, frame := range [][]byte{nil, {1}, {99, 1}, []byte("GET / HTTP/1.1\r\n"), make([]byte, 60<<10)} {
			f.publish(f.subjects.Signal("w"), frame, nil)
		}
		frame, err := wire.AppendProbe(nil, &wire.Probe{Incarnation: 7, Seq: 1})
		f.publish(f.subjects.Probe("w"), frame, err)
		synctest.Wait()
		if s := m.Stats(); s.BadFrames != 5 || s.Ignored != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestBatchAge: reports wait for company no longer than they may.
func TestBatchAge(t *testing.T) {
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", BatchSize: 3, BatchAge: 20 * time.Millisecond}, func(t *testing.T, m *agent.Member, f *fake) {
		set := func(n int) {
			for range n {
				if err := m.Set(state{Phase: "idle"}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		set(2)
		if n := len(f.rows()); n != 0 {
			t.Errorf("%d reports went out at once", n)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := len(f.rows()); n != 2 {
			t.Errorf("%d reports after the age", n)
		}
		set(3)
		if n := len(f.rows()); n != 5 {
			t.Errorf("%d reports at the size", n)
		}
		set(10)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := len(f.rows()); n != 15 {
			t.Errorf("%d reports in the end", n)
		}
		// The age counts from the first state, whenever that comes after a batch.
		time.Sleep(5 * time.Millisecond)
		set(1)
		time.Sleep(19 * time.Millisecond)
		set(1)
		if n := len(f.rows()); n != 15 {
			t.Errorf("%d reports before the age of a later batch", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := len(f.rows()); n != 17 {
			t.Errorf("%d reports after the age of a later batch", n)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, b := range f.batches {
			if len(b.Reports) > 3 {
				t.Errorf("a message of %d reports", len(b.Reports))
			}
		}
	})
}
