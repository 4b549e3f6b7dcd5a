package synccore

import (
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// each finds the runs of each member separately: one report is enough to be certain of a run,
// and the others' states have no part in it. The core's detector has accepted each report
// before, so that stamps and numbers are in order.
type each struct {
	members  []oneRun // by number
	free     []scgs.Member
	fresh    []oneRun // that have begun, for Next
	ended    []scgs.Part
	released []scgs.Ref
	epoch    uint64
	index    uint64
	ready    uint64 // of the run that Next has taken out
	answered bool   // some run has lasted past the awaited time, since this was last reset
}

// lasted is the past of a run that has lasted for as long as was awaited.
const lasted = clocksync.MinInstant

// oneRun is the newest run of a member.
type oneRun struct {
	alive       bool
	last        uint64            // the number of the newest report
	multiplexer int32             // of [scgs.Spec]
	ready       uint64            // the newest report by then at which a rule with until was ready to fire again
	past        clocksync.Instant // the evidence that a hold time awaits; [lasted]: it has come; MaxInstant: none does
	part        scgs.Part
}

// awaitEvidence notes which evidence completes the hold time of a member's run.
func (e *each) awaitEvidence(p *scgs.Part, past clocksync.Instant) {
	if one := e.find(p.Member); one != nil && one.part.Open && one.part.Seq == p.Seq {
		one.past = past
	}
}

// prolong takes newer evidence of a run that is open.
func (e *each) prolong(one *oneRun, at clocksync.Stamp) {
	one.part.End = at
	if one.past != lasted && at.Mono >= one.past {
		one.past, e.answered = lasted, true
	}
}

// Epoch begins an epoch: the runs of members that stay continue.
func (e *each) Epoch(id uint64, remove []scgs.Member, add []scgs.Spec) []scgs.Member {
	for _, m := range remove {
		if one := e.find(m); one != nil {
			if one.part.Open {
				e.released = append(e.released, one.part.Ref)
			}
			*one = oneRun{}
			e.free = append(e.free, m)
		}
	}
	e.fresh = slices.DeleteFunc(e.fresh, func(one oneRun) bool { return slices.Contains(remove, one.part.Member) })
	e.epoch, e.index = id, 0
	added := make([]scgs.Member, len(add))
	for i := range add {
		m := scgs.Member(len(e.members)) //nolint:gosec // There are at most 100,000.
		if n := len(e.free); n > 0 {
			m, e.free = e.free[n-1], e.free[:n-1]
		} else {
			e.members = append(e.members, oneRun{})
		}
		e.members[m] = oneRun{alive: true, multiplexer: add[i].Multiplexer}
		added[i] = m
	}
	return added
}

func (e *each) find(m scgs.Member) *oneRun {
	if int(m) >= len(e.members) || m < 0 || !e.members[m].alive {
		return nil
	}
	return &e.members[m]
}

// Start takes a state in which the condition holds.
func (e *each) Start(m scgs.Member, seq uint64, at clocksync.Stamp, ref scgs.Ref) scgs.Reason {
	one := e.find(m)
	if one == nil {
		return scgs.NoMember
	}
	e.skip(one, seq)
	if p := &one.part; p.Open {
		e.released = append(e.released, p.Ref)
		p.Ref = ref
		e.prolong(one, at)
		return scgs.Accepted
	}
	one.part, one.past = scgs.Part{Member: m, Seq: seq, Ref: ref, Start: at, End: at, Open: true}, clocksync.MaxInstant
	e.fresh = append(e.fresh, *one)
	return scgs.Accepted
}

// End takes a state in which it does not.
func (e *each) End(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason {
	one := e.find(m)
	if one == nil {
		return scgs.NoMember
	}
	e.skip(one, seq)
	if one.part.Open {
		one.part.End = at
		e.end(one)
	}
	return scgs.Accepted
}

// skip notes the number of a report. Where others are missing the run has ended at its
// newest evidence: what it was in between is not known.
func (e *each) skip(one *oneRun, seq uint64) {
	if one.part.Open && seq > one.last+1 {
		e.end(one)
	}
	one.last = max(one.last, seq)
}

func (e *each) end(one *oneRun) {
	one.part.Open = false
	e.released = append(e.released, one.part.Ref)
	e.ended = append(e.ended, one.part)
}

// Evidence takes that a member's newest state still held.
func (e *each) Evidence(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason {
	one := e.find(m)
	if one == nil {
		return scgs.NoMember
	}
	if one.part.Open && seq > one.last {
		e.end(one) // The evidence is of a state that was refused.
	}
	one.last = max(one.last, seq)
	if p := &one.part; p.Open && clocksync.CertainlyBefore(p.End, at) {
		e.prolong(one, at)
	}
	return scgs.Accepted
}

// Held is Evidence for the newest states of all members of a multiplexer.
func (e *each) Held(multiplexer int32, at clocksync.Stamp) scgs.Reason {
	for m := range e.members {
		if one := &e.members[m]; multiplexer > 0 && one.multiplexer == multiplexer && one.alive {
			e.Evidence(scgs.Member(m), one.last, at) //nolint:gosec // There are at most 100,000.
		}
	}
	return scgs.Accepted
}

// Needs appends nothing: no evidence of others decides.
func (e *each) Needs(dst []scgs.Need) []scgs.Need { return dst }

// Next takes out the next run that has begun, as a set with one run.
func (e *each) Next(s *scgs.Set) bool {
	if len(e.fresh) == 0 {
		return false
	}
	p := e.fresh[0].part
	e.ready = e.fresh[0].ready
	e.fresh = e.fresh[:copy(e.fresh, e.fresh[1:])]
	if one := e.find(p.Member); one != nil && one.part.Seq == p.Seq {
		p = one.part
	}
	e.index++
	s.Epoch, s.Index, s.Grows, s.Runs = e.epoch, e.index, false, append(s.Runs[:0], p)
	s.Span = scgs.SpanOf(s.Runs)
	return true
}

// Run is the open run of a member.
func (e *each) Run(m scgs.Member) (scgs.Part, bool) {
	one := e.find(m)
	if one == nil || !one.part.Open {
		return scgs.Part{}, false
	}
	return one.part, true
}

// Ended appends the runs that have ended since the last call.
func (e *each) Ended(dst []scgs.Part) []scgs.Part {
	dst = append(dst, e.ended...)
	e.ended = e.ended[:0]
	return dst
}

// Released appends the rows that are not needed any more.
func (e *each) Released(dst []scgs.Ref) []scgs.Ref {
	dst = append(dst, e.released...)
	e.released = e.released[:0]
	return dst
}

// alone is the memory of a predicate that is judged for each member, for a single member.
type alone struct {
	quiet      clocksync.Instant // no firing for it before that
	suppressed uint64            // firings kept back since the last one
	fired      bool
	shot       uint64 // the first report of the run that it fired on last; 0: none
}

// held reports whether a predicate with until has fired for a member and is not ready to fire again,
// if it was ready at a report last.
func (o *alone) held(ready uint64) bool { return o.shot >= max(ready, 1) }

// readiesAgain reports whether a predicate with until is ready to fire again at a report of a member, whose
// state is in the member's own scope: until is true, or it is not known whether it was. Last is the report
// before.
func (j *judgement) readiesAgain(d *plan.Detector, r *wire.Report, last uint64) bool {
	if r.End || r.Seq > last+1 {
		return true
	}
	when, until := d.Local.Eval(j.local.scope).Truth, d.Until.Eval(j.local.scope).Truth
	return until == predicates.True || when == predicates.Unknown || when == predicates.False && until == predicates.Unknown
}

// spent reports whether a predicate may not fire again on the runs found.
func (w *runs) spent(f *found, r *plan.Rule, s *ruleState) bool {
	if s.spent(r) || w.ones == nil {
		return s.spent(r)
	}
	one := &w.known[f.runs[0].Member].alone
	return r.Once == config.OnceMember && one.fired || r.Detector.Until != nil && one.held(f.ready)
}

// takeRemembered is the memory of another machine about a member that enters, which continues from there.
func (j *judgement) takeRemembered(w *runs, m *member) alone {
	s := &j.states[w.rule]
	i := placeOf(s.ones, m)
	if i < 0 || w.ones == nil {
		return alone{quiet: clocksync.MinInstant}
	}
	k := s.ones[i]
	s.ones = slices.Delete(s.ones, i, i+1)
	return alone{quiet: k.Quiet, fired: k.Fired, shot: k.Held}
}

// followOnes keeps another machine's memory of a member up to date, in a machine that follows it.
func (c *Core) followOnes(m *member, r *wire.Report) {
	for i, rule := range c.plan.Rules {
		if rule.Detector.Until == nil {
			continue
		}
		ones := c.states[i].ones
		if k := placeOf(ones, m); k >= 0 && ones[k].Held > 0 {
			if !r.End {
				c.scopeAlone(m, r.Row)
			}
			last := ones[k].Held
			if ones[k].Held = r.Seq; c.readiesAgain(&rule.Detector, r, last) {
				ones[k].Held = 0
			}
		}
	}
}

// placeOf is the place of a member in a list by name, -1 if this incarnation of it is not in the list.
func placeOf(ones []KeptOne, m *member) int {
	i, found := slices.BinarySearchFunc(ones, m.name, func(k KeptOne, name string) int { return strings.Compare(k.Member, name) })
	if !found || ones[i].Incarnation != m.incarnation {
		return -1
	}
	return i
}

// KeptOne is where a predicate stands that is judged for each member, with one of them.
type KeptOne struct {
	Member      string            `json:"member"`          // its name
	Incarnation uint64            `json:"incarnation"`     // of it
	Quiet       clocksync.Instant `json:"quiet"`           // the end of its cooldown
	Fired       bool              `json:"fired,omitempty"` // for it
	Held        uint64            `json:"held,omitempty"`  // up to this report its until was not true since it fired; 0: it is ready to fire again
}

// keptOnes are the remembered members of a rule, by name.
func (c *Core) keptOnes(rule int) (list []KeptOne) {
	for _, w := range c.runs {
		if w.rule != rule || w.ones == nil {
			continue
		}
		for _, m := range c.inEpoch {
			one := w.one(m.index)
			if one == nil {
				continue
			}
			kept := KeptOne{Member: m.name, Incarnation: m.incarnation, Quiet: one.quiet, Fired: one.fired}
			if n := w.numbers[m.index]; c.plan.Rules[rule].Detector.Until != nil && one.held(w.ones.members[n].ready) {
				kept.Held = max(w.known[n].last, one.shot)
			}
			if one.fired || one.quiet > c.now || kept.Held > 0 {
				list = append(list, kept)
			}
		}
	}
	return list
}

// one is the memory of a member, by its number in the core's detector.
func (w *runs) one(index scgs.Member) *alone {
	if int(index) >= len(w.numbers) || index < 0 || w.numbers[index] == noIndex {
		return nil
	}
	return &w.known[w.numbers[index]].alone
}
