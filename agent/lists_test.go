package agent_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/internal/bus"
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
		local := bus.NewLocal()
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
			{listState{Loads: make([]float64, scgs.MaxElements+1)}, "agent: field Loads of agent_test.listState has 65 elements, at most 64 are told"},
			{listState{Loads: []float64{1, math.NaN()}}, "agent: field Loads of agent_test.listState cannot be told: an integer has at most 63 bits and a sign, a float is a number"},
			{listState{Loads: []float64{math.Inf(1)}}, `agent: state: field "loads": element 0: +Inf is not a finite number`},
			{listState{Tags: []string{long, "y"}}, `agent: state: field "tags": its elements together have 257 bytes, at most 256 are allowed`},
			{listState{Tags: []string{"\xff"}}, `agent: state: field "tags": element 0: it is not UTF-8`},
			{listState{Phases: []phase{"idle", "sleep"}}, `agent: state: field "phases": element 1: "sleep" is none of its words`},
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
