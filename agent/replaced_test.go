package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

const oneMember = `synchronizers:
  s:
    members: {group: g, count: 1}
    state: {phase: {enum: [idle, search]}, load: float}
    predicates:
      two: {when: "any(members, .load == 2)", signal: {kind: cancel, region: search}}
      hurry: {when: "any(members, .load == 5)", signal: {kind: activate, region: search}}
`

// TestErrReplaced: a member whose name another process takes learns it from Set and, once, from Check. Its
// state is kept, and counts again when it comes back after the other has left.
func TestErrReplaced(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, oneMember)
		first := join(t, local, agent.Config{Group: "g", Name: "w"})
		typed, err := agent.StateOf[state](first)
		check(t, err)
		check(t, first.Set(state{Load: 1, Phase: "idle"}))
		err = first.Region(t.Context(), "search", func(_ context.Context, r *agent.Region) error {
			time.Sleep(time.Second)
			second := join(t, local, agent.Config{Group: "g", Name: "w"}) //nolint:contextcheck // It joins for itself.
			check(t, second.Set(state{Load: 3, Phase: "idle"}))
			_ = first.Set(state{Load: 2, Phase: "idle"}) // It learns of the other by now or by then.
			time.Sleep(time.Second)
			synctest.Wait()
			for _, err := range []error{r.Check(), first.Set(state{Load: 1, Phase: "idle"}), typed.Set(state{Load: 2, Phase: "idle"})} {
				if !errors.Is(err, agent.ErrReplaced) || !strings.Contains(err.Error(), `agent: another process has the name of this member: process `) {
					t.Errorf("%v is not ErrReplaced", err)
				}
			}
			if h.fired("two") != 0 {
				t.Error("its states count")
			}
			check(t, r.Check()) // It was returned once.
			if _, err := agent.StateOf[struct{ X int }](first); err == nil {
				t.Error("a wrong state is bound")
			}
			if err := first.Set(struct{ X int }{}); errors.Is(err, agent.ErrReplaced) || err == nil {
				t.Errorf("a wrong state: %v", err)
			}
			check(t, second.Close())
			time.Sleep(3 * time.Second)
			if h.fired("two") != 1 {
				t.Error("it does not come back with the state that was set last")
			}
			return first.Set(state{Load: 1, Phase: "idle"})
		})
		if _, canceled := errors.AsType[*agent.Canceled](err); !canceled {
			t.Error(err) // The region was cancelled by the predicate, and not for the replacement.
		}
		if err := first.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestErrUndeclared: Join refuses a configuration whose signals name what the program does not declare, and
// a program that enters what it does not declare is refused as well.
func TestErrUndeclared(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, oneMember)
		for want, regions := range map[string][]agent.RegionHandlers{
			`agent: join group "g" as "w": synchronizer "s": region or handler not declared in Config.Regions: signal "hurry" goes to region "search", and the program declares wurk; signal "two" goes to region "search", and the program declares wurk: correct the configuration or Config.Regions`: {{Region: "wurk"}},
			`agent: join group "g" as "w": synchronizer "s": region or handler not declared in Config.Regions: signal "hurry" activates region "search", which declares handlers for hury: correct the configuration or Config.Regions`:                                                                 {{Region: "search", Activations: []string{"hury"}}},
			`agent: join group "g" as "w": synchronizer "s": region or handler not declared in Config.Regions: signal "hurry" goes to region "search", and the program declares none; signal "two" goes to region "search", and the program declares none: correct the configuration or Config.Regions`: {},
		} {
			_, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "w", Regions: regions}, agent.WithBus(local.Connect))
			if !errors.Is(err, agent.ErrUndeclared) || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
		}
		m := join(t, local, agent.Config{Group: "g", Name: "w", Regions: []agent.RegionHandlers{{Region: "search", Activations: []string{"hurry"}}}})
		nothing := func(context.Context, *agent.Region) error { return nil }
		hurry := agent.OnActivate("hurry", func(context.Context, agent.Signal) error { return nil })
		check(t, m.Region(t.Context(), "search", nothing, hurry))
		err := m.Region(t.Context(), "wurk", nothing)
		if want := `agent: region "wurk": region or handler not declared in Config.Regions, which has search: add it there`; !errors.Is(err, agent.ErrUndeclared) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		err = m.Region(t.Context(), "search", nothing)
		if want := `agent: region "search" is entered without the handler for "hurry" that Config.Regions declares: give Region OnActivate or OnActivateNow, or correct Config.Regions`; err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
	_, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "w", Regions: []agent.RegionHandlers{{Region: "a b"}, {Region: "c", Activations: []string{""}}, {Region: "c"}}})
	for _, want := range []string{`agent: join: Config.Regions: region "a b"`, `agent: join: Config.Regions: region "c": signal`, `agent: join: Config.Regions has region "c" twice: keep one`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// TestUndeclaredBelow: signals to the threads of a process are looked at as well.
func TestUndeclaredBelow(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, `synchronizers:
  s:
    members: {group: g, count: 1}
    state: {most: int}
  below:
    parent: s
    members: {threads: 1}
    state: {n: int}
    summary: {most: "max(map(members, .n))"}
    predicates:
      stop: {when: "any(members, .n > 0)", signal: {kind: cancel, region: wurk}}
`)
		_, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "w", Regions: []agent.RegionHandlers{{Region: "work"}}}, agent.WithBus(local.Connect))
		want := `synchronizer "below": region or handler not declared in Config.Regions: signal "stop" goes to region "wurk", and the program declares work: `
		if !errors.Is(err, agent.ErrUndeclared) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
}

