package sim

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// text is a predicate in a trial that is known by its text alone: it is computed on true
// states.
type text struct {
	*plan.Rule
	tried *Tried
	all   *predicates.Scope // of the members of a witness
	one   *predicates.Scope // of a single member, for a local condition
	last  struct {          // the last firing that was not of the rule's own detector
		members   string
		at, since clocksync.Instant
	}
}

// readsStatesOnly reports whether a predicate reads nothing but the states of members, so that it
// can be computed from outside.
func readsStatesOnly(r *plan.Rule) bool {
	return r.When != nil && ofStates(r.When)
}

// ofStates reports whether an expression reads nothing but the states of members.
func ofStates(e *predicates.Expression) bool {
	u := e.Uses()
	return !u.Prev && u.Memory == 0 && u.Process == 0 && len(u.Parent) == 0
}

// online reports whether a predicate reads which members are silent, which is no state.
func online(r *plan.Rule) bool { return r.When != nil && strings.Contains(r.When.Source(), ".online") }

// newTexts has the predicates of a level judged by their texts.
func newTexts(level *plan.Level, tried []*Tried) map[string]*text {
	texts := map[string]*text{}
	for i, r := range level.Rules {
		x := &text{Rule: r, tried: &Tried{}, all: predicates.NewScope(level.Env), one: predicates.NewScope(level.Env)}
		if tried != nil {
			x.tried = tried[i]
		}
		texts[r.Name] = x
	}
	return texts
}

// localCondition is the condition of a member, of a rule with its own detector; nil of another.
func (x *text) localCondition(m predicates.Member) func([]scgs.Value) bool {
	if x.Detector.Local == nil {
		return nil
	}
	return func(row []scgs.Value) bool {
		x.one.Reset([]predicates.Member{m})
		x.one.Set(0, row)
		return x.Detector.Local.Eval(x.one).Truth == predicates.True
	}
}

// judgeText is judge S for a predicate that is known by its text: on the true states of the
// witness, which held together from one instant to another, it is true, and has been for as
// long as it says.
func (t *trial) judgeText(l *leader, x *text, v *monitor.Verdict, rows [][]scgs.Value, from, to clocksync.Instant) {
	since := from
	switch {
	case x.Detector.Exists():
		if len(rows) < x.Detector.AtLeast || x.Detector.AtLeast == 0 && len(rows) < len(v.Witness) {
			t.addBreach('S', "%s fired on the states of %d members: %s", v.Predicate, len(rows), witnessText(v))
		}
	case readsStatesOnly(x.Rule):
		members := make([]predicates.Member, len(v.Witness))
		for i := range v.Witness {
			members[i] = t.memberOf(v.Witness[i].Name)
		}
		x.all.Reset(members)
		for i := range v.Witness {
			if !v.Witness[i].State.Unknown {
				x.all.Set(i, rows[0])
				rows = rows[1:]
			}
		}
		if x.When.Eval(x.all).Truth != predicates.True {
			t.addBreach('S', "%s fired, and its condition is false on its witness: %s: %s", v.Predicate, l.conditionOf(v.Predicate), witnessText(v))
		}
		if !x.Every && !online(x.Rule) {
			if since = x.since(t, members, from); !lastedLong(since, to, x.Hold) {
				t.addBreach('S', "%s fired, and its condition was true %s, not for %v: %s: %s", v.Predicate, spanText(since, to), x.Hold, l.conditionOf(v.Predicate), witnessText(v))
			}
		}
	}
	t.judgeKeys(l, x, v, from, to)
	x.tried.Fired++
	if v.Partial {
		x.tried.Partial++
	}
	again := since == x.last.since && since > 0
	if x.last.since = since; again || from >= to || since <= 0 {
		return // It reacts once to what has become true.
	}
	since = since.Add(x.Hold)
	t.became[v.Decision] = since
	x.tried.Decided.addDuration(t.now.Sub(since))
}

