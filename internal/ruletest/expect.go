package ruletest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// expectation is what a test wants to see. check compares a run with it and names the
// difference; subject is what the run tells about it.
type expectation struct {
	Place

	subject string
	when    []span // the times that it names
	check   func(*log) difference
}

// difference is the wanted value and the value there instead; the zero value is none.
type difference struct{ want, got []string }

func (d difference) none() bool { return len(d.want) == 0 && len(d.got) == 0 }

func differs(want, got string) difference { return difference{[]string{want}, []string{got}} }

// span is a stretch of time, its ends included.
type span struct{ from, to time.Duration }

func (s span) contains(at time.Duration) bool { return s.from <= at && at <= s.to }

func (s span) String() string {
	if s.from == s.to {
		return "at " + clock(s.from)
	}
	return fmt.Sprintf("from %s to %s", clock(s.from), clock(s.to))
}

// rawExpectation has the keys of all kinds of expectations.
type rawExpectation struct {
	node      yamlconf.Node
	Predicate yamlconf.Node        `yaml:"predicate"`
	Never     yamlconf.Node        `yaml:"never"`
	Signal    yamlconf.Node        `yaml:"signal"`
	Memory    yamlconf.Map[scalar] `yaml:"memory"`
	Members   yamlconf.Node        `yaml:"members"`
	Summary   yamlconf.Map[scalar] `yaml:"summary"`

	At      *time.Duration       `yaml:"at"`
	Between []time.Duration      `yaml:"between"`
	Within  *time.Duration       `yaml:"within"`
	Truth   yamlconf.Node        `yaml:"truth"`
	Reason  string               `yaml:"reason"`
	Fired   yamlconf.Node        `yaml:"fired"`
	To      yamlconf.Node        `yaml:"to"`
	Data    yamlconf.Map[scalar] `yaml:"data"`
	Fate    yamlconf.Node        `yaml:"fate"`
	Kind    yamlconf.Node        `yaml:"kind"`
}

// kinds are the expectations by their first key, with the keys that go with it. What
// is read from one with a fault is not used: the file is refused.
var kinds = []struct {
	key, more string
	read      func(*testParser, *rawExpectation) expectation
}{
	{"predicate", "truth at between reason", (*testParser).truth},
	{"predicate", "fired between within", (*testParser).fired},
	{"never", "between", (*testParser).never},
	{"signal", "at between within to kind data fate", (*testParser).signal},
	{"memory", "at between", (*testParser).memory},
	{"members", "at between", (*testParser).roster},
	{"summary", "at between", (*testParser).summary},
}

// expectation reads one item of expect.
func (t *testParser) expectation(n yamlconf.Node) {
	raw := rawExpectation{node: n}
	if n.Decode(&raw) != nil {
		return
	}
	for _, k := range kinds {
		_, ok := n.Get(k.key)
		if _, fired := n.Get("fired"); !ok || k.key == "predicate" && fired != strings.HasPrefix(k.more, "fired") {
			continue
		}
		for _, item := range n.Items() {
			if key, at := item.Key(); key != k.key && !slices.Contains(strings.Fields(k.more), key) {
				t.doc.Fault(at, "%s does not go with %s, which takes %s", key, k.key, strings.ReplaceAll(k.more, " ", ", "))
				return
			}
		}
		t.about = nil
		e := k.read(t, &raw)
		e.when = t.about
		e.Place = placeOf(t.doc, n)
		t.test.expect = append(t.test.expect, e)
		return
	}
	refuse(n, "an expectation is about one of predicate, never, signal, memory, members, summary")
}

// refuse reports a fault.
func refuse(n yamlconf.Node, format string, args ...any) { _ = n.Fault(format, args...) }

// when is the stretch of time that an expectation is about; a single time stands
// for as long after it as within says.
func (t *testParser) when(raw *rawExpectation, within time.Duration) span {
	if raw.Within != nil {
		within = *raw.Within
	}
	switch {
	case raw.At != nil && raw.Between != nil:
		refuse(raw.node, "give at or between, not both")
	case raw.At != nil:
		return t.within(raw.node, *raw.At, *raw.At+within)
	case raw.Between != nil:
		return t.pair(raw.node, raw.Between)
	default:
		refuse(raw.node, "say when: at: 500ms, or between: [500ms, 1s]")
	}
	return span{}
}

