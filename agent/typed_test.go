package agent_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// TestStateOf sets what Set sets, beside it, and refuses what that refuses.
func TestStateOf(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		s, err := agent.StateOf[state](m)
		if err != nil {
			t.Fatal(err)
		}
		tagged, err := agent.StateOf[struct {
			P string  `pegasus:"phase"`
			L float32 `pegasus:"load"`
		}](m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s.Set(state{Load: 0.5, Phase: "search"}))
		check(t, m.Set(state{Load: 1, Phase: "idle"}))
		check(t, tagged.Set(struct {
			P string  `pegasus:"phase"`
			L float32 `pegasus:"load"`
		}{"search", 2}))
		for _, bad := range []state{{Phase: "sleep"}, {Phase: "idle", Load: math.NaN()}, {Phase: "idle", Load: math.Inf(-1)}} {
			got, want := s.Set(bad), m.Set(bad)
			if got == nil || want == nil || got.Error() != want.Error() {
				t.Errorf("%v is refused with %v, by Set with %v", bad, got, want)
			}
		}
		check(t, s.Set(state{Load: 3, Phase: "idle"}))
		synctest.Wait()
		if got, want := fmt.Sprint(f.rows()), "[[search 0.5] [idle 1] [search 2] [idle 3]]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		check(t, m.Close())
		if err := s.Set(state{Phase: "idle"}); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := stateOf[state](m)(); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("StateOf after Close: %v", err)
		}
	})
}

// TestStateOfNothing: what there is no owner of.
func TestStateOfNothing(t *testing.T) {
	var m *agent.Member
	for _, err := range []error{stateOf[state](nil)(), stateOf[state](m)()} {
		if err == nil || err.Error() != "agent: the owner of a state is nil: pass the member that Join has returned, or one of its threads" {
			t.Error(err)
		}
	}
	var none *agent.State[state]
	for _, s := range []*agent.State[state]{none, {}} {
		if err := s.Set(state{}); err == nil || err.Error() != "agent: this State has no owner: make it with StateOf" {
			t.Error(err)
		}
	}
}

func TestStateOfRefuses(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, _ *fake, _ *bustest.Server) {
		for _, c := range []struct {
			of    func() error
			field string
			want  string
		}{
			{stateOf[*state](m), "", "agent: a state is a struct, not *agent_test.state: pass the struct itself, not a pointer to it"},
			{stateOf[any](m), "", "agent: a state is a struct, and interface {} is an interface: name the type of the struct"},
			{stateOf[fmt.Stringer](m), "", "agent: a state is a struct, and fmt.Stringer is an interface: name the type of the struct"},
			{stateOf[struct {
				Phase string
				load  float64
			}](m), "load", `agent: struct { Phase string; load float64 } has no field "load", which the configuration declares without a default: its field load is not exported, so write it with a capital letter, give it a default with {type: T, default: V}, or take it out of the declaration`},
			{stateOf[struct {
				Phase bool
				Laod  float64
			}](m), "Phase", "agent: field Phase of struct { Phase bool; Laod float64 }: the configuration declares phase: {enum: [idle, search]}, the program has bool: make them the same; " +
				"field Laod of struct { Phase bool; Laod float64 }: the configuration declares no field \"laod\", but phase, load: declare it, or leave it out with the tag `pegasus:\"-\"`; " +
				`struct { Phase bool; Laod float64 } has no field "load", which the configuration declares without a default: add it, give it one with {type: T, default: V}, or take it out of the declaration`},
			{stateOf[struct{ Phase string }](m), "load", `agent: struct { Phase string } has no field "load", which the configuration declares without a default: add it, give it one with {type: T, default: V}, or take it out of the declaration`},
			{stateOf[struct {
				Phase bool
				Load  float64
			}](m), "Phase", "agent: field Phase of struct { Phase bool; Load float64 }: the configuration declares phase: {enum: [idle, search]}, the program has bool: make them the same"},
		} {
			err := c.of()
			e, ok := errors.AsType[*agent.StateError](err)
			if !ok || e.Field != c.field || err.Error() != c.want {
				t.Errorf("%v, want %s of field %q", err, c.want, c.field)
			}
		}
	})
}

func stateOf[T any](owner agent.Owner) func() error {
	return func() error {
		_, err := agent.StateOf[T](owner)
		return err
	}
}

