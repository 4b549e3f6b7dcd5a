package ruletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// log is what happened in one run, each list in the order of time.
type log struct {
	lines    []line
	states   map[string][]held[[]scgs.Value] // of participants, as they set them; nil: it is not there
	verdicts map[string][]held[verdict]
	sent     []*sent
	known    map[sentKey]*sent
	epochs   []held[[]string] // the current members; none while there are too few
	memory   []held[[]scgs.Value]
	summary  []held[[]scgs.Value]
	refused  map[string]string // why members were not taken in
}

// line is something that happened, as it is shown.
type line struct {
	at      time.Duration
	subject string // of which predicate, signal and so on; empty: it concerns all
	text    string
}

// held is a value that is valid from its time on.
type held[T any] struct {
	at   time.Duration
	what T
}

type verdict struct {
	truth  predicates.Truth
	reason string
	fired  bool
}

// sent is a signal of a decision to a member.
type sent struct {
	at     time.Duration
	signal *control.Signal
	fate   control.Fate
	detail string
}

// sentKey tells signals apart.
type sentKey struct {
	decision     control.Decision
	name, target string
}

// unsettled is the fate of a signal that has none yet.
const unsettled control.Fate = 0

func newLog(plan *plan.Level) *log {
	l := &log{states: map[string][]held[[]scgs.Value]{}, verdicts: map[string][]held[verdict]{}, known: map[sentKey]*sent{}, refused: map[string]string{}}
	for _, name := range plan.Predicates() {
		l.verdicts[name] = []held[verdict]{{-1, verdict{truth: predicates.Unknown, reason: "there is no global state yet"}}}
	}
	l.epochs = []held[[]string]{{at: -1}}
	l.summary = []held[[]scgs.Value]{{at: -1}}
	return l
}

func (l *log) add(at time.Duration, subject, format string, args ...any) {
	at = max(at, 0) // Values from before the test were there when it began.
	l.lines = append(l.lines, line{at, subject, fmt.Sprintf(format, args...)})
}

// output takes what a step has told.
func (l *log) output(at time.Duration, plan *plan.Level, o *synccore.Output) {
	verdicts := o.Verdicts
	for i := range o.Epochs {
		e := &o.Epochs[i]
		for len(verdicts) > 0 && e.Epoch > 0 && verdicts[0].Epoch < e.Epoch {
			l.verdict(at, &verdicts[0])
			verdicts = verdicts[1:]
		}
		l.epoch(at, e)
	}
	for i := range verdicts {
		l.verdict(at, &verdicts[i])
	}
	for i := range o.Signals {
		for j := range o.Signals[i].Msg.Signals {
			s := o.Signals[i].Msg.Signals[j]
			l.signal(at, &s)
		}
	}
	for _, f := range o.Fates {
		l.fate(at, f)
	}
	for i := range o.Summary {
		l.summarize(at, plan, &o.Summary[i])
	}
	for _, r := range o.Rejected {
		l.add(at, "", "refused %s: %s", r.From, r.Detail)
	}
	for _, w := range o.Welcomes {
		if w.Msg.Refused {
			l.refused[w.To] = w.Msg.Reason
		}
	}
	if o.Failed != "" {
		l.add(at, "", "the synchronizer ends: %s", o.Failed)
		l.nothing(at, "the synchronizer has ended: "+o.Failed)
	}
}

func (l *log) verdict(at time.Duration, v *monitor.Verdict) {
	l.verdicts[v.Predicate] = append(l.verdicts[v.Predicate], held[verdict]{at, verdict{v.Truth, v.Reason, v.Fired}})
	switch {
	case v.Fired:
		l.add(at, v.Predicate, "%s fires on %s", v.Predicate, strings.Join(namesOf(v.Witness, func(p monitor.Part) string { return p.String() }), ", "))
	case v.Truth == predicates.Unknown:
		l.add(at, v.Predicate, "%s is unknown: %s", v.Predicate, v.Reason)
	default:
		l.add(at, v.Predicate, "%s is %v", v.Predicate, v.Truth)
	}
}

