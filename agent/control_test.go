package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
)

// TestHeldWithoutControl: while the server is away a region is held in Check, another one
// before its work, and the rest of the program continues. When the server is back they continue, and
// what the member has come to is known, within a second.
func TestHeldWithoutControl(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, local *bustest.Server) {
		defer f.lead(1)()
		steps := make(chan int)
		var inner time.Time
		region := func(name string, work agent.Work) (done chan error) {
			done = make(chan error, 1)
			go func() {
				done <- m.Region(t.Context(), name, work, agent.OnControlLoss(agent.ControlLoss{Hold: true}))
			}()
			return done
		}
		working := region("work", func(_ context.Context, r *agent.Region) error {
			for i := range 3 {
				steps <- i
				if err := r.Check(); err != nil {
					return err
				}
			}
			return nil
		})
		<-steps
		<-steps // It continues while control is there.
		time.Sleep(5 * time.Second)
		local.Stop()
		time.Sleep(time.Millisecond) // Which is soon known.
		synctest.Wait()
		late := region("late", func(context.Context, *agent.Region) error { inner = time.Now(); return nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		<-steps // Check is what waits, and not the code before it.
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-working:
			t.Fatalf("the work went on: %v", err)
		case err := <-late:
			t.Fatalf("the region was entered: %v", err)
		default:
		}
		if s := m.Stats(); s.HeldRegions != 2 || m.Controlled() {
			t.Errorf("%+v, controlled %t", s, m.Controlled())
		}
		for range 100 { // Set never waits.
			check(t, m.Set(state{Load: 7, Phase: "search"}))
		}
		local.Start()
		back := time.Now()
		check(t, <-working)
		check(t, <-late)
		if took := inner.Sub(back); took > time.Second {
			t.Errorf("the region was entered %v after the server was back", took)
		}
		time.Sleep(time.Second - time.Since(back))
		synctest.Wait()
		if rows := f.rows(); len(rows) == 0 || rows[0][1].Float() != 7 {
			t.Errorf("after a second %d states are known", len(rows))
		}
		if s := m.Stats(); s.CanceledRegions != 0 || !m.Controlled() {
			t.Errorf("%+v, controlled %t", s, m.Controlled())
		}
	})
}

// TestControlIsLogged: that it is lost, once, with the regions and what they do, and that it is
// back; also where a region is entered meanwhile.
func TestControlIsLogged(t *testing.T) {
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", Logger: logger}, func(t *testing.T, m *agent.Member, f *fake) {
		silence := f.lead(1)
		ctx, stop := context.WithCancel(t.Context())
		results := make(chan error, 4)
		region := func(name string, l agent.ControlLoss) {
			go func() {
				results <- m.Region(ctx, name, func(_ context.Context, r *agent.Region) error { return r.Wait(ctx) }, agent.OnControlLoss(l))
			}()
			synctest.Wait()
		}
		region("two", agent.ControlLoss{Hold: true})
		region("one", agent.ControlLoss{Hold: true})
		region("other", agent.ControlLoss{CancelAfter: time.Hour})
		logged := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "class=control") {
					_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the log: want -, got +:\n%s", diff)
			}
		}
		time.Sleep(5 * time.Second)
		logged()
		silence()
		time.Sleep(10 * time.Second)
		region("late", agent.ControlLoss{Hold: true})
		lost := `level=WARN msg="nobody controls the members of this process" class=control group=g cause="synchronizer \"s\" is not heard" holds="[w/one w/two]" cancels=[w/other]`
		logged(lost)
		silence = f.lead(2)
		time.Sleep(time.Second)
		logged(lost, `level=INFO msg="the members of this process are controlled again" class=control group=g synchronizer=s after=8s`)
		silence()
		stop()
		for range 4 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestControlLossIsLoggedOnce: who enters a region again and again does not learn each time again
// that nobody leads, and control is back when who leads is heard, not when nobody asks.
func TestControlLossIsLoggedOnce(t *testing.T) {
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", Logger: logger}, func(t *testing.T, m *agent.Member, f *fake) {
		silence := f.lead(1)
		for i := range 20 {
			if i == 2 {
				silence()
			}
			check(t, m.Region(t.Context(), "work", func(context.Context, *agent.Region) error { time.Sleep(3 * time.Second); return nil }, agent.OnControlLoss(agent.ControlLoss{CancelAfter: time.Hour})))
		}
		defer f.lead(2)()
		time.Sleep(time.Second)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "level=WARN msg=\"nobody controls") != 1 || strings.Count(text, "are controlled again") != 1 {
			t.Error(text)
		}
	})
}

// TestHoldEnds: with the context that was given, a cancellation, and Close.
func TestHoldEnds(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, local *bustest.Server) {
		hold := agent.OnControlLoss(agent.ControlLoss{Hold: true})
		given, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		results := make(chan error, 3)
		go func() {
			results <- m.Region(t.Context(), "a", func(ctx context.Context, r *agent.Region) error { return r.Wait(ctx) }, hold)
		}()
		synctest.Wait()
		local.Stop()
		time.Sleep(time.Second)
		none := func(context.Context, *agent.Region) error { return nil }
		go func() { results <- m.Region(given, "b", none, hold) }()
		go func() { results <- m.Region(t.Context(), "c", none, hold) }()
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `agent: region "b" is held, as nobody controls its member: `) {
			t.Errorf("with the context that was given: %v", err)
		}
		synctest.Wait()
		check(t, m.Close())
		for range 2 {
			if err := <-results; !errors.Is(err, agent.ErrClosed) {
				t.Errorf("with Close: %v", err)
			}
		}
	})
}

