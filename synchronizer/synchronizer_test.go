package synchronizer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/internal/testwait"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
	"github.com/gopegasus/pegasus/synchronizer"
)

// patience bounds what a test waits for; no verdict depends on it.
const patience = 20 * time.Second

const pair = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 5s, then: drop}
    state: {idle: bool, n: int}
    predicates:
      all-idle:
        when: all(members, .idle)
        signal: {kind: activate, region: work, data: {total: "sum(members, .n)"}}
`

// silentAfter is pair where this counts as silence.
func silentAfter(limit string) string { return strings.Replace(pair, "after: 5s", "after: "+limit, 1) }

type state struct {
	Idle bool
	N    int
}

// watch collects a synchronizer's events.
type watch struct {
	mu     sync.Mutex
	events []monitor.Event
	more   chan struct{}
}

func newWatch() *watch { return &watch{more: make(chan struct{}, 1)} }

func (w *watch) observe(e monitor.Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// await returns the first event from the given position on that the test wants,
// and the position after it.
func (w *watch) await(t *testing.T, from int, what string, want func(monitor.Event) bool) (monitor.Event, int) {
	t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		for i := from; i < len(w.events); i++ {
			if e := w.events[i]; want(e) {
				w.mu.Unlock()
				return e, i + 1
			}
		}
		from = max(from, len(w.events))
		w.mu.Unlock()
		select {
		case <-w.more:
		case <-limit:
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}

func fired(e monitor.Event) bool {
	v, ok := e.(monitor.Verdict)
	return ok && v.Fired
}

func applied(e monitor.Event) bool {
	f, ok := e.(monitor.Fate)
	return ok && f.Fate == control.Applied
}

func start(t *testing.T, url, config string, opt synchronizer.Options) *synchronizer.Synchronizer {
	t.Helper()
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), url, cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func serve(t *testing.T, port int) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(embedded.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func join(t *testing.T, url, name string) *agent.Member {
	t.Helper()
	m, err := agent.Join(t.Context(), url, agent.Config{Group: "g", Name: name, State: state{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func set(t *testing.T, m *agent.Member, s state) {
	t.Helper()
	if err := m.Set(s); err != nil {
		t.Fatal(err)
	}
}

// region keeps a member in its region and hands out the totals that it receives.
func region(t *testing.T, m *agent.Member) <-chan int64 {
	t.Helper()
	totals := make(chan int64, 64)
	inside := make(chan struct{})
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	done.Go(func() {
		_ = m.Region(ctx, "work", func(ctx context.Context, r *agent.Region) error {
			close(inside)
			for {
				if err := r.Wait(ctx); err != nil {
					return err
				}
			}
		}, agent.OnActivate("all-idle", func(_ context.Context, s agent.Signal) error {
			totals <- s.Int("total")
			return nil
		}))
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	<-inside
	return totals
}

func receive(t *testing.T, totals <-chan int64) int64 {
	t.Helper()
	select {
	case n := <-totals:
		return n
	case <-time.After(patience):
		t.Fatalf("no signal within %v", patience)
		return 0
	}
}

func TestDecidesAndTells(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	inA, inB := region(t, a), region(t, b)
	set(t, a, state{N: 1})
	set(t, b, state{N: 2})
	set(t, a, state{Idle: true, N: 3})
	set(t, b, state{Idle: true, N: 4})
	if x, y := receive(t, inA), receive(t, inB); x != 7 || y != 7 {
		t.Errorf("the signals carry %d and %d, want the sum 7 of the states that held together", x, y)
	}
	e, at := w.await(t, 0, "verdict", fired)
	v := e.(monitor.Verdict)
	if v.Predicate != "all-idle" || len(v.Witness) != 2 || !v.Span.SameClock || v.Span.Certain() <= 0 {
		t.Errorf("verdict %+v: want all-idle with a witness of two states on the same clock that lasted", v)
	}
	_, at = w.await(t, at, "applied signal", applied)
	w.await(t, at, "second applied signal", applied)
	stats := s.Stats()
	if stats.Decisions != 1 || stats.Signals != 2 || stats.Fates[control.Applied] != 2 || stats.Malformed != 0 {
		t.Errorf("stats %+v: want one decision and two applied signals", stats)
	}
	cleanup(t, a, b)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	server.Close()
}

// elsewhere is a clock as another host has it.
type elsewhere struct {
	clocksync.Clock
	domain clocksync.Domain
}

func (e elsewhere) Domain() clocksync.Domain { return e.domain }

func (e elsewhere) Now() clocksync.Stamp {
	s := e.Clock.Now()
	s.Domain = e.domain
	return s
}

// TestClocksOfTheirOwn runs members whose clocks agree only within a bound: the
// verdict names it, and waits until the bound has passed.
func TestClocksOfTheirOwn(t *testing.T) {
	const bound = 2 * time.Millisecond
	server := serve(t, 0)
	w := newWatch()
	start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe, Timeline: clocksync.UTC})
	for _, name := range []string{"a", "b"} {
		clock, err := source.Fixed(bound)
		if err != nil {
			t.Fatal(err)
		}
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name, Clock: elsewhere{clock, clocksync.Domain("host of " + name)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		set(t, m, state{Idle: true, N: 1})
	}
	e, _ := w.await(t, 0, "verdict", fired)
	if v := e.(monitor.Verdict); v.Span.SameClock || v.Bound < bound || v.Bound > 2*bound {
		t.Errorf("verdict of different clocks with bound %v, same clock %t: want a bound near %v", v.Bound, v.Span.SameClock, bound)
	} else if v.Sources != "fixed (assumed)" {
		t.Errorf("the bound rests on %q", v.Sources)
	}
}

// TestMeasuredClocks runs a member beside the synchronizer and a member that takes its
// clock for another: it measures itself, and the verdict names the bound.
func TestMeasuredClocks(t *testing.T) {
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe})
	for _, separate := range []bool{false, true} {
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: strconv.FormatBool(separate), SeparateClock: separate})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		want := clocksync.Quality{Source: "system"}
		if separate {
			want = clocksync.Quality{Source: "peer", Unverified: true, Status: clocksync.Synchronized, Timeline: source.NewReference(source.System().Domain()).Timeline()}
		}
		q := m.Clock()
		if q.Expires = 0; q != want {
			t.Errorf("separate %v: the clock is %+v, want %+v", separate, q, want)
		}
		set(t, m, state{Idle: true, N: 1})
	}
	e, _ := w.await(t, 0, "clock", func(e monitor.Event) bool {
		_, ok := e.(monitor.Clock)
		return ok
	})
	if c := e.(monitor.Clock); c.Name != "true" || c.Quality.Status != clocksync.Synchronized {
		t.Errorf("%+v", c)
	}
	e, _ = w.await(t, 0, "verdict", fired)
	if v := e.(monitor.Verdict); v.Span.SameClock || v.Bound <= 0 || v.Sources != "peer" {
		t.Errorf("same clock %t, bound %v, sources %q; want the bound that was measured", v.Span.SameClock, v.Bound, v.Sources)
	}
	if s.Stats().Pings < 8 {
		t.Errorf("%d pings answered", s.Stats().Pings)
	}
}

// TestASynchronizerElsewhereTakesOver: the second one has another clock. The member
// that shared the clock of the first is measured from now on; the other, which was
// measured against the first, is in the second one's clock domain, and refused
// until it stamps by that. Nothing is certain between both before.
func TestASynchronizerElsewhereTakesOver(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	first := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: first.observe})
	members := map[string]*agent.Member{}
	for _, name := range []string{"near", "far"} {
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name, SeparateClock: name == "far"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		set(t, m, state{Idle: true, N: 1})
		members[name] = m
	}
	first.await(t, 0, "verdict", fired)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	second := newWatch()
	start(t, server.URL(), pair, synchronizer.Options{Observe: second.observe, SeparateClock: true})
	e, at := second.await(t, 0, "verdict", fired)
	if v := e.(monitor.Verdict); v.Span.SameClock || v.Bound <= 0 || v.Sources != "peer" {
		t.Errorf("same clock %t, bound %v, sources %q; want the bound that was measured", v.Span.SameClock, v.Bound, v.Sources)
	}
	timeline := source.NewReference(source.OwnDomain(source.System()).Domain()).Timeline()
	measured, refused := map[string]bool{}, false
	second.mu.Lock()
	for _, e := range second.events[:at] {
		switch e := e.(type) {
		case monitor.Clock:
			if e.Quality.Timeline != timeline {
				t.Errorf("%+v; want the timeline %q", e, timeline)
			}
			measured[e.Name] = e.Quality.Status == clocksync.Synchronized
		case monitor.Rejection:
			refused = refused || e.From == "far" && strings.Contains(e.Detail, "stamps by the timeline")
		}
	}
	second.mu.Unlock()
	if !measured["near"] || !measured["far"] || !refused {
		t.Errorf("before the verdict measured: %v, the timeline of the first refused: %v", measured, refused)
	}
	for name, m := range members {
		if q := m.Clock(); q.Source != "peer" || q.Timeline != timeline {
			t.Errorf("%s: the clock is %+v", name, q)
		}
	}
}

// TestMixedTimelinesAreRefused: UTC and the synchronizer's clock have nothing in
// common.
func TestMixedTimelinesAreRefused(t *testing.T) {
	server := serve(t, 0)
	start(t, server.URL(), pair, synchronizer.Options{})
	clock, err := source.Fixed(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: "a", Clock: clock})
	want := fmt.Sprintf(`agent: join group "g" as "a": refused by synchronizer "gsync": member "a" stamps by the timeline "utc", and gsync compares by %q: leave agent.Config.Clock unset, or start the synchronizer with that timeline`, source.NewReference(source.System().Domain()).Timeline())
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func cleanup(t *testing.T, members ...*agent.Member) {
	t.Helper()
	for _, m := range members {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALostMemberIsNamedAndDropped(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	w := newWatch()
	start(t, server.URL(), silentAfter("1s"), synchronizer.Options{Observe: w.observe})
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	a := join(t, server.URL(), "a")
	b, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "b"}, agent.WithConn(nc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	total := region(t, a)
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{N: 2})
	_, at := w.await(t, 0, "first epoch", func(e monitor.Event) bool {
		epoch, ok := e.(monitor.Epoch)
		return ok && len(epoch.Members) == 2
	})
	nc.Close() // as if its process were killed
	e, _ := w.await(t, at, "epoch without b", func(e monitor.Event) bool {
		epoch, ok := e.(monitor.Epoch)
		return ok && len(epoch.Dropped) > 0
	})
	epoch := e.(monitor.Epoch)
	if d := epoch.Dropped[0]; d.Name != "b" || d.Reason != "silent for 1s" || len(epoch.Members) != 1 {
		t.Errorf("epoch %+v: want b dropped, silent for 1s", epoch)
	}
	if n := receive(t, total); n != 1 {
		t.Errorf("the predicate fired without b on the sum %d, want 1", n)
	}
}

// TestIdleMembersAreNotSilent: members that have nothing to say outlive the
// limit of silence by their heartbeats. A machine with other work does not make them miss
// so long a one.
func TestIdleMembersAreNotSilent(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), silentAfter("1500ms"), synchronizer.Options{Observe: w.observe})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	set(t, a, state{N: 1})
	set(t, b, state{N: 1})
	_, at := w.await(t, 0, "epoch", func(e monitor.Event) bool { _, ok := e.(monitor.Epoch); return ok })
	enough := s.Stats().Frames + 8 // Signs of life, of which both give two a second: for several limits.
	testwait.Until(t, "heartbeats", func() bool { return s.Stats().Frames >= enough })
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{Idle: true, N: 1})
	w.await(t, at, "verdict", fired)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[at:] {
		if epoch, ok := e.(monitor.Epoch); ok {
			t.Errorf("an idle member was dropped: %+v", epoch)
		}
	}
}

func TestAFailingPolicyEndsTheSynchronizer(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	s := start(t, server.URL(), strings.Replace(silentAfter("1s"), "then: drop", "then: fail", 1), synchronizer.Options{})
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "b"}, agent.WithConn(nc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	nc.Close()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	want := `synchronizer gsync: member "b" was silent for 1s, and the policy is to fail`
	if err := s.Err(); err == nil || err.Error() != want {
		t.Errorf("Err() = %v, want %s", err, want)
	}
}

func TestMembersOutliveSynchronizerAndServer(t *testing.T) {
	server := serve(t, 0)
	url := server.URL()
	w := newWatch()
	s := start(t, url, pair, synchronizer.Options{Observe: w.observe})
	a, b := join(t, url, "a"), join(t, url, "b")
	total := region(t, a)
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{Idle: true, N: 2})
	receive(t, total)

	// A new synchronizer asks the members to introduce themselves again.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, url, pair, synchronizer.Options{Observe: w.observe})
	set(t, b, state{})
	set(t, b, state{Idle: true, N: 4})
	if n := receive(t, total); n != 5 {
		t.Errorf("after a new synchronizer: sum %d, want 5", n)
	}

	// The server is gone and comes back at the same port.
	port := server.Port()
	server.Close()
	set(t, b, state{N: 5})
	serve(t, port)
	set(t, b, state{Idle: true, N: 7})
	for {
		if n := receive(t, total); n == 8 {
			return
		}
	}
}

// TestUntilOverAGap: more states than the ring holds are lost while the server is away. The state
// behind the gap is between when and until, so nothing fires on it.
func TestUntilOverAGap(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    silence: {after: 20s}
    state: {idle: bool, n: int}
    predicates:
      slow: {each: members, when: .n > 300, until: .n < 100, signal: []}
      last: {each: members, when: .n == 777, signal: []}
`, synchronizer.Options{Observe: w.observe})
	a := join(t, server.URL(), "a")
	set(t, a, state{})
	_, next := w.await(t, 0, "an epoch", func(e monitor.Event) bool { _, ok := e.(monitor.Epoch); return ok })
	set(t, a, state{N: 400})
	set(t, a, state{N: 200})
	of := func(name string) func(monitor.Event) bool {
		return func(e monitor.Event) bool {
			v, ok := e.(monitor.Verdict)
			return ok && v.Fired && v.Predicate == name
		}
	}
	_, next = w.await(t, next, "the firing on 400", of("slow"))
	port := server.Port()
	server.Close()
	for i := range 3000 {
		set(t, a, state{N: 150 + i%100})
	}
	set(t, a, state{N: 200})
	serve(t, port)
	testwait.Until(t, "the gap", func() bool { return s.Stats().Gaps > 0 })
	set(t, a, state{N: 777})
	set(t, a, state{N: 200})
	_, after := w.await(t, next, "the firing on 777", of("last"))
	// 777 is above when, and the gap has made slow ready: it fires on it, and on nothing before.
	e, _ := w.await(t, next, "another firing of slow", of("slow"))
	if v := e.(monitor.Verdict); v.Witness[0].Row[1] != scgs.IntValue(777) {
		t.Errorf("slow fired on %v before event %d", v.Witness, after)
	}
}

