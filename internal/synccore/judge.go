package synccore

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
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
	due     clocksync.Instant // when to ask for evidence that it held long enough, or to fire after all
	asked   bool              // for that evidence, on the current global state
	kept    bool              // only the cooldown keeps it from firing
	// Beyond the epoch:
	quiet      clocksync.Instant // no firing before that
	suppressed uint64            // firings kept back since the last one
	cause      causes            // of firings
	made       control.Cause     // its last firing, of an earlier term, which is not found again yet
	shot       bool              // it has fired in this epoch
	turn       uint64            // of its last firing, see judgement.turn
	on         uint64            // the index of the global state of this epoch that it last fired on, or was kept back on; 0: none
	shots      bool              // it has fired in this run
	first      clocksync.Instant // its first firing since it was last ready to fire again; 0: there was none
	epoch      uint64            // of its last firing; 0: there was none
	owed       []address         // whom its signals had not reached yet when an epoch began: they are fenced off
	ones       []KeptOne         // what another machine remembered, until its own detector begins
	past       *history
}

// newScopes makes the scopes of the plan, without members.
func (c *Core) newScopes() {
	for _, s := range []**predicates.Scope{&c.scope, &c.local.partial, &c.local.scope} {
		*s = predicates.NewScope(c.plan.Env)
		(*s).Only(c.plan.Reads())
	}
	if c.plan.Prev {
		c.scope.KeepPrev()
	}
	c.ondemand.beginLevel(&c.opt, c.plan)
}

// newStates lets every predicate of the plan begin.
func (c *Core) newStates() {
	c.states = make([]ruleState, len(c.plan.Rules))
	for i := range c.states {
		c.states[i] = ruleState{quiet: clocksync.MinInstant, past: &history{}}
		if r := c.plan.Rules[i]; !c.opt.Local {
			c.states[i].cause.Source = sourceOf(r.Name, r.Text)
		}
	}
	c.watchAll(c.plan)
	c.rearmAll(false)
}

// set is a new value of a variable, for later global states.
type set struct {
	variable int
	value    scgs.Value
}

// rearmAll makes every predicate fire at its first true, as a new epoch does. Hold times that run
// continue until the first verdict of the epoch if they last.
func (j *judgement) rearmAll(lasts bool) {
	for i := range j.states {
		s := &j.states[i]
		next := s.beginAgain()
		if lasts && s.holding {
			next.holding, next.since, next.due, next.kept = true, s.since, s.due, s.kept
		}
		*s = next
	}
	j.lookAtAll()
}

// beginAgain is where a predicate begins again that was judged before.
func (s *ruleState) beginAgain() ruleState {
	return ruleState{
		armed: true, due: clocksync.MaxInstant, quiet: s.quiet, suppressed: s.suppressed, past: s.past, cause: s.cause, made: s.made,
		shots: s.shots, first: s.first, epoch: s.epoch, owed: s.owed, ones: s.ones,
	}
}

// spent reports whether the predicate has fired as often as it may.
func (s *ruleState) spent(r *plan.Rule) bool {
	return r.Once == config.OnceRun && s.shots || r.Once == config.OnceEpoch && s.shot
}

// sweepDetector judges every global state that can be decided now.
func (c *Core) sweepDetector(out *Output) {
	for c.next() {
		switch c.ev.Kind {
		case scgs.Opened:
			c.opened(out)
		case scgs.Closed:
			c.closed(out)
		}
	}
	c.tuple = c.det.Open()
}

// next finds the next global state, or the end of a global state if a rule waits for it. When
// it holds is looked up only if that is asked for.
func (c *Core) next() bool {
	if c.exec == nil && !c.plan.Summary() && !c.waits() && !c.general {
		c.spanless = true
		return c.det.Advance(&c.ev)
	}
	c.spanless = false
	return c.det.Next(&c.ev)
}

