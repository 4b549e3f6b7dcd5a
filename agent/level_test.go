package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/testwait"
)

// meeting has a predicate that holds when all threads have come to the same round.
const meeting = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {least: int}
  tsync:
    parent: gsync
    members: {threads: %d}
    state: {round: int}
    memory: {met: {type: int, initial: 0}}
    predicates:
      met:
        when: min(map(members, .round)) > memory.met
        every: true
        set: {met: "min(map(members, .round))"}
        signal: {kind: activate, region: meeting, to: all, data: {round: "min(map(members, .round))"}}
    summary:
      least: min(map(members, .round))
`

// meet has threads go through rounds: each sets states as fast as it can, of which the
// last says that it has come, and waits until all have. Nobody sets a state after that,
// so a turn that nobody takes is seen.
func meet(t *testing.T, m *agent.Member, threads, rounds int) {
	t.Helper()
	var meeting sync.WaitGroup
	for i := range threads {
		th, err := m.Thread(fmt.Sprint("t", i))
		if err != nil {
			t.Fatal(err)
		}
		type state struct{ Round int }
		meeting.Go(func() {
			met := 0
			err := th.Region(t.Context(), "meeting", func(ctx context.Context, r *agent.Region) error {
				for round := 1; round <= rounds; round++ {
					for range round % 7 {
						if err := th.Set(state{round - 1}); err != nil {
							return err
						}
					}
					if err := th.Set(state{round}); err != nil {
						return err
					}
					for met < round {
						if err := r.Wait(ctx); err != nil {
							return err
						}
					}
				}
				return nil
			}, agent.OnActivate("met", func(_ context.Context, s agent.Signal) error {
				met = int(s.Int("round"))
				return nil
			}))
			check(t, err)
		})
	}
	meeting.Wait()
	if s := m.Stats(); s.Threads.Applied < uint64(rounds) || s.RefusedStamps != 0 {
		t.Errorf("after %d rounds of %d threads: %+v", rounds, threads, s)
	}
}

// TestNoTurnIsForgotten: in a bubble time stands still while anybody can continue, so a
// turn that waits for a timer, or for another state, takes time.
func TestNoTurnIsForgotten(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, fmt.Sprintf(meeting, 4))
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		began := time.Now()
		meet(t, m, 4, 200)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("200 rounds have waited for timers: %v", took)
		}
	})
}

// TestTurnsAreHandedOver is the same in real time, where states that come too fast are
// left to the goroutine of the level.
func TestTurnsAreHandedOver(t *testing.T) {
	local := bustest.NewServer(t)
	newHub(t, local.Connect, fmt.Sprintf(meeting, 8))
	meet(t, join(t, local, agent.Config{Group: "g", Name: "w"}), 8, 300)
}

// during calls a function with every line of a log.
type during struct {
	slog.Handler
	call func()
}

func (h *during) Enabled(context.Context, slog.Level) bool  { return true }
func (h *during) Handle(context.Context, slog.Record) error { h.call(); return nil }
func (h *during) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h *during) WithGroup(string) slog.Handler             { return h }

// TestSetDuringATurn: a state that is set by what runs within a turn does not begin
// another one, and is not forgotten.
func TestSetDuringATurn(t *testing.T) {
	const config = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {}
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {n: int}
    memory: {unknown: int}
    predicates:
      refused:
        when: any(members, .n == 1)
        set: {unknown: "memory.unknown + 1"}
        signal: []
      heard:
        when: any(members, .n == 2)
        signal: {kind: cancel, region: search, to: all}
`
	type state struct{ N int }
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, config)
		var second *agent.Thread
		var lines atomic.Int32
		log := slog.New(&during{call: func() {
			lines.Add(1)
			check(t, second.Set(state{2}))
		}})
		m := join(t, local, agent.Config{Group: "g", Name: "w", Logger: log})
		first, err := m.Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		if second, err = m.Thread("t2"); err != nil {
			t.Fatal(err)
		}
		check(t, second.Set(state{}))
		err = first.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
			synctest.Wait() // Nobody else is in a turn.
			check(t, first.Set(state{1}))
			if lines.Load() != 1 {
				t.Errorf("%d lines within Set: the turn was not the caller's", lines.Load())
			}
			return r.Wait(ctx)
		})
		var c *agent.Canceled
		if !errors.As(err, &c) || c.Predicate != "heard" {
			t.Error(err)
		}
	})
}

// faulty is a clock that panics once the test asks for it.
type faulty struct {
	clocksync.Clock
	on atomic.Bool
	n  atomic.Int32
}

func (c *faulty) Now() clocksync.Stamp {
	if c.on.Load() && c.n.Add(1) == 2 { // The first reading is made by Set itself.
		panic("the clock is broken")
	}
	return c.Clock.Now()
}

// TestATurnThatPanics ends the process, though the program recovers.
func TestATurnThatPanics(t *testing.T) {
	const key = "PEGASUS_TEST_TURN_PANICS"
	if os.Getenv(key) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestATurnThatPanics$")
		cmd.Env = append(os.Environ(), key+"=1")
		out, err := cmd.CombinedOutput()
		want := `a turn of the thread-level synchronizer "tsync" has not ended: the clock is broken`
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q in\n%s", err, want, out)
		}
		return
	}
	local := bustest.NewServer(t)
	newHub(t, local.Connect, fmt.Sprintf(meeting, 1))
	clock := &faulty{Clock: source.System()}
	m := join(t, local, agent.Config{Group: "g", Name: "w", Clock: clock})
	th, err := m.Thread("t0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { t.Logf("the program goes on after %v", recover()) }()
	clock.on.Store(true)
	testwait.Until(t, "the end of the process", func() bool { // Some turns are left to the level's goroutine.
		check(t, th.Set(struct{ Round int }{1}))
		return false
	})
}

// TestTheLastThreadLeaves: a summary ends with the last of its threads.
func TestTheLastThreadLeaves(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, fmt.Sprintf(meeting, 1))
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		for range 2 {
			th, err := m.Thread("t0")
			if err != nil {
				t.Fatal(err)
			}
			check(t, th.Set(struct{ Round int }{0}))
			check(t, th.Close())
		}
		synctest.Wait()
		if len(h.rejected) > 0 || m.Stats().RefusedStamps != 0 {
			t.Errorf("rejected %v, %+v", h.rejected, m.Stats())
		}
	})
}

// TestTimeTakesATurn: work that time makes due does not wait until a caller has something
// to report.
func TestTimeTakesATurn(t *testing.T) {
	const config = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {}
  tsync:
    parent: gsync
    members: {threads: 1}
    state: {idle: bool}
    predicates:
      idle-for-long:
        when: all(members, .idle)
        for: 50ms
        signal: {kind: cancel, region: search, to: all}
`
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, config)
		th, err := join(t, local, agent.Config{Group: "g", Name: "w"}).Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // Of the bubble, whose clock of stamps goes far slower.
		defer cancel()
		err = th.Region(ctx, "search", func(ctx context.Context, r *agent.Region) error {
			check(t, th.Set(struct{ Idle bool }{true}))
			return r.Wait(ctx)
		})
		if _, ok := errors.AsType[*agent.Canceled](err); !ok {
			t.Error(err)
		}
	})
}