// TestStateIsBoundAgain to what a later synchronizer declares.
func TestStateIsBoundAgain(t *testing.T) {
	joined(t, func(t *testing.T, m *agent.Member, f *fake, _ *bustest.Server) {
		s, err := agent.StateOf[state](m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s.Set(state{Phase: "search", Load: 1}))
		synctest.Wait()
		declare := func(term uint64, schema scgs.Schema) {
			f.codec = wire.NewBatchCodec(schema)
			f.answer = func(h *wire.Hello) *wire.Welcome {
				return &wire.Welcome{Synchronizer: "s", Term: term, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: schema}
			}
			f.welcome(&wire.Welcome{Synchronizer: "s", Term: term}) // It calls for a hello.
			time.Sleep(time.Second)
			synctest.Wait()
		}
		declare(2, scgs.Schema{declared[1], {Name: "site", Type: scgs.String, Default: scgs.StringValue("here")}, {Name: "phase", Type: scgs.Enum, Words: []string{"search", "idle"}}})
		check(t, s.Set(state{Phase: "search", Load: 2}))
		synctest.Wait()
		if got, want := fmt.Sprint(f.last(t, "w").Reports[0].Row), `[2 "here" search]`; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		declare(3, declared[:1])
		for range 2 {
			e, ok := errors.AsType[*agent.StateError](s.Set(state{Phase: "idle"}))
			if !ok || e.Field != "Load" {
				t.Errorf("%v does not name the field", e)
			}
		}
		declare(4, declared)
		check(t, s.Set(state{Phase: "search", Load: 4}))
		synctest.Wait()
		if got, want := fmt.Sprint(f.last(t, "w").Reports[0].Row), `[search 4]`; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

// TestStateGoesOn where another state is declared since, without another Set: at once if the
// program's type fits that, else as soon as one is declared that it fits. Until then the
// synchronizer receives and refuses the type, and the log names the field.
func TestStateGoesOn(t *testing.T) {
	var log lines
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, m *agent.Member, f *fake) {
		s, err := agent.StateOf[state](m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s.Set(state{Phase: "search", Load: 1}))
		synctest.Wait()
		var call *wire.Welcome
		declare := func(term uint64, schema scgs.Schema) {
			synctest.Wait()
			f.codec = wire.NewBatchCodec(schema)
			f.answer = func(h *wire.Hello) *wire.Welcome {
				w := &wire.Welcome{Synchronizer: "s", Term: term, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: schema}
				if h.Typed {
					if err := schema.Match(h.Schema); err != nil {
						w.Accepted, w.Refused, w.Schema, w.Reason = false, true, nil, err.Error()
					}
				}
				return w
			}
			if call == nil {
				call = &wire.Welcome{Synchronizer: "s", Term: term} // For a hello.
			}
			f.welcome(call)
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		told := func(want string) {
			t.Helper()
			rows := f.rows()
			if got := fmt.Sprint(rows[len(rows)-1]); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		}
		declare(2, scgs.Schema{declared[1], {Name: "site", Type: scgs.String, Default: scgs.StringValue("here")}, {Name: "phase", Type: scgs.String}})
		told(`[1 "here" "search"]`)
		declare(3, scgs.Schema{declared[1], {Name: "phase", Type: scgs.Enum, Words: []string{"search", "idle"}}})
		told(`[1 search]`)
		known := len(f.rows())
		declare(4, scgs.Schema{declared[0], {Name: "load", Type: scgs.Int}})
		declare(5, scgs.Schema{declared[0], {Name: "load", Type: scgs.Int}, {Name: "more", Type: scgs.Int}}) // Another mistake, of which the synchronizer tells.
		if n := len(f.rows()); n != known {
			t.Errorf("%d states of another type are told", n-known)
		}
		for _, want := range []string{
			`level=ERROR msg="the synchronizer declares another state than the program sets, so no state is sent until the two agree" member=w synchronizer=s error="agent: field Load of agent_test.state: the configuration declares load: int, the program has float: make them the same"`,
			`level=ERROR msg="the synchronizer refuses this member; it tries again" member=w reason="field \"load\" is declared as int, the program's state has float"`,
		} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("not once in the log: %s\n%s", want, log.String())
			}
		}
		if strings.Contains(log.String(), "back in the group") { // Nobody had dropped it at the first two.
			t.Error(log.String())
		}
		incarnation := f.last(t, "w").Incarnation
		declare(6, declared)
		told(`[search 1]`)
		if b := f.last(t, "w"); b.Incarnation == incarnation { // So nothing is claimed of the time between.
			t.Errorf("it goes on as incarnation %d", incarnation)
		}
		if h := f.hellos[len(f.hellos)-1]; !h.Typed {
			t.Errorf("it has said hello again: %+v", h)
		}
		for want, times := range map[string]int{
			`level=INFO msg="the synchronizer leads in a new term" member=w synchronizer=s term=2`: 1, `msg="the synchronizer leads in a new term"`: 3, `level=INFO msg="back in the group" member=w synchronizer=s`: 1,
		} {
			if strings.Count(log.String(), want) != times {
				t.Errorf("not %d times in the log: %s\n%s", times, want, log.String())
			}
		}
		check(t, s.Set(state{Phase: "search", Load: 2}))
		declare(7, scgs.Schema{declared[0]})
		check(t, m.Set(struct{ Phase string }{"idle"})) // A type that fits the declaration ends it as well.
		time.Sleep(5 * time.Second)
		synctest.Wait()
		told(`[idle]`)
		call = &wire.Welcome{Synchronizer: "s", Term: 7, Member: "w", Incarnation: f.last(t, "w").Incarnation, Reason: "silent"}
		declare(8, scgs.Schema{{Name: "phase", Type: scgs.String}}) // Before it has begun again.
		told(`["idle"]`)
	})
}

