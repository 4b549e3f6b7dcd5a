package planner_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/planner"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// space is a planner of the objects of members, driven by hand.
type space struct {
	*planner.Planner
	scope   *predicates.Scope
	state   scgs.Schema
	members []planner.Member
	signals []*control.Signal
}

// told is what a member tells of its objects.
type told struct {
	tasks   []int64
	weights []float64
	names   []string
	from    []int64
	to      []int64
	volumes []float64
	refused []int64
	reasons []string
}

func newSpace(t *testing.T, strategy string, members ...string) *space {
	t.Helper()
	levels, err := configfile.Parse("c.yaml", fmt.Appendf(nil, "synchronizers:\n  g:\n    members: {group: g, count: %d}\n    work: {strategy: {kind: %s}}\n", len(members), strategy))
	if err != nil {
		t.Fatal(err)
	}
	s := &space{Planner: planner.New(levels[0].Balance, nil), scope: predicates.NewScope(levels[0].Env), state: levels[0].State}
	var names []predicates.Member
	for _, name := range members {
		names = append(names, predicates.Member{Name: name})
		s.members = append(s.members, planner.Member{Name: name, Incarnation: 1, Entry: 7})
	}
	s.scope.Reset(names)
	s.Regroup(s.members)
	for i := range members {
		s.shows(i, told{})
	}
	return s
}

func listOf[T any](of scgs.Type, list []T, value func(T) scgs.Value) scgs.Value {
	var values []scgs.Value
	for _, v := range list {
		values = append(values, value(v))
	}
	return scgs.ListValue(of, values...)
}

// shows opens a global state in which a member tells that.
func (s *space) shows(i int, o told) {
	s.members[i].Seq++
	row := make([]scgs.Value, len(s.state))
	for k, f := range s.state {
		row[k] = f.Default
	}
	set := func(name string, v scgs.Value) { row[s.state.Index(config.WorkPrefix+name)] = v }
	set("slots", scgs.IntValue(1))
	set("tasks", listOf(scgs.Int, o.tasks, scgs.IntValue))
	set("weights", listOf(scgs.Float, o.weights, scgs.FloatValue))
	set("names", listOf(scgs.String, o.names, scgs.StringValue))
	set("senders", listOf(scgs.Int, o.from, scgs.IntValue))
	set("receivers", listOf(scgs.Int, o.to, scgs.IntValue))
	set("volumes", listOf(scgs.Float, o.volumes, scgs.FloatValue))
	set("refused", listOf(scgs.Int, o.refused, scgs.IntValue))
	set("reasons", listOf(scgs.String, o.reasons, scgs.StringValue))
	s.scope.Set(i, row)
	s.Opened()
}

// look is the plan of an instant; nil: nothing was planned.
func (s *space) look(round int) *monitor.Plan {
	now := clocksync.Instant(round) * 1000 * ms
	if !s.Due(now, true, true) {
		return nil
	}
	made, _, signals := s.Look(now, &planner.State{Epoch: 1, Members: s.members, Scope: s.scope, Room: 9, Decision: control.Decision{Number: uint64(round) + 1}})
	s.signals = append(s.signals, signals...)
	return made
}

// crowded is a member with two objects that talk, and two that talk to those of another member.
func crowded() told {
	return told{
		tasks: []int64{1, 2, 3, 4}, weights: []float64{1, 1, 1, 1}, names: []string{"part/1", "part/2", "part/3", "a\x1b[2J"},
		from: []int64{1, 3, 4}, to: []int64{2, 5, 5}, volumes: []float64{9, 5, 5},
	}
}

// TestObjectsAreAttracted: the objects move whose partners are elsewhere, to where these are; greedy takes the first.
// Orders have numbers, and people read names.
func TestObjectsAreAttracted(t *testing.T) {
	for strategy, want := range map[string]string{"pegasus, beta: 0.7, alpha: 1.05": "part/3 to b", "greedy": "part/1 to c"} {
		s := newSpace(t, strategy, "a", "b", "c")
		s.shows(0, crowded())
		s.shows(1, told{tasks: []int64{5}, weights: []float64{1}})
		s.shows(2, told{tasks: []int64{6}, weights: []float64{0.9}})
		made := s.look(0)
		if made == nil || len(made.Plan.Moves) == 0 {
			t.Fatalf("%s: %+v", strategy, made)
		}
		if got := made.Plan.Moves[0].Load + " to " + made.Plan.Moves[0].To; got != want {
			t.Errorf("%s: %s, want %s", strategy, got, want)
		}
		orders, err := balance.ParseOrders(s.signals[0].Lookup(balance.OrdersDatum).Text())
		if number := strings.Fields(want)[0][len("part/"):]; err != nil || orders[0].Load != number || s.signals[0].Region != config.ObjectsRegion || s.signals[0].Target != "a" {
			t.Errorf("%s: %+v %v", strategy, s.signals[0], err)
		}
		if at := s.Status(0).UnderWay[0].Load + " to"; !strings.HasPrefix(want, at) {
			t.Errorf("%s: %s is under way", strategy, at)
		}
	}
}

