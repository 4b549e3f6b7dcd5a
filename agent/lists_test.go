package agent_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// listed has a list of every type, and a field that has a default.
var listed = scgs.Schema{
	{Name: "loads", Type: scgs.ListOf(scgs.Float)},
	{Name: "counts", Type: scgs.ListOf(scgs.Int)},
	{Name: "tags", Type: scgs.ListOf(scgs.String)},
	{Name: "waits", Type: scgs.ListOf(scgs.Duration)},
	{Name: "flags", Type: scgs.ListOf(scgs.Bool)},
	{Name: "phases", Type: scgs.ListOf(scgs.Enum), Words: []string{"idle", "search"}},
	{Name: "site", Type: scgs.String, Default: scgs.StringValue("here")},
	{Name: "hints", Type: scgs.ListOf(scgs.Int), Default: scgs.ListValue(scgs.Int, scgs.IntValue(3))},
}

type phase string

type listState struct {
	Loads  []float64
	Counts []uint8
	Tags   []string
	Waits  []time.Duration
	Flags  []bool
	Phases []phase
}

// joinListed runs a test with a member of a group whose state is listed.
func joinListed(t *testing.T, prototype any, run func(m *agent.Member, f *fake, err error)) {
	t.Helper()
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		f := newFake(t, local.Connect)
		f.codec = wire.NewBatchCodec(listed)
		f.answer = func(h *wire.Hello) *wire.Welcome {
			return &wire.Welcome{Synchronizer: "s", Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Accepted: true, Schema: listed}
		}
		m, err := agent.Join(t.Context(), "", agent.Config{Group: "g", Name: "w", State: prototype}, agent.WithBus(local.Connect))
		if err == nil {
			defer func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		run(m, f, err)
	})
}