// dated fills in when the global state under judgement holds, if its span equals the event's
// span and was left out.
func (c *Core) dated(span *scgs.Span) *scgs.Span {
	if c.spanless && span == &c.ev.Span {
		*span, _ = c.det.Current()
		c.spanless = false
	}
	return span
}

func (c *Core) opened(out *Output) {
	c.scope.Next()
	for i := range c.ev.Changed {
		ch := &c.ev.Changed[i]
		m := c.byIndex[ch.Member]
		c.ondemand.touchMember(m)
		switch {
		case m == c.process && ch.Unknown:
			c.scope.SetProcessUnknown()
		case m == c.process:
			c.scope.SetProcess(c.row(m, ch.Ref))
		case ch.Unknown:
			c.takeMoved(m, ch)
			c.scope.SetUnknown(m.pos)
		default:
			c.takeMoved(m, ch)
			c.scope.Set(m.pos, c.row(m, ch.Ref))
		}
	}
	c.tuple, c.opening = true, true
	c.turn++
	if c.ev.Index == 1 {
		c.continueHolds()
	}
	if c.plan.Summary() {
		c.summaryOpened()
	}
	c.judgeTuple(&c.ev.Span, c.ev.Step, out)
	if c.exec != nil {
		c.programMoved()
		c.programAdvance(out)
	}
	if c.planner != nil {
		c.planner.Opened()
	}
	c.opening = false
}

func (c *Core) closed(out *Output) {
	if c.ev.Epoch == c.epoch { // Else the scope and the witness are of the next epoch already, in which the hold times continue.
		c.checkHolds(&c.ev.Span, out)
	}
	c.programAdvance(out)
	c.summaryClosed()
	c.tuple = false
}

// judgeTuple evaluates the predicates on the tuple in the scope, and again as long as firings
// change the memory. Those rounds end: a predicate fires in one of them only.
func (c *Core) judgeTuple(span *scgs.Span, step bool, out *Output) {
	c.rejudge = false
	if c.judged = c.mayDecide(); !c.judged {
		return // too few members, or the epoch is over
	}
	recallPhase(c)
	for c.judgeRound(span, step, out); c.rejudge; c.judgeRound(span, true, out) {
		c.rejudge = false
	}
}

// judgeRound evaluates the predicates that a change since the last round affects; the others
// are as they were. All of them read the memory as it was before the round.
func (c *Core) judgeRound(span *scgs.Span, step bool, out *Output) {
	fields, more := c.scope.Changed()
	more = more || c.general
	for word, restless := range c.restless {
		affected := c.affectedRules(word, fields, more)
		for rest := restless | affected; rest != 0; rest &= rest - 1 {
			bit := bits.TrailingZeros64(rest)
			i := 64*word + bit
			r := c.plan.Rules[i]
			hit := affected&(1<<bit) != 0 && (!more || c.general || r.When != nil && c.scope.Affects(r.When))
			c.judgeRule(i, r, hit, span, step, out)
		}
	}
	c.scope.Settle()
	c.rememberSet()
}

// rememberSet puts what predicates have set into the memory. If several have set one variable,
// the value of the first in order of priority stays. If that changes a variable, the predicates
// are judged again.
func (c *Core) rememberSet() {
	changed := false
	for i, s := range c.sets {
		if !slices.ContainsFunc(c.sets[:i], func(t set) bool { return t.variable == s.variable }) {
			changed = changed || c.memory[s.variable] != s.value
			c.setMemory(s.variable, s.value)
		}
	}
	if c.sets = c.sets[:0]; changed {
		c.noteChange()
	}
}

func (j *judgement) setMemory(variable int, v scgs.Value) {
	j.memory[variable] = v
	j.scope.SetMemory(variable, v)
	j.local.partial.SetMemory(variable, v)
}

// settled reports whether a predicate need not be judged on a global state that does
// not affect it: it would neither fire there nor does it wait, nor is it armed there.
func (s *ruleState) settled(r *plan.Rule) bool {
	switch {
	case !s.told || r.Judge != nil || r.Until != nil:
		return false
	case s.truth == predicates.False:
		return s.armed
	case r.Detector.Exists():
		return true
	}
	return s.truth != predicates.True || !s.armed && !r.Every
}

