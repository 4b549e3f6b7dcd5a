package synchronizer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/synchronizer"
)

// spread is true if the members' n differ by more than 5.
func spread(g monitor.GlobalState) (predicates.Truth, string) {
	least, most := int64(1<<62), int64(-1<<62)
	for i := range g.Len() {
		n := g.Value(i, "n")
		if name, _, online := g.Member(i); !online {
			return predicates.Unknown, "nothing is known of " + name
		}
		least, most = min(least, n.Int()), max(most, n.Int())
	}
	if most-least > 5 {
		return predicates.True, ""
	}
	return predicates.False, ""
}

// A predicate in Go fires, signals and is reported like a predicate of the configuration. A
// predicate that panics is unknown, is counted and stops nothing.
func TestGoPredicate(t *testing.T) {
	server, w := serve(t, 0), newWatch()
	var log bytes.Buffer // Written on the synchronizer's goroutine, read after Close.
	s := start(t, server.URL(), pair, synchronizer.Options{
		Observe: w.observe, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Predicates: []synchronizer.Predicate{
			{Name: "spread", Judge: spread, Signals: []synchronizer.Signal{{
				Kind: control.Activate, Region: "work", To: "filter(members, .n > 5)", Data: map[string]string{"most": "max(map(members, .n))"},
			}}},
			{Name: "broken", Judge: func(g monitor.GlobalState) (predicates.Truth, string) {
				g.Value(0, "nn")
				return predicates.True, ""
			}},
			{Name: "seldom", Every: true, Cooldown: time.Hour, Judge: func(monitor.GlobalState) (predicates.Truth, string) {
				return predicates.True, ""
			}},
		},
	})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	got := make(chan int64, 1)
	run(t, b, got)
	set(t, a, state{N: 1})
	set(t, b, state{N: 9})
	about := func(predicate string) func(monitor.Event) bool {
		return func(e monitor.Event) bool {
			v, ok := e.(monitor.Verdict)
			return ok && v.Predicate == predicate
		}
	}
	e, _ := w.await(t, 0, "verdict", about("spread"))
	if v := e.(monitor.Verdict); !v.Fired || len(v.Witness) != 2 || v.Modality != "" {
		t.Errorf("%+v fired", v)
	}
	select {
	case n := <-got:
		if n != 9 {
			t.Errorf("the signal has most = %d", n)
		}
	case <-time.After(patience):
		t.Fatal("the signal did not come")
	}
	e, _ = w.await(t, 0, "verdict", about("broken"))
	want := `the Judge panicked: the state has no field "nn": declared are idle, n`
	if v := e.(monitor.Verdict); v.Truth != predicates.Unknown || v.Reason != want {
		t.Errorf("%v, %s\nwant unknown, %s", v.Truth, v.Reason, want)
	}
	_, next := w.await(t, 0, "firing", about("seldom"))
	set(t, a, state{N: 2})
	e, _ = w.await(t, next, "firing kept back", about("seldom"))
	if v := e.(monitor.Verdict); v.Fired || v.Suppressed != 1 {
		t.Errorf("within its cooldown: %+v", v)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := s.Stats().Suppressed; n == 0 {
		t.Error("no firing is counted as kept back")
	}
	if n := s.Stats().Panics; n == 0 {
		t.Error("no panic is counted")
	}
	if n := strings.Count(log.String(), "Judge panicked"); n != 1 {
		t.Errorf("the panic is logged %d times:\n%s", n, log.String())
	}
}

// run keeps b in its region, where the signal's datum is handed on.
func run(t *testing.T, m *agent.Member, got chan<- int64) {
	t.Helper()
	entered := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Region(t.Context(), "work", func(ctx context.Context, r *agent.Region) error {
			close(entered)
			return r.Wait(ctx)
		}, agent.OnActivate("spread", func(_ context.Context, s agent.Signal) error {
			got <- s.Int("most")
			return nil
		}))
	}()
	<-entered
	t.Cleanup(func() { <-done })
}

// The faults of a predicate in Go are reported at the start, all of them.
func TestGoPredicateFaults(t *testing.T) {
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	_, err = synchronizer.Start(t.Context(), "nats://127.0.0.1:1", cfg, synchronizer.Options{Predicates: []synchronizer.Predicate{
		{Name: "all-idle", Judge: spread},
		{Name: "a b", Judge: spread, Every: true, For: time.Second, Cooldown: -1},
		{Name: "nothing", Until: "sum(members, .n)", Set: map[string]string{"x": "1"}},
		{Name: "out", Judge: spread, Signals: []synchronizer.Signal{{Data: map[string]string{"d": "sum(members, .m)"}, To: "holders"}}},
	}})
	const want = `synchronizer "test.yaml": Options.Predicates: predicates.all-idle: there is a predicate of that name already: give it another name
predicates.a b: predicate "a b": use letters, digits, - and _, at most 64
predicates.a b.every: every fires on each global state and has no hold time: leave out every or for
predicates.a b.cooldown: a cooldown cannot be negative
predicates.nothing: the predicate has no Judge: give a function, or write the predicate in the configuration
predicates.nothing.until: a condition is true or false, this is an int: compare it with something
predicates.nothing.set.x: memory has no variable "x": declare it below memory
predicates.out.signal: a signal needs the region that it goes to
predicates.out.signal.kind: "kind(0)" is no kind of signal: use activate or cancel
predicates.out.signal.to: the holders are the members that a threshold, or a modality, has found to satisfy its condition, and this predicate has neither: write all, or a group such as filter(members, .load > 2)
predicates.out.signal.data.d: unknown field "m": did you mean "n"? declared fields: idle, n, name, host, online`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

// Predicates in Go stay through a reload, and a replay that is given them comes to the
// recorded outputs.
func TestGoPredicateReloadReplay(t *testing.T) {
	server, w := serve(t, 0), newWatch()
	var recorded bytes.Buffer // Written until Close.
	own := []synchronizer.Predicate{{Name: "spread", Judge: spread}}
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe, Predicates: own, Journal: &recorded})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{N: 1})
	set(t, b, state{N: 9})
	_, next := w.await(t, 0, "firing", fired)
	cfg, err := synchronizer.ParseConfig("other.yaml", []byte(strings.Replace(pair, "all-idle", "all-done", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	set(t, a, state{N: 9})
	set(t, a, state{N: 1})
	e, _ := w.await(t, next, "firing after the reload", fired)
	if v := e.(monitor.Verdict); v.Predicate != "spread" {
		t.Errorf("%s fired", v.Predicate)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := synchronizer.Replay(bytes.NewReader(recorded.Bytes()), synchronizer.ReplayOptions{Predicates: own})
	if err != nil {
		t.Fatal(err)
	}
	if got.FirstDifference != 0 || got.Decisions != s.Stats().Decisions || !got.Complete {
		t.Errorf("the replay comes to %+v, and the run made %d decisions", got, s.Stats().Decisions)
	}
	got, err = synchronizer.Replay(bytes.NewReader(recorded.Bytes()), synchronizer.ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.FirstDifference == 0 {
		t.Error("a replay without the predicate comes to the same")
	}
}
