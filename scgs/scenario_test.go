package scgs_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// The scenario files draw a timeline and say what must be found. Times are in
// units of 1000 ns, and a reading is the time itself. Commands:
//
//	new [modality=M] [pending=N] [monotone]
//	                        another detector; the stamps of each clock are made
//	                        monotone as a source does it
//	epoch N [remove=A]      lines "NAME domain=D [eps=E]" are members that join
//	input                   lines as below; what they bring about is printed
//	    A a@10              A's state a begins at 10, with A's eps ...
//	    A +a@10             ... and the condition holds in it, as in A a@10 ...
//	    A -a@10             ... or does not
//	    A a@10+-2           ... or this one ...
//	    A a@10[8,12]        ... or this interval
//	    A #3 a@10           with sequence number 3 instead of the next
//	    A end@10            A's state ends, and no other begins
//	    A alive@10          A's newest state still holds
//	    A until@10..20      A's newest state holds at 10 and until 20
//	    A lost              A was silent for too long
//	    A restart [D]       A is a new incarnation, on clock domain D
//	finish                  nothing more will be reported
//	needs, witness, stats   ask the detector
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		s := newScene(scgs.Options{})
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			t.Helper()
			s.t, s.out = t, &strings.Builder{}
			switch c.Cmd {
			case "new":
				s = newScene(options(t, c))
				s.monotone = c.HasArg("monotone")
				return ""
			case "epoch":
				s.epoch(c)
			case "input":
				for line := range strings.Lines(c.Input) {
					s.input(strings.TrimSpace(line))
				}
			case "finish":
				s.d.Finish()
				s.drain("finish")
			case "needs":
				s.needs()
			case "witness":
				s.witness()
			case "stats":
				s.stats()
			default:
				t.Fatalf("unknown command %q", c.Cmd)
			}
			return s.out.String()
		})
	})
}

// unit is how many nanoseconds the files' numbers count.
const unit = 1000

func options(t *testing.T, c *datadriven.TestData) scgs.Options {
	t.Helper()
	var o scgs.Options
	c.MaybeScanArgs(t, "pending", &o.MaxPending)
	word := scgs.Inst.String()
	c.MaybeScanArgs(t, "modality", &word)
	for o.Modality = range scgs.Possibly + 1 {
		if o.Modality.String() == word {
			return o
		}
	}
	t.Fatalf("no modality %q", word)
	return o
}

// scene is a detector whose members and states have names.
type scene struct {
	t        *testing.T
	out      *strings.Builder
	d        *scgs.Detector
	modality scgs.Modality
	members  map[string]*actor
	states   []string // by Ref
	event    scgs.Event
	monotone bool
	rules    map[clocksync.Domain]*clocksync.Monotone
}

type actor struct {
	name   string
	m      scgs.Member
	domain clocksync.Domain
	eps    float64
	seq    uint64
	states map[uint64]string // by number
}

func newScene(o scgs.Options) *scene {
	return &scene{
		d: scgs.NewDetector(o), modality: o.Modality, members: map[string]*actor{}, states: []string{"?"},
		rules: map[clocksync.Domain]*clocksync.Monotone{},
	}
}

func (s *scene) epoch(c *datadriven.TestData) {
	id, err := strconv.ParseUint(c.CmdArgs[0].Key, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	var remove []scgs.Member
	for _, a := range c.CmdArgs[1:] {
		for _, name := range a.Vals {
			remove = append(remove, s.members[name].m)
			delete(s.members, name)
		}
	}
	var (
		joined []*actor
		specs  []scgs.Spec
	)
	for line := range strings.Lines(c.Input) {
		a := &actor{states: map[uint64]string{}}
		for i, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			switch {
			case i == 0:
				a.name, a.domain = word, clocksync.Domain(word)
			case key == "domain":
				a.domain = clocksync.Domain(value)
			case key == "eps":
				a.eps = s.number(value)
			}
		}
		joined, specs = append(joined, a), append(specs, scgs.Spec{Domain: a.domain})
	}
	for i, m := range s.d.Epoch(id, remove, specs) {
		joined[i].m = m
		s.members[joined[i].name] = joined[i]
	}
	s.drain("epoch")
}