// judgeRule judges the predicate of a place, if it may be affected by what has changed,
// and does what follows from where it stands.
func (c *Core) judgeRule(i int, r *plan.Rule, affected bool, span *scgs.Span, step bool, out *Output) {
	s := &c.states[i]
	verdict := predicates.Verdict{Truth: s.truth}
	if affected || !s.told || r.Judge != nil {
		verdict = c.evaluate(r, span)
	}
	changed := !s.told || verdict.Truth != s.truth
	if !changed && s.settled(r) && !c.general {
		c.restless.remove(i)
		return
	}
	c.apply(r, s, verdict, changed, span, step, out)
	if r.Detector.Exists() && s.truth == predicates.False {
		denyModality(c.runsOf(i), s, c.ev.Epoch)
	}
	c.noteStanding(i, r, s)
}

// apply does what follows from a verdict.
func (c *Core) apply(r *plan.Rule, s *ruleState, verdict predicates.Verdict, changed bool, span *scgs.Span, step bool, out *Output) {
	first := !s.told
	s.truth, s.told = verdict.Truth, true
	if c.rearms(r, verdict.Truth) {
		s.armed, s.first = true, 0
	}
	s.armed = s.armed && !s.spent(r)
	switch {
	case r.Detector.Exists(): // What its own detector finds decides.
	case verdict.Truth != predicates.True:
		s.release()
	case r.Hold > 0 && s.armed:
		c.hold(r, s, c.dated(span), step || first)
	case s.armed && !c.follows(r, s):
	case r.Every && s.on == c.ev.Index:
	case !r.Every && s.armed && s.turn == c.turn && c.now >= s.quiet:
		out.addReject(c.plan.Name, "predicate "+r.Name+": a new value of memory would make it fire twice on one global state: it waits for the next one; give it a cooldown, or a condition that its own firing ends")
	case r.Every || s.armed:
		if c.fireOn(r, s, span, out) {
			return
		}
	}
	if changed && !c.opt.Unread {
		v := c.verdict(r, verdict, c.dated(span))
		if s.kept {
			v.Suppressed = s.suppressed
		}
		out.Verdicts = append(out.Verdicts, v)
		c.programVerdict(r, s, &v)
	}
}

// evaluate judges a predicate on the global state in the scope.
func (c *Core) evaluate(r *plan.Rule, span *scgs.Span) predicates.Verdict {
	if r.Judge == nil {
		return r.When.Eval(c.scope)
	}
	truth, reason := r.Judge(monitor.NewGlobalState(c.ev.Epoch, c.ev.Index, c.ev.Partial, *c.dated(span), c.plan.State, c.plan.Env.Memory, c.scope))
	if truth == predicates.Unknown && reason == "" {
		reason = "the program gives no reason"
	}
	return predicates.Verdict{Truth: truth, Reason: reason}
}

// rearms reports whether a predicate that has fired may fire again. An unknown verdict
// does not rearm.
func (j *judgement) rearms(r *plan.Rule, truth predicates.Truth) bool {
	if r.Until != nil {
		return r.Until.Eval(j.scope).Truth == predicates.True
	}
	return truth == predicates.False
}

func (c *Core) verdict(r *plan.Rule, v predicates.Verdict, span *scgs.Span) monitor.Verdict {
	heard := clocksync.MinInstant
	if c.opening {
		heard = c.heardAt(c.ev.Changed)
	}
	return monitor.Verdict{
		Predicate: r.Name, Truth: v.Truth, Reason: v.Reason,
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Span: *span, Heard: heard,
	}
}

func (s *ruleState) release() {
	s.holding, s.asked, s.kept, s.due = false, false, false, clocksync.MaxInstant
}

