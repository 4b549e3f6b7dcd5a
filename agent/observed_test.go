package agent_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/observe"
	"github.com/gopegasus/pegasus/scgs"
)

// sensor is an observe.Source of a test.
type sensor struct {
	mu  sync.Mutex
	now observe.Reading
	fns map[int]func(observe.Reading)
	n   int
}

func (s *sensor) Watch(fn func(observe.Reading)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fns == nil {
		s.fns = map[int]func(observe.Reading){}
	}
	s.n++
	n := s.n
	s.fns[n] = fn
	fn(s.now)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.fns, n)
	}
}

func (s *sensor) tell(r observe.Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = r
	for _, fn := range s.fns {
		fn(r)
	}
}

func reading(power, share float64) observe.Reading {
	return observe.Reading{Cores: 4, Power: power, Share: share, Pressure: math.NaN(), Stalled: math.NaN(), Quota: 4, Usage: math.NaN()}
}

var observed = scgs.Schema{
	{Name: "load", Type: scgs.Float},
	{Name: "power", Type: scgs.Float},
	{Name: "share", Type: scgs.Float},
	{Name: "usage", Type: scgs.Float},
	{Name: "pressure", Type: scgs.Float, Default: scgs.FloatValue(0.5)},
}

// observing has a member that observes join a group of a declared state.
func observing(t *testing.T, schema scgs.Schema, test func(t *testing.T, f *fake, local *bustest.Server, s *sensor)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		f.codec = wire.NewBatchCodec(schema)
		answer := f.answer
		f.answer = func(h *wire.Hello) *wire.Welcome {
			w := answer(h)
			w.Schema = schema
			return w
		}
		test(t, f, local, &sensor{now: reading(100, 0.5)})
	})
}

// TestObserve fills what the program's struct lacks, and begins a state where that has
// moved.
func TestObserve(t *testing.T) {
	observing(t, observed, func(t *testing.T, f *fake, local *bustest.Server, s *sensor) {
		type state struct{ Load float64 }
		m, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "m", State: state{}, Observe: s}, agent.WithBus(local.Connect))
		if err != nil {
			t.Fatal(err)
		}
		s.tell(reading(100, 0.25)) // Before the first state there is none to go over to another.
		check(t, m.Set(state{1}))
		s.tell(reading(100, 0.75))
		same := reading(100, 0.75)
		same.Quota = 2 // Not declared: nothing changes.
		s.tell(same)
		check(t, m.Set(state{2}))
		gone := reading(100, math.NaN())
		gone.Pressure = 0.1
		s.tell(gone)
		synctest.Wait()
		check(t, m.Close())
		s.tell(reading(7, 1))
		if len(s.fns) != 0 {
			t.Error("a closed member still watches")
		}
		var got []string
		for _, row := range f.rows() {
			got = append(got, strings.Trim(fmt.Sprint(row), "[]"))
		}
		want := []string{"1 100 0.25 none 0.5", "1 100 0.75 none 0.5", "2 100 0.75 none 0.5", "2 100 none none 0.1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states: want -, got +:\n%s", diff)
		}
	})
}

func TestObserveErrors(t *testing.T) {
	observing(t, scgs.Schema{{Name: "share", Type: scgs.Int}}, func(t *testing.T, _ *fake, local *bustest.Server, s *sensor) {
		_, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "m", State: struct{}{}, Observe: s}, agent.WithBus(local.Connect))
		if want := `has no field "share", which the configuration declares without a default`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a declared int is not observed:\n got %v\nwant %s", err, want)
		}
		if len(s.fns) != 0 {
			t.Error("a member that could not join still watches")
		}
	})
}