// TestCanceledWithoutControl: the leader falls silent, though the server is there. A region is
// cancelled after its time, once, and a signal that was on the way finds it over. Its fate is
// reported to the next leader.
func TestCanceledWithoutControl(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		check(t, m.Set(state{Phase: "search"}))
		silence := f.lead(1)
		var at time.Time
		handled := 0
		saved := errors.New("saved")
		region := func(opts ...agent.RegionOption) error {
			return m.Region(t.Context(), "work", func(ctx context.Context, r *agent.Region) error {
				time.Sleep(5 * time.Second)
				if handled == 0 {
					silence()
					at = time.Now()
				}
				<-ctx.Done()
				f.signal(t, "w", "work", "stop", control.Cancel)
				synctest.Wait()
				return r.Check()
			}, opts...)
		}
		loss := agent.ControlLoss{CancelAfter: 3 * time.Second, Handle: func(ctx context.Context, s agent.Signal) error {
			if handled++; ctx.Err() != nil || s.Duration("after") != 3*time.Second || s.Region != "work" {
				t.Errorf("the handler is told %+v", s)
			}
			return saved
		}}
		never := agent.OnCancel("stop", func(context.Context, agent.Signal) error { t.Error("two effects"); return nil })
		if err := region(agent.OnControlLoss(loss), never); !errors.Is(err, saved) {
			t.Errorf("Region returns %v", err)
		}
		if took := time.Since(at); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("it was cancelled after %v, of which 2 s are silence", took)
		}
		if f.fate(1) != control.NoSuchEntry {
			t.Errorf("fate %v", f.fate(1))
		}
		var canceled *agent.Canceled
		err := region(agent.OnControlLoss(agent.ControlLoss{CancelAfter: time.Second})) // From the entry on.
		if !errors.As(err, &canceled) || err.Error() != `agent: region "work" was cancelled: nobody has controlled its member for 1s` {
			t.Errorf("Region returns %v", err)
		}
		if errors.As(err, &canceled) && canceled.Decision.String() != "no control" {
			t.Errorf("the decision is %v", canceled.Decision)
		}
		if s := m.Stats(); s.CanceledRegions != 2 || handled != 1 {
			t.Errorf("%+v, %d calls of the handler", s, handled)
		}
		defer f.lead(2)()
		time.Sleep(time.Second)
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		told := 0
		for _, a := range f.acks {
			if s := a.Lapse(); s != nil && s.Region == "work" && a.Fate == control.Applied {
				told++
			}
		}
		if told != 2 {
			t.Errorf("%d of 2 fates are told: %+v", told, f.acks)
		}
	})
}

// TestSilenceIsProven: the member waits for sent messages before control is lost. While the server
// stands still nothing is known, until the connection is given up.
func TestSilenceIsProven(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, local *bustest.Server) {
		defer f.lead(1)()
		region := func(silence time.Duration, still time.Duration) error {
			return m.Region(t.Context(), "work", func(_ context.Context, r *agent.Region) error {
				time.Sleep(2 * time.Second)
				thaw := local.Freeze()
				time.Sleep(still)
				thaw()
				synctest.Wait()
				return r.Check()
			}, agent.OnControlLoss(agent.ControlLoss{CancelAfter: time.Nanosecond, Silence: silence}))
		}
		if err := region(500*time.Millisecond, 1200*time.Millisecond); err != nil {
			t.Errorf("what waited was not taken first: %v", err)
		}
		if err := region(500*time.Millisecond, 10*time.Second); err == nil {
			t.Error("a server that is away for long is no loss")
		}
	})
}

func TestFaultsOfControlLoss(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		work := func(context.Context, *agent.Region) error { return nil }
		none := func(context.Context, agent.Signal) error { return nil }
		for want, l := range map[string]agent.ControlLoss{
			"has Hold false and CancelAfter 0s: set Hold, or a CancelAfter above 0; to continue without control, leave OnControlLoss out": {},
			"has Hold true and CancelAfter 1s":           {Hold: true, CancelAfter: time.Second},
			"has Hold false and CancelAfter -1s":         {CancelAfter: -time.Second},
			"has Hold and a Handle, which is for Cancel": {Hold: true, Handle: none},
			"Silence of 1ms: use 500ms to 1h0m0s, or 0":  {Hold: true, Silence: time.Millisecond},
		} {
			if err := m.Region(t.Context(), "r", work, agent.OnControlLoss(l)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		hold := agent.OnControlLoss(agent.ControlLoss{Hold: true})
		if err := m.Region(t.Context(), "r", work, hold, hold); err == nil || !strings.Contains(err.Error(), "OnControlLoss is given twice: keep one") {
			t.Errorf("%v", err)
		}
	})
}

// TestThreadsWithoutControl: a region of a thread goes by the control of its process.
func TestThreadsWithoutControl(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		newHub(t, local.Connect, twoLevels)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, m.Set(processState{}))
		th, err := m.Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		check(t, th.Set(threadState{"search", 10}))
		var canceled *agent.Canceled
		err = th.Region(t.Context(), "search", func(ctx context.Context, _ *agent.Region) error {
			local.Stop()
			<-ctx.Done()
			return nil
		}, agent.OnControlLoss(agent.ControlLoss{CancelAfter: time.Second}))
		if !errors.As(err, &canceled) || canceled.Region != "search" || canceled.Name != "" {
			t.Errorf("Region returns %v", err)
		}
		check(t, th.Set(threadState{"idle", 10}))
		if s := m.Stats(); s.CanceledRegions != 1 {
			t.Errorf("%+v", s)
		}
	})
}
