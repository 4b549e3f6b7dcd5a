package synccore

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// aheadLimit is how many states of a member may wait in the detector while the machine asks
// for no evidence.
const aheadLimit = 64

// undecided is what the global states that the detector has not decided yet can be. Each field of a
// member has the value that all waiting states of the member agree on, and is unknown otherwise. So
// a condition that is decided on it is decided alike on each of those global states.
type undecided struct {
	able    bool               // every predicate of the plan allows to wait
	watched clocksync.Instant  // till then somebody looks at the states
	fresh   bool               // truths are of no members yet
	scope   *predicates.Scope  // nil: the machine always asks
	truths  []predicates.Truth // of the predicates on it
	touched []*member          // whose waiting states have changed
	mixed   int                // members of the epoch whose waiting states cannot be summed up
	parts   []scgs.Part
	row     []scgs.Value
	domains map[clocksync.Domain]*begun // of the members of the epoch
}

// newUndecided begins with the plan, without members.
func (c *Core) newUndecided() {
	c.undecided = undecided{}
	if !c.opt.OnDemand || c.opt.Local {
		return
	}
	c.undecided = undecided{able: mayWait(c.plan), fresh: true, domains: map[clocksync.Domain]*begun{}, truths: make([]predicates.Truth, len(c.plan.Rules))}
	if c.undecided.able {
		c.undecided.scope = predicates.NewScope(c.plan.Env)
		c.undecided.scope.Only(c.plan.Reads())
	}
}

// mayWait reports whether the predicates of a level come to the same firings if evidence is asked for
// only when it can change one of them. They do not where something else reads global states, or where
// the time at which the machine decides counts.
func mayWait(p *plan.Level) bool {
	if p.Prev || p.Summary() || p.Program != nil || p.Balance != nil || p.Work != nil ||
		len(p.Variables) > 0 || len(p.Process) > 0 || len(p.Env.Parent) > 0 || len(p.Below) > 0 {
		return false
	}
	for _, r := range p.Rules {
		if r.When == nil || r.Judge != nil || r.Until != nil || r.Detector.Exists() || r.Cooldown > 0 || len(r.After) > 0 || len(r.Set) > 0 {
			return false
		}
	}
	return true
}

// resetUndecided gives it the members of the epoch.
func (c *Core) resetUndecided(names []predicates.Member) {
	a := &c.undecided
	if a.scope == nil {
		return
	}
	a.scope.Reset(names)
	a.fresh, a.mixed, a.touched = true, 0, a.touched[:0]
	clear(a.domains)
	for _, m := range c.inEpoch {
		if a.domains[m.domain] == nil {
			a.domains[m.domain] = new(begun)
		}
		m.begun = a.domains[m.domain]
	}
	for _, m := range c.inEpoch {
		m.touched, m.mixed = false, false
		c.touch(m)
	}
}

// touch notes that other states of a member wait in the detector than before.
func (c *Core) touch(m *member) {
	if c.undecided.scope != nil && !m.touched {
		m.touched = true
		c.undecided.touched = append(c.undecided.touched, m)
	}
}

// sumUp brings up to date what the waiting states of a member agree on. Of a member whose state is known
// in some of them alone, or of which many wait, nothing is said.
func (c *Core) sumUp(m *member) {
	m.touched = false
	if m.index == noIndex {
		return
	}
	a := &c.undecided
	a.parts = c.det.States(a.parts[:0], m.index)
	mixed := len(a.parts) == 0 || len(a.parts) > aheadLimit
	a.row = a.row[:0]
	for i := range a.parts {
		p := &a.parts[i]
		if mixed = mixed || p.Unknown != a.parts[0].Unknown; mixed || p.Unknown {
			continue
		}
		row := c.row(m, p.Ref)
		if i == 0 {
			a.row = append(a.row, row...)
		}
		for f := range row {
			if row[f] != a.row[f] {
				a.row[f] = scgs.Value{}
			}
		}
	}
	switch {
	case mixed && !m.mixed:
		a.mixed++
	case !mixed && m.mixed:
		a.mixed--
	}
	switch m.mixed = mixed; {
	case mixed:
	case a.parts[0].Unknown:
		a.scope.SetUnknown(m.pos)
	default:
		a.scope.Set(m.pos, a.row)
	}
}