// hold begins a hold time or continues it. It continues only where nothing lies between the
// two judgements, as where a single event made the transition: between two other global states
// there may be tuples that cannot be ordered, and the predicate may have been false on one of them.
func (c *Core) hold(r *plan.Rule, s *ruleState, span *scgs.Span, follows bool) {
	if s.holding && follows {
		if s.asked && !c.opt.Local {
			s.asked, s.due = false, c.now // Of a member whose state was over then no evidence was asked for.
		}
		return
	}
	start, ok := c.began(span)
	if !ok {
		s.release()
		return
	}
	s.holding, s.asked, s.since, s.due = true, false, start, c.now.Add(r.Hold)
}

// began is when all states of the tuple had certainly begun, but no earlier than the floor, on
// the clock that measures it. Across hosts it can be known while the core is still empty: the
// evidence that makes a tuple certain need not be later.
func (c *Core) began(span *scgs.Span) (clocksync.Instant, bool) {
	start := c.floor.floorOn(span)
	if from, _, ok := stretch(span); ok {
		return max(start, from), true
	}
	c.parts = c.det.Witness(c.parts[:0])
	for i := range c.parts {
		if c.parts[i].Unknown {
			return 0, false
		}
		start = max(start, c.parts[i].Start.Within.Latest)
	}
	return start, start.Finite()
}

// stretch is the certain part of a span on the clock that measures it: the
// shared clock's readings, or reference time.
func stretch(span *scgs.Span) (from, to clocksync.Instant, ok bool) {
	if span.SameClock {
		return span.MonoFrom, span.MonoTo, true
	}
	return span.CoreFrom, span.CoreTo, span.HasCore
}

// completeHolds completes a hold time if the newest evidence allows it; when the time is over,
// it asks for newer evidence.
func (c *Core) completeHolds(out *Output) {
	if !c.tuple || !c.waits() {
		return
	}
	now, ok := c.det.Current()
	if !ok {
		return
	}
	span := &now
	c.checkHolds(span, out)
	for i := range c.waiting.each {
		s := &c.states[i]
		switch {
		case s.due > c.now:
			continue
		case !s.holding:
			if r := c.plan.Rules[i]; c.follows(r, s) {
				c.fireOn(r, s, span, out)
			}
			continue
		}
		s.asked, s.due = true, c.now.Add(probeAgain)
		if c.opt.Local {
			s.due = c.now.Add(time.Millisecond)
			continue
		}
		need := needOf(s.since.Add(c.plan.Rules[i].Hold), span.SameClock)
		if o := &c.ondemand; o.ahead != nil && !span.SameClock {
			o.rankBegins(c.inEpoch)
			need.AfterTime = max(need.AfterTime, o.begins.Newest()) // Or the answers say nothing of a state that began meanwhile.
		}
		c.probeAll(need, out)
	}
	c.rememberSet()
}

// waits reports whether the predicate waits for its hold time or its cooldown.
func (s *ruleState) waits() bool { return s.holding || s.due != clocksync.MaxInstant }

// waits reports whether a predicate waits for its hold time or its cooldown, of those
// that may.
func (j *judgement) waits() bool {
	found := false
	for i := range j.waiting.each {
		if j.states[i].waits() {
			found = true
		} else {
			j.waiting.remove(i)
		}
	}
	return found
}

// checkHolds fires the rules that have held for long enough by the end of a span of the current
// global state, if it was judged: no hold time continues over a global state that was not
// judged.
func (c *Core) checkHolds(span *scgs.Span, out *Output) {
	_, to, ok := stretch(span)
	if !ok || !c.judged {
		return
	}
	for i := range c.waiting.each {
		if r, s := c.plan.Rules[i], &c.states[i]; s.holding && to.Sub(s.since) >= r.Hold {
			c.fireOn(r, s, span, out)
		}
	}
	c.rememberSet()
}

// needOf is the need of evidence past an instant on the clock of a span.
func needOf(past clocksync.Instant, sameClock bool) scgs.Need {
	if sameClock {
		return scgs.Need{AfterMono: past, AfterTime: clocksync.MinInstant}
	}
	return scgs.Need{AfterMono: clocksync.MinInstant, AfterTime: past}
}

