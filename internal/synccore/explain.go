package synccore

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Explanation says why a predicate fired last, what it comes to now, and what it
// lacks. Durations are in seconds, ages those of the moment it was asked for.
type Explanation struct {
	Synchronizer string `json:"synchronizer"`
	PredicateStatus
	When  string       `json:"when"`        // its text
	For   float64      `json:"for_seconds"` // its hold time
	Every bool         `json:"every"`       // it fires on each global state
	Epoch uint64       `json:"epoch"`       // 0: there are too few members
	State *StateStatus `json:"state"`       // as in [Status]
	// Parts are those of the text on the newest global state, outermost first; empty
	// before the first of the epoch.
	Parts []Condition `json:"parts"`
	// Missing is what keeps it from firing, or from the next verdict, at this
	// moment.
	Missing []Missing `json:"missing"`
	// Last is the newest decision, nil before the first.
	Last *LastDecision `json:"last_decision"`
	// Balance is there in the explanation of the section balance alone, under the name
	// [BalanceName]: it has the last plan in place of a decision.
	Balance *BalanceStatus `json:"balance,omitempty"`
}

// Condition is a part of a predicate's text; see [predicates.Part].
type Condition struct {
	Depth  int    `json:"depth"`
	Text   string `json:"text"`
	Low    any    `json:"low"`  // the value, or its lower bound; nil if nothing is known
	High   any    `json:"high"` // the value, or its upper bound
	Reason string `json:"reason,omitempty"`
	// For these members the condition of a function over a group holds, does not,
	// or may: at most 16 of each are named, and all counted.
	True    *Some `json:"true,omitempty"`
	False   *Some `json:"false,omitempty"`
	Unknown *Some `json:"unknown,omitempty"`
}

// Some names the first members of a list.
type Some struct {
	Count int      `json:"count"`
	Names []string `json:"names"`
}

// Missing is one thing that a predicate lacks.
type Missing struct {
	// Kind is condition (it is not true), members (too few for an epoch), state (a
	// member has none), silent, gone, report (one is lost and asked for), evidence
	// (that a state still holds), unknown (nothing is known of a member), clock (a
	// member's has no bound), hold (its time runs), runs (its own detector has found
	// nothing new), aside (the section balance leaves a member alone),
	// rests (its last order came to nothing), cooldown, target (nobody is known in the group its signal goes to), or
	// armed (it has fired, and has not been false since, or its until not true).
	Kind   string `json:"kind"`
	Member string `json:"member,omitempty"`
	Text   string `json:"text"`
	// Since is its age, nil where that is not known: of evidence how long it has been
	// asked for, of a hold time how much of it is over.
	Since *float64 `json:"since_seconds"`
}

// LastDecision is a decision and the global state that it was made on. Its ranges
// count from the instant from which all states certainly held together, or, if
// there is none, may have.
type LastDecision struct {
	ID        string  `json:"decision"`
	Ago       float64 `json:"ago_seconds"`
	Epoch     uint64  `json:"epoch"`
	Modality  string  `json:"modality"` // inst, atleast, definitely or possibly; see [Verdict]
	Index     uint64  `json:"state"`
	Partial   bool    `json:"partial"`
	Held      float64 `json:"held_seconds"`
	SameClock bool    `json:"same_clock"`
	Bound     float64 `json:"bound_seconds"` // the widest that it rests on, 0 by the same clock
	Sources   string  `json:"bound_sources"`
	Core      *Range  `json:"core"` // nil: there is none
	Envelope  Range   `json:"envelope"`
	// Witness are the states that held together, at most 64; LeftOut counts the
	// others. The one that began last and the one that ended first are among them.
	Witness []WitnessState `json:"witness"`
	LeftOut int            `json:"left_out"`
}

// WitnessState is one member's state in a witness. By the same clock its ends are
// exact.
type WitnessState struct {
	Member  string `json:"member"`
	Seq     uint64 `json:"seq"`
	Unknown bool   `json:"unknown"` // nothing is known of it
	Open    bool   `json:"open"`    // End is the newest evidence at the time
	Start   Range  `json:"start"`
	End     Range  `json:"end"`
	State   Values `json:"state"`
}

// maxNamed is how many members a condition names.
const maxNamed = 16

// maxMissing is how many members are told to lack something.
const maxMissing = 64

