package synccore

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// maxNamed is how many members a condition names.
const maxNamed = 16

// maxMissing is how many members an explanation lists as lacking something.
const maxMissing = 64

// explainPredicate explains a predicate; false if there is none of that name. The instant is
// not before the last step. It changes nothing, and costs O(members) and
// [predicates.Expression.Explain].
func (c *Core) explainPredicate(now clocksync.Instant, predicate string) (monitor.Explanation, bool) {
	if predicate == config.BalanceName && c.planner != nil {
		return c.explainBalance(now), true
	}
	i := c.ruleIndex(predicate)
	if i < 0 { // Perhaps it is the key of a predicate that is judged for groups of members.
		e := monitor.Explanation{Synchronizer: c.plan.Name, PredicateStatus: monitor.PredicateStatus{Name: predicate}, Parts: []monitor.Condition{}, Missing: []monitor.Missing{}}
		for _, r := range c.plan.Rules {
			if r.Key == predicate && r.By != 0 {
				one, _ := c.explainPredicate(now, r.Name)
				e.Groups = append(e.Groups, one)
			}
		}
		return e, len(e.Groups) > 0
	}
	r := c.plan.Rules[i]
	e := monitor.Explanation{
		Synchronizer: c.plan.Name, PredicateStatus: c.predicateStatus(now, i),
		When: r.Source(), For: r.Hold.Seconds(), Every: r.Every, Epoch: c.inForce(), State: c.stateStatus(),
		Parts: []monitor.Condition{}, Missing: []monitor.Missing{},
	}
	if e.State != nil && r.When != nil {
		for _, p := range r.When.Explain(c.scope) {
			e.Parts = append(e.Parts, c.condition(&p))
		}
	}
	c.missing((*missing)(&e.Missing), now, i)
	if p := c.states[i].past; p.fired > 0 {
		e.Last = p.decision(now)
	}
	return e, true
}

func (r *membership) condition(p *predicates.Part) monitor.Condition {
	out := monitor.Condition{Depth: p.Depth, Text: p.Text, Low: monitor.Plain(p.Low), High: monitor.Plain(p.High), Reason: p.Reason}
	if p.Redacted {
		out.Low, out.High = scgs.Redacted, scgs.Redacted
	}
	if m := p.Split; m != nil {
		out.True, out.False, out.Unknown = r.some(m.True), r.some(m.False), r.some(m.Unknown)
	}
	return out
}

func (r *membership) some(members []int) *monitor.Some {
	s := &monitor.Some{Count: len(members), Names: []string{}}
	for _, i := range members[:min(len(members), maxNamed)] {
		s.Names = append(s.Names, r.inEpoch[i].name)
	}
	return s
}

// missing is a list of the things that lack.
type missing []monitor.Missing

func (l *missing) add(kind, member, text string, since *float64) {
	*l = append(*l, monitor.Missing{Kind: kind, Member: member, Text: text, Since: since})
}

// missing appends what a predicate lacks.
func (c *Core) missing(l *missing, now clocksync.Instant, i int) {
	r, s := c.plan.Rules[i], &c.states[i]
	p, add := s.past, func(kind, text string, since *float64) { l.add(kind, "", text, since) }
	switch status := c.predicateStatus(now, i); {
	case r.Detector.Exists():
		c.missingRuns(add, r, i)
	case c.inForce() == 0 || !s.told:
		add("condition", "the predicate has not been judged in this epoch", nil)
	case s.truth == predicates.False:
		add("condition", "the condition is false", status.Since)
	case s.truth == predicates.Unknown:
		add("condition", "the condition is unknown: "+p.reason, status.Since)
	case r.Every:
	case !s.armed && p.fired > 0:
		add("armed", "the predicate has fired since it became true; it fires again when "+r.Again()+", or in a new epoch"+newcomers(r), new(secondsAgo(now, p.at)))
	case s.holding:
		h := status.Hold
		add("hold", fmt.Sprintf("the condition has certainly been true for %v and has to be for %v: %v more", rough(h.Certain), r.Hold, rough(max(0, h.Wanted-h.Certain))), &h.Certain)
	case r.Hold > 0 && s.armed:
		add("hold", "the states have no certain time in common, so its hold time does not run: the clocks' bound is too wide for them", status.Since)
	}
	if r.Name == config.EndName && s.told && s.truth != predicates.True && c.plan.Work != nil && c.inForce() > 0 && c.stateStatus() != nil {
		value := func(k int, name string) (v scgs.Value) {
			if at := c.plan.State.Index(config.WorkPrefix + name); at >= 0 {
				v = c.scope.Value(c.inEpoch[k].pos, at)
			}
			return v
		}
		names := make([]string, len(c.inEpoch))
		for k, m := range c.inEpoch {
			names[k] = m.name
		}
		list := c.plan.Blockers(names, value, c.memory[c.plan.Ended].Int())
		for _, b := range list[:min(len(list), max(0, maxMissing-len(*l)))] {
			l.add("work", b.Member, b.Text, nil)
		}
	}
	if lasts := s.quiet.Sub(now); s.quiet > now {
		add("cooldown", fmt.Sprintf("its cooldown of %v lasts %v more", r.Cooldown, rough(lasts.Seconds())), nil)
	}
	for _, o := range r.Signals {
		if o.Group != "" && len(c.others[o.Group].sorted) == 0 {
			add("target", fmt.Sprintf("no member of group %q is known: signal %s would go to nobody", o.Group, o.Name), nil)
		}
	}
	*l = append(*l, s.past.vainReasons(r, c.plan, &c.reports.regions)...)
	c.missingMembers(l, now)
	c.missingEvidence(l, now, i)
}

