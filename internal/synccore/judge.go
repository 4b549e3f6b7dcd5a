package synccore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// ruleState is where a predicate stands in the epoch.
type ruleState struct {
	truth predicates.Truth
	told  bool // the truth has been told since the epoch began
	armed bool // it fires at the next true
	// While it holds and waits for its hold time:
	holding bool
	since   clocksync.Instant // on the clock of the epoch's spans
	due     clocksync.Instant // when to ask for evidence that it held long enough
}

// set is a new value of a variable, which later global states will see.
type set struct {
	variable int
	value    scgs.Value
}

// rearm makes every predicate fire at its first true, as a new epoch does.
func (c *Core) rearm() {
	for i := range c.states {
		c.states[i] = ruleState{armed: true, due: clocksync.MaxInstant}
	}
}

// sweep judges every global state that can be decided now.
func (c *Core) sweep(out *Output) {
	for c.det.Next(&c.ev) {
		switch c.ev.Kind {
		case scgs.Opened:
			c.opened(out)
		case scgs.Closed:
			c.closed(out)
		}
	}
}

func (c *Core) opened(out *Output) {
	c.scope.Next()
	for _, ch := range c.ev.Changed {
		m := c.byIndex[ch.Member]
		switch {
		case m == c.process && ch.Unknown:
			c.scope.SetProcessUnknown()
		case m == c.process:
			c.scope.SetProcess(c.rows.get(ch.Ref))
		case ch.Unknown:
			m.state = ch
			c.scope.SetUnknown(m.pos)
		default:
			m.state = ch
			c.scope.Set(m.pos, c.rows.get(ch.Ref))
		}
	}
	c.tuple = true
	c.summaryOpened()
	c.judge(c.ev.Span, c.ev.Step, out)
	c.noteChanged()
	c.carryOn(out)
}

func (c *Core) closed(out *Output) {
	c.checkHolds(c.ev.Span, out)
	c.carryOn(out)
	c.summaryClosed()
	c.tuple = false
}

// judge evaluates the predicates on the tuple in the scope. Every predicate
// reads the memory as it was before; what they set counts from the next global
// state on.
func (c *Core) judge(span scgs.Span, step bool, out *Output) {
	c.rejudge = false
	if c.paused || len(c.removing) > 0 {
		return // too few members, or the epoch is over
	}
	for i, r := range c.plan.rules {
		c.judgeRule(r, &c.states[i], span, step, out)
	}
	c.remember()
}

// remember puts what predicates have set into the memory.
func (c *Core) remember() {
	for _, s := range c.sets {
		c.memory[s.variable] = s.value
		c.scope.SetMemory(s.variable, s.value)
	}
	c.sets = c.sets[:0]
}

func (c *Core) judgeRule(r *rule, s *ruleState, span scgs.Span, step bool, out *Output) {
	verdict := r.when.Eval(c.scope)
	changed := !s.told || verdict.Truth != s.truth
	s.truth, s.told = verdict.Truth, true
	switch verdict.Truth {
	case predicates.False:
		s.armed = true
		s.release()
	case predicates.Unknown:
		s.release()
	case predicates.True:
		switch {
		case r.every, r.hold == 0 && s.armed:
			c.fire(r, s, span, out)
			return
		case r.hold > 0 && s.armed:
			c.hold(r, s, span, step)
		}
	}
	if changed {
		v := c.verdict(r, verdict, span)
		out.Verdicts = append(out.Verdicts, v)
		c.noteVerdict(r, &v)
	}
}

func (c *Core) verdict(r *rule, v predicates.Verdict, span scgs.Span) Verdict {
	return Verdict{
		Predicate: r.name, Truth: v.Truth, Reason: v.Reason,
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Span: span,
	}
}

func (s *ruleState) release() {
	s.holding, s.due = false, clocksync.MaxInstant
}

// hold begins a hold time or carries it over. It is carried over only a
// transition that one single event made: between two other global states lie
// tuples nobody can order, and the predicate may have failed on one of them.
func (c *Core) hold(r *rule, s *ruleState, span scgs.Span, step bool) {
	if s.holding && step {
		return
	}
	start, _, ok := stretch(span)
	if !ok {
		s.release()
		return
	}
	s.holding, s.since, s.due = true, start, c.now.Add(r.hold)
}

// stretch is the certain part of a span on the clock that measures it: the
// shared clock's readings, or reference time.
func stretch(span scgs.Span) (from, to clocksync.Instant, ok bool) {
	if span.SameClock {
		return span.MonoFrom, span.MonoTo, true
	}
	return span.CoreFrom, span.CoreTo, span.HasCore
}