// epoch begins all predicates again.
func (l *log) epoch(at time.Duration, e *monitor.Epoch) {
	for _, d := range e.Dropped {
		l.add(at, "", "%s is no longer a member: %s", d.Name, d.Reason)
	}
	if e.Epoch == 0 {
		l.epochs = append(l.epochs, held[[]string]{at: at})
		l.add(at, "", "too few members, nothing is decided: %s", orNone(e.Members))
		l.nothing(at, "there are too few members")
		return
	}
	if slices.Equal(l.epochs[len(l.epochs)-1].what, e.Members) && len(e.Joined) == 0 {
		return // One left that was in no epoch.
	}
	l.epochs = append(l.epochs, held[[]string]{at, slices.Clone(e.Members)})
	l.add(at, "", "epoch %d: %s", e.Epoch, strings.Join(e.Members, ", "))
	l.nothing(at, fmt.Sprintf("epoch %d has no global state yet", e.Epoch))
}

// nothing is known of any predicate.
func (l *log) nothing(at time.Duration, reason string) {
	for name := range l.verdicts {
		l.verdicts[name] = append(l.verdicts[name], held[verdict]{at, verdict{truth: predicates.Unknown, reason: reason}})
	}
}

// signal notes a signal that goes out, the first time it does.
func (l *log) signal(at time.Duration, s *control.Signal) *sent {
	key := sentKey{s.Decision, s.Name, s.Target}
	if known := l.known[key]; known != nil {
		return known
	}
	known := &sent{at: at, signal: s}
	l.known[key] = known
	l.sent = append(l.sent, known)
	l.add(at, s.Name, "signal %s (%v region %s%s) to %s", s.Name, s.Kind, s.Region, dataText(s.Data), s.Target)
	return known
}

func dataText(data []control.Datum) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, " %s=%v", d.Name, d.Value)
	}
	return b.String()
}

func (l *log) fate(at time.Duration, f monitor.Fate) {
	s := l.signal(at, f.Signal)
	s.fate, s.detail = f.Fate, f.Detail
	l.add(at, f.Signal.Name, "signal %s to %s: %s", f.Signal.Name, f.Signal.Target, fateText(s))
}

func fateText(s *sent) string {
	switch {
	case s.fate == unsettled:
		return "no fate yet"
	case s.detail != "":
		return fmt.Sprintf("%v (%s)", s.fate, s.detail)
	}
	return s.fate.String()
}

func (l *log) summarize(at time.Duration, plan *plan.Level, e *synccore.SummaryEvent) {
	switch e.Kind {
	case synccore.SummaryStart:
		l.summary = append(l.summary, held[[]scgs.Value]{at, slices.Clone(e.Row)})
		l.add(at, "summary", "summary %s", rowText(plan.SummaryFields(), e.Row))
	case synccore.SummaryEnd:
		l.summary = append(l.summary, held[[]scgs.Value]{at: at})
	case synccore.SummaryAlive:
	}
}

// remember notes the memory where it has changed.
func (l *log) remember(at time.Duration, schema scgs.Schema, values []scgs.Value) {
	if n := len(l.memory); n > 0 && slices.EqualFunc(l.memory[n-1].what, values, same) {
		return
	}
	if l.memory = append(l.memory, held[[]scgs.Value]{at, slices.Clone(values)}); len(values) > 0 {
		l.add(at, "memory", "memory %s", rowText(schema, values))
	}
}

func same(a, b scgs.Value) bool { return a.Type() == b.Type() && a.String() == b.String() }

func rowText(schema scgs.Schema, values []scgs.Value) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = schema[i].Name + "=" + valueText(v)
	}
	return strings.Join(parts, " ")
}

func valueText(v scgs.Value) string {
	if v.Type() == scgs.Invalid {
		return "unknown"
	}
	return v.String()
}

// told lists what happened, as far as it is wanted.
func (l *log) told(wanted func(*line) bool) []string {
	var list []string
	for i := range l.lines {
		if x := &l.lines[i]; wanted(x) {
			list = append(list, fmt.Sprintf("%-10s %s", clock(x.at), x.text))
		}
	}
	return list
}

// clock gives a time with a precision of a microsecond.
func clock(d time.Duration) string { return d.Round(time.Microsecond).String() }