// Explain tells of a predicate; false if there is none of that name. The instant
// is not before that of the last step. It changes nothing; beside O(members) it
// costs what [predicates.Expression.Explain] does.
func (c *Core) Explain(now clocksync.Instant, predicate string) (Explanation, bool) {
	if predicate == BalanceName && c.planner != nil {
		return c.explainBalance(now), true
	}
	i := c.ruleIndex(predicate)
	if i < 0 {
		return Explanation{}, false
	}
	r := c.plan.rules[i]
	e := Explanation{
		Synchronizer: c.plan.Name, PredicateStatus: c.predicateStatus(now, i),
		When: r.source(), For: r.hold.Seconds(), Every: r.every, Epoch: c.Epoch(), State: c.stateStatus(),
		Parts: []Condition{}, Missing: []Missing{},
	}
	if e.State != nil && r.when != nil {
		for _, p := range r.when.Explain(c.scope) {
			e.Parts = append(e.Parts, c.condition(&p))
		}
	}
	e.Missing = c.missing(e.Missing, now, i)
	if p := c.past[predicate]; p != nil && p.fired > 0 {
		e.Last = p.decision(now)
	}
	return e, true
}

func (c *Core) condition(p *predicates.Part) Condition {
	out := Condition{Depth: p.Depth, Text: p.Text, Low: Plain(p.Low), High: Plain(p.High), Reason: p.Reason}
	if m := p.Split; m != nil {
		out.True, out.False, out.Unknown = c.some(m.True), c.some(m.False), c.some(m.Unknown)
	}
	return out
}

func (c *Core) some(members []int) *Some {
	s := &Some{Count: len(members), Names: []string{}}
	for _, i := range members[:min(len(members), maxNamed)] {
		s.Names = append(s.Names, c.inEpoch[i].name)
	}
	return s
}

// missing appends what a predicate lacks.
func (c *Core) missing(dst []Missing, now clocksync.Instant, i int) []Missing {
	r, s, p := c.plan.rules[i], &c.states[i], c.past[c.plan.rules[i].name]
	add := func(kind, text string, since *float64) {
		dst = append(dst, Missing{Kind: kind, Text: text, Since: since})
	}
	switch status := c.predicateStatus(now, i); {
	case r.own.exists():
		c.missingRuns(add, r, i)
	case c.Epoch() == 0 || !s.told:
		add("condition", "it has not been judged in this epoch", nil)
	case s.truth == predicates.False:
		add("condition", "it is false", status.Since)
	case s.truth == predicates.Unknown:
		add("condition", "it is unknown: "+p.reason, status.Since)
	case r.every:
	case !s.armed && p.fired > 0:
		since := ago(now, p.at)
		add("armed", "it has fired since it became true; it fires again when "+r.again()+", or in a new epoch", &since)
	case s.holding:
		h := status.Hold
		add("hold", fmt.Sprintf("it has certainly been true for %v and has to be for %v: %v more", rough(h.Certain), r.hold, rough(max(0, h.Wanted-h.Certain))), &h.Certain)
	case r.hold > 0 && s.armed:
		add("hold", "the states have no certain time in common, so its hold time does not run: the clocks' bound is too wide for them", status.Since)
	}
	if lasts := s.quiet.Sub(now); s.quiet > now {
		add("cooldown", fmt.Sprintf("its cooldown of %v lasts %v more", r.cooldown, rough(lasts.Seconds())), nil)
	}
	for _, o := range r.signals {
		if o.group != "" && len(c.others[o.group].sorted) == 0 {
			add("target", fmt.Sprintf("no member of group %q is known: signal %s would go to nobody", o.group, o.name), nil)
		}
	}
	dst = c.missingMembers(dst, now)
	return c.missingEvidence(dst, now, i)
}

// again is what makes a predicate that has fired ready to fire again.
func (r *rule) again() string {
	if r.until != nil {
		return "its until is true"
	}
	return "it was false"
}

// source is the text of the condition.
func (r *rule) source() string {
	if r.judge != nil {
		return "a function of the program"
	}
	return r.when.Source()
}

// missingRuns tells what a predicate with a detector of its own waits for.
func (c *Core) missingRuns(add func(kind, text string, since *float64), r *rule, i int) {
	w := c.runsOf(i)
	if r.until != nil && !c.states[i].armed {
		add("armed", "it has fired; it fires again when "+r.again()+", or in a new epoch", nil)
		return
	}
	for _, f := range w.found {
		if f.waits && r.hold > 0 {
			add("hold", fmt.Sprintf("%d members have been found that hold it together; they are not known to have done so for %v", len(f.runs), r.hold), nil)
			return
		}
	}
	if r.own.atLeast > 0 {
		add("runs", fmt.Sprintf("no set of %d members or more is known to hold it together, beside those that it has fired on", r.own.atLeast), nil)
		return
	}
	add("runs", "its members are not known to hold it together, beside the times that it has fired on", nil)
}

// runsOf is the rule's own detector, nil if it has none.
func (c *Core) runsOf(rule int) *runs {
	for _, w := range c.runs {
		if w.rule == rule {
			return w
		}
	}
	return nil
}

