package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/scgs"
)

// TestActivationRunsAtTheCheckAndTheWorkGoesOn is P8 (activation).
func TestActivationRunsAtTheCheckAndTheWorkGoesOn(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		var got []string
		adopt := func(_ context.Context, s agent.Signal) error {
			got = append(got, fmt.Sprintf("%s %v %v", s.Name, s.Kind, s.Float("best")))
			return nil
		}
		err := m.Region(t.Context(), "search", func(_ context.Context, r *agent.Region) error {
			if err := r.Check(); err != nil {
				return err
			}
			synctest.Wait()
			n := f.signal(t, "w", "search", "new-best", control.Activate, control.Datum{Name: "best", Value: scgs.FloatValue(7.5)})
			synctest.Wait()
			if len(got) != 0 || f.fate(n) != control.Waiting {
				t.Errorf("before the check: %v ran, fate %v", got, f.fate(n))
			}
			if err := r.Check(); err != nil {
				return err
			}
			synctest.Wait()
			if f.fate(n) != control.Applied {
				t.Errorf("after the check: fate %v", f.fate(n))
			}
			got = append(got, "went on")
			return r.Check()
		}, agent.OnActivate("new-best", adopt))
		if want := []string{"new-best activate 7.5", "went on"}; err != nil || strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	})
}

func TestHandlerErrorComesOutOfTheCheck(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		boom := errors.New("boom")
		var n uint64
		err := m.Region(t.Context(), "search", func(_ context.Context, r *agent.Region) error {
			synctest.Wait()
			n = f.signal(t, "w", "search", "a", control.Activate)
			synctest.Wait()
			return r.Check()
		}, agent.OnActivate("a", func(context.Context, agent.Signal) error { return boom }))
		synctest.Wait()
		if err != boom || f.fate(n) != control.Applied { //nolint:errorlint // The very error.
			t.Errorf("%v, fate %v", err, f.fate(n))
		}
	})
}

// TestCancellation is P9: the region is left, its handler runs, the program
// continues after the region.
func TestCancellation(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		var n, waiting uint64
		saved := errors.New("saved")
		err := m.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
			synctest.Wait()
			waiting = f.signal(t, "w", "search", "a", control.Activate)
			n = f.signal(t, "w", "search", "all-idle", control.Cancel, control.Datum{Name: "why", Value: scgs.StringValue("done")})
			<-ctx.Done()
			var c *agent.Canceled
			if !errors.As(context.Cause(ctx), &c) || c.Predicate != "all-idle" || c.Region != "search" || c.Text("why") != "done" {
				t.Errorf("the context's cause is %v", context.Cause(ctx))
			}
			if err := r.Check(); !errors.As(err, &c) {
				t.Errorf("check returns %v", err)
			}
			if err := r.Wait(ctx); !errors.As(err, &c) {
				t.Errorf("wait returns %v", err)
			}
			synctest.Wait()
			if f.fate(n) != control.Waiting {
				t.Errorf("fate %v before the handler", f.fate(n))
			}
			return errors.New("not this one")
		}, agent.OnActivate("a", func(context.Context, agent.Signal) error {
			t.Error("an activation ran after the cancellation")
			return nil
		}), agent.OnCancel("all-idle", func(ctx context.Context, s agent.Signal) error {
			if ctx.Err() != nil || s.Name != "all-idle" {
				t.Errorf("handler of %q with context %v", s.Name, ctx.Err())
			}
			return saved
		}))
		synctest.Wait()
		if err != saved { //nolint:errorlint // The very error.
			t.Errorf("Region returns %v", err)
		}
		if f.fate(n) != control.Applied || f.fate(waiting) != control.NoSuchEntry {
			t.Errorf("fates %v and %v", f.fate(n), f.fate(waiting))
		}
	})
}

func TestCancellationWithoutHandler(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		err := m.Region(t.Context(), "search", func(ctx context.Context, _ *agent.Region) error {
			synctest.Wait()
			f.signal(t, "w", "search", "stop", control.Cancel)
			<-ctx.Done()
			return nil
		})
		var c *agent.Canceled
		if !errors.As(err, &c) || !strings.Contains(err.Error(), `region "search" was cancelled: predicate "stop" held (decision s/1/1)`) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if s := m.Stats().Signals; f.fate(1) != control.Applied || s.Received != 1 || s.Applied != 1 {
			t.Errorf("fate %v, %+v", f.fate(1), s)
		}
	})
}

// TestLateSignalIsNeglected is P10: the entry it was decided on is over.
func TestLateSignalIsNeglected(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		work := func(_ context.Context, r *agent.Region) error {
			synctest.Wait()
			return r.Check()
		}
		never := agent.OnActivate("a", func(context.Context, agent.Signal) error {
			t.Error("a late signal took effect")
			return nil
		})
		if err := m.Region(t.Context(), "search", work, never); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// The newest batch has no region any more, so this is decided on entry 1.
		f.signal(t, "w", "search", "a", control.Activate)
		err := m.Region(t.Context(), "search", work, never)
		synctest.Wait()
		if s := m.Stats().Signals; err != nil || f.fate(1) != control.NoSuchEntry || s.Late() != 1 {
			t.Errorf("%v, fate %v, %+v", err, f.fate(1), s)
		}
	})
}

func TestWaitOfAnIdleRegion(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		ran := 0
		err := m.Region(t.Context(), "idle", func(ctx context.Context, r *agent.Region) error {
			go func() {
				synctest.Wait()
				f.signal(t, "w", "idle", "task", control.Activate)
			}()
			if err := r.Wait(ctx); err != nil || ran != 1 {
				return fmt.Errorf("after %d: %w", ran, err)
			}
			short, stop := context.WithCancelCause(ctx)
			stop(errors.New("enough"))
			return r.Wait(short)
		}, agent.OnActivate("task", func(context.Context, agent.Signal) error { ran++; return nil }))
		if err == nil || err.Error() != "enough" {
			t.Errorf("%v", err)
		}
	})
}