// holds looks whether newer evidence completes a hold time, and asks for it
// when its time has come.
func (c *Core) holds(out *Output) {
	span, ok := c.det.Current()
	if !ok || !c.tuple {
		return
	}
	c.checkHolds(span, out)
	for i := range c.states {
		s := &c.states[i]
		if !s.holding || s.due > c.now {
			continue
		}
		s.due = c.now.Add(probeAgain)
		if c.opt.Local {
			s.due = c.now.Add(time.Millisecond)
			continue
		}
		c.probeAll(s.since.Add(c.plan.rules[i].hold), span.SameClock, out)
	}
}

func (c *Core) checkHolds(span scgs.Span, out *Output) {
	_, to, ok := stretch(span)
	if !ok {
		return
	}
	for i, r := range c.plan.rules {
		if s := &c.states[i]; s.holding && to.Sub(s.since) >= r.hold {
			c.fire(r, s, span, out)
		}
	}
	c.remember()
}

// probeAll asks every member whose state is open for evidence past an instant.
func (c *Core) probeAll(past clocksync.Instant, sameClock bool, out *Output) {
	need := scgs.Need{AfterMono: clocksync.MinInstant, AfterTime: past}
	if sameClock {
		need = scgs.Need{AfterMono: past, AfterTime: clocksync.MinInstant}
	}
	for _, m := range c.inEpoch {
		if m.state.Seq == m.last {
			c.send(m, m.last, need, out)
		}
	}
}

// fire makes a decision: it evaluates what the predicate sets and sends, on the
// tuple in the scope.
func (c *Core) fire(r *rule, s *ruleState, span scgs.Span, out *Output) {
	s.armed = false
	s.release()
	v := c.verdict(r, predicates.Verdict{Truth: predicates.True}, span)
	v.Fired, v.Decision, v.Witness, v.Bound = true, c.decision(), c.witness(), c.bound(span)
	v.Sources = c.sources(span)
	out.Verdicts = append(out.Verdicts, v)
	c.noteVerdict(r, &v)
	for _, a := range r.set {
		value, reason := a.value.EvalValue(c.scope)
		if reason != "" {
			out.reject(c.plan.Name, "predicate "+r.name+": the new value of memory is unknown: "+reason)
			continue
		}
		c.sets = append(c.sets, set{a.variable, value})
	}
	for i := range r.signals {
		c.emit(r, &r.signals[i], v.Decision, out)
	}
}

func (c *Core) witness() []Part {
	c.parts = c.det.Witness(c.parts[:0])
	witness := make([]Part, 0, len(c.parts))
	for _, p := range c.parts {
		m := c.byIndex[p.Member]
		fields := c.plan.State
		if m == c.process {
			fields = c.plan.Process
		}
		witness = append(witness, Part{Name: m.name, Fields: fields, Row: slices.Clone(c.rows.get(p.Ref)), State: p})
	}
	return witness
}

// parentSignal makes a signal from above visible; the tuple in force is judged
// again.
func (c *Core) parentSignal(sig *control.Signal) {
	for _, known := range c.plan.env.Parent {
		if known.Name != sig.Name {
			continue
		}
		c.values = c.values[:0]
		for _, f := range known.Fields {
			c.values = append(c.values, sig.Lookup(f.Name))
		}
		c.scope.SetParent(sig.Name, c.values)
		c.rejudge = true
	}
}

// probe asks for the evidence without which nothing more can be decided.
func (c *Core) probe(out *Output) {
	if c.opt.Local || len(c.plan.rules) == 0 && c.exec == nil {
		return
	}
	c.needs = c.det.Needs(c.needs[:0])
	for _, n := range c.needs {
		m := c.byIndex[n.Member]
		if n.Seq == 0 || m.index == noIndex || n.Seq != m.last || len(m.stash) > 0 {
			continue
		}
		c.send(m, n.Seq, n, out)
	}
}

// send sends a probe, unless one that asks for as much is out or too many are:
// then the answers show what is still needed.
func (c *Core) send(m *member, seq uint64, n scgs.Need, out *Output) {
	n.Seq = seq
	if c.exact(m) && n.AfterTime != clocksync.MinInstant {
		n.AfterMono, n.AfterTime = max(n.AfterMono, n.AfterTime), clocksync.MinInstant
	}
	asked := m.probedFor.Seq == seq && m.probedFor.AfterMono >= n.AfterMono && m.probedFor.AfterTime >= n.AfterTime
	if m.probes > 0 && (asked || m.probes >= probesOut) && c.now.Sub(m.probed) < probeAgain {
		return
	}
	m.probes++
	m.probed, m.probedFor = c.now, n
	out.Probes = append(out.Probes, Addressed[wire.Probe]{m.name, wire.Probe{
		Incarnation: m.incarnation, Seq: seq, AfterMono: n.AfterMono, AfterTime: n.AfterTime,
	}})
}
