package synccore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// A firing is named by its cause, which the synchronizer finds again in its next life, from
// the states that its members tell then: who was sent a signal for it does not obey it twice.

// earlier has the reports of members on the firings of earlier terms. Both maps together have
// at most [outbox.Limit] entries from each member; further entries are left to the members.
type earlier struct {
	firings map[control.Cause]uint32 // of a source on a witness, the last one; by a cause without its Firing
	fates   map[earlierID]control.Fate

	told
	led  []control.Decision // the last ones of the terms before in which this machine has led: it knows of all their signals
	left []outbox.Letter    // signals of those that had no fate at a restart
	give clocksync.Instant  // when they are given up

	fired map[control.Cause]bool // in this term on runs, without a Firing; at most [outbox.Limit]
}

// told are the recorded fates that members tell unasked, of signals of earlier terms and of
// cancellations for want of control: by the member that has told them, and when that was the
// last time. Of each member there are at most maxTold, and of all [outbox.Limit].
type told struct {
	by     map[teller]map[toldID]clocksync.Instant
	all    int
	looked clocksync.Instant // for those to forget
}

const (
	maxTold  = control.MaxFates // no member remembers more
	toldKept = time.Hour        // a member that hears of no record tells a fate every minute, while it is here
	toldLook = time.Minute
)

type teller struct{ group, name string }

// note notes that a member tells a fate, and reports whether it is recorded already. If not, full
// says whether there is no room to record it.
func (t *told) note(now clocksync.Instant, id toldID) (known, full bool) {
	from := teller{id.group, id.target}
	if _, known = t.by[from][id]; !known {
		if full = len(t.by[from]) >= maxTold || t.all >= outbox.Limit; full {
			return false, true
		}
		if t.by == nil {
			t.by = map[teller]map[toldID]clocksync.Instant{}
		}
		if t.by[from] == nil {
			t.by[from] = map[toldID]clocksync.Instant{}
		}
		t.all++
	}
	t.by[from][id] = now
	return known, false
}

// forgetOld forgets old entries.
func (t *told) forgetOld(now clocksync.Instant) {
	if now.Sub(t.looked) < toldLook {
		return
	}
	t.looked, t.all = now, 0
	for from, ids := range t.by {
		maps.DeleteFunc(ids, func(_ toldID, at clocksync.Instant) bool { return now.Sub(at) > toldKept })
		if t.all += len(ids); len(ids) == 0 {
			delete(t.by, from)
		}
	}
}

// toldID names a signal of an earlier term, or a cancellation for want of control: by no
// name, the incarnation that the member had then, and the entry.
type toldID struct {
	group, target, name string
	term, number        uint64
}

// earlierID names a signal of a firing.
type earlierID struct {
	control.Cause

	name, target string
	incarnation  uint64 // of the target
	entry        uint64
}

// sourceOf is the source of a cause: what has fired, by its name and text.
func sourceOf(name, text string) uint64 { return wire.Weight(name+"\n"+text, 0) }

// takeMoved takes over a member's state in the current global state.
func (j *judgement) takeMoved(m *member, to *scgs.Change) {
	weight, seq := m.first(to.Seq)
	share := seq * weight
	j.heads += share - m.share
	m.state, m.share = *to, share
}

// first is where a state of a member began first: the weight of that incarnation, and its number there. A
// state that has begun again on another clock is to be known as the same state.
func (m *member) first(seq uint64) (weight, number uint64) {
	if seq != m.same.Seq || seq == 0 {
		return m.weight, seq
	}
	return wire.Weight(m.name, m.same.Incarnation), m.same.Of
}

// witnessed is the witness of a firing: the current global state, or the runs that its own
// detector has found, whose first states are in c.parts.
func (c *Core) witnessed(o *occasion) uint64 {
	if o.seqs == nil {
		return c.heads
	}
	states, members := uint64(0), uint64(0)
	for i := range c.parts {
		m := c.byIndex[c.parts[i].Member]
		weight, seq := m.first(c.parts[i].Seq)
		// The members are known by their incarnations now: the runs of one term may begin with another
		// state than the runs of the next, and are to count as perhaps the same.
		states, members = states+seq*weight, members+m.weight
	}
	return control.OfRuns(members, states)
}