// memberOf is who a member is for a predicate.
func (t *trial) memberOf(name string) predicates.Member {
	m := predicates.Member{Name: name}
	if p := t.names[name]; p != nil {
		m.Host = string(p.on.Domain)
	}
	return m
}

// since is from when on the predicate was true of the members, up to an instant at which it
// was. A hold time continues when a member joins, so the states of members that joined later
// may count from their entry on, or as well before.
func (x *text) since(t *trial, members []predicates.Member, at clocksync.Instant) clocksync.Instant {
	var names strings.Builder
	first := clocksync.MaxInstant
	for i := range members {
		names.WriteString(members[i].Name + ",")
		first = min(first, t.entered[members[i].Name])
	}
	known := x.last.members == names.String() && x.last.at <= at // A later term may fire on earlier states.
	since := min(x.trueSince(t, members, at, clocksync.MaxInstant, known), x.trueSince(t, members, at, first, known))
	x.last.members, x.last.at = names.String(), at
	return since
}

// trueSince is since, where members that entered after an instant were not there before they
// entered. Nor was a member in an earlier life.
func (x *text) trueSince(t *trial, members []predicates.Member, at, first clocksync.Instant, known bool) clocksync.Instant {
	type walk struct {
		truth []stretch
		i     int               // the state that it is in, or that is over
		over  bool              // it is
		from  clocksync.Instant // it was not there before
	}
	walks := make([]walk, len(members))
	holds := func() bool {
		var there []predicates.Member
		var rows [][]scgs.Value
		for i := range walks {
			if w := &walks[i]; !w.over && w.i >= 0 {
				there, rows = append(there, members[i]), append(rows, w.truth[w.i].row)
			}
		}
		x.all.Reset(there)
		for i := range rows {
			x.all.Set(i, rows[i])
		}
		return x.When.Eval(x.all).Truth == predicates.True
	}
	change := func(w *walk) clocksync.Instant { // the last one so far
		switch {
		case w.i < 0:
			return clocksync.MinInstant
		case w.over:
			return w.truth[w.i].to
		}
		return max(w.truth[w.i].from, w.from)
	}
	for i := range members {
		w := &walks[i]
		if w.from = clocksync.MinInstant; t.entered[members[i].Name] > first {
			w.from = min(t.entered[members[i].Name], at)
		}
		w.truth = t.findActor(members[i].Name).truth
		n, found := slices.BinarySearchFunc(w.truth, at, func(s stretch, at clocksync.Instant) int { return cmp.Compare(s.from, at) })
		if w.i = n; !found {
			w.i--
		}
		w.over = w.i >= 0 && w.truth[w.i].to <= at
	}
	since := at
	for holds() {
		since = clocksync.MinInstant
		for i := range walks {
			since = max(since, change(&walks[i]))
		}
		if since == clocksync.MinInstant {
			break
		}
		if known && since <= x.last.at {
			since = x.last.since
			break
		}
		for i := range walks {
			if w := &walks[i]; change(w) == since {
				if w.over {
					w.over = false
				} else {
					w.i--
					if w.i >= 0 && (w.truth[w.i].to < since || w.from == since) {
						w.i = -1
					}
				}
			}
		}
	}
	return since
}

// countPredicates adds what became of the predicates of a trial that is over.
func (t *trial) countPredicates() {
	for _, x := range t.texts[t.trialSpec.level] {
		if x.tried.Plain {
			x.count(t)
		}
	}
}