// missingRuns tells what a predicate with a detector of its own waits for.
func (j *judgement) missingRuns(add func(kind, text string, since *float64), r *plan.Rule, i int) {
	w := j.runsOf(i)
	if r.Until != nil && !j.states[i].armed {
		add("armed", "the predicate has fired; it fires again when "+r.Again()+", or in a new epoch"+newcomers(r), nil)
		return
	}
	for _, f := range w.found {
		if f.waits && !f.held && r.Hold > 0 {
			add("hold", fmt.Sprintf("%d members have been found that hold it together; they are not known to have done so for %v", len(f.runs), r.Hold), nil)
			return
		}
	}
	one := w.k == 1 || r.Detector.Each
	text := "the members are not known to have the condition true at one time"
	switch fired := j.states[i].past.fired > 0; {
	case one && fired:
		text = "the predicate has fired for each member that is known to have the condition true; it fires for a member again when the condition was false there in between"
	case one:
		text = "no member is known to have the condition true"
	case w.k > 1:
		text = fmt.Sprintf("no %d members are known to have the condition true at one time", w.k)
		if fired {
			text += ", other than those for which it has fired"
		}
	case fired:
		text += " again, since it fired"
	}
	add("runs", text, nil)
}

// runsOf is the rule's own detector, nil if it has none.
func (j *judgement) runsOf(rule int) *runs {
	if i := slices.IndexFunc(j.runs, func(w *runs) bool { return w.rule == rule }); i >= 0 {
		return j.runs[i]
	}
	return nil
}

// missingMembers appends the members that an epoch lacks, and the faults of the members that
// are here.
func (c *Core) missingMembers(l *missing, now clocksync.Instant) {
	if c.inForce() == 0 {
		ready := len(c.readyMembers()) + len(c.inEpoch) - len(c.removing)
		l.add("members", "", fmt.Sprintf("%d of the %d members that are awaited have a state", ready, c.awaited()), nil)
	}
	apart, status := !c.oneDomain(), c.memberStatus(now)
	for i, m := range c.sorted {
		if len(*l) >= maxMissing {
			break
		}
		heard := secondsAgo(now, m.lastHeard())
		add := func(kind, text string, since *float64) { l.add(kind, m.name, text, since) }
		switch {
		case m.gone:
			add("gone", m.why, &heard)
			continue
		case c.isQuiet(m, now):
			add("silent", fmt.Sprintf("the member was not heard for %v; after %v of silence: %s", rough(heard), c.plan.Silence.After, c.plan.Silence.Then), &heard)
		}
		if since, lacks := m.lacksSince(); lacks {
			add("report", fmt.Sprintf("its report %d is missing and was asked for; %d after it wait", m.last+1, len(m.stash)), new(secondsAgo(now, since)))
		}
		switch {
		case m.isReady() && c.admittedAt(m) > now:
			add("returns", c.putOffText(m, now), nil)
		case m.standing() == monitor.NoState:
			add("state", "the member has joined and has no state: "+c.plan.MuteHint(), nil)
		case m.index == noIndex:
		case c.tuple && m.state.Unknown:
			add("unknown", "nothing is known of its state: reports of it are lost", nil)
		}
		if apart && status[i].Clock.Bound == nil && m.index != noIndex {
			add("clock", fmt.Sprintf("its clock has no bound (%s): nothing is certain between it and other hosts", status[i].Clock.Status), nil)
		}
	}
}

