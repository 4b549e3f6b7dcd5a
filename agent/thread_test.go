package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const twoLevels = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {busy: int, best: float}
    predicates:
      better:
        when: any(members, .best < 5.0)
        signal: {kind: activate, region: pool, to: all, data: {best: "min(map(members, .best))"}}
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {phase: {enum: [idle, search]}, best: float}
    process: {queue: int}
    predicates:
      all-idle:
        when: all(members, .phase == "idle") and process.queue == 0
        signal: {kind: cancel, region: search, to: all}
      heard:
        when: from_parent.better.best < 5.0
        signal: {kind: activate, region: search, to: all}
    summary:
      busy: count(members, .phase == "search")
      best: min(map(members, .best))
`

type threadState struct {
	Phase string
	Best  float64
}

type processState struct{ Queue int }

func TestANilThreadOption(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		if _, err := m.Thread("t", nil); err == nil || err.Error() != `agent: thread "t": an option is nil: leave it out` {
			t.Error(err)
		}
	})
}

// TestThreads is the way of the paper's two levels: threads report to the
// synchronizer in their process, which cancels their regions without the group; its
// summary makes the group's predicate true, whose signal comes down into the
// process's region and is seen by the predicates of the threads.
func TestThreads(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, m.Set(processState{Queue: 1}))

		var entered, heard, canceled sync.WaitGroup
		entered.Add(2)
		heard.Add(2)
		var last *agent.Thread
		for i := range 2 {
			th, err := m.Thread(fmt.Sprint("t", i+1), agent.ThreadState(threadState{}))
			if err != nil {
				t.Fatal(err)
			}
			check(t, th.Set(threadState{"search", 10}))
			canceled.Go(func() {
				err := th.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
					entered.Done()
					for {
						if err := r.Wait(ctx); err != nil {
							return err
						}
						heard.Done()
					}
				}, agent.OnActivate("heard", func(context.Context, agent.Signal) error {
					return th.Set(threadState{"idle", 4})
				}))
				var c *agent.Canceled
				if !errors.As(err, &c) || c.Predicate != "all-idle" {
					t.Errorf("%s: %v", th.Name(), err)
				}
				check(t, th.Close())
			})
			last = th
		}
		err := m.Region(t.Context(), "pool", func(ctx context.Context, r *agent.Region) error {
			entered.Wait()
			check(t, last.Set(threadState{"search", 4}))
			if err := r.Wait(ctx); err != nil {
				return err
			}
			heard.Wait()
			time.Sleep(100 * time.Millisecond)
			// Both threads are idle, yet the queue of the process is not empty.
			if s := m.Stats().Threads; s.Received != 2 || s.Applied != 2 {
				t.Errorf("signals to threads before the queue is empty: %+v", s)
			}
			return m.Set(processState{})
		}, agent.OnActivate("better", func(_ context.Context, s agent.Signal) error {
			if s.Float("best") != 4 {
				t.Errorf("the signal carries %v", s.Data)
			}
			return nil
		}))
		if err != nil {
			t.Error(err)
		}
		canceled.Wait()
		synctest.Wait()
		// A thread that is left alone is an epoch of its own, and may be told again.
		if s := m.Stats(); s.Signals.Applied != 1 || s.Threads.Applied != 4 || s.RefusedStamps != 0 {
			t.Errorf("%+v", s)
		}
		if len(h.rejected) > 0 {
			t.Error(h.rejected)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestThreadErrors(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		_, err := m.Thread("t1")
		want := `agent: thread "t1": the configuration declares no threads below group "g": add a synchronizer with members: {threads: N}`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	})
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, strings.Replace(twoLevels, "{threads: 2}", "{threads: {min: 1, max: 1}}", 1))
		m := join(t, local, agent.Config{Group: "g", Name: "w", State: processState{}})
		t1, err := m.Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		thread := func(name string, opts ...agent.ThreadOption) error {
			_, err := m.Thread(name, opts...)
			return err
		}
		for want, err := range map[string]error{
			`thread "t.1": use letters`:    thread("t.1"),
			`thread "t1" is there already`: thread("t1"),
			`one too many`:                 thread("t2"),
			`a state is a struct, not int`: thread("t3", agent.ThreadState(1)),
			`field Queue of agent_test.processState: the configuration declares no field "queue", but phase, best`: t1.Set(processState{}),
			`agent_test.threadState: the configuration declares no field "phase", but queue`:                       m.Set(threadState{}),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
		check(t, t1.Close())
		check(t, t1.Close())
		if err := t1.Set(threadState{"idle", 1}); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("a closed thread: %v", err)
		}
		err = thread("t1", agent.ThreadState(processState{}))
		if want := `field "queue" of the program's state is not declared`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		check(t, thread("t1", agent.ThreadState(threadState{}))) // The name is free again.
	})
}