// TestLeave: a member leaves when the synchronizer has its last state and others have been told, and not before.
func TestLeave(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		welcome := f.answer
		var next, untold atomic.Uint64
		f.answer = func(h *wire.Hello) *wire.Welcome {
			w := welcome(h)
			if w.NextSeq = next.Load(); h.Had > 0 {
				w.Untold = untold.Load()
			}
			return w
		}
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, m.Set(state{Phase: "idle"}))
		synctest.Wait()
		leaves := func(ctx context.Context) (<-chan struct{}, *error) {
			over, err := make(chan struct{}), new(error)
			go func() {
				defer close(over)
				*err = m.Leave(ctx)
			}()
			return over, err
		}
		check(t, m.Region(t.Context(), "search", func(_ context.Context, r *agent.Region) error {
			synctest.Wait()
			f.signal(t, "w", "search", "go", control.Activate)
			synctest.Wait()
			return r.Check()
		}, agent.OnActivate("go", func(context.Context, agent.Signal) error { return nil })))
		next.Store(1)
		over, err := leaves(t.Context())
		waits := func(why string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			select {
			case <-over:
				t.Fatalf("it has left while %s: %v", why, *err)
			default:
			}
		}
		waits("its state is not acknowledged")
		next.Store(2)
		untold.Store(3)
		waits("others were not told")
		untold.Store(0)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		<-over
		if *err != nil || !f.last(t, "w").Leaving {
			t.Errorf("%v, %+v", *err, f.last(t, "w"))
		}
		check(t, m.Leave(t.Context())) // It is closed.
	})
}

// TestLeaveEarly: when the context ends the member leaves, and what it waited for is in the error.
func TestLeaveEarly(t *testing.T) {
	for want, answer := range map[string]func(*wire.Welcome) *wire.Welcome{
		"the synchronizer has not answered":                         func(*wire.Welcome) *wire.Welcome { return nil },
		"the synchronizer has not acknowledged its newest state, 1": func(w *wire.Welcome) *wire.Welcome { return w },
		"2 signals to other members may not have arrived": func(w *wire.Welcome) *wire.Welcome {
			w.NextSeq, w.Untold = 2, 2
			return w
		},
	} {
		joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
			check(t, m.Set(state{Phase: "idle"}))
			synctest.Wait()
			welcome := f.answer
			f.answer = func(h *wire.Hello) *wire.Welcome { return answer(welcome(h)) }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := m.Leave(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || err.Error() != `agent: member "w" leaves early: `+want+": context deadline exceeded" {
				t.Errorf("%v\nwant %s", err, want)
			}
			synctest.Wait()
			if !f.last(t, "w").Leaving {
				t.Error("it has not left")
			}
		})
	}
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		if err := m.Leave(nil); err == nil || err.Error() != "agent: leave: the context is nil: pass context.Background(), or a context with a deadline" { //nolint:staticcheck // A nil context is refused.
			t.Error(err)
		}
	})
}