// TestLostStatesAreLogged: the log of a program that sets states faster than they can be sent says
// so, at most once a minute, with the number of lost states.
func TestLostStatesAreLogged(t *testing.T) {
	var log lines
	logger := slog.New(slog.NewTextHandler(&log, nil))
	bubbleJoin(t, agent.Config{Group: "g", Name: "w", Logger: logger}, func(t *testing.T, m *agent.Member, _ *fake) {
		flood := func() {
			for range 5000 {
				check(t, m.Set(state{Phase: "idle"}))
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		lost := func() (n, lines int) {
			for line := range strings.Lines(log.String()) {
				if _, states, ok := strings.Cut(line, `level=WARN msg="states are lost before they are sent, so they are unknown to the synchronizer; set a state when a value changes that a predicate reads, not in a loop" member=w states=`); ok {
					one, err := strconv.Atoi(strings.TrimSpace(states))
					check(t, err)
					n, lines = n+one, lines+1
				}
			}
			return n, lines
		}
		for m.Stats().Dropped == 0 { // The server takes what it can meanwhile.
			flood()
		}
		if _, lines := lost(); lines != 1 {
			t.Errorf("%d lines:\n%s", lines, log.String())
		}
		told := m.Stats().Dropped
		for n := 0; n < 40 && m.Stats().Dropped == told; n++ { // Again, and within the minute.
			flood()
		}
		if _, lines := lost(); lines != 1 {
			t.Errorf("%d lines in a minute:\n%s", lines, log.String())
		}
		want := 1
		if m.Stats().Dropped > told {
			want = 2
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n, lines := lost(); lines != want || uint64(n) != m.Stats().Dropped {
			t.Errorf("%d lines with %d states, of %d", lines, n, m.Stats().Dropped)
		}
	})
}

// TestStateOfThreads has threads, and the process beside them, set their states.
func TestStateOfThreads(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, strings.Replace(twoLevels, "best < 5.0", "busy == 2", 1))
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		process, err := agent.StateOf[processState](m)
		if err != nil {
			t.Fatal(err)
		}
		if err := stateOf[struct{ Queue string }](m)(); err == nil || !strings.Contains(err.Error(), "field Queue of struct") {
			t.Errorf("a string for an integer beside the threads: %v", err)
		}
		check(t, process.Set(processState{Queue: 1}))
		for i := range 2 {
			th, err := m.Thread(fmt.Sprint("t", i+1))
			if err != nil {
				t.Fatal(err)
			}
			if err := stateOf[processState](th)(); err == nil || !strings.Contains(err.Error(), `declares no field "queue"`) {
				t.Errorf("a thread with the state of the process: %v", err)
			}
			s, err := agent.StateOf[threadState](th)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s.Set(threadState{"search", 1}))
			defer func() {
				check(t, th.Close())
				if err := s.Set(threadState{"idle", 1}); !errors.Is(err, agent.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
				if err := stateOf[threadState](th)(); !errors.Is(err, agent.ErrClosed) {
					t.Errorf("StateOf after Close: %v", err)
				}
			}()
		}
		time.Sleep(50 * time.Millisecond)
		if n := h.fired("better"); n != 1 {
			t.Errorf("fired %d times when both threads search", n)
		}
		if len(h.rejected) > 0 {
			t.Error(h.rejected)
		}
	})
}