// count adds how often the predicate was true of all members that were there, and for how
// long at most.
func (x *text) count(t *trial) {
	type event struct {
		at    clocksync.Instant
		actor *actor
		row   []scgs.Value // nil: it is not there any more
	}
	var events []event
	rows := map[*actor][]scgs.Value{}
	for _, p := range t.all {
		for _, a := range p.actors {
			for i, s := range a.truth {
				events = append(events, event{s.from, a, s.row})
				if last := i == len(a.truth)-1; s.to < clocksync.MaxInstant && (last || a.truth[i+1].from > s.to) {
					events = append(events, event{s.to, a, nil})
				}
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var there []*actor
	from := clocksync.MaxInstant // since when it is true
	for n, e := range events {
		_, was := rows[e.actor]
		if rows[e.actor] = e.row; e.row == nil {
			delete(rows, e.actor)
		}
		if was && e.row != nil {
			x.all.Set(slices.Index(there, e.actor), e.row)
		} else {
			there = there[:0]
			var members []predicates.Member
			for _, p := range t.all {
				for _, a := range p.actors {
					if rows[a] != nil {
						there, members = append(there, a), append(members, t.memberOf(a.name))
					}
				}
			}
			x.all.Reset(members)
			for i, a := range there {
				x.all.Set(i, rows[a])
			}
		}
		if n+1 < len(events) && events[n+1].at == e.at {
			continue
		}
		switch holds := len(there) >= max(t.level.Members.Min, 1) && x.When.Eval(x.all).Truth == predicates.True; {
		case holds && from == clocksync.MaxInstant:
			from = e.at
			x.tried.True++
		case !holds && from < clocksync.MaxInstant:
			x.tried.Longest = max(x.tried.Longest, e.at.Sub(from))
			from = clocksync.MaxInstant
		}
	}
	if from < clocksync.MaxInstant {
		x.tried.Longest = max(x.tried.Longest, t.now.Sub(from))
	}
}

// drawn are the states that members have: often like the states of the others, with values that
// the predicates compare with, for times around the hold times.
type drawn struct {
	pace   time.Duration // a state lasts for as long at most
	alike  float64       // how probable it is that a field is like the same field of others
	model  []scgs.Value  // what it is then
	near                 // values that predicates compare with
	params near          // parameters, their bounds, and what the names and the until of a single member compare with
	far    near          // twice the value of a parameter
	rarer  time.Duration // how many times the usual time lies between two faults
	dice   *rand.Rand    // of params, far and rarer, so that other draws stay as they are
}

// near are values that states are drawn around, by field.
type near struct {
	bounds [][]float64 // in units of its type
	texts  [][]string
}

func newNear(fields int) near { return near{make([][]float64, fields), make([][]string, fields)} }

var literal = regexp.MustCompile(`"[^"]*"|'[^']*'|\b\d[\d_]*(\.\d+)?([eE][-+]?\d+)?`)

func newDrawn(t *trial) *drawn {
	level := t.level
	d := &drawn{near: newNear(len(level.State)), params: newNear(len(level.State)), far: newNear(len(level.State)), dice: rand.New(rand.NewPCG(t.seed, 101))} //nolint:gosec // Few.
	for _, r := range level.Rules {
		for i, e := range []*predicates.Expression{r.When, r.Until, r.Detector.Until} {
			if e == nil {
				continue
			}
			fields, members := e.Uses().Fields, float64(cmp.Or(t.members, 4))
			words := literal.FindAllString(e.Source(), -1)
			for k, v := range level.Variables {
				if e.Uses().Memory&(1<<k) != 0 && v.Initial != nil {
					words = append(words, *v.Initial)
				}
			}
			text, named := e.Expanded()
			if i == 2 || named {
				d.params.add(fields, literal.FindAllString(text, -1), members)
			}
			if i < 2 {
				d.add(fields, words, members)
			}
			for k := range level.Params {
				if p := &level.Params[k]; e.Uses().Params&(1<<k) != 0 {
					d.far.add(fields, []string{p.Value.String()}, members)
					for _, v := range []scgs.Value{p.Value, p.Min, p.Max} {
						if v.Type() != scgs.Invalid {
							d.params.add(fields, []string{v.String()}, members)
						}
					}
				}
			}
		}
	}
	if t.narrow {
		d.params = newNear(len(level.State))
	}
	for _, bounds := range d.far.bounds {
		for i := range bounds {
			bounds[i] *= 2
		}
	}
	d.pace = 60 * time.Millisecond
	if hold := longestWait(level, t.time); hold > 0 && t.Rand.IntN(3) > 0 {
		d.pace = max(d.pace, t.Between(hold/2, 4*hold))
	}
	d.rarer = 1
	if hold := longestWait(level, t.time); hold > time.Second && !t.narrow && d.dice.IntN(2) == 0 {
		d.rarer = hold / time.Second // Or nothing would hold for so long.
	}
	d.alike = []float64{0.5, 0.9, 0.98, 1}[t.Rand.IntN(4)]
	return d
}

// add has the fields of a set take values at times.
func (n *near) add(fields uint64, words []string, members float64) {
	for _, word := range words {
		var numbers []float64
		word = strings.Trim(word, `"'`)
		if f, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64); err == nil {
			numbers = []float64{f, f / members} // Of a single member, and of a sum.
		} else if length, err := time.ParseDuration(word); err == nil {
			numbers = []float64{float64(length)}
		}
		for i := range n.bounds {
			if fields&(1<<i) != 0 {
				n.bounds[i], n.texts[i] = append(n.bounds[i], numbers...), append(n.texts[i], word)
			}
		}
	}
}

// drawAgain makes up another model.
func (d *drawn) drawAgain(t *trial) {
	row := make([]scgs.Value, len(t.level.State))
	for i := range row {
		row[i] = d.draw(t.Rand, i, t.level.State[i])
	}
	d.model = row
	t.After(t.Between(d.pace/2, 4*d.pace), func() { d.drawAgain(t) })
}

// drawField draws what a field of a member's state is.
func (d *drawn) drawField(t *trial, i int) scgs.Value {
	if t.Rand.Float64() < d.alike {
		return d.model[i]
	}
	return d.draw(t.Rand, i, t.level.State[i])
}

// draw draws a value of a field, every other one around a parameter if a predicate compares the field with one.
func (d *drawn) draw(r *rand.Rand, i int, f scgs.Field) scgs.Value {
	v := d.value(r, i, f)
	if len(d.params.texts[i]) == 0 || d.dice.IntN(2) == 0 {
		return v
	}
	if len(d.far.texts[i]) > 0 && d.dice.IntN(3) == 0 {
		return d.far.value(d.dice, i, f)
	}
	return d.params.value(d.dice, i, f)
}

func (n *near) value(r *rand.Rand, i int, f scgs.Field) scgs.Value {
	number := func(unit float64) float64 { // at a bound, beside one, or a small one
		if k := len(n.bounds[i]); k > 0 && r.IntN(4) > 0 {
			return min(max(n.bounds[i][r.IntN(k)], -1e18), 1e18) + unit*float64(r.IntN(3)-1)
		}
		return unit * float64(r.IntN(12))
	}
	switch {
	case f.Type.IsList():
		list := make([]scgs.Value, r.IntN(4))
		for k := range list {
			list[k] = n.value(r, i, f.Element())
		}
		return scgs.ListValue(f.Type.Elem(), list...)
	case f.Type == scgs.Bool:
		return scgs.BoolValue(r.IntN(2) > 0)
	case f.Type == scgs.Int:
		return scgs.IntValue(int64(number(1)))
	case f.Type == scgs.Float:
		return scgs.FloatValue(number(0.1))
	case f.Type == scgs.Duration:
		return scgs.DurationValue(time.Duration(number(float64(time.Millisecond))))
	case f.Type == scgs.Enum:
		return scgs.EnumValue(f.Words[r.IntN(len(f.Words))])
	}
	if k := len(n.texts[i]); k > 0 && r.IntN(4) > 0 {
		return scgs.StringValue(n.texts[i][r.IntN(k)])
	}
	return scgs.StringValue(string(rune('a' + r.IntN(5))))
}