// probeAll asks every member whose state is open for evidence that it has not shown yet.
func (c *Core) probeAll(need scgs.Need, out *Output) {
	for _, m := range c.inEpoch {
		if m.state.Seq == m.last && (need.AfterMono == clocksync.MinInstant || m.shown < need.AfterMono) {
			c.sendProbe(m, m.last, need, out)
		}
	}
}

// occasion is what a predicate fires on: a global state, or what its own detector
// has found.
type occasion struct {
	scope    *predicates.Scope
	span     scgs.Span
	heard    clocksync.Instant
	index    uint64
	partial  bool
	modality string
	rows     [][]scgs.Value // of the parts; nil: as the global state has them
	holders  []int          // in the scope, if its own detector has found them
	seqs     []uint64       // by place in the scope, the state that was judged; nil: as the global state has it
	exact    bool           // of runs: it is known where each began
	fresh    bool           // of runs: one certainly began in this term
	cause    control.Cause  // of the firing
	over     bool           // a state of the witness is known to have ended
	since    uint64         // signals go to members that entered in a later epoch, and to those that are owed them; 0: to all
	owed     []address      // see since
}

// newestState stands for a state that was not judged: the newest counts.
const newestState = math.MaxUint64

// fireOn fires on the global state in the scope. A firing that the cooldown keeps back follows
// when the cooldown is over, if the state is still current then. It reports whether that
// settles all there is to tell of the predicate.
func (c *Core) fireOn(r *plan.Rule, s *ruleState, span *scgs.Span, out *Output) bool {
	o := occasion{scope: c.scope, since: s.settledTill(r), owed: s.owed}
	if o.since > 0 && !c.reachesNewcomer(r, &o) {
		c.passOver(r, s)
		return false
	}
	if s.on = c.ev.Index; c.now >= s.quiet {
		s.turn = c.turn
	}
	if c.opt.Unread && c.now >= s.quiet {
		c.fireRule(r, s, &o, out)
		return true
	}
	span = c.dated(span)
	v := c.verdict(r, predicates.Verdict{Truth: predicates.True}, span)
	if cools, told := c.keepsBack(r, s, &s.kept, v, out); cools {
		s.due = s.quiet
		return told
	}
	c.parts = c.det.Witness(c.parts[:0])
	o.span, o.heard, o.index, o.partial = *span, v.Heard, v.Index, v.Partial
	c.fireRule(r, s, &o, out)
	return true
}

// keepsBack reports whether the cooldown keeps a firing back, and whether it told so: it
// tells of the first after a firing. A firing that waits is counted once.
func (c *Core) keepsBack(r *plan.Rule, s *ruleState, kept *bool, v monitor.Verdict, out *Output) (cools, told bool) {
	if c.now >= s.quiet {
		return false, false
	}
	if *kept && !r.Every {
		return true, false
	}
	*kept = true
	out.Suppressed++
	if s.suppressed++; s.suppressed > 1 || c.opt.Unread {
		return true, false
	}
	v.Suppressed = s.suppressed
	out.Verdicts = append(out.Verdicts, v)
	return true, true
}

