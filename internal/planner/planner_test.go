package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/planner"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

const ms = clocksync.Instant(time.Millisecond)

// pool is a planner driven by hand: of a, which has the loads 1 and 2, and of b, which has
// none.
type pool struct {
	*planner.Planner
	scope   *predicates.Scope
	alone   *predicates.Scope // of one member
	members []planner.Member
	signals []*control.Signal
}

func newPool(t *testing.T) *pool {
	t.Helper()
	levels, err := configfile.Parse("c.yaml", []byte(`synchronizers:
  g:
    members: {group: g, count: 2}
    state: {tasks: {list: int}, work: {list: float}, power: float}
    balance: {loads: .tasks, weights: .work, power: .power, region: r, every: 20ms, transit: 100ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{Planner: planner.New(levels[0].Balance, nil), scope: predicates.NewScope(levels[0].Env), alone: predicates.NewScope(levels[0].Env)}
	p.scope.Reset([]predicates.Member{{Name: "a"}, {Name: "b"}})
	for _, name := range []string{"a", "b"} {
		p.members = append(p.members, planner.Member{Name: name, Incarnation: 1, Entry: 7})
	}
	p.Regroup(p.members)
	p.shows(0, 1, 1, 2)
	p.shows(1, 1)
	return p
}

// row has loads of weight 1 on a node of power 1.
func row(loads ...int64) []scgs.Value {
	names, weights := make([]scgs.Value, len(loads)), make([]scgs.Value, len(loads))
	for i, n := range loads {
		names[i], weights[i] = scgs.IntValue(n), scgs.FloatValue(1)
	}
	return []scgs.Value{scgs.ListValue(scgs.Int, names...), scgs.ListValue(scgs.Float, weights...), scgs.FloatValue(1)}
}

// shows opens a global state in which a member has those loads.
func (p *pool) shows(i int, seq uint64, loads ...int64) {
	p.members[i].Seq = seq
	p.scope.Set(i, row(loads...))
	p.Opened()
}

// look is what is moved at an instant, "-" if nothing was planned, and nothing if it was
// not due; and the loads under way after it.
func (p *pool) look(now clocksync.Instant, room int) string {
	var text strings.Builder
	if p.Due(now, true, true) {
		made, _, signals := p.Look(now, &planner.State{Epoch: 1, Members: p.members, Scope: p.scope, Room: room, Decision: control.Decision{Number: uint64(now) + 1}})
		if p.signals = append(p.signals, signals...); made == nil {
			text.WriteByte('-')
		} else {
			for _, m := range made.Plan.Moves {
				text.WriteString(m.Load + m.From + m.To)
			}
		}
	}
	for _, f := range p.Status(now).UnderWay {
		text.WriteString(" " + f.Load + f.From + f.To + " " + f.Phase)
	}
	return text.String()
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestDue: a look comes with news, and no more often than the section says; none comes
// where nothing is in force or nothing may be decided.
func TestDue(t *testing.T) {
	p := newPool(t)
	if p.Due(0, true, false) || p.Due(0, false, true) {
		t.Error("it is due without a global state to decide on")
	}
	p.Opened()
	p.shows(0, 2)
	want(t, "first", p.look(0, 9), "-")
	want(t, "no news", p.look(50*ms, 9), "")
	p.Opened()
	want(t, "news", p.look(50*ms, 9), "-")
	p.Opened()
	want(t, "too early", p.look(69*ms, 9), "")
	want(t, "in time", p.look(70*ms, 9), "-")
}

// TestOrder: a load is under way from its order on, and counts for its target, until a
// current state shows it there, or until the fate of the order says that it stays.
func TestOrder(t *testing.T) {
	p := newPool(t)
	want(t, "ordered", p.look(0, 9), "1ab 1ab ordered")
	s := p.signals[0]
	if d := s.Lookup(balance.OrdersDatum); s.Target != "a" || s.Entry != 7 || s.Region != "r" || s.Decision.Number != 1 || !strings.Contains(d.Text(), "1") {
		t.Errorf("%+v", s)
	}
	if !p.Awaits("b") || p.Awaits("a") {
		t.Error("it awaits another member")
	}
	other := *s
	other.Target = "b" // Of the same plan, to another member.
	p.Settled(0, &other, control.Refused)
	p.Opened()
	want(t, "under way", p.look(20*ms, 9), "- 1ab ordered")
	p.Settled(30*ms, s, control.Applied)
	want(t, "settled", p.look(30*ms, 9), " 1ab sent")
	p.alone.Reset([]predicates.Member{{Name: "b"}})
	p.alone.Set(0, row(2))
	p.Reported("b", 1, 2, p.alone)
	p.alone.Set(0, row(1))
	p.Reported("b", 2, 2, p.alone)
	want(t, "of another load, and of another process", p.look(30*ms, 9), " 1ab sent")
	p.Reported("b", 1, 2, p.alone)
	want(t, "landed", p.look(40*ms, 9), "- 1ab landed")
	p.shows(0, 2, 2)
	p.shows(1, 3)
	want(t, "done by now", p.look(60*ms, 9), "")

	p = newPool(t)
	p.look(0, 9)
	p.shows(0, 2, 2)
	p.shows(1, 2, 1)
	want(t, "shown", p.look(20*ms, 9), "-")
}

// TestFates: an order that came to nothing leaves its load where it is, at once if it was
// refused, and otherwise once it can be under way no longer; its member gets none so long.
func TestFates(t *testing.T) {
	for fate, c := range map[control.Fate]struct {
		after string
		rests time.Duration
	}{
		control.Refused:     {"-", 100 * time.Millisecond},
		control.NoSuchEntry: {"-", 100 * time.Millisecond},
		control.Unconfirmed: {"- 1ab sent", 100 * time.Millisecond},
		control.Applied:     {"- 1ab sent", 0},
	} {
		p := newPool(t)
		p.look(0, 9)
		p.Settled(0, p.signals[0], fate)
		p.Opened()
		want(t, fmt.Sprint(fate), p.look(20*ms, 9), c.after)
		if rests := p.Rests(0, "a"); rests != c.rests {
			t.Errorf("%v: it rests for %v, want %v", fate, rests, c.rests)
		}
		p.Opened()
		want(t, fmt.Sprint(fate, " in the end"), p.look(100*ms, 9), "1ab 1ab ordered")
	}
	p := newPool(t)
	want(t, "without room", p.look(0, 0), "")
}

// TestLeaving: what is under way from or to a process that has left is forgotten.
func TestLeaving(t *testing.T) {
	for name, change := range map[string]func(p *pool){
		"source gone":     func(p *pool) { p.members = p.members[1:] },
		"target gone":     func(p *pool) { p.members = p.members[:1] },
		"target restarts": func(p *pool) { p.members[1].Incarnation = 2 },
		"source restarts": func(p *pool) { p.members[0].Incarnation = 2 },
		"nobody":          nil,
	} {
		p := newPool(t)
		p.look(0, 9)
		if change != nil {
			change(p)
		}
		p.Regroup(p.members)
		if left := len(p.Status(0).UnderWay); (left == 1) != (change == nil) {
			t.Errorf("%s: %d are under way", name, left)
		}
	}
}

// TestReading: a member that tells nothing of use is left alone, and it is said why.
func TestReading(t *testing.T) {
	short, powerless, unset := row(1, 2), row(1), row(1)
	short[1], powerless[2], unset[2] = scgs.ListValue(scgs.Float, scgs.FloatValue(1)), scgs.FloatValue(-1), scgs.Value{}
	for text, change := range map[string]func(p *pool){
		"its loads are 2 and its weights 1": func(p *pool) { p.scope.Set(0, short) },
		"its power -1 is not":               func(p *pool) { p.scope.Set(0, powerless) },
		"power is unknown: ":                func(p *pool) { p.scope.Set(0, unset) },
		"nothing is known of its state":     func(p *pool) { p.members[0].Unknown = true },
		"it was not in region r":            func(p *pool) { p.members[0].Entry = 0 },
	} {
		p := newPool(t)
		change(p)
		want(t, text, p.look(0, 9), "-")
		if note := p.Aside(0, &p.members[0]); !strings.HasPrefix(note, text) {
			t.Errorf("%q, want %q", note, text)
		}
		if note := p.Aside(1, &p.members[1]); note != "" {
			t.Errorf("of the other: %q", note)
		}
	}
}