// missingEvidence appends whose evidence would decide more.
func (c *Core) missingEvidence(l *missing, now clocksync.Instant, rule int) {
	c.needs = c.det.Needs(c.needs[:0])
	w := c.runsOf(rule)
	if w != nil {
		c.needs = w.needs(c.needs[:0])
	}
	for _, n := range c.needs {
		m := c.byIndex[n.Member]
		if len(*l) >= maxMissing {
			break
		}
		if m.gone || len(m.stash) > 0 {
			continue // Told already.
		}
		kind, text, since := "evidence", fmt.Sprintf("evidence that its state %d still held when the others had theirs", n.Seq), (*float64)(nil)
		if n.Seq == 0 {
			kind, text = "state", "its next state: it has ended the last one"
		}
		if c.tuple && w == nil {
			text += ", for the next global state"
		}
		if a := m.probingOf(); a.probes > 0 {
			since = new(secondsAgo(now, a.asked))
		}
		l.add(kind, m.name, text, since)
	}
}

// rough is a duration with about three digits.
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
func (p *history) decision(now clocksync.Instant) *monitor.LastDecision {
	v, s := &p.last, &p.last.Span
	if v.Epoch == 0 {
		return &monitor.LastDecision{ID: v.Decision.String(), Ago: secondsAgo(now, p.at), Inherited: true, Witness: []monitor.WitnessState{}}
	}
	origin := s.EnvelopeFrom
	core := (*monitor.Range)(nil)
	switch {
	case s.SameClock:
		origin = s.MonoFrom
		core = &monitor.Range{To: clocksync.Instant(s.MonoTo.Sub(origin))}
	case s.HasCore:
		origin = s.CoreFrom
		core = &monitor.Range{To: clocksync.Instant(s.CoreTo.Sub(origin))}
	}
	d := &monitor.LastDecision{
		ID: v.Decision.String(), Ago: secondsAgo(now, p.at), Epoch: v.Epoch, Modality: cmp.Or(v.Modality, scgs.Inst.String()), Index: v.Index, Partial: v.Partial,
		Held: s.Certain().Seconds(), SameClock: s.SameClock, Bound: v.Bound.Seconds(), Sources: v.Sources,
		Core: core, Envelope: since(origin, s.EnvelopeFrom, s.EnvelopeTo), LeftOut: p.leftOut,
		Witness: make([]monitor.WitnessState, 0, len(v.Witness)),
	}
	if s.SameClock {
		d.Envelope = *core
	}
	for i := range v.Witness {
		w := &v.Witness[i]
		one := monitor.WitnessState{
			Member: w.Name, Seq: w.State.Seq, Unknown: w.State.Unknown, Open: w.State.Open,
			State: monitor.NewValues(w.Fields, w.Row),
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

// since is an interval relative to an origin.
func since(origin clocksync.Instant, from, to clocksync.Instant) monitor.Range {
	shift := func(t clocksync.Instant) clocksync.Instant {
		if t.Finite() {
			return clocksync.Instant(t.Sub(origin))
		}
		return t
	}
	return monitor.Range{From: shift(from), To: shift(to)}
}

// explainBalance is the explanation of the section balance in the place of a
// predicate.
func (c *Core) explainBalance(now clocksync.Instant) monitor.Explanation {
	p := c.planner
	e := monitor.Explanation{
		Synchronizer: c.plan.Name, PredicateStatus: monitor.PredicateStatus{Name: config.BalanceName, Truth: predicates.True.String(), Armed: true},
		When: fmt.Sprintf("every %v", p.Set.Every), Every: true, Epoch: c.inForce(), State: c.stateStatus(),
		Parts: []monitor.Condition{}, Missing: []monitor.Missing{}, Balance: p.Status(now),
	}
	if acted, last, age := p.Acted(now); acted > 0 {
		e.Fired, e.Decision, e.Ago = acted, last.String(), age.Seconds()
	}
	if p.When != nil {
		e.When = p.When.Source()
		v := p.When.Eval(c.scope)
		e.Truth, e.Reason = v.Truth.String(), v.Reason
		if e.State != nil {
			for _, part := range p.When.Explain(c.scope) {
				e.Parts = append(e.Parts, c.condition(&part))
			}
		}
	}
	if e.Epoch == 0 || e.State == nil {
		e.Truth, e.Reason = predicates.Unknown.String(), "there is no global state"
	}
	l := (*missing)(&e.Missing)
	for i, m := range c.planMembers() {
		if rests := p.Rests(now, m.Name); rests > 0 {
			l.add("rests", m.Name, fmt.Sprintf("the member's last order had no effect: it gets none for %v", rough(rests.Seconds())), nil)
		}
		if note := p.Aside(i, &m); note != "" && e.State != nil {
			l.add("aside", m.Name, "the balance leaves the member alone: "+note, nil)
		}
	}
	c.missingMembers(l, now)
	c.missingEvidence(l, now, noRule)
	return e
}

// noRule stands for the number of no rule.
const noRule = -1