// fireRule makes a decision: it evaluates what the predicate sets and sends. The states that it
// fires on are in c.parts.
func (c *Core) fireRule(r *plan.Rule, s *ruleState, o *occasion, out *Output) {
	s.armed, s.shot, s.shots, s.epoch, s.owed = false, true, true, c.epoch, nil
	if s.first == 0 {
		s.first = c.now
		c.lookAtFollowers(r)
	}
	s.release()
	decision := c.decision()
	o.cause = c.causeOf(&s.cause, o)
	if !c.opt.Unread {
		o.over = slices.ContainsFunc(c.parts, func(p scgs.Part) bool { return c.byIndex[p.Member].showsEnd(&p) })
		v := monitor.Verdict{
			Predicate: r.Name, Truth: predicates.True, Fired: true, Decision: decision, Suppressed: s.suppressed, Silent: len(r.Signals) == 0 && len(r.Set) > 0,
			Epoch: c.epoch, Index: o.index, Partial: o.partial, Modality: o.modality, Span: o.span, Heard: o.heard,
			Witness: c.witness(r, o.rows), Bound: c.bound(o.span), Sources: c.clockSources(o.span), EndedAgo: c.overFor(),
		}
		out.Verdicts = append(out.Verdicts, v)
		c.programVerdict(r, s, &v)
	}
	s.suppressed = 0
	if r.Cooldown > 0 {
		s.quiet = c.now.Add(r.Cooldown)
	}
	for _, a := range r.Set {
		if o.since > 0 {
			break // It was set before.
		}
		value, reason := a.Value.EvalValue(o.scope)
		if reason != "" {
			out.addReject(c.plan.Name, "predicate "+r.Name+": the new value of memory is unknown: "+reason)
			continue
		}
		c.sets = append(c.sets, set{a.Variable, value})
	}
	for i := range r.Signals {
		c.emitSignal(r, &r.Signals[i], decision, o, out)
	}
}

// overFor is for how long one of c.parts had been over, by the newest report of its member, if
// that is longer than it may take to hear from all.
func (c *Core) overFor() time.Duration {
	longest := time.Duration(0)
	for i := range c.parts {
		p := &c.parts[i]
		if m := c.byIndex[p.Member]; m.showsEnd(p) {
			longest = max(longest, m.newestReading().Sub(p.End.Mono))
		}
	}
	if longest <= c.plan.Heartbeat()+heardWithin {
		return 0
	}
	return longest
}

// showsEnd reports whether a state of the member in a witness is known to have ended. A later report shows
// that also if it waits behind a gap.
func (m *member) showsEnd(p *scgs.Part) bool { return !p.Unknown && (!p.Open || m.behind()) }

// newestReading is the newest reading of a member's clock that is known.
func (m *member) newestReading() clocksync.Instant {
	newest := max(m.began, m.shown, m.late.At.Mono)
	if n := len(m.stash); n > 0 {
		newest = max(newest, m.stash[n-1].At.Mono)
	}
	if m.listed {
		newest = max(newest, m.multiplexer.at.Mono)
	}
	return newest
}

// witness is c.parts with the names of their members, in order of the names.
func (c *Core) witness(r *plan.Rule, rows [][]scgs.Value) []monitor.Part {
	witness := make([]monitor.Part, 0, len(c.parts))
	width := max(len(c.plan.State), len(c.plan.Process))
	values := make([]scgs.Value, 0, width*len(c.parts)) // Of all rows.
	for i, p := range c.parts {
		m := c.byIndex[p.Member]
		fields := c.plan.State
		if m == c.process {
			fields = c.plan.Process
		}
		var row []scgs.Value
		if rows != nil {
			row = rows[i]
		} else {
			row = c.row(m, p.Ref)
		}
		if n := len(values); len(row) > 0 {
			values = append(values, row...)
			row = fields.Hidden(values[n:len(values):len(values)])
		}
		witness = append(witness, monitor.Part{Name: m.name, Fields: fields, Row: row, State: p, Outside: m != c.process && r.Outside(row)})
	}
	slices.SortStableFunc(witness, func(a, b monitor.Part) int { return cmp.Compare(a.Name, b.Name) })
	return witness
}

// parentSignal makes a signal from above visible; the open tuple is judged again.
func (c *Core) parentSignal(sig *control.Signal) {
	for _, known := range c.plan.Env.Parent {
		if known.Name != sig.Name {
			continue
		}
		c.values = c.values[:0]
		for _, f := range known.Fields {
			c.values = append(c.values, sig.Lookup(f.Name))
		}
		c.scope.SetParent(sig.Name, c.values)
		c.local.partial.SetParent(sig.Name, c.values)
		c.noteChange()
	}
}

