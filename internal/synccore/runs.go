package synccore

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/rearm"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// runs is a rule's own detector. For each state it learns whether the rule's local condition
// holds, and finds runs that overlap: of at least so many members, without waiting for the
// others, or of all members under a modality.
type runs struct {
	rule    int  // in the plan
	k       int  // of so many members; 0: of each or of all
	sets    sets // one of them is nil
	tuples  *scgs.Detector
	ones    *each // sets, if each member is judged separately
	in      intake
	numbers []scgs.Member // by number in the core's detector, and the other way
	indexes []scgs.Member
	known   []known // by number
	rows    arena
	found   []*found // the sets that wait to fire; the tuple that is open
	stood   []*found // the sets that held when the epoch began
	stands  bool     // it has fired, and the set found last held when the epoch began: a set begun before it is no new alarm
	due     clocksync.Instant
	unseen  bool              // found was not looked at in an epoch that was over
	again   clocksync.Instant // when it may next be asked what evidence it lacks
	reach   *rearm.Threshold  // nil: it is no threshold

	set   scgs.Set
	ev    scgs.Event
	ended []scgs.Part
}

// known is what the detector knows of a member.
type known struct {
	last  uint64 // the newest report
	vague uint64 // the newest that was not preceded by another one: where a run began is known if that is later
	old   uint64 // the newest by the time in which states of an earlier term arrive
	begun uint64 // the newest when the member entered, or when the epoch began
	holds bool   // the condition holds in its newest state
	alone
}

// tell notes a report of a member, which has been here for so long.
func (k *known) tell(seq uint64, here time.Duration) {
	if seq != k.last+1 || k.last == 0 && seq > 1 {
		k.vague = seq
	}
	if here < heardWithin {
		k.old = seq
	}
	k.last = seq
}

// sets finds sets of runs.
type sets interface {
	intake
	Next(s *scgs.Set) bool
	Run(m scgs.Member) (scgs.Part, bool)
	Ended(dst []scgs.Part) []scgs.Part
}