// TestStateOfChangesNothing: the kind of a process shows with the first state, not with a
// State of a type that only fits beside threads, nor with a refused one.
func TestStateOfChangesNothing(t *testing.T) {
	type groupState struct {
		Busy int
		Best float64
	}
	type beside struct{ Queue uint }
	for _, set := range []func(m *agent.Member, s *agent.State[beside], v beside) error{
		func(m *agent.Member, _ *agent.State[beside], v beside) error { return m.Set(v) },
		func(_ *agent.Member, s *agent.State[beside], v beside) error { return s.Set(v) },
	} {
		bustest.Bubble(t, func(t *testing.T) {
			local := bustest.NewServer(t)
			h := newHub(t, local.Connect, twoLevels)
			m := join(t, local, agent.Config{Group: "g", Name: "w", State: beside{}})
			process, err := agent.StateOf[beside](m)
			if err != nil {
				t.Fatal(err)
			}
			if err := set(m, process, beside{1 << 63}); err == nil || !strings.Contains(err.Error(), "field Queue of agent_test.beside cannot be told") {
				t.Errorf("what is too large beside the threads: %v", err)
			}
			check(t, m.Set(groupState{1, 7}))
			group, err := agent.StateOf[groupState](m)
			if err != nil {
				t.Fatal(err)
			}
			check(t, group.Set(groupState{1, 4}))
			time.Sleep(50 * time.Millisecond)
			if n := h.fired("better"); n != 1 {
				t.Errorf("fired %d times for the group's state", n)
			}
			check(t, set(m, process, beside{1}))
			if err := group.Set(groupState{}); err == nil || !strings.Contains(err.Error(), `declares no field "busy", but queue`) {
				t.Errorf("a group's state beside the threads: %v", err)
			}
		})
	}
}

// TestStateOfObservation fills what T lacks.
func TestStateOfObservation(t *testing.T) {
	observing(t, observed, func(t *testing.T, f *fake, local *bustest.Server, sensor *sensor) {
		m := join(t, local, agent.Config{Group: "g", Name: "m", Observe: sensor})
		s, err := agent.StateOf[struct{ Load float64 }](m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s.Set(struct{ Load float64 }{1}))
		sensor.tell(reading(50, 0.75))
		check(t, s.Set(struct{ Load float64 }{2}))
		synctest.Wait()
		var got []string
		for _, row := range f.rows() {
			got = append(got, strings.Trim(fmt.Sprint(row), "[]"))
		}
		want := []string{"1 100 0.5 none 0.5", "1 50 0.75 none 0.5", "2 50 0.75 none 0.5"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states: want -, got +:\n%s", diff)
		}
	})
}

// TestSetAllocatesNothing where all fields are plain, or texts.
func TestSetAllocatesNothing(t *testing.T) {
	schema := scgs.Schema{declared[0], declared[1], {Name: "site", Type: scgs.String}}
	for _, fields := range []scgs.Schema{declared, schema} {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		f.codec = wire.NewBatchCodec(fields)
		answer := f.answer
		f.answer = func(h *wire.Hello) *wire.Welcome {
			w := answer(h)
			w.Schema = fields
			return w
		}
		m := join(t, local, agent.Config{Group: "g", Name: "w", BatchSize: 1000, BatchAge: time.Hour})
		if len(fields) == len(declared) {
			s, err := agent.StateOf[state](m)
			if err != nil {
				t.Fatal(err)
			}
			one := state{Phase: "search"}
			allocatesNothing(t, "State.Set", func() { one.Load++; check(t, s.Set(one)) })
			allocatesNothing(t, "Member.Set", func() { one.Load++; check(t, m.Set(one)) })
			continue
		}
		type sited struct {
			state `pegasus:"-"`

			Phase, Site string
			Load        float64
		}
		s, err := agent.StateOf[sited](m)
		if err != nil {
			t.Fatal(err)
		}
		one := sited{Phase: "search", Site: "here"}
		allocatesNothing(t, "State.Set with a text", func() { one.Load++; check(t, s.Set(one)) })
	}
}

func allocatesNothing(t *testing.T, what string, set func()) {
	t.Helper()
	for range 2000 { // The ring has grown then.
		set()
	}
	least := math.Inf(1)
	for range 4 { // States reported meanwhile are in one of them.
		least = min(least, testing.AllocsPerRun(100, set))
	}
	if least > 0 {
		t.Errorf("%s allocates %v times", what, least)
	}
}