// sendProbes asks for the evidence without which nothing more can be decided. A member
// that several detectors need evidence from is asked once.
func (c *Core) sendProbes(out *Output) {
	if c.opt.Local || len(c.plan.Rules) == 0 && c.exec == nil && c.planner == nil {
		return
	}
	c.needs = c.det.Needs(c.needs[:0])
	switch asks, pastAll := c.ondemand.shouldAsk(c); {
	case !asks:
		return
	case pastAll:
		c.ondemand.askPastAll(c, out)
		return
	}
	for _, w := range c.runs {
		c.needs = w.lacks(c.now, c.needs)
	}
	if len(c.runs) > 0 {
		slices.SortStableFunc(c.needs, func(a, b scgs.Need) int { return int(a.Member - b.Member) })
	}
	for i, n := range c.needs {
		m := c.byIndex[n.Member]
		if n.Seq == 0 || m.index == noIndex || n.Seq != m.last || len(m.stash) > 0 || c.asksFor(m) {
			continue
		}
		if next := i + 1; next < len(c.needs) && c.needs[next].Member == n.Member {
			c.needs[next].AfterMono = max(c.needs[next].AfterMono, n.AfterMono)
			c.needs[next].AfterTime = max(c.needs[next].AfterTime, n.AfterTime)
			continue
		}
		c.sendProbe(m, n.Seq, n, out)
	}
}

// sendProbe sends a probe, unless a probe that asks for as much, or the greatest permitted
// number, waits for an answer: the answers show which evidence is still needed.
func (c *Core) sendProbe(m *member, seq uint64, n scgs.Need, out *Output) {
	n.Seq = seq
	if c.readsReference(m) && n.AfterTime != clocksync.MinInstant {
		n.AfterMono, n.AfterTime = max(n.AfterMono, n.AfterTime), clocksync.MinInstant
	}
	a, at := m.probingOf(), -1
	switch {
	case a.probes == 0:
		a.asked, a.pause, a.idle = c.now, probeAgain, false
	case !a.due(c.now, c.plan.Heartbeat()):
		if a.probedFor.AfterMono >= n.AfterMono && a.probedFor.AfterTime >= n.AfterTime && (m.listed || a.probedFor.Seq == seq) {
			return
		}
		if m.listed {
			at = called(m.multiplexer, out) // It is asked for several members at once.
		}
		if at < 0 && a.probes >= probesOut {
			return
		}
	}
	if at < 0 {
		a.probes, a.probedFor = a.probes+1, n
	} else {
		a.probedFor.AfterMono, a.probedFor.AfterTime = max(a.probedFor.AfterMono, n.AfterMono), max(a.probedFor.AfterTime, n.AfterTime)
	}
	a.probed = c.now
	if m.listed || m.multiplexer != nil && !m.multiplexer.rosters && wire.Multiplexes(m.multiplexer.name, m.name) {
		call(m.multiplexer, n, out)
		return
	}
	out.Probes = append(out.Probes, wire.Addressed[wire.Probe]{To: m.name, Msg: wire.Probe{
		Incarnation: m.incarnation, Seq: seq, AfterMono: n.AfterMono, AfterTime: n.AfterTime,
	}})
}

// called finds what a multiplexer is asked in this step.
func called(x *multiplexer, out *Output) int {
	return slices.IndexFunc(out.Probes, func(p wire.Addressed[wire.Probe]) bool { return p.To == x.name && p.Msg.Seq == 0 })
}

// call asks a multiplexer, once for all its members in a step.
func call(x *multiplexer, n scgs.Need, out *Output) {
	i := called(x, out)
	if i < 0 {
		i = len(out.Probes)
		out.Probes = append(out.Probes, wire.Addressed[wire.Probe]{To: x.name, Msg: wire.Probe{Incarnation: x.version, AfterMono: n.AfterMono, AfterTime: n.AfterTime}})
	}
	p := &out.Probes[i].Msg
	p.AfterMono, p.AfterTime = max(p.AfterMono, n.AfterMono), max(p.AfterTime, n.AfterTime)
}