// TestDeclined: an order that its member refuses is counted and told, and the object is not ordered away again while the
// member says so.
func TestDeclined(t *testing.T) {
	s := newSpace(t, "greedy", "a", "b", "c")
	heavy := told{tasks: []int64{1, 2}, weights: []float64{5, 4}, names: []string{"part/1", "part/2"}}
	s.shows(0, heavy)
	if made := s.look(0); made == nil || len(made.Plan.Moves) != 1 || made.Plan.Moves[0].Load != "part/1" {
		t.Fatalf("%+v", made)
	}
	heavy.refused, heavy.reasons = []int64{1, 1 << 40}, []string{"pinned"}
	s.shows(0, heavy)
	made := s.look(1)
	if made == nil || len(made.Plan.Moves) != 1 || made.Plan.Moves[0].Load != "part/2" {
		t.Fatalf("%+v", made)
	}
	for _, want := range []balance.Refusal{
		{Load: "part/1", From: "a", Reason: balance.Declined, Detail: "pinned"},
		{Load: "1099511627776", From: "a", Reason: balance.Declined, Detail: "no reason is told"},
	} {
		found := false
		for _, r := range made.Plan.Refused {
			found = found || r == want
		}
		if !found {
			t.Errorf("%+v lacks %+v", made.Plan.Refused, want)
		}
	}
	if st := s.Status(0); st.Refused != 1 || st.Flights != 1 {
		t.Errorf("%+v", st)
	}
}

// TestHostileObjects: a member that tells what cannot be is left alone, with the reason; the others are balanced.
func TestHostileObjects(t *testing.T) {
	with := func(change func(*told)) told {
		o := crowded()
		change(&o)
		return o
	}
	for note, o := range map[string]told{
		"its senders are 2, its receivers 3 and its volumes 3":       with(func(o *told) { o.from = o.from[1:] }),
		"its senders are 3, its receivers 3 and its volumes 4":       with(func(o *told) { o.volumes = append(o.volumes, 1) }),
		"it tells what 5 sends, which is not one of its loads":       with(func(o *told) { o.from[0] = 5 }),
		"volumes is unknown: member a has no value for work.volumes": with(func(o *told) { o.volumes[0] = math.NaN() }),
		"of what is sent: the weight -1 of 3 is not from 0":          with(func(o *told) { o.volumes[1] = -1 }),
		"of what is sent: the weight +Inf of 4 is not from 0":        with(func(o *told) { o.volumes[2] = math.Inf(1) }),
		"its loads are 4 and its weights 3":                          with(func(o *told) { o.weights = o.weights[1:] }),
		"weights is unknown: member a has no value for work.weights": with(func(o *told) { o.weights[1] = math.NaN() }),
		"the weight 1e+300 of 2 is not from 0":                       with(func(o *told) { o.weights[1] = 1e300 }),
		"refused part/2 on a: bad load: it has no name of its own":   with(func(o *told) { o.tasks[1] = 1; o.from, o.to, o.volumes = nil, nil, nil }),
		"refused 5 on d: bad load: it has no name of its own":        crowded(),
	} {
		s := newSpace(t, "greedy", "a", "b", "c", "d")
		s.shows(0, o)
		s.shows(1, told{tasks: []int64{5, 7, 8}, weights: []float64{3, 2, 1}})
		s.shows(3, told{tasks: []int64{5}, weights: []float64{0.5}})
		made := s.look(0)
		if made == nil {
			t.Fatalf("%s: nothing is planned", note)
		}
		if text := made.Plan.String(); !strings.Contains(text, note) {
			t.Errorf("%s is not in the plan:\n%s", note, text)
		}
		if strings.HasPrefix(note, "refused") {
			continue
		}
		for _, m := range made.Plan.Moves {
			if m.From == "a" || m.To == "a" {
				t.Errorf("%s: %v", note, &m)
			}
		}
		if len(made.Plan.Moves) == 0 {
			t.Errorf("%s: the others are not balanced", note)
		}
	}
}

// TestLabels: what a member calls its objects is shown if it can be printed; else their numbers are.
func TestLabels(t *testing.T) {
	for b := range 256 {
		s := newSpace(t, "greedy", "a", "b")
		label := "n" + string([]byte{byte(b)})
		s.shows(0, told{tasks: []int64{4711, 2}, weights: []float64{3, 2}, names: []string{label}, refused: []int64{4711}, reasons: []string{label}})
		made := s.look(0)
		if made == nil {
			t.Fatalf("%q: nothing is planned", label)
		}
		r := made.Plan.Refused[len(made.Plan.Refused)-1]
		want, why := label, label
		if b < ' ' || b > '~' || b == '"' || b == '\\' {
			want, why = "4711", "no reason is told"
		}
		if r.Load != want || r.Detail != why || r.Reason != balance.Declined {
			t.Errorf("%q: %+v", label, r)
		}
	}
}