func (s *scene) number(text string) float64 {
	if text == "inf" {
		return math.Inf(1)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%q is no number", text)
	}
	return x
}

func instant(x float64) clocksync.Instant {
	switch {
	case math.IsInf(x, 1):
		return clocksync.MaxInstant
	case math.IsInf(x, -1):
		return clocksync.MinInstant
	}
	return clocksync.Instant(math.Round(x * unit))
}

// input runs one line. A message that is not taken shows its reason.
func (s *scene) input(line string) {
	s.report(s.d, line, s.start)
	s.drain(line)
}

// report runs a line on a detector; start takes what begins a state.
func (s *scene) report(d listener, line string, start func(a *actor, seq uint64, word string, at clocksync.Stamp) scgs.Reason) {
	words := strings.Fields(line)
	a := s.members[words[0]]
	if a == nil {
		s.t.Fatalf("no member %q", words[0])
	}
	words = words[1:]
	number := uint64(0)
	if text, ok := strings.CutPrefix(words[0], "#"); ok {
		number, words = uint64(s.number(text)), words[1:]
	}
	var why scgs.Reason
	switch verb, when, _ := strings.Cut(words[0], "@"); verb {
	case "lost":
		why = d.Lost(a.m)
	case "restart":
		a.seq = 0
		if len(words) > 1 {
			a.domain = clocksync.Domain(words[1])
		}
		why = d.Restart(a.m, a.domain, clocksync.MaxInstant)
	case "alive", "until":
		why = d.Evidence(a.m, a.number(number, a.seq), s.stamp(a, when))
	case "end":
		why = d.End(a.m, a.number(number, a.seq+1), s.stamp(a, when))
	default:
		why = start(a, a.number(number, a.seq+1), verb, s.stamp(a, when))
	}
	if why != scgs.Accepted {
		fmt.Fprintf(s.out, "%s: %v\n", line, why)
	}
}

// number is the sequence number given, or else the usual one.
func (a *actor) number(given, usual uint64) uint64 {
	if given == 0 {
		given = usual
	}
	a.seq = max(a.seq, given)
	return given
}

func (s *scene) start(a *actor, seq uint64, verb string, at clocksync.Stamp) scgs.Reason {
	name, holds := verb, true
	if verb[0] == '+' || verb[0] == '-' {
		holds, name = verb[0] == '+', verb[1:]
	}
	if !holds && s.modality != scgs.Inst {
		return s.d.End(a.m, seq, at)
	}
	s.states = append(s.states, name)
	a.states[seq] = name
	return s.d.Start(a.m, seq, at, scgs.Ref(len(s.states)-1))
}

// stamp reads T, T+-EPS, T[LO,HI] or T..UNTIL.
func (s *scene) stamp(a *actor, text string) clocksync.Stamp {
	if at, until, ok := strings.Cut(text, ".."); ok {
		return s.within(a, s.number(at), s.number(until), math.Inf(1))
	}
	if at, interval, ok := strings.Cut(text, "["); ok {
		lo, hi, _ := strings.Cut(strings.TrimSuffix(interval, "]"), ",")
		return s.within(a, s.number(at), s.number(lo), s.number(hi))
	}
	at, eps, ok := strings.Cut(text, "+-")
	e := a.eps
	if ok {
		e = s.number(eps)
	}
	return s.within(a, s.number(at), s.number(at)-e, s.number(at)+e)
}