// missingMembers appends the members that an epoch lacks, and what is wrong with
// those that are here.
func (c *Core) missingMembers(dst []Missing, now clocksync.Instant) []Missing {
	if c.Epoch() == 0 {
		ready := len(c.ready()) + len(c.inEpoch) - len(c.removing)
		dst = append(dst, Missing{Kind: "members", Text: fmt.Sprintf("%d of the %d members that are awaited have a state", ready, c.awaited())})
	}
	apart, status := !c.oneDomain(), c.memberStatus(now)
	for i, m := range c.sorted {
		if len(dst) >= maxMissing {
			break
		}
		heard := ago(now, m.heard)
		add := func(kind, text string, since *float64) {
			dst = append(dst, Missing{Kind: kind, Member: m.name, Text: text, Since: since})
		}
		switch {
		case m.gone:
			add("gone", m.why, &heard)
			continue
		case c.silent(m, now):
			add("silent", fmt.Sprintf("it was not heard for %v; after %v of silence: %s", rough(heard), c.plan.Silence.After, c.plan.Silence.Then), &heard)
		}
		if m.gapSince != clocksync.MaxInstant {
			since := ago(now, m.gapSince)
			add("report", fmt.Sprintf("its report %d is missing and was asked for; %d after it wait", m.last+1, len(m.stash)), &since)
		}
		switch {
		case m.standing() == Mute:
			add("state", "it has joined and has no state: the program has to set one", nil)
		case m.index == noIndex:
		case c.tuple && m.state.Unknown:
			add("unknown", "nothing is known of its state: reports of it are lost", nil)
		}
		if apart && status[i].Clock.Bound == nil && m.index != noIndex {
			add("clock", fmt.Sprintf("its clock has no bound (%s): nothing is certain between it and other hosts", status[i].Clock.Status), nil)
		}
	}
	return dst
}

// missingEvidence appends whose evidence would decide more.
func (c *Core) missingEvidence(dst []Missing, now clocksync.Instant, rule int) []Missing {
	c.needs = c.det.Needs(c.needs[:0])
	w := c.runsOf(rule)
	if w != nil {
		c.needs = w.needs(c.needs[:0])
	}
	for _, n := range c.needs {
		m := c.byIndex[n.Member]
		if len(dst) >= maxMissing {
			break
		}
		if m.gone || len(m.stash) > 0 {
			continue // Told already.
		}
		one := Missing{Kind: "evidence", Member: m.name, Text: fmt.Sprintf("evidence that its state %d still held when the others had theirs", n.Seq)}
		if n.Seq == 0 {
			one.Kind, one.Text = "state", "its next state: it has ended the last one"
		}
		if c.tuple && w == nil {
			one.Text += ", for the next global state"
		}
		if m.probes > 0 {
			since := ago(now, m.asked)
			one.Since = &since
		}
		dst = append(dst, one)
	}
	return dst
}

// rough is a duration with three digits or so.
func rough(seconds float64) time.Duration {
	d := time.Duration(math.Round(seconds * float64(time.Second)))
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// decision is the last decision with its witness.
func (p *past) decision(now clocksync.Instant) *LastDecision {
	v, s := &p.last, &p.last.Span
	origin := s.EnvelopeFrom
	core := (*Range)(nil)
	switch {
	case s.SameClock:
		origin = s.MonoFrom
		core = &Range{To: clocksync.Instant(s.MonoTo.Sub(origin))}
	case s.HasCore:
		origin = s.CoreFrom
		core = &Range{To: clocksync.Instant(s.CoreTo.Sub(origin))}
	}
	d := &LastDecision{
		ID: v.Decision.String(), Ago: ago(now, p.at), Epoch: v.Epoch, Modality: cmp.Or(v.Modality, scgs.Inst.String()), Index: v.Index, Partial: v.Partial,
		Held: s.Certain().Seconds(), SameClock: s.SameClock, Bound: v.Bound.Seconds(), Sources: v.Sources,
		Core: core, Envelope: since(origin, s.EnvelopeFrom, s.EnvelopeTo), LeftOut: p.leftOut,
		Witness: make([]WitnessState, 0, len(v.Witness)),
	}
	if s.SameClock {
		d.Envelope = *core
	}
	for i := range v.Witness {
		w := &v.Witness[i]
		one := WitnessState{
			Member: w.Name, Seq: w.State.Seq, Unknown: w.State.Unknown, Open: w.State.Open,
			State: NewValues(w.Fields, w.Row),
		}
		if from, to := w.State.Start, w.State.End; s.SameClock {
			one.Start, one.End = since(origin, from.Mono, from.Mono), since(origin, to.Mono, to.Mono)
		} else {
			one.Start = since(origin, from.Within.Earliest, from.Within.Latest)
			one.End = since(origin, to.Within.Earliest, to.Within.Latest)
		}
		d.Witness = append(d.Witness, one)
	}
	return d
}
