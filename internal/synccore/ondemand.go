package synccore

import (
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/lookahead"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

const (
	// lookCost is the pause between two look-aheads, for each member of the epoch. The pause follows a look-ahead
	// that found that the machine must ask. Until it ends, the machine asks for what the detector needs.
	lookCost = time.Microsecond
	// fewMembers is the largest number of members that are asked past all waiting states each time. In a larger
	// group new states arrive all the time, and their reports bring the evidence soon.
	fewMembers = 64
	// manyTogether is how many members must share a process on average, in a group of more than fewMembers, so
	// that the machine always asks: a question then serves many members, and asking early saves a round trip.
	manyTogether = 8
	// endWait is how long the machine waits for the reports of the members before it asks whether a predicate
	// that has fired is false again. Nothing follows from that before its next firing.
	endWait = 100 * time.Millisecond
)

// ondemand has members asked for evidence only where it can change where a predicate stands.
type ondemand struct {
	ahead   *lookahead.Ahead // nil: the machine always asks
	trial   *lookahead.Trial // of few members
	begins  lookahead.Begins
	watched clocksync.Instant // until then a person looks at the states
	again   clocksync.Instant // when it looks ahead again
	endsBy  clocksync.Instant // when it asks for the end of a predicate; MaxInstant: none is in sight
	behind  bool              // evidence is missing, and was not asked for
	stands  []lookahead.Stand // of the predicates, in a trial
	dense   bool              // many members share few processes: all are always asked
}

// beginLevel begins with a level, without members.
func (o *ondemand) beginLevel(opt *Options, p *plan.Level) {
	if o.ahead, o.endsBy = nil, clocksync.MaxInstant; opt.OnDemand && !opt.Local {
		if o.ahead = lookahead.New(p); o.ahead != nil {
			o.trial = lookahead.NewTrial(p)
		}
	}
}

// resetMembers gives it the members of the epoch.
func (o *ondemand) resetMembers(members []*member, names []predicates.Member) {
	if o.ahead == nil {
		return
	}
	o.ahead.Reset(names)
	domains := make([]clocksync.Domain, len(members))
	for i, m := range members {
		domains[i] = m.domain
	}
	o.begins.Reset(domains)
	o.trial.Reset(names, domains)
	processes, seen := 0, map[*multiplexer]bool{}
	for _, m := range members {
		if m.multiplexer == nil || !seen[m.multiplexer] {
			processes, seen[m.multiplexer] = processes+1, true
		}
	}
	o.dense = len(members) > fewMembers && processes*manyTogether <= len(members)
}

// touchMember notes that other states of a member wait in the detector than before.
func (o *ondemand) touchMember(m *member) {
	if o.ahead != nil && m.index != noIndex {
		o.ahead.Touch(m.pos)
	}
}

// hasFew reports whether there are few members, so that each question is past all that waits.
func (o *ondemand) hasFew() bool { return o.ahead != nil && o.begins.Len() <= fewMembers }

// shouldAsk reports whether evidence that is missing is to be asked for, and whether past all that waits.
func (o *ondemand) shouldAsk(c *Core) (asks, pastAll bool) {
	if o.ahead == nil || o.dense || len(c.needs) == 0 || c.now < o.again {
		o.endsBy = clocksync.MaxInstant
		return true, false
	}
	if !o.maySettle(c) {
		o.behind = true
		return false, false
	}
	pastAll = o.behind || o.hasFew()
	o.again, o.behind, o.endsBy = c.now.Add(time.Duration(len(c.inEpoch))*lookCost), false, clocksync.MaxInstant
	return true, pastAll
}

// maySettle reports whether evidence that is missing can change where a predicate stands: that is so
// unless each of them is decided, by the states that wait, to stay what it is.
func (o *ondemand) maySettle(c *Core) bool {
	a := o.ahead
	if c.now < o.watched || !c.judged || c.rejudge || !c.mayDecide() {
		return true
	}
	for _, place := range a.Touched() {
		m := c.inEpoch[place]
		a.Begin()
		if m.index != noIndex {
			c.parts = c.det.States(c.parts[:0], m.index)
			for i := range c.parts {
				a.State(c.row(m, c.parts[i].Ref), !c.parts[i].Unknown)
			}
		}
		a.End(place)
	}
	truths, known := a.Truths()
	for i, r := range c.plan.Rules {
		if !known || !c.states[i].stays(r, truths[i]) {
			if !o.hasFew() {
				return true
			}
			fires, ends := o.tryWaiting(c)
			switch {
			case !ends:
				o.endsBy = clocksync.MaxInstant
			case o.endsBy == clocksync.MaxInstant:
				o.endsBy = c.now.Add(endWait)
			}
			return fires || c.now >= o.endsBy
		}
	}
	o.endsBy = clocksync.MaxInstant
	return false
}

// tryWaiting reports whether a predicate fires, or may be unknown, on one of the global states that would follow
// if the newest known states lasted for ever, and otherwise whether the verdict on one of them is another one.
func (o *ondemand) tryWaiting(c *Core) (fires, ends bool) {
	t := o.trial
	t.Begin()
	for place, m := range c.inEpoch {
		if m.index == noIndex {
			return true, false
		}
		c.parts = c.det.States(c.parts[:0], m.index)
		t.Add(place, c.parts)
	}
	if !t.Sound() {
		return true, false
	}
	o.stands = o.stands[:0]
	for i, r := range c.plan.Rules {
		s := &c.states[i]
		if !s.told {
			return true, false
		}
		o.stands = append(o.stands, lookahead.Stand{Truth: s.truth, Armed: s.armed, Spent: s.spent(r)})
	}
	return t.Run(o.stands, c.tuple, func(place int, ref scgs.Ref) []scgs.Value { return c.row(c.inEpoch[place], ref) })
}

// stays reports whether nothing follows for a predicate from another global state on which it is
// what it was.
func (s *ruleState) stays(r *plan.Rule, truth predicates.Truth) bool {
	switch {
	case !s.told || truth != s.truth:
		return false
	case truth == predicates.False:
		return s.armed || s.spent(r)
	}
	return truth == predicates.True && !s.armed && !r.Every
}

// rankBegins brings up to date when the newest states of the members began.
func (o *ondemand) rankBegins(members []*member) {
	o.begins.Clear()
	for place, m := range members {
		o.begins.Note(place, m.began, m.beganBy)
	}
	o.begins.Rank()
}

// askPastAll asks for what the detector needs and for evidence past every state that has been reported
// by now, so that the answers decide all that waits. Asked one by one, as the detector needs them, they
// would take a round trip each.
func (o *ondemand) askPastAll(c *Core, out *Output) {
	o.rankBegins(c.inEpoch)
	for _, n := range c.needs {
		if m := c.byIndex[n.Member]; n.Seq > 0 && n.Seq == m.last {
			o.begins.Ask(m.pos, n)
		}
	}
	for place, m := range c.inEpoch {
		need, lacks := o.begins.Need(place, m.newestReading(), m.within.Earliest)
		if lacks && m.last > 0 && m.index != noIndex && len(m.stash) == 0 && !c.asksFor(m) {
			c.sendProbe(m, m.last, need, out)
		}
	}
}