func TestListsAreReported(t *testing.T) {
	joinListed(t, listState{}, func(m *agent.Member, f *fake, err error) {
		if err != nil {
			t.Fatal(err)
		}
		s := listState{
			Loads: []float64{0.5, -1}, Counts: []uint8{7}, Tags: []string{"gpu", ""}, Waits: []time.Duration{time.Second},
			Flags: []bool{true, false}, Phases: []phase{"search", "idle"},
		}
		if err := m.Set(s); err != nil {
			t.Fatal(err)
		}
		s.Loads[0] = 9 // The state has been told.
		if err := m.Set(listState{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var got []string
		for _, row := range f.rows() {
			got = append(got, fmt.Sprint(row))
		}
		want := []string{
			`[[0.5, -1] [7] ["gpu", ""] [1s] [true, false] [search, idle] "here" [3]]`,
			`[[] [] [] [] [] [] "here" [3]]`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("reported\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestListsThatCannotBeTold(t *testing.T) {
	joinListed(t, nil, func(m *agent.Member, f *fake, err error) {
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", scgs.MaxTextBytes)
		for _, c := range []struct {
			state listState
			want  string
		}{
			{listState{Loads: make([]float64, scgs.MaxElements+1)}, "agent: field Loads of agent_test.listState has 65 elements, at most 64 can be reported"},
			{listState{Loads: []float64{1, math.NaN()}}, "agent: field Loads of agent_test.listState cannot be told: NaN is no number: leave the state as it was, or report a value that means unknown"},
			{listState{Loads: []float64{math.Inf(1)}}, `agent: state: field "loads": element 0: +Inf is not a finite number`},
			{listState{Tags: []string{long, "y"}}, `agent: state: field "tags": its elements together have 257 bytes, at most 256 are allowed`},
			{listState{Tags: []string{"\xff"}}, `agent: state: field "tags": element 0: the text is not UTF-8`},
			{listState{Phases: []phase{"idle", "sleep"}}, `agent: field Phases of agent_test.listState cannot be told: "sleep" is not one of its words: use idle, search`},
		} {
			if err := m.Set(c.state); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
		if err := m.Set(listState{Loads: make([]float64, scgs.MaxElements), Tags: []string{long}}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := len(f.rows()); n != 1 {
			t.Errorf("%d states were told, want the good one only", n)
		}
	})
}

func TestJoinWithoutAListFails(t *testing.T) {
	for _, c := range []struct {
		state any
		want  string
	}{
		{struct{ Loads []float64 }{}, `has no field "counts", which the configuration declares without a default`},
		{struct{ Loads []int }{}, "field Loads of struct { Loads []int }: the configuration declares loads: {list: float}, the program has list of int: make them the same"},
		{struct{ Phases string }{}, "the configuration declares phases: {list: {enum: [idle, search]}}, the program has string"},
		{struct{ Site []string }{}, "the configuration declares site: string, the program has list of string"},
	} {
		joinListed(t, c.state, func(_ *agent.Member, _ *fake, err error) {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

const typedLevels = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state:
      tags: {list: string}
      site: {type: string, default: here}
      busy: {type: int, default: 0}
    predicates:
      gpu:
        when: any(members, "gpu" in .tags && .host == "box" && .site == "here")
        signal: {kind: activate, region: r}
      grown:
        when: sum(map(members, len(.tags))) > sum(map(prev, len(.tags)))
        signal: {kind: activate, region: r}
`

// TestListsEndToEnd has two members whose struct lacks fields with defaults.
func TestListsEndToEnd(t *testing.T) {
	type state struct{ Tags []string }
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, typedLevels)
		a := join(t, local, agent.Config{Group: "g", Name: "a", Host: "box", State: state{}})
		b := join(t, local, agent.Config{Group: "g", Name: "b", Host: "crate", State: state{}})
		check(t, a.Set(state{}))
		check(t, b.Set(state{[]string{"gpu"}}))
		settle()
		if got := h.fired("gpu"); got != 0 {
			t.Errorf("fired %d times for the member of another host", got)
		}
		check(t, a.Set(state{[]string{"ssd", "gpu"}}))
		settle()
		if got := h.fired("gpu"); got != 1 {
			t.Errorf("fired %d times for the member that has it", got)
		}
		if got := h.fired("grown"); got != 1 {
			t.Errorf("fired %d times when a list had grown", got)
		}
		check(t, b.Set(state{}))
		settle()
		check(t, b.Set(state{[]string{"gpu"}}))
		settle()
		if got := h.fired("grown"); got != 2 {
			t.Errorf("fired %d times when a list had grown again", got)
		}
	})
}

// settle lets reports, probes and their answers come through.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

const listedThreads = `
synchronizers:
  gsync:
    members: {group: g, count: 1}
    state: {busy: int, tags: {type: {list: string}, default: [none]}}
    predicates:
      done:
        when: all(members, .busy == 0 && "none" in .tags)
        signal: {kind: activate, region: r}
  tsync:
    parent: gsync
    members: {threads: 1}
    state: {queue: {list: int}, level: {type: float, default: 0.5}}
    process: {open: {list: string}, spare: {type: {list: int}, default: [1, 2]}}
    predicates:
      drained:
        when: all(members, len(.queue) == 0 && .level == 0.5) && len(process.open) == 0 && process.spare[1] == 2
        signal: {kind: activate, region: r}
    summary:
      busy: count(members, len(.queue) > 0) + len(process.open)
`

// TestListsOfThreads sends defaults and list types to the level inside of the
// process, and the default of a list that no summary can have up.
func TestListsOfThreads(t *testing.T) {
	type queued struct{ Queue []int }
	type opened struct{ Open []string }
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		h := newHub(t, local.Connect, listedThreads)
		m := join(t, local, agent.Config{Group: "g", Name: "w"})
		check(t, m.Set(opened{[]string{"f"}}))
		th, err := m.Thread("t1", agent.ThreadState(queued{}))
		if err != nil {
			t.Fatal(err)
		}
		check(t, th.Set(queued{[]int{3}}))
		told := make(chan struct{}, 8)
		var regions sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		regions.Go(func() {
			_ = th.Region(ctx, "r", func(ctx context.Context, r *agent.Region) error {
				for {
					if err := r.Wait(ctx); err != nil {
						return err
					}
				}
			}, agent.OnActivate("drained", func(context.Context, agent.Signal) error {
				told <- struct{}{}
				return nil
			}))
		})
		settle()
		if got := h.fired("done"); got != 0 || len(told) > 0 {
			t.Errorf("fired %d times above, %d in the process, while something is open", got, len(told))
		}
		check(t, th.Set(queued{}))
		check(t, m.Set(opened{}))
		settle()
		if got := h.fired("done"); got != 1 || len(told) != 1 {
			t.Errorf("fired %d times above, %d in the process", got, len(told))
		}
		cancel()
		regions.Wait()
		if _, err := m.Thread("t2", agent.ThreadState(struct{ Level float64 }{})); err == nil || !strings.Contains(err.Error(), `the declared field "queue" has no default and is missing in the program's state, which has level`) {
			t.Errorf("a thread without the list: %v", err)
		}
	})
}