// TestARestartMakesNoFiringTwice: a synchronizer that was restarted without its memory fires
// on the states that it finds, as the one before it did. A member that had the signal in its
// current entry says so. A member in another entry gets it, and both get later signals.
func TestARestartMakesNoFiringTwice(t *testing.T) {
	url := serve(t, 0).URL()
	first := newWatch()
	s := start(t, url, pair, synchronizer.Options{Observe: first.observe})
	a, b := join(t, url, "a"), join(t, url, "b")
	inA, inB := region(t, a), region(t, b)
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{Idle: true, N: 2})
	receive(t, inA)
	receive(t, inB)
	_, at := first.await(t, 0, "applied signal", applied)
	first.await(t, at, "second applied signal", applied)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	second := newWatch()
	start(t, url, pair, synchronizer.Options{Observe: second.observe})
	_, at = second.await(t, 0, "verdict", fired)
	e, at := second.await(t, at, "fate", applied)
	other, at := second.await(t, at, "second fate", applied)
	for _, f := range []monitor.Fate{e.(monitor.Fate), other.(monitor.Fate)} {
		if f.Detail != "the same firing was made in an earlier term" {
			t.Errorf("%s: %q", f.Signal.Target, f.Detail)
		}
	}
	select {
	case n := <-inA:
		t.Errorf("the sum %d came twice", n)
	default:
	}
	set(t, a, state{})
	set(t, a, state{Idle: true, N: 5})
	if x, y := receive(t, inA), receive(t, inB); x != 7 || y != 7 {
		t.Errorf("the next firing: %d and %d, want 7", x, y)
	}
	second.await(t, at, "applied signal", applied)
}