func (t *testParser) pair(n yamlconf.Node, ends []time.Duration) span {
	if len(ends) != 2 || ends[0] > ends[1] {
		refuse(n, "a stretch of time is a time and a later one, such as [500ms, 600ms]")
		return span{}
	}
	return t.within(n, ends[0], ends[1])
}

// within notes the times of a stretch, and refuses a stretch that no test reaches.
func (t *testParser) within(n yamlconf.Node, from, to time.Duration) span {
	s := span{from, to}
	t.about = append(t.about, s)
	if from < 0 || to < from || to > maxLasts {
		refuse(n, "%v is out of range: a test lasts from 0s to %v", s, maxLasts)
	} else {
		t.named(to)
	}
	return s
}

// knows finds the name that a value is among those that are known.
func knows(n yamlconf.Node, what string, known []string) (int, bool) {
	i := slices.Index(known, n.Text())
	switch {
	case composed(n):
		refuse(n, "the name of a %s is expected: %s", what, choice("", known))
	case i < 0:
		refuse(n, "there is no %s %q: %s", what, n.Text(), choice(n.Text(), known))
	}
	return i, i >= 0
}

// composed reports whether a node is a list or a map, which has no text.
func composed(n yamlconf.Node) bool {
	return n.Kind() == yamlconf.KindList || n.Kind() == yamlconf.KindMap
}

func (t *testParser) truth(raw *rawExpectation) expectation {
	name := raw.Predicate.Text()
	knows(raw.Predicate, "predicate", t.test.plan.Predicates())
	if absent(raw.Truth) {
		refuse(raw.node, "say what the predicate comes to: truth: true, false or unknown, or fired: with the times at which it fires")
		return expectation{}
	}
	want, ok := truths[raw.Truth.Text()]
	switch {
	case !ok:
		refuse(raw.Truth, "%q is no verdict: use true, false or unknown", raw.Truth.Text())
	case raw.Reason != "" && want != predicates.Unknown:
		refuse(raw.node, "only a verdict that is unknown has a reason")
	}
	s := t.when(raw, 0)
	return expectation{subject: name, check: func(l *log) difference {
		return during(l.verdicts[name], s, func(v verdict, at time.Duration) difference {
			if v.truth == want && strings.Contains(v.reason, raw.Reason) {
				return difference{}
			}
			return differs(truthText(want, raw.Reason)+" "+s.String(), truthText(v.truth, v.reason)+" at "+clock(at))
		})
	}}
}

var truths = map[string]predicates.Truth{"true": predicates.True, "false": predicates.False, "unknown": predicates.Unknown}

func truthText(t predicates.Truth, reason string) string {
	if reason == "" {
		return t.String()
	}
	return fmt.Sprintf("%v (%s)", t, reason)
}

// fired reads the times at which a predicate fires. Between says that only the
// firings in there count.
func (t *testParser) fired(raw *rawExpectation) expectation {
	within := defaultWithin
	if raw.Within != nil {
		within = *raw.Within
	}
	var want []span
	for _, item := range raw.Fired.Each() {
		var at time.Duration
		var ends []time.Duration
		switch {
		case item.Kind() != yamlconf.KindList:
			if item.Decode(&at) == nil {
				want = append(want, t.within(item, at, at+within))
			}
		case item.Decode(&ends) == nil:
			want = append(want, t.pair(item, ends))
		}
	}
	return t.fires(raw, raw.Predicate, want)
}

func (t *testParser) never(raw *rawExpectation) expectation {
	return t.fires(raw, raw.Never, nil)
}

func (t *testParser) fires(raw *rawExpectation, of yamlconf.Node, want []span) expectation {
	name, window := of.Text(), span{0, maxLasts}
	if raw.Between != nil {
		window = t.pair(raw.node, raw.Between)
	}
	knows(of, "predicate", t.test.plan.Predicates())
	return expectation{subject: name, check: func(l *log) difference { return l.fires(name, window, want) }}
}

// fires wants a predicate to fire once in each stretch of time, in this order, and
// at no other time of the window.
func (l *log) fires(name string, window span, want []span) difference {
	var d difference
	rest := want
	for _, v := range l.verdicts[name] {
		if !v.what.fired || !window.contains(v.at) {
			continue
		}
		for len(rest) > 0 && rest[0].to < v.at {
			d.want = append(d.want, "a firing "+rest[0].String())
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].contains(v.at) {
			rest = rest[1:]
			continue
		}
		d.got = append(d.got, "a firing at "+clock(v.at))
	}
	for _, s := range rest {
		d.want = append(d.want, "a firing "+s.String())
	}
	switch {
	case d.none():
	case len(d.got) == 0:
		d.got = []string{"no firing"}
	case len(want) == 0:
		d.want = []string{"no firing"}
	case len(d.want) == 0:
		d.want = []string{"no other firing"}
	}
	return d
}