// intake takes reports, in a detector of either kind.
type intake interface {
	Epoch(id uint64, remove []scgs.Member, add []scgs.Spec) []scgs.Member
	Start(m scgs.Member, seq uint64, at clocksync.Stamp, ref scgs.Ref) scgs.Reason
	End(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Evidence(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Held(multiplexer int32, at clocksync.Stamp) scgs.Reason
	Needs(dst []scgs.Need) []scgs.Need
	Released(dst []scgs.Ref) []scgs.Ref
}

// found is a set, or a tuple, of runs that overlap.
type found struct {
	index  uint64
	runs   []scgs.Part       // in order of members
	rows   [][]scgs.Value    // the newest state of each
	waits  bool              // has not fired yet
	kept   bool              // counted as kept back by the cooldown
	waited bool              // for the hold time, the cooldown or until
	again  bool              // has fired in an earlier epoch: see refire.go
	held   bool              // the threshold may have stayed reached since it fired: see reached.go
	edges  uint64            // of reach when that was found
	look   clocksync.Instant // when to look again whether the set has only grown
	ready  uint64            // of a single member: see oneRun
	due    clocksync.Instant
}

// maxFound is how many sets of a threshold may wait at once.
const maxFound = 64

func newRuns(rule int, o plan.Detector, fields int) *runs {
	w := &runs{rule: rule, k: o.AtLeast, rows: arena{width: fields}, due: clocksync.MaxInstant, again: clocksync.MinInstant}
	switch {
	case o.Each:
		w.ones = &each{}
		w.sets, w.in = w.ones, w.ones
	case o.AtLeast > 0:
		w.sets = scgs.NewThreshold(o.AtLeast, scgs.Options{Ends: true, Alarms: true})
		w.in, w.reach = w.sets, rearm.New(o.AtLeast, w.sets)
	default:
		w.tuples = scgs.NewDetector(scgs.Options{Modality: o.Modality})
		w.in = w.tuples
	}
	return w
}

// tellRuns passes a report on to the rules' own detectors. A threshold whose k the epoch sets
// counts the report from held on: in an epoch that begins with it, that is its newest evidence.
func (c *Core) tellRuns(m *member, r *wire.Report, at, held *clocksync.Stamp) {
	if c.opt.Follows {
		c.followOnes(m, r)
	}
	if m == c.process || len(c.runs) == 0 {
		return
	}
	if !r.End {
		c.scopeAlone(m, r.Row)
	}
	for _, w := range c.runs {
		if c.plan.Rules[w.rule].Detector.Least != nil {
			c.tell(w, m, r, held)
		} else {
			c.tell(w, m, r, at)
		}
	}
}

// tell passes a report, whose state is in the member's own scope, on to a detector. An unknown
// state ends a run, so that it never counts as true.
func (c *Core) tell(w *runs, m *member, r *wire.Report, at *clocksync.Stamp) {
	n := w.numbers[m.index]
	k, d := &w.known[n], &c.plan.Rules[w.rule].Detector
	again := d.Until != nil && c.readiesAgain(d, r, max(k.last, k.shot))
	holds := !r.End && d.Local.Eval(c.local.scope).Truth == predicates.True
	k.holds = holds || k.holds && r.End // With its end a state does not become false.
	k.tell(r.Seq, c.now.Sub(max(m.entered, c.led)))
	if again {
		w.ones.members[n].ready = r.Seq
	}
	if !holds {
		w.in.End(n, r.Seq, *at)
		return
	}
	if again {
		w.in.End(n, r.Seq, *at) // It fires again.
	}
	ref := w.rows.put(r.Row)
	if w.in.Start(n, r.Seq, *at, ref) != scgs.Accepted {
		w.rows.free(ref)
	} else if w.reach != nil {
		w.reach.Start(n, r.Seq)
	}
}

// scopeAlone puts a member's state into its own scope.
func (j *judgement) scopeAlone(m *member, row []scgs.Value) {
	j.local.member[0] = predicates.Member{Name: m.name, Host: m.host}
	j.local.scope.Reset(j.local.member[:])
	j.local.scope.Set(0, row)
}

// showEvidence gives the detectors evidence that a member's newest state held, and returns what the
// one of all members says to it.
func (c *Core) showEvidence(m *member, seq uint64, at clocksync.Stamp) scgs.Reason {
	reason := c.det.Evidence(m.index, seq, at)
	if m == c.process {
		return reason
	}
	for _, w := range c.runs {
		w.in.Evidence(w.numbers[m.index], seq, at)
	}
	return reason
}

// beginEpoch begins a new epoch; the members that enter have their numbers in the core's
// detector already.
func (c *Core) beginEpoch(w *runs, gone []scgs.Member, entering []*member) {
	remove := make([]scgs.Member, 0, len(gone))
	for _, index := range gone {
		if int(index) < len(w.numbers) && w.numbers[index] != noIndex { // else it is the process
			remove = append(remove, w.numbers[index])
			w.numbers[index] = noIndex
		}
	}
	k, staying := w.k, []*member(nil)
	if least := c.plan.Rules[w.rule].Detector.Least; least != nil {
		staying = w.staying(c.byIndex)
		k = c.least(least, staying, entering)
	}
	if w.reach != nil && c.plan.Rules[w.rule].Refires {
		w.reach.Forget()
	}
	if k == w.k {
		w.stand(k, remove)
	} else {
		c.beginAgain(w, k, staying, remove)
		remove = nil
	}
	c.admit(w, remove, entering)
}

// admit begins the detector's epoch and notes the numbers of those that enter it.
func (c *Core) admit(w *runs, remove []scgs.Member, entering []*member) {
	for i, n := range w.in.Epoch(c.epoch, remove, specs(entering)) {
		put(&w.numbers, entering[i].index, n, noIndex)
		put(&w.indexes, n, entering[i].index, noIndex)
		put(&w.known, n, known{begun: entering[i].last, alone: c.takeRemembered(w, entering[i])}, known{})
		if w.reach != nil {
			w.reach.Enter(n)
		}
	}
}

// staying are the members that the detector knows and that continue, in their order there.
func (w *runs) staying(byIndex []*member) (list []*member) {
	for index, n := range w.numbers {
		if n != noIndex {
			list = append(list, byIndex[index])
		}
	}
	return list
}

// least is of how many members the threshold of an epoch is, at least 1; if k has no value
// it is of more than there can be.
func (j *judgement) least(k *predicates.Expression, staying, entering []*member) int {
	list := slices.Concat(staying, entering)
	slices.SortFunc(list, byName)
	names := make([]predicates.Member, len(list))
	for i, m := range list {
		names[i] = predicates.Member{Name: m.name, Host: m.host}
	}
	j.local.partial.Reset(names)
	v, unknown := k.EvalValue(j.local.partial)
	if unknown != "" {
		return len(list) + 1
	}
	return int(max(v.Int(), 1))
}

// beginAgain makes the detector again for another number of members. Runs that are open begin
// again at their newest evidence: before, so many did not count.
func (c *Core) beginAgain(w *runs, k int, staying []*member, gone []scgs.Member) {
	old, stands := *w, w.standing(gone)
	d := c.plan.Rules[w.rule].Detector
	d.AtLeast = k
	*w = *newRuns(w.rule, d, old.rows.width)
	c.admit(w, nil, staying)
	w.stands = stands
	var lasting []scgs.Part
	for _, m := range staying {
		was, n := old.numbers[m.index], w.numbers[m.index]
		w.known[n] = old.known[was]
		w.known[n].begun = w.known[n].last
		run, open := old.sets.Run(was)
		if !open {
			continue
		}
		ref := w.rows.put(old.row(run.Ref))
		if w.in.Start(n, w.known[n].last, run.End, ref) != scgs.Accepted {
			w.rows.free(ref)
			continue
		}
		if p, open := w.sets.Run(n); open {
			lasting = append(lasting, p)
		}
	}
	if stands && len(lasting) >= k && !c.plan.Rules[w.rule].Refires {
		w.noteFired(&found{runs: lasting})
	}
}

// keepRuns keeps the detectors of predicates that are the same in the new plan. A new
// detector begins with the states of the current tuple, and of a member that is
// already further with its next report.
func (c *Core) keepRuns(old *plan.Level) {
	before := c.runs
	c.runs, c.parts = nil, c.det.Witness(c.parts[:0])
	for i, r := range c.plan.Rules {
		if !r.Detector.Exists() {
			continue
		}
		if k := slices.IndexFunc(before, func(w *runs) bool { return old.Rules[w.rule].Name == r.Name && old.Rules[w.rule].Text == r.Text }); k >= 0 {
			w := *before[k] // Those that follow are still found by their old places.
			w.rule = i
			c.runs = append(c.runs, &w)
			continue
		}
		if !c.opt.Follows {
			c.beginRuns(i, r)
		}
	}
}

// beginRuns makes the detector of a rule, which begins with the states in c.parts.
func (c *Core) beginRuns(i int, r *plan.Rule) {
	w := newRuns(i, r.Detector, len(c.plan.State))
	c.runs = append(c.runs, w)
	c.beginEpoch(w, nil, c.inEpoch)
	for _, p := range c.parts {
		if m := c.byIndex[p.Member]; p.Open && !p.Unknown && m != c.process {
			r := wire.Report{Seq: p.Seq, Row: c.row(m, p.Ref)}
			c.scopeAlone(m, r.Row)
			begun := &p.Start
			if r := c.plan.Rules[i]; r.Detector.Least != nil {
				begun = &p.End
			}
			c.tell(w, m, &r, begun)
			w.in.Evidence(w.numbers[p.Member], p.Seq, p.End)
		}
	}
}

// lacks appends the evidence that the detector lacks. It asks a threshold at most once
// in an askPeriod: with many members that would cost too much at each report.
func (w *runs) lacks(now clocksync.Instant, dst []scgs.Need) []scgs.Need {
	if now < w.again {
		w.due = min(w.due, w.again)
		return dst
	}
	if w.sets != nil {
		w.again = now.Add(askPeriod)
	}
	return w.needs(dst)
}

// needs appends the evidence that the detector lacks, by the members' numbers in the
// core's detector.
func (w *runs) needs(dst []scgs.Need) []scgs.Need {
	from := len(dst)
	dst = w.in.Needs(dst)
	for i := range dst[from:] {
		n := &dst[from+i]
		n.Member = w.indexes[n.Member]
	}
	return dst
}

func put[T any](list *[]T, at scgs.Member, value, none T) {
	for int(at) >= len(*list) {
		*list = append(*list, none)
	}
	(*list)[at] = value
}

// stand finds what holds among the members that stay when an epoch ends: in the next epoch it
// is an alarm again. Sets that have not fired yet are kept.
func (w *runs) stand(atLeast int, remove []scgs.Member) {
	leaves := func(p scgs.Part) bool { return slices.Contains(remove, p.Member) }
	if w.reach != nil {
		w.reach.Leave(remove)
	}
	for n := range w.known {
		w.known[n].begun = w.known[n].last
	}
	w.found = slices.DeleteFunc(w.found, func(f *found) bool { return slices.ContainsFunc(f.runs, leaves) })
	if w.sets == nil {
		w.found = nil // An open tuple is found again.
		return
	}
	w.stood = nil
	if w.ones != nil {
		return // What others do is nothing new of a member.
	}
	var open []scgs.Part
	var specs []scgs.Spec
	for n := range w.indexes {
		if p, ok := w.sets.Run(scgs.Member(n)); ok && !leaves(p) {
			open, specs = append(open, p), append(specs, scgs.Spec{Domain: p.Start.Domain})
		}
	}
	again := scgs.NewThreshold(atLeast, scgs.Options{})
	numbers := again.Epoch(1, nil, specs)
	for i, p := range open {
		again.Start(numbers[i], 1, p.Start, 0)
		again.Evidence(numbers[i], 1, p.End)
		for again.Next(&w.set) {
			f := &found{index: w.set.Index, waits: true, due: clocksync.MinInstant}
			for _, q := range w.set.Runs {
				f.runs = append(f.runs, open[q.Member])
			}
			w.copyRows(f)
			w.stood = append(slices.DeleteFunc(w.stood, func(g *found) bool { return g.within(f) }), f)
		}
	}
	for _, f := range w.stood {
		if !slices.ContainsFunc(w.found, f.within) {
			f.again = true
			w.found = append(w.found, f)
		}
	}
	w.stands = (w.stands || len(w.stood) > 0) && w.standing(remove)
}

// within reports whether all runs of f are in g.
func (f *found) within(g *found) bool {
	rest := g.runs
	for _, p := range f.runs {
		i := slices.IndexFunc(rest, func(q scgs.Part) bool { return p.Member == q.Member && p.Seq == q.Seq })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// sweepRuns fires what the rules' own detectors have found. An epoch that is over
// is not judged; sets that were completed in it are kept for the next one.
func (c *Core) sweepRuns(out *Output) {
	for _, w := range c.runs {
		if w.sets != nil {
			c.sweepSets(w, out)
		} else {
			c.sweepTuples(w, out)
		}
		w.rows.unused = w.in.Released(w.rows.unused)
	}
	c.rememberSet()
}

// mayDecide reports whether a set found now may fire.
func (r *membership) mayDecide() bool { return !r.paused && len(r.removing) == 0 }

func (c *Core) sweepSets(w *runs, out *Output) {
	w.ended = w.sets.Ended(w.ended[:0])
	for i := range w.ended {
		w.end(&w.ended[i])
	}
	for w.sets.Next(&w.set) {
		c.gather(w, out)
	}
	all := w.ones == nil || w.unseen || c.now >= w.due || len(w.ended) > 0
	if !all && !w.ones.answered {
		return // None of the many that may wait is due, or has lasted for long enough.
	}
	if w.ones != nil {
		w.ones.answered = false
	}
	if all {
		w.due = clocksync.MaxInstant
	}
	if w.unseen = !c.mayDecide(); w.unseen {
		return
	}
	for _, f := range w.found {
		if !all && w.ones.members[f.runs[0].Member].past != lasted {
			continue
		}
		w.refresh(f)
		if c.joinRuns(w, f) {
			c.attempt(w, f, scgs.SpanOf(f.runs), out)
		}
	}
	w.found = slices.DeleteFunc(w.found, func(f *found) bool { return !f.waits })
}

// gather takes a set. It fires at once if it need not wait.
func (c *Core) gather(w *runs, out *Output) {
	f := &found{index: w.set.Index, runs: slices.Clone(w.set.Runs), waits: true, due: clocksync.MinInstant}
	if w.ones != nil {
		f.ready = w.ones.ready
	}
	if slices.ContainsFunc(w.stood, func(g *found) bool { return g.within(f) }) {
		return // That one has grown.
	}
	w.copyRows(f)
	lasts := w.lasts(f)
	f.again = w.stands && lasts
	w.stands = w.stands && (lasts || w.continues(c.now, f))
	if c.mayDecide() && !f.again {
		c.attempt(w, f, w.set.Span, out)
	}
	if !f.waits {
		return
	}
	if len(w.found) == maxFound && w.ones == nil || len(w.found) == maxFound+2*len(w.known) {
		w.found = slices.Delete(w.found, 0, 1)
		out.addReject(c.plan.Name, fmt.Sprintf("predicate %s: more than %d sets of members wait until they have held for long enough, or for the cooldown: the oldest is left out", c.plan.Rules[w.rule].Name, maxFound))
	}
	w.found = append(w.found, f)
	w.forgetHeld()
}

// end notes the end of a run in the sets that have it.
func (w *runs) end(p *scgs.Part) {
	if w.reach != nil {
		w.reach.End(p)
	}
	for _, f := range w.found {
		for i := range f.runs {
			if q := &f.runs[i]; q.Member == p.Member && q.Seq == p.Seq {
				q.End, q.Open = p.End, false
			}
		}
	}
}

// refresh brings the runs that are open up to date.
func (w *runs) refresh(f *found) {
	for i := range f.runs {
		p := &f.runs[i]
		now, ok := w.sets.Run(p.Member)
		if !p.Open || !ok || now.Seq != p.Seq {
			continue
		}
		if now.Ref != p.Ref {
			f.rows[i] = append(f.rows[i][:0], w.row(now.Ref)...)
		}
		*p = now
	}
}

func (c *Core) sweepTuples(w *runs, out *Output) {
	w.due = clocksync.MaxInstant
	for w.tuples.Next(&w.ev) {
		if !c.mayDecide() || w.ev.Partial {
			w.found = w.found[:0]
			continue
		}
		if w.ev.Kind == scgs.Opened {
			f := &found{index: w.ev.Index, runs: w.tuples.Witness(nil), waits: true, due: clocksync.MinInstant}
			w.stands = w.stands && w.lasts(f)
			f.again = w.stands
			w.found = append(w.found[:0], f)
		}
		c.lookAt(w, w.ev.Span, out)
		if w.ev.Kind == scgs.Closed {
			w.found, w.stands = w.found[:0], w.stands && w.ev.Epoch != c.epoch
		}
	}
	if span, ok := w.tuples.Current(); ok && c.mayDecide() {
		c.lookAt(w, span, out)
	}
}

// row is the state of a member.
func (w *runs) row(ref scgs.Ref) []scgs.Value { return w.rows.get(ref, w.rows.width) }

// lookAt fires on the tuple that is open, or ends, if it still waits.
func (c *Core) lookAt(w *runs, span scgs.Span, out *Output) {
	if len(w.found) == 0 || !w.found[0].waits {
		return
	}
	f := w.found[0]
	f.runs = w.tuples.Witness(f.runs[:0])
	w.copyRows(f)
	c.attempt(w, f, span, out)
}

// copyRows copies the newest state of each run.
func (w *runs) copyRows(f *found) {
	f.rows = slices.Grow(f.rows[:0], len(f.runs))[:len(f.runs)]
	for i, p := range f.runs {
		f.rows[i] = append(f.rows[i][:0], w.row(p.Ref)...)
	}
}

// attempt fires for the set found, if it has held for long enough, the rule is armed and no
// cooldown keeps it back. Otherwise the set may continue to wait.
func (c *Core) attempt(w *runs, f *found, span scgs.Span, out *Output) {
	r, s := c.plan.Rules[w.rule], &c.states[w.rule]
	if w.spent(f, r, s) {
		f.waits = false
		return
	}
	if (r.Refires || !f.again) && w.continues(c.now, f) {
		return
	}
	if r.Hold > 0 {
		from, to, ok := stretch(&span)
		if !ok || to.Sub(from) < r.Hold {
			f.waited = true
			c.outwait(w, f, span, out)
			return
		}
	}
	if w.ones != nil { // Its cooldown is each member's own.
		one := &w.known[f.runs[0].Member].alone
		s.quiet, s.suppressed = one.quiet, one.suppressed
		defer func() { one.quiet, one.suppressed = s.quiet, s.suppressed }()
	}
	if r.Until != nil && !s.armed {
		f.waited = true
		return
	}
	since := w.settledTill(f, r, s)
	if since > 0 && !f.kept {
		o := c.occasionOf(w, f, span)
		if o.since, o.owed = since, s.owed; !c.reachesNewcomer(r, o) {
			f.waits = false
			w.noteFired(f)
			c.passOver(r, s)
			c.restless.add(w.rule)
			return
		}
	}
	told := monitor.Verdict{
		Predicate: r.Name, Truth: predicates.True, Epoch: c.epoch, Index: f.index, Modality: r.Detector.Word(), Span: span,
		Heard: clocksync.MinInstant,
	}
	if cools, _ := c.keepsBack(r, s, &f.kept, told, out); cools {
		f.waits, f.waited = !slices.ContainsFunc(f.runs, func(p scgs.Part) bool { return !p.Open }), true
		w.due = min(w.due, s.quiet)
		return
	}
	f.waits = false
	w.noteFired(f)
	w.stands = w.stands || w.tuples != nil
	if w.ones != nil {
		one := &w.known[f.runs[0].Member].alone
		one.fired, one.shot = true, f.runs[0].Seq
	}
	o := c.occasionOf(w, f, span)
	o.since, o.owed = since, s.owed
	c.fireRule(r, s, o, out)
	c.restless.add(w.rule) // It is no longer armed.
}

// outwait asks for the evidence that a hold time still lacks, or gives up the hold time
// if a run has ended too early.
func (c *Core) outwait(w *runs, f *found, span scgs.Span, out *Output) {
	hold := c.plan.Rules[w.rule].Hold
	last := clocksync.MinInstant
	for i := range f.runs {
		last = max(last, heldFrom(&f.runs[i], span.SameClock))
	}
	past := last.Add(hold)
	if w.ones != nil {
		w.ones.awaitEvidence(&f.runs[0], past)
	}
	for i := range f.runs {
		if p := &f.runs[i]; !p.Open && heldTo(p, span.SameClock) < past {
			f.waits = false
			return
		}
	}
	switch {
	case f.due == clocksync.MinInstant:
		f.due = c.now.Add(hold)
	case f.due > c.now:
	case c.opt.Local:
		f.due = c.now.Add(time.Millisecond)
	default:
		f.due = c.now.Add(probeAgain)
		for i := range f.runs {
			if m := c.byIndex[w.indexes[f.runs[i].Member]]; f.runs[i].Open {
				c.sendProbe(m, m.last, needOf(past, span.SameClock), out)
			}
		}
	}
	w.due = min(w.due, f.due)
}

// occasionOf is what the rule fires on. The members of its scope are the members of the runs,
// with their newest states: nothing is known of the others at that time.
func (c *Core) occasionOf(w *runs, f *found, span scgs.Span) *occasion {
	o := &c.occasion
	*o = occasion{
		scope: c.local.partial, span: span, heard: clocksync.MinInstant, index: f.index, modality: c.plan.Rules[w.rule].Detector.Word(),
		rows: f.rows, holders: o.holders[:0], seqs: o.seqs[:0], exact: true,
	}
	for range c.inEpoch {
		o.seqs = append(o.seqs, newestState)
	}
	c.parts = c.parts[:0]
	for _, p := range f.runs {
		k := &w.known[p.Member]
		o.exact = o.exact && p.Seq > k.vague
		o.fresh = o.fresh || p.Seq > max(k.vague, k.old)
		p.Member = w.indexes[p.Member]
		c.parts = append(c.parts, p)
		m := c.byIndex[p.Member]
		if !f.waited {
			o.heard = max(o.heard, m.heardAt(p.Seq))
		}
		o.holders = append(o.holders, m.pos)
		o.seqs[m.pos] = p.Seq
		if p.Open {
			o.seqs[m.pos] = m.last
		}
	}
	slices.Sort(o.holders)
	names := make([]predicates.Member, len(o.holders))
	for i, pos := range o.holders {
		names[i] = predicates.Member{Name: c.inEpoch[pos].name, Host: c.inEpoch[pos].host}
	}
	c.local.partial.Reset(names)
	for i, p := range c.parts {
		place, _ := slices.BinarySearch(o.holders, c.byIndex[p.Member].pos)
		c.local.partial.Set(place, f.rows[i])
	}
	return o
}