// maySettle reports whether evidence that is missing can change where a predicate stands: that is so
// unless each of them is decided, by the states that wait, to stay what it is.
func (c *Core) maySettle() bool {
	a := &c.undecided
	if !a.able || c.now < a.watched || !c.judged || c.rejudge || !c.deciding() {
		return true
	}
	for _, m := range a.touched {
		c.sumUp(m)
	}
	a.touched = a.touched[:0]
	if a.mixed > 0 {
		return true
	}
	for i, r := range c.plan.Rules {
		if a.fresh || a.scope.Affects(r.When) {
			a.truths[i] = r.When.Eval(a.scope).Truth
		}
	}
	a.fresh = false
	a.scope.Settle()
	for i, r := range c.plan.Rules {
		if s := &c.states[i]; !s.stays(r, a.truths[i]) {
			return true
		}
	}
	return false
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

// askPastAll asks for what the detector needs and for evidence past every state that has been reported
// by now, so that the answers decide all that waits. Asked one by one, as the detector needs them, they
// would take a round trip each.
func (c *Core) askPastAll(out *Output) {
	last, before := c.newestBegins()
	for _, m := range c.inEpoch {
		d := m.begun
		m.need = scgs.Need{AfterMono: d.mono, AfterTime: last.time}
		if d.by == m {
			m.need.AfterMono = d.second
		}
		if d == last {
			m.need.AfterTime = before.time
		}
		m.needed = m.newestReading() <= m.need.AfterMono || m.within.Earliest <= m.need.AfterTime && m.need.AfterTime != clocksync.MinInstant
	}
	for _, n := range c.needs {
		if m := c.byIndex[n.Member]; n.Seq > 0 && n.Seq == m.last {
			m.needed = true
			m.need.AfterMono, m.need.AfterTime = max(m.need.AfterMono, n.AfterMono), max(m.need.AfterTime, n.AfterTime)
		}
	}
	for _, m := range c.inEpoch {
		if m.needed && m.last > 0 && m.index != noIndex && len(m.stash) == 0 && !c.asksFor(m) {
			c.send(m, m.last, m.need, out)
		}
	}
}

// newestBegins brings up to date when the newest states in each clock domain began. It returns the domain
// with the last of them, and the one before.
func (c *Core) newestBegins() (last, before *begun) {
	a := &c.undecided
	for _, d := range a.domains {
		*d = neverBegun
	}
	for _, m := range c.inEpoch {
		d := m.begun
		if m.began > d.mono {
			d.mono, d.second, d.by = m.began, d.mono, m
		} else {
			d.second = max(d.second, m.began)
		}
		if m.beganBy.Finite() {
			d.time = max(d.time, m.beganBy)
		}
	}
	last, before = &neverBegun, &neverBegun
	for _, d := range a.domains {
		switch {
		case last == &neverBegun || d.time > last.time:
			last, before = d, last
		case before == &neverBegun || d.time > before.time:
			before = d
		}
	}
	return last, before
}

// begun is when the newest states of the members in a clock domain began.
type begun struct {
	mono, second clocksync.Instant // the last reading, and the last of the members other than by
	by           *member
	time         clocksync.Instant // the latest time of the last one
}

var neverBegun = begun{mono: clocksync.MinInstant, second: clocksync.MinInstant, time: clocksync.MinInstant}

// newestBegin is the latest time at which a newest state began that has one.
func (c *Core) newestBegin() clocksync.Instant {
	newest := clocksync.MinInstant
	for _, m := range c.inEpoch {
		if m.beganBy.Finite() {
			newest = max(newest, m.beganBy)
		}
	}
	return newest
}