func (t *testParser) signal(raw *rawExpectation) expectation {
	w := wanted{name: raw.Signal.Text(), targets: !absent(raw.To)}
	var known []string
	var fields scgs.Schema
	for _, sent := range t.test.plan.Sends() {
		known = append(known, sent.Name)
		if sent.Name == w.name {
			fields = sent.Data
		}
	}
	if _, ok := knows(raw.Signal, "signal", known); !ok {
		return expectation{}
	}
	w.when = t.when(raw, defaultWithin)
	if w.targets {
		w.to = t.names(raw.To)
	}
	if !absent(raw.Fate) {
		if i, ok := knows(raw.Fate, "fate", namesOf(control.Fates, control.Fate.String)); ok {
			w.fate = control.Fates[i]
		}
	}
	if !absent(raw.Kind) {
		knows(raw.Kind, "kind of signal", []string{control.Activate.String(), control.Cancel.String()})
		w.kind = raw.Kind.Text()
	}
	w.data = t.values(raw.Data, fields, "the signal "+w.name, false)
	return expectation{subject: w.name, check: w.check}
}

// scalar is a value of any type, as the file writes it.
type scalar struct {
	node yamlconf.Node
	text string
}

func (s *scalar) UnmarshalNode(n yamlconf.Node) error {
	if composed(n) {
		if path := n.Path(); strings.HasSuffix(path, ".initial") || strings.HasPrefix(path, "initial.") {
			return n.Fault("a first state is one line of FIELD=VALUE, separated by spaces: write %s", firstState(n))
		}
		return n.Fault("a value is expected")
	}
	s.node, s.text = n, n.Text()
	return nil
}

// firstState is what a map of fields would be as a first state, or an example.
func firstState(n yamlconf.Node) string {
	var words []string
	for _, item := range n.Items() {
		key, _ := item.Key()
		if key == "" || composed(item) || strings.ContainsAny(item.Text(), " \"'") || len(words) == maxFirst {
			return "phase=idle load=0"
		}
		words = append(words, key+"="+item.Text())
	}
	return cmp.Or(strings.Join(words, " "), "phase=idle load=0")
}

// maxFirst is how many fields a message writes out.
const maxFirst = 8

// pair is a value that is wanted, Invalid for unknown.
type pair struct {
	field int
	name  string
	value scgs.Value
}

// values reads values of a schema; lacking says that they may be unknown.
func (t *testParser) values(m yamlconf.Map[scalar], schema scgs.Schema, what string, lacking bool) (list []pair) {
	for _, e := range m {
		i := schema.Index(e.Key)
		switch {
		case absent(e.Value.node):
			continue
		case i < 0:
			t.doc.Fault(e.Pos, "%s has no %q: it has %s", what, e.Key, orNone(fieldNames(schema)))
			continue
		}
		w := pair{field: i, name: e.Key}
		if f := schema[i]; !lacking || e.Value.text != "unknown" || f.Type == scgs.String || f.Type == scgs.Enum {
			var err error
			if w.value, err = config.ParseValue(f, e.Value.text); err != nil {
				refuse(e.Value.node, "%v", err)
			}
		}
		list = append(list, w)
	}
	return list
}

// names reads a name or a list of names of members.
func (t *testParser) names(n yamlconf.Node) (list []string) {
	for _, item := range n.Each() {
		names, err := expand(item.Text())
		switch missing := slices.DeleteFunc(slices.Clone(names), t.has); {
		case composed(item):
			refuse(item, "the name of a member is expected")
			continue
		case err != nil:
			refuse(item, "%v", err)
			continue
		case len(missing) > 1:
			refuse(item, "the test has no member %q, nor %d others of these", missing[0], len(missing)-1)
		case len(missing) == 1:
			refuse(item, "the test has no member %q", missing[0])
		}
		list = append(list, names...)
	}
	slices.Sort(list)
	return list
}

// wanted is a signal of a decision.
type wanted struct {
	name    string
	when    span
	targets bool // to is given
	to      []string
	kind    string // empty: any
	data    []pair
	fate    control.Fate
}