func TestActivateNowRunsBesideTheWork(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		var mu sync.Mutex
		var order []string
		note := func(_ context.Context, s agent.Signal) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s.Name)
			if s.Name == "b" {
				return errors.New("from beside")
			}
			return nil
		}
		err := m.Region(t.Context(), "search", func(ctx context.Context, r *agent.Region) error {
			synctest.Wait()
			f.signal(t, "w", "search", "a", control.Activate)
			synctest.Wait()
			if f.fate(1) != control.Applied {
				t.Errorf("fate %v while the work does not check", f.fate(1))
			}
			if err := r.Wait(ctx); err != nil { // It ran, so there is nothing to wait for.
				return err
			}
			f.signal(t, "w", "search", "b", control.Activate)
			synctest.Wait()
			return r.Check()
		}, agent.OnActivateNow("a", note), agent.OnActivateNow("b", note))
		if err == nil || err.Error() != "from beside" || strings.Join(order, "") != "ab" {
			t.Errorf("%v, %v", order, err)
		}
	})
}

func TestPanicsLeaveTheRegion(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		bang := func(context.Context, agent.Signal) error { panic("bang") }
		signal := func(kind control.Kind) agent.Work {
			return func(ctx context.Context, r *agent.Region) error {
				synctest.Wait()
				f.signal(t, "w", "search", "x", kind)
				if kind == control.Cancel {
					<-ctx.Done()
				}
				synctest.Wait()
				return r.Check()
			}
		}
		tests := map[string]struct {
			work agent.Work
			opt  agent.RegionOption
		}{
			"work":           {func(context.Context, *agent.Region) error { panic("bang") }, agent.OnCancel("x", bang)},
			"handler":        {signal(control.Activate), agent.OnActivate("x", bang)},
			"handler beside": {signal(control.Activate), agent.OnActivateNow("x", bang)},
			"cancel handler": {signal(control.Cancel), agent.OnCancel("x", bang)},
			"cancelled work": {func(ctx context.Context, r *agent.Region) error {
				_ = signal(control.Cancel)(ctx, r)
				panic("bang")
			}, agent.OnCancel("x", bang)},
		}
		signals := uint64(0)
		for _, name := range []string{"work", "handler", "handler beside", "cancel handler", "cancelled work"} {
			c := tests[name]
			func() {
				defer func() {
					if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "bang") {
						t.Errorf("%s: recovered %v", name, v)
					}
				}()
				err := m.Region(t.Context(), "search", c.work, c.opt)
				t.Errorf("%s: Region returned %v", name, err)
			}()
			synctest.Wait()
			if name != "work" {
				signals++
				if f.fate(signals) != control.Refused {
					t.Errorf("%s: fate %v", name, f.fate(signals))
				}
			}
			if b := f.last(t, "w"); len(b.Regions) != 0 {
				t.Errorf("%s: open regions %v", name, b.Regions)
			}
		}
	})
}

func TestRegionRefuses(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		none := func(context.Context, agent.Signal) error { return nil }
		work := func(context.Context, *agent.Region) error { return nil }
		nested := func(ctx context.Context, _ *agent.Region) error { return m.Region(ctx, "search", work) }
		for want, err := range map[string]error{
			`region "search" is entered a second time`:               m.Region(t.Context(), "search", nested),
			`region "a b": use letters`:                              m.Region(t.Context(), "a b", work),
			`signal "x.y": use letters`:                              m.Region(t.Context(), "r", work, agent.OnActivate("x.y", none)),
			`signal "x" has two handlers of the same kind: keep one`: m.Region(t.Context(), "r", work, agent.OnActivate("x", none), agent.OnActivateNow("x", none)),
			`region "r": agent: signal "x" has a nil handler`:        m.Region(t.Context(), "r", work, agent.OnCancel("x", nil)),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	})
}

func TestRegionEndsWithItsContextAndWithClose(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		spin := func(_ context.Context, r *agent.Region) error {
			synctest.Wait()
			return r.Check()
		}
		ctx, stop := context.WithCancelCause(t.Context())
		stop(errors.New("the program wants to end"))
		if err := m.Region(ctx, "search", spin); err == nil || err.Error() != "the program wants to end" {
			t.Errorf("%v", err)
		}
		err := m.Region(t.Context(), "idle", func(ctx context.Context, r *agent.Region) error {
			go m.Close() //nolint:errcheck // Seen by the cleanup.
			return r.Wait(ctx)
		})
		if !errors.Is(err, agent.ErrClosed) || !errors.Is(m.Set(state{}), agent.ErrClosed) || !errors.Is(m.Region(t.Context(), "r", spin), agent.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// TestNilArguments are refused before the work has run, and leave nothing entered.
func TestNilArguments(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		var noContext context.Context
		work := func(context.Context, *agent.Region) error { t.Error("the work has run"); return nil }
		for _, c := range []struct {
			err  error
			want string
		}{
			{m.Region(noContext, "r", work), `agent: region "r": the context is nil: pass context.Background(), or a context with a deadline`},
			{m.Region(t.Context(), "r", nil), `agent: region "r": the work is nil: pass the function to run inside`},
			{m.Region(t.Context(), "r", work, nil), `agent: region "r": an option is nil: leave it out`},
		} {
			if c.err == nil || c.err.Error() != c.want {
				t.Errorf("%v, want %s", c.err, c.want)
			}
		}
		check(t, m.Region(t.Context(), "r", func(context.Context, *agent.Region) error { return nil }))
	})
}