// TestObserveThreads has the state of a process beside its threads observed, which
// their predicates read.
func TestObserveThreads(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {power: float, busy: int}
    predicates: {slow: {when: "all(members, .power < 60.0)", signal: {kind: activate, region: r, to: all}}}
  tsync:
    parent: gsync
    members: {threads: 1}
    state: {busy: bool}
    process: {queue: int, power: float, share: float}
    summary: {power: process.power * process.share, busy: "count(members, .busy)"}
`)
		s := &sensor{now: reading(100, 1)}
		m := join(t, local, agent.Config{Group: "g", Name: "w", Observe: s})
		s.tell(reading(100, 0.75))
		check(t, m.Set(struct{ Queue int }{1}))
		th, err := m.Thread("t1")
		if err != nil {
			t.Fatal(err)
		}
		check(t, th.Set(struct{ Busy bool }{true}))
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("slow"); n != 0 {
			t.Errorf("fired %d times at 75", n)
		}
		s.tell(reading(100, 0.5))
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("slow"); n != 1 {
			t.Errorf("fired %d times at 50", n)
		}
		check(t, th.Close())
		if len(h.rejected) > 0 {
			t.Error(h.rejected)
		}
	})
}

// TestObserveAfterARefusedState continues with the state before it, whoever has refused it.
func TestObserveAfterARefusedState(t *testing.T) {
	schema := scgs.Schema{declared[0], declared[1], {Name: "power", Type: scgs.Float}}
	observing(t, schema, func(t *testing.T, f *fake, local *bustest.Server, s *sensor) {
		m := join(t, local, agent.Config{Group: "g", Name: "m", Observe: s})
		check(t, m.Set(state{Phase: "idle", Load: 1}))
		for i, refused := range []any{state{Phase: "idle", Load: math.NaN()}, state{Phase: "sleep", Load: 2}, state{Phase: "search", Load: math.Inf(1)}, struct{}{}} {
			if m.Set(refused) == nil {
				t.Fatalf("%v was taken", refused)
			}
			s.tell(reading(float64(i+1), 0))
		}
		synctest.Wait()
		if got, want := fmt.Sprint(f.rows()), "[[idle 1 100] [idle 1 1] [idle 1 2] [idle 1 3] [idle 1 4]]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

// TestObserveBesideThreadsAfterARefusedState is the same beside threads.
func TestObserveBesideThreadsAfterARefusedState(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {power: float, busy: int}
    predicates: {slow: {when: "all(members, .power < 60.0)", signal: {kind: activate, region: r, to: all}}}
  tsync:
    parent: gsync
    members: {threads: 1}
    state: {busy: bool}
    process: {best: float, power: float}
    summary: {power: process.power, busy: "count(members, .busy)"}
`)
		s := &sensor{now: reading(100, 1)}
		m := join(t, local, agent.Config{Group: "g", Name: "w", Observe: s})
		check(t, m.Set(struct{ Best float64 }{1}))
		th, err := m.Thread("t")
		check(t, err)

		check(t, th.Set(struct{ Busy bool }{}))
		if m.Set(struct{ Best float64 }{math.NaN()}) == nil {
			t.Fatal("NaN was taken")
		}
		time.Sleep(50 * time.Millisecond)
		s.tell(reading(50, 1))
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("slow"); n != 1 || len(h.rejected) > 0 {
			t.Errorf("fired %d times when the power had fallen; %v", n, h.rejected)
		}
	})
}

// TestShareOfWork: an observation fills the fields work.power and work.share. Without one, and before the space is
// opened, the share is 1 and the power 0.
func TestShareOfWork(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    work: {}
    predicates:
      unknown: {when: "all(members, .work.share == 1.0 and .work.power == 0.0)"}
      taken: {when: "find(members, .name == 'seen').work.share < 0.2 and find(members, .name == 'seen').work.power == 50.0 and find(members, .name == 'blind').work.share == 1.0"}
`)
		s := &sensor{now: reading(100, 1)}
		seen := linked(t, join(t, local, agent.Config{Group: "g", Name: "seen", Observe: s}))
		blind := linked(t, join(t, local, agent.Config{Group: "g", Name: "blind"}))
		check(t, blind.Tell(fillOf(nil)))
		time.Sleep(50 * time.Millisecond)
		s.tell(reading(50, 0.1)) // Its space is not open, so the member reports no change.
		time.Sleep(50 * time.Millisecond)
		before := h.fired("taken")
		check(t, seen.Tell(fillOf(nil)))
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("taken"); before != 0 || n != 1 || len(h.rejected) > 0 {
			t.Errorf("fired %d times before the space was open, and then %d times; %v", before, n, h.rejected)
		}
	})
}