// check looks at the decisions in the stretch of time: one of them has to have
// sent the signal as it is wanted.
func (w *wanted) check(l *log) difference {
	decisions := map[control.Decision][]*sent{}
	var order []control.Decision
	for _, s := range l.sent {
		if s.signal.Name != w.name || !w.when.contains(s.at) {
			continue
		}
		d := s.signal.Decision
		if decisions[d] == nil {
			order = append(order, d)
		}
		decisions[d] = append(decisions[d], s)
	}
	none := w.targets && len(w.to) == 0
	if none && len(order) == 0 {
		return difference{}
	}
	d := difference{want: []string{w.String()}}
	for _, decision := range order {
		if !none && w.matches(decisions[decision]) {
			return difference{}
		}
		for _, s := range decisions[decision] {
			d.got = append(d.got, fmt.Sprintf("%v %s%s to %s at %s: %s", s.signal.Kind, w.name, dataText(s.signal.Data), s.signal.Target, clock(s.at), fateText(s)))
		}
	}
	if len(order) == 0 {
		d.got = []string{"no " + w.name + " " + w.when.String()}
	}
	return d
}

func (w *wanted) matches(list []*sent) bool {
	var to []string
	for _, s := range list {
		to = append(to, s.signal.Target)
		if w.fate != unsettled && s.fate != w.fate || w.kind != "" && s.signal.Kind.String() != w.kind {
			return false
		}
		for _, p := range w.data {
			if !same(s.signal.Lookup(p.name), p.value) {
				return false
			}
		}
	}
	slices.Sort(to)
	return !w.targets || slices.Equal(to, w.to)
}

func (w *wanted) String() string {
	text := w.name
	if w.targets && len(w.to) == 0 {
		return "no " + text + " " + w.when.String()
	}
	if w.kind != "" {
		text = w.kind + " " + text
	}
	data := make([]control.Datum, len(w.data))
	for i, p := range w.data {
		data[i] = control.Datum{Name: p.name, Value: p.value}
	}
	text += dataText(data)
	if w.targets {
		text += " to " + strings.Join(w.to, ", ")
	}
	text += " " + w.when.String()
	if w.fate != unsettled {
		text += ": " + w.fate.String()
	}
	return text
}

func (t *testParser) memory(raw *rawExpectation) expectation {
	return t.row(raw, "memory", raw.Memory, t.test.plan.Memory(), func(l *log) []held[[]scgs.Value] { return l.memory })
}

func (t *testParser) summary(raw *rawExpectation) expectation {
	return t.row(raw, "summary", raw.Summary, t.test.plan.SummaryFields(), func(l *log) []held[[]scgs.Value] { return l.summary })
}

// row reads an expectation of values.
func (t *testParser) row(raw *rawExpectation, key string, m yamlconf.Map[scalar], schema scgs.Schema, of func(*log) []held[[]scgs.Value]) expectation {
	s := t.when(raw, 0)
	if len(m) == 0 {
		refuse(raw.node, "say which values: %s has %s", key, orNone(fieldNames(schema)))
	}
	want := t.values(m, schema, key, true)
	return expectation{subject: key, check: func(l *log) difference {
		return during(of(l), s, func(values []scgs.Value, at time.Duration) difference {
			var d difference
			for _, p := range want {
				var got scgs.Value
				if len(values) > 0 {
					got = values[p.field]
				}
				if !same(got, p.value) {
					d.want = append(d.want, fmt.Sprintf("%s=%s %v", p.name, valueText(p.value), s))
					d.got = append(d.got, fmt.Sprintf("%s=%s at %s", p.name, valueText(got), clock(at)))
				}
			}
			return d
		})
	}}
}

func (t *testParser) roster(raw *rawExpectation) expectation {
	s, want := t.when(raw, 0), t.names(raw.Members)
	return expectation{check: func(l *log) difference {
		return during(l.epochs, s, func(names []string, at time.Duration) difference {
			if slices.Equal(names, want) {
				return difference{}
			}
			return differs(members(want)+" "+s.String(), members(names)+" at "+clock(at))
		})
	}}
}

func members(names []string) string {
	if len(names) == 0 {
		return "no epoch"
	}
	return "epoch of " + strings.Join(names, ", ")
}

// during looks at everything that was valid in a stretch of time, and tells the first
// difference.
func during[T any](list []held[T], s span, check func(what T, at time.Duration) difference) difference {
	for i := range list {
		from := max(list[i].at, s.from)
		over := i+1 < len(list) && list[i+1].at <= from
		if over || from > s.to {
			continue
		}
		if d := check(list[i].what, from); !d.none() {
			return d
		}
	}
	return difference{}
}