// TestCloseWithOpenThreads: their regions end, and so does everything else.
func TestCloseWithOpenThreads(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		th, err := m.Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		err = th.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
			go m.Close() //nolint:errcheck // Seen by the cleanup.
			return r.Wait(ctx)
		})
		if !errors.Is(err, agent.ErrClosed) {
			t.Error(err)
		}
		check(t, m.Close())
		check(t, th.Close())
	})
}

// TestThreadsOverrunTheRing: states that come faster than the level takes them
// are lost for it, which it knows; the newest ones are not.
func TestThreadsOverrunTheRing(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w", State: processState{}})
		check(t, m.Set(processState{}))
		var threads sync.WaitGroup
		for _, name := range []string{"t1", "t2"} {
			th, err := m.Thread(name)
			if err != nil {
				t.Fatal(err)
			}
			threads.Go(func() {
				err := th.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
					for i := range 20_000 {
						check(t, th.Set(threadState{"search", float64(100 + i)}))
					}
					check(t, th.Set(threadState{"idle", 50}))
					return r.Wait(ctx)
				})
				var c *agent.Canceled
				if !errors.As(err, &c) || c.Predicate != "all-idle" {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		threads.Wait()
		time.Sleep(time.Second)
		if h.fired("better") != 0 || len(h.rejected) > 0 || m.Stats().RefusedStamps != 0 {
			t.Errorf("fired %v, rejected %v, %+v", h.verdicts, h.rejected, m.Stats())
		}
	})
}

// TestThreadsDoNotHearOtherGroups: what the parent tells its members is seen by the
// predicates of their threads, and what the synchronizer of another group tells them
// is not, even under the same name.
func TestThreadsDoNotHearOtherGroups(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, twoLevels)
		incarnations := make(chan uint64, 1024)
		if err := h.bus.Subscribe(h.subjects.State("w"), bus.Limits{}, func(m bus.Message) {
			var b wire.Batch
			if wire.DecodeOutline(m.Data, &b) == nil {
				incarnations <- b.Incarnation
			}
		}); err != nil {
			t.Fatal(err)
		}
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, m.Set(processState{Queue: 1}))
		th, err := m.Thread("t1", agent.ThreadState(threadState{}))
		if err != nil {
			t.Fatal(err)
		}
		check(t, th.Set(threadState{"search", 10}))
		other, err := m.Thread("t2", agent.ThreadState(threadState{}))
		if err != nil {
			t.Fatal(err)
		}
		check(t, other.Set(threadState{"search", 10}))
		ctx, cancel := context.WithCancel(t.Context())
		var inside sync.WaitGroup
		inside.Go(func() {
			_ = th.Region(ctx, "search", func(ctx context.Context, r *agent.Region) error {
				for {
					if err := r.Wait(ctx); err != nil {
						return err
					}
				}
			}, agent.OnActivate("heard", func(context.Context, agent.Signal) error { return nil }))
		})
		synctest.Wait()
		check(t, th.Set(threadState{"search", 11})) // In the region.
		incarnation := <-incarnations
		tell := func(synchronizer string) { // The hub's term is 1.
			s := control.Signal{
				Decision: control.Decision{Synchronizer: synchronizer, Term: 1, Epoch: 100, Number: 1000},
				Name:     "better", Predicate: "better", Kind: control.Activate, Target: "w", Region: "pool", Entry: 1,
				Data: []control.Datum{{Name: "best", Value: scgs.FloatValue(1)}},
			}
			frame, _, err := wire.AppendSignals(nil, &wire.Signals{
				Synchronizer: synchronizer, Term: 1, Epoch: 100, Incarnation: incarnation, Signals: []control.Signal{s},
			})
			if err == nil {
				err = h.bus.Publish(h.subjects.Signal("w"), frame)
			}
			check(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		tell("far")
		if s := m.Stats(); s.Signals.Received != 1 || s.Threads.Received != 0 {
			t.Errorf("after a signal of another group: %+v", s)
		}
		tell("gsync")
		if s := m.Stats(); s.Signals.Received != 2 || s.Threads.Received == 0 {
			t.Errorf("after a signal of the parent: %+v", s)
		}
		cancel()
		inside.Wait()
		check(t, th.Close())
		check(t, other.Close())
	})
}