// TestAnotherTypeOfAField: a synchronizer that declares n as a float follows a synchronizer for
// which n is an integer, as the programs have it. They are refused, which names the field, and
// continue with the states that they have as soon as that is declared again.
func TestAnotherTypeOfAField(t *testing.T) {
	t.Parallel()
	url := serve(t, 0).URL()
	first := newWatch()
	s := start(t, url, pair, synchronizer.Options{Observe: first.observe})
	set(t, join(t, url, "a"), state{Idle: true, N: 1})
	set(t, join(t, url, "b"), state{Idle: true, N: 2})
	first.await(t, 0, "verdict", fired)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	const why = `member "b": field "n" is declared as float, the program's state has int`
	second := newWatch()
	s = start(t, url, strings.Replace(pair, "n: int", "n: float", 1), synchronizer.Options{Observe: second.observe})
	second.await(t, 0, "refusal", func(e monitor.Event) bool {
		r, ok := e.(monitor.Rejection)
		return ok && r.From == "b" && r.Reason == monitor.RejectState && r.Detail == why
	})
	st, err := s.Status(t.Context())
	if err != nil || len(st.Members) != 2 || st.Members[1].Standing != monitor.Gone || st.Members[1].Why != why {
		t.Errorf("members %+v, %v", st.Members, err)
	}
	e, err := s.Why(t.Context(), "all-idle")
	if err != nil || !slices.ContainsFunc(e.Missing, func(m monitor.Missing) bool { return m.Member == "b" && m.Text == why }) {
		t.Errorf("missing %+v, %v", e.Missing, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	third := newWatch()
	start(t, url, pair, synchronizer.Options{Observe: third.observe})
	v, _ := third.await(t, 0, "verdict", fired)
	if w := v.(monitor.Verdict).Witness; len(w) != 2 || w[0].Row[1].Int() != 1 || w[1].Row[1].Int() != 2 {
		t.Errorf("fires on %+v", w)
	}
}

func TestMalformedFramesAreCountedAndHarmNobody(t *testing.T) {
	server := serve(t, 0)
	w := newWatch()
	s := start(t, server.URL(), pair, synchronizer.Options{Observe: w.observe})
	a, b := join(t, server.URL(), "a"), join(t, server.URL(), "b")
	total := region(t, a)
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	frames := [][]byte{nil, {}, {0}, {1}, {1, 2}, {9, 9, 9}, []byte("GET / HTTP/1.1"), make([]byte, 60_000), {1, 1, 0xdb, 0xff, 0xff, 0xff, 0xff}}
	for _, f := range frames {
		for _, subject := range []string{"pegasus.v1.default.g.st.a", "pegasus.v1.default.g.st.x", "pegasus.v1.default.g.ak.gsync.a"} {
			if err := nc.Publish(subject, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	set(t, a, state{Idle: true, N: 1})
	set(t, b, state{Idle: true, N: 1})
	receive(t, total)
	for at, n := 0, 0; n < 3*len(frames); n++ {
		_, at = w.await(t, at, "rejection", func(e monitor.Event) bool {
			_, ok := e.(monitor.Rejection)
			return ok
		})
	}
	if got := s.Stats().Malformed; got != uint64(3*len(frames)) {
		t.Errorf("%d malformed frames were counted, want %d", got, 3*len(frames))
	}
}

func TestStartWithoutServer(t *testing.T) {
	t.Parallel()
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	want := `synchronizer "gsync": there is no connection to the server: bus: connect to NATS at nats://127.0.0.1:1: no answer for 4s: `
	if _, err := synchronizer.Start(t.Context(), "nats://127.0.0.1:1", cfg, synchronizer.Options{}); !errors.Is(err, synchronizer.ErrNotConnected) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestStartErrors(t *testing.T) {
	server := serve(t, 0)
	start(t, server.URL(), pair, synchronizer.Options{})
	two := pair + strings.NewReplacer("synchronizers:\n", "", "gsync", "other", "group: g,", "group: h,").Replace(pair)
	threads := pair + "  tsync: {parent: gsync, members: {threads: 2}, summary: {idle: \"true\", n: \"1\"}}\n"
	tests := []struct {
		name, config string
		opt          synchronizer.Options
		want         string
	}{
		{"twice", pair, synchronizer.Options{}, `synchronizer "gsync": the name is taken: it runs already on this server for tenant "default" and group "g": stop it, wait for its end with --standby (Options.Standby), or use another tenant`},
		{"no such", pair, synchronizer.Options{Name: "x"}, `synchronizer: test.yaml has no synchronizer "x": it has gsync`},
		{"several", two, synchronizer.Options{}, "synchronizer: test.yaml has several synchronizers: name one of gsync, other"},
		{"threads", threads, synchronizer.Options{Name: "tsync"}, `synchronizer: synchronizer "tsync" is a thread-level one: it runs inside the members of "gsync"`},
		{"tenant", pair, synchronizer.Options{Tenant: "a.b"}, `synchronizer: tenant "a.b": use letters, digits, - and _, at most 64`},
		{"drift", pair, synchronizer.Options{Drift: math.NaN()}, "synchronizer: Options.Drift is NaN: it is in parts per million, from 0 to 100000"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := synchronizer.ParseConfig("test.yaml", []byte(c.config))
			if err != nil {
				t.Fatal(err)
			}
			s, err := synchronizer.Start(t.Context(), server.URL(), cfg, c.opt)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if _, faulty := errors.AsType[*synchronizer.OptionsError](err); faulty == errors.Is(err, synchronizer.ErrNameTaken) || errors.Is(err, synchronizer.ErrNotConnected) {
				t.Errorf("%v cannot be told apart", err)
			}
		})
	}
}

// overWhen is a context whose time is over when the test says so.
type overWhen struct {
	context.Context //nolint:containedctx // It is one.

	done chan struct{}
}

func (o overWhen) Done() <-chan struct{} { return o.done }

func (o overWhen) Err() error {
	select {
	case <-o.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestStartAfterOneThatEnds: a synchronizer of the same name that has just ended is
// subscribed for a moment, and never answers.
func TestStartAfterOneThatEnds(t *testing.T) {
	t.Parallel()
	server := serve(t, 0)
	nc, err := nats.Connect(server.URL(), testnats.Options(t, server.URL())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	ending, err := nc.SubscribeSync("pegasus.v1.default.g.ctl.gsync")
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	short, asked := overWhen{t.Context(), make(chan struct{})}, make(chan error, 1)
	go func() {
		m, err := ending.NextMsg(time.Minute)
		for err == nil && m.Reply == "" { // It asks what the server permits.
			m, err = ending.NextMsg(time.Minute)
		}
		close(short.done)
		asked <- err
	}()
	_, err = synchronizer.Start(short, server.URL(), cfg, synchronizer.Options{})
	const want = `synchronizer "gsync": the name is taken: something takes the questions to a synchronizer of this name and does not answer: end it, or use another tenant: `
	if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, synchronizer.ErrNameTaken) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ending.NextMsg(time.Minute)
		ended <- errors.Join(err, ending.Unsubscribe())
	}()
	start(t, server.URL(), pair, synchronizer.Options{})
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTenantsDoNotDisturbEachOther(t *testing.T) {
	server := serve(t, 0)
	for _, tenant := range []string{"one", "two"} {
		start(t, server.URL(), pair, synchronizer.Options{Tenant: tenant})
	}
	var totals []<-chan int64
	for i, tenant := range []string{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name, Tenant: tenant, State: state{}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			totals = append(totals, region(t, m))
			set(t, m, state{Idle: true, N: i + 1})
		}
	}
	for i, want := range []int64{2, 2, 4, 4} {
		if n := receive(t, totals[i]); n != want {
			t.Errorf("member %d was told the sum %d, want %d of its own tenant", i, n, want)
		}
	}
}

func TestLoadConfigErrors(t *testing.T) {
	_, err := synchronizer.LoadConfig(t.TempDir() + "/missing.yaml")
	if err == nil || !strings.HasPrefix(err.Error(), "configuration: open ") {
		t.Errorf("missing file: %v", err)
	}
	_, err = synchronizer.ParseConfig("c.yaml", []byte(pair), synchronizer.Members("nobody", 3))
	if want := `synchronizer "nobody": the configuration has none of that name to give 3 members`; err == nil || err.Error() != want {
		t.Errorf("override: %v, want %s", err, want)
	}
	_, err = synchronizer.ParseConfig("c.yaml", []byte(pair), synchronizer.Members("gsync", 0))
	if want := `synchronizer "gsync": 0 members: use 1 to 100000`; err == nil || err.Error() != want {
		t.Errorf("override: %v, want %s", err, want)
	}
	_, err = synchronizer.ParseConfig("c.yaml", []byte("synchronizers: {g: {members: {group: x}, sate: {}}}"))
	if err == nil || !strings.Contains(err.Error(), `c.yaml:1:42: synchronizers.g.sate: unknown key "sate"; did you mean "state"?`) {
		t.Errorf("fault: %v", err)
	}
}

// TestMembersWithoutState: where no state is declared, being there is all a
// member has to say.
func TestMembersWithoutState(t *testing.T) {
	server := serve(t, 0)
	w := newWatch()
	start(t, server.URL(), `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    predicates:
      both: {when: "all(members, .online)"}
`, synchronizer.Options{Observe: w.observe})
	for _, name := range []string{"a", "b"} {
		m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
	}
	w.await(t, 0, "verdict", fired)
}

// TestDocumentedConfig keeps the example in the documentation loadable.
func TestDocumentedConfig(t *testing.T) {
	doc, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml\n")
	config, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/config.md has no block of YAML")
	}
	cfg, err := synchronizer.ParseConfig("docs/config.md", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	if levels := cfg.Levels(); len(levels) != 1 || len(levels[0].Predicates) != 2 {
		t.Errorf("levels %+v: want one synchronizer with two predicates", levels)
	}
}

func TestMembersAreRefusedByName(t *testing.T) {
	server := serve(t, 0)
	start(t, server.URL(), strings.Replace(pair, "count: 2", "count: 1, max: 1", 1), synchronizer.Options{})
	join(t, server.URL(), "a")
	tests := []struct {
		cfg  agent.Config
		want string
	}{
		{agent.Config{Group: "g", Name: "b"}, `member "b" is one too many: gsync takes at most 1 members`},
		{agent.Config{Group: "g", Name: "a", SeparateClock: true, State: struct{ Load float64 }{}}, `the configuration declares no field "load"`},
	}
	for _, c := range tests {
		m, err := agent.Join(t.Context(), server.URL(), c.cfg)
		if err == nil {
			_ = m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Join(%+v): %v, want %s", c.cfg, err, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := agent.Join(ctx, server.URL(), agent.Config{Group: "nobody", Name: "a"}); !errors.Is(err, context.DeadlineExceeded) && err == nil {
		t.Errorf("joining a group without a synchronizer: %v", err)
	}
}