// causes are the causes of a source.
type causes struct {
	control.Cause // of its last firing; without a source: the causes of this machine have none

	most uint32 // the largest number of a firing
}

// ended are the largest numbers of the firings that predicates had made when a reload came, of predicates
// without a detector of their own and of predicates with a detector. A predicate that begins with a reload
// counts from there, as an earlier reload may have ended it. The two are apart since a machine that
// follows another one knows nothing of the latter.
type ended [2]uint32

func (e *ended) ofRule(r *plan.Rule) *uint32 {
	if r.Detector.Exists() {
		return &e[1]
	}
	return &e[0]
}

// nextCause is the cause of the next firing. On a witness on which the source has fired in an earlier
// term its first firing is the last of that time, which was made: it may not have reached
// everybody. Any other has a number that none before it has, as a witness can come back: with
// an epoch of the members of an earlier one, or in the runs of a threshold.
func (e *earlier) nextCause(last *causes, witness uint64) control.Cause {
	if last.Source == 0 {
		return control.Cause{}
	}
	at := control.Cause{Source: last.Source, Witness: witness}
	made := control.Cause{Firing: e.firings[at]}.Number()
	delete(e.firings, at)
	last.most = max(last.most, made)
	if made == 0 || last.Firing > 0 && last.Witness == witness {
		last.most++
		made = last.most
	}
	last.Witness, last.Firing = witness, made
	return last.Cause
}

// causeOf is the cause of a firing. The first firing of the term on runs is marked,
// unless one of them began in the term: only its targets know whether an earlier term has made it.
func (c *Core) causeOf(last *causes, o *occasion) control.Cause {
	e, witness := &c.earlier, c.witnessed(o)
	told := control.Cause{Source: last.Source, Witness: witness}
	told.Firing = e.firings[told]
	cause := e.nextCause(last, witness)
	if o.seqs == nil || cause.Source == 0 {
		return cause
	}
	switch {
	case told.Number() == cause.Firing:
		cause = told // It is that one, as the same states are in the runs.
	case !o.exact:
		cause.Firing |= control.Vague
	}
	last.Firing = cause.Firing
	if !o.fresh && e.first(cause.Source, witness) {
		cause.Firing |= control.PerhapsMade
	}
	return cause
}

// first reports whether a firing on runs is the first one of the term on them, and notes it.
func (e *earlier) first(source, witness uint64) bool {
	of := control.Cause{Source: source, Witness: witness}
	if e.fired[of] {
		return false
	}
	if e.fired == nil {
		e.fired = map[control.Cause]bool{}
	}
	if len(e.fired) < outbox.Limit {
		e.fired[of] = true
	}
	return true
}

// recollectFates takes what a member tells of the signals of this synchronizer's earlier terms.
func (c *Core) recollectFates(h *wire.Hello) {
	if h.Leader != c.plan.Name || h.Term >= c.opt.Term {
		return
	}
	e := &c.earlier
	if len(h.Fates) > 0 && e.fates == nil {
		e.firings, e.fates = map[control.Cause]uint32{}, map[earlierID]control.Fate{}
	}
	for i := range h.Fates {
		if f := &h.Fates[i]; len(e.fates) < outbox.Limit {
			cause := f.Cause.Plain()
			at := control.Cause{Source: cause.Source, Witness: cause.Witness}
			if last := (control.Cause{Firing: e.firings[at]}); cause.Number() > last.Number() {
				e.firings[at] = cause.Firing
			}
			e.fates[earlierID{cause, f.Name, h.Member, h.Incarnation, f.Entry}] = f.Fate
		}
	}
}