func (s *scene) within(a *actor, at, lo, hi float64) clocksync.Stamp {
	stamp := clocksync.Stamp{
		Domain: a.domain, Mono: instant(at),
		Within: clocksync.Interval{Earliest: instant(lo), Latest: instant(hi)},
	}
	if !s.monotone {
		return stamp
	}
	rule := s.rules[a.domain]
	if rule == nil {
		rule = &clocksync.Monotone{}
		s.rules[a.domain] = rule
	}
	stamp, ok := rule.Next(stamp)
	if !ok {
		s.t.Fatalf("the clock of %s ran backwards to %v", a.name, stamp)
	}
	return stamp
}

// drain prints what has become certain, under the line that brought it about.
func (s *scene) drain(line string) {
	for first := true; s.d.Next(&s.event); first = false {
		if first {
			fmt.Fprintf(s.out, "%s\n", line)
		}
		e := &s.event
		kind := "global state"
		switch {
		case e.Partial:
			kind = "partial"
		case s.modality != scgs.Inst:
			kind = s.modality.String()
		}
		fmt.Fprintf(s.out, "  %d/%d %s %v", e.Epoch, e.Index, kind, e.Kind)
		if e.Kind == scgs.Opened {
			fmt.Fprintf(s.out, " (%s)", s.names())
		}
		if e.Step {
			fmt.Fprint(s.out, " step")
		}
		fmt.Fprintln(s.out, s.span(e.Span))
	}
}

func (s *scene) names() string {
	var names []string
	for _, p := range s.d.Witness(nil) {
		names = append(names, s.state(p))
	}
	return strings.Join(names, ",")
}

// state gives the name of a state, of a run those of its first and last.
func (s *scene) state(p scgs.Part) string {
	last := s.states[p.Ref]
	if a := s.members[s.name(p.Member)]; s.modality != scgs.Inst && a.states[p.Seq] != last {
		return a.states[p.Seq] + "-" + last
	}
	return last
}

func (s *scene) span(p scgs.Span) string {
	text := ""
	if p.SameClock {
		text = fmt.Sprintf(" readings [%s,%s)", show(p.MonoFrom), show(p.MonoTo))
	}
	if p.HasCore {
		text += fmt.Sprintf(" core [%s,%s)", show(p.CoreFrom), show(p.CoreTo))
	}
	return text + fmt.Sprintf(" envelope [%s,%s)", show(p.EnvelopeFrom), show(p.EnvelopeTo))
}

func show(t clocksync.Instant) string {
	if !t.Finite() {
		return t.String()
	}
	return strconv.FormatFloat(float64(t)/unit, 'f', -1, 64)
}

func (s *scene) name(m scgs.Member) string {
	for name, a := range s.members {
		if a.m == m {
			return name
		}
	}
	return "nobody"
}

func (s *scene) needs() {
	for _, n := range s.d.Needs(nil) {
		if n.Seq == 0 {
			fmt.Fprintf(s.out, "%s: a first state\n", s.name(n.Member))
			continue
		}
		fmt.Fprintf(s.out, "%s: after reading %s, time %s\n", s.name(n.Member), show(n.AfterMono), show(n.AfterTime))
	}
}

func (s *scene) witness() {
	for _, p := range s.d.Witness(nil) {
		word := "ended"
		if p.Open {
			word = "holds"
		}
		fmt.Fprintf(s.out, "%s: %s from %s, %s at %s\n", s.name(p.Member), s.state(p),
			show(p.Start.Mono)+interval(p.Start), word, show(p.End.Mono)+interval(p.End))
	}
}

func interval(s clocksync.Stamp) string {
	return fmt.Sprintf("[%s,%s]", show(s.Within.Earliest), show(s.Within.Latest))
}

func (s *scene) stats() {
	st := s.d.Stats()
	fmt.Fprintf(s.out, "states=%d evidence=%d gaps=%d collapsed=%d global=%d partial=%d\n",
		st.States, st.Evidence, st.Gaps, st.Collapsed, st.Global, st.Partial)
	for r := scgs.Duplicate; r <= scgs.NoMember; r++ {
		if n := st.Refused(r); n > 0 {
			fmt.Fprintf(s.out, "%v=%d\n", r, n)
		}
	}
}