// addCause gives a signal its cause, if its target can read it, and returns its final fate and
// why, if the target has it from an earlier term, or may have it from a signal that is under
// way.
func (c *Core) addCause(m *member, s *control.Signal, cause control.Cause) (control.Fate, string) {
	if !m.causes || cause.Source == 0 {
		return 0, ""
	}
	s.Cause = cause
	if fate := c.earlier.fates[earlierID{cause.Plain(), s.Name, m.name, m.incarnation, s.Entry}]; fate.Final() {
		return fate, "the same firing was made in an earlier term"
	}
	for l := range c.outbox.Letters {
		if x := l.Signal; cause.Perhaps(x.Cause) && x.Decision.Number <= c.before &&
			l.Group == "" && x.Target == s.Target && x.Name == s.Name && x.Entry == s.Entry {
			return control.Unconfirmed, "what an earlier term has made on runs of the same members is under way"
		}
	}
	return 0, ""
}

// isRecorded reports whether the fate of a signal that is not under way is recorded, as it was
// told before, or is now: of a signal of an earlier term, that its target remembers. If not,
// full says whether it would be if there were room.
func (c *Core) isRecorded(group, from string, a *wire.Answer, out *Output) (ok, full bool) {
	d := &a.Decision
	if d.Synchronizer != c.plan.Name || d.Term > c.opt.Term || d.Term == c.opt.Term && d.Number > c.decisions {
		return false, false
	}
	e := &c.earlier
	id := toldID{group, from, a.Name, d.Term, d.Number}
	i := slices.IndexFunc(e.left, func(l outbox.Letter) bool { return idOf(&l) == id })
	if i >= 0 {
		s := e.left[i].Signal
		e.left = slices.Delete(e.left, i, i+1)
		out.addFate(group, s, applied(a.Fate), a.Detail)
		return true, false
	}
	ours := d.Term == c.opt.Term || slices.ContainsFunc(e.led, func(last control.Decision) bool { return d.Term == last.Term && d.Number <= last.Number })
	if ours || a.Kind == 0 {
		return ours, false
	}
	known, full := e.note(c.now, id)
	if !known && !full {
		out.Fates = append(out.Fates, monitor.Fate{Fate: applied(a.Fate), Detail: a.Detail, Group: group, Earlier: true, Signal: &control.Signal{
			Decision: *d, Name: a.Name, Target: from, Kind: a.Kind, Predicate: a.Predicate, Region: a.Region, Entry: a.Entry,
		}})
	}
	return !full, full
}

// takeLapse records a cancellation for want of control, of which its member tells until it learns that.
func (c *Core) takeLapse(s *control.Signal, a *wire.Ack, x *wire.Answer, out *Output) (full bool) {
	known, full := c.earlier.note(c.now, toldID{target: s.Target, term: cmp.Or(x.Decision.Term, a.Incarnation), number: s.Entry})
	if !known && !full {
		out.addFate("", s, x.Fate, x.Detail)
	}
	return full
}

// applied is a final fate as it is recorded.
func applied(f control.Fate) control.Fate {
	if f == control.Duplicate {
		return control.Applied
	}
	return f
}

func idOf(l *outbox.Letter) toldID {
	s := l.Signal
	return toldID{l.Group, s.Target, s.Name, s.Decision.Term, s.Decision.Number}
}

// outlivedFates is what a restart knows of the fates of the terms before. A machine that has followed
// another machine receives it.
func (c *Core) outlivedFates() earlier {
	if c.opt.Follows {
		return earlier{}
	}
	e := earlier{told: c.earlier.told, led: append(c.earlier.led, control.Decision{Term: c.opt.Term, Number: c.decisions}), left: c.earlier.left}
	for l := range c.outbox.Letters {
		e.left = append(e.left, l)
	}
	e.give = c.now.Add(c.plan.Silence.After + heardWithin)
	return e
}

// giveUpLeft records the signals without a fate whose targets have not come back in time.
func (c *Core) giveUpLeft(out *Output) {
	if len(c.earlier.left) == 0 || c.now < c.earlier.give {
		return
	}
	for i := range c.earlier.left {
		l := &c.earlier.left[i]
		out.addFate(l.Group, l.Signal, control.Unconfirmed, "the synchronizer was ended before an answer came")
	}
	c.earlier.left = nil
}
