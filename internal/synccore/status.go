package synccore

import (
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Status is where a synchronizer stands. All durations are in seconds, and ages
// are those of the moment the question was answered.
type Status struct {
	Synchronizer string `json:"synchronizer"`
	Group        string `json:"group"`
	Term         uint64 `json:"term"`
	Epoch        uint64 `json:"epoch"` // 0: there are too few members, nothing is decided
	// Awaited is how many members there must be: for the first epoch, or for any
	// later one.
	Awaited int `json:"awaited"`
	// State is the newest global state; nil before the first one of the epoch.
	State      *StateStatus      `json:"state"`
	Members    []MemberStatus    `json:"members"`    // in the order of their names
	Predicates []PredicateStatus `json:"predicates"` // in the order of their names
	Memory     Values            `json:"memory"`
	// Waiting is the number of signals without a final fate.
	Waiting int `json:"waiting_signals"`
	// Groups are the other groups that signals go to, in the order of their names;
	// left out if there are none.
	Groups []GroupStatus `json:"groups,omitempty"`
	// Program is nil if the synchronizer runs none.
	Program *ProgramStatus `json:"program,omitempty"`
	// Balance is nil if no loads are moved.
	Balance *BalanceStatus `json:"balance,omitempty"`
}

// GroupStatus is what is known of another group.
type GroupStatus struct {
	Group   string        `json:"group"`
	Max     int           `json:"max"`     // members that are listened to
	Members []HeardMember `json:"members"` // in the order of their names
}

// HeardMember is a member of another group: its newest incarnation, how many seconds
// ago it was heard (what it says again is noted every half second), and its open
// regions.
type HeardMember struct {
	Name        string   `json:"name"`
	Incarnation uint64   `json:"incarnation"`
	Heard       float64  `json:"heard_seconds"`
	Regions     []string `json:"regions"`
}

// StateStatus is a global state without the states of its members.
type StateStatus struct {
	Epoch   uint64 `json:"epoch"`
	Index   uint64 `json:"state"` // from 1 within the epoch
	Partial bool   `json:"partial"`
	// InForce is false if a state of it has ended and what follows is not certain
	// yet.
	InForce bool `json:"in_force"`
	// Held is for how long it certainly held so far.
	Held float64 `json:"held_seconds"`
	// SameClock is true if one clock orders all its states.
	SameClock bool `json:"same_clock"`
}

// Standing says whether a member takes part.
type Standing string

// The standings.
const (
	Taking  Standing = "in"      // it is in the epoch
	Ready   Standing = "ready"   // it waits for the next epoch
	Mute    Standing = "mute"    // it has joined, and has no state
	Gone    Standing = "gone"    // it has left or was dropped
	Leaving Standing = "leaving" // it is gone, and the epoch with it is not over yet
)

// MemberStatus is what is known of a member.
type MemberStatus struct {
	Name        string   `json:"name"`
	Host        string   `json:"host"`
	Incarnation uint64   `json:"incarnation"`
	Standing    Standing `json:"standing"`
	Why         string   `json:"why,omitempty"` // it is gone
	// Heard is how long ago it was last heard, and Silent whether that is longer
	// than twice the time in which it should have shown itself.
	Heard  float64     `json:"heard_seconds"`
	Silent bool        `json:"silent"`
	Clock  ClockStatus `json:"clock"`
	// Seq is the number of its newest report, Pending how many states the detector
	// keeps of it: the one it looks at and those after it.
	Seq     uint64 `json:"seq"`
	Pending int    `json:"pending"`
	// Behind is how many reports are kept back because one before them is missing,
	// and Gap since when that is asked for; 0 without a gap.
	Behind int     `json:"behind"`
	Gap    float64 `json:"gap_seconds"`
	// Unknown is set if nothing is known of its state at present. State is the one
	// that the detector looks at, or, outside the epoch, the newest.
	Unknown bool     `json:"unknown"`
	State   Values   `json:"state"`
	Regions []string `json:"regions"` // open ones
}

// ClockStatus is what the stamps of a member rest on.
type ClockStatus struct {
	// Status is "exact" for the clock that all are compared by, "local" for one
	// that has no bound and needs none where all members share it, else a word of
	// [clocksync.Status].
	Status string `json:"status"`
	Source string `json:"source"`
	Domain string `json:"domain"`
	// Bound is the half width of its newest stamp; nil if that is infinite or there
	// is no stamp.
	Bound *float64 `json:"bound_seconds"`
}

// PredicateStatus is where a predicate stands in the epoch.
type PredicateStatus struct {
	Name   string `json:"name"`
	Truth  string `json:"truth"` // "unknown" before it was judged
	Reason string `json:"reason,omitempty"`
	// Since is how long it has come to that; nil if it was not judged in this
	// epoch.
	Since *float64 `json:"since_seconds"`
	Armed bool     `json:"armed"` // it fires when it is true next
	Hold  *Hold    `json:"hold"`  // nil unless its hold time runs
	Fired uint64   `json:"fired"` // since the start
	// Decision is the last one and Ago its age; empty before the first.
	Decision string  `json:"decision,omitempty"`
	Ago      float64 `json:"decision_seconds,omitempty"`
}

// Hold is a hold time that runs.
type Hold struct {
	// Certain is for how long the predicate has certainly been true so far, Wanted
	// for how long it has to be.
	Certain float64 `json:"certain_seconds"`
	Wanted  float64 `json:"wanted_seconds"`
}

// Status tells where the machine stands at an instant, which is not before that
// of the last step. It changes nothing and costs O(members).
func (c *Core) Status(now clocksync.Instant) Status {
	s := Status{
		Synchronizer: c.plan.Name, Group: c.plan.Members.Group, Term: c.opt.Term, Epoch: c.Epoch(),
		Awaited: c.awaited(), State: c.stateStatus(), Waiting: len(c.outbox),
		Members: c.memberStatus(now), Predicates: []PredicateStatus{}, Groups: c.groupStatus(now), Program: c.programStatus(),
		Balance: c.balanceStatus(now),
	}
	for _, name := range c.plan.Predicates() {
		s.Predicates = append(s.Predicates, c.predicateStatus(now, c.ruleIndex(name)))
	}
	for i, v := range c.plan.memory {
		s.Memory = append(s.Memory, Named{v.Field.Name, Plain(c.memory[i])})
	}
	return s
}

func (c *Core) awaited() int {
	if c.begun {
		return c.plan.Members.Min
	}
	return c.plan.Members.Count
}

// globalState is nil if the detector has found none in this epoch.
func (c *Core) stateStatus() *StateStatus {
	if c.ev.Epoch != c.epoch || c.ev.Index == 0 {
		return nil
	}
	span, open := c.det.Current()
	if !open {
		span = c.ev.Span
	}
	return &StateStatus{
		Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, InForce: open && c.tuple,
		Held: span.Certain().Seconds(), SameClock: span.SameClock,
	}
}

func (c *Core) memberStatus(now clocksync.Instant) []MemberStatus {
	heads := make(map[*member]scgs.Part, len(c.sorted))
	c.parts = c.det.Witness(c.parts[:0])
	for _, p := range c.parts {
		heads[c.byIndex[p.Member]] = p
	}
	all, together := make([]MemberStatus, 0, len(c.sorted)), c.oneDomain()
	for _, m := range c.sorted {
		one := MemberStatus{
			Name: m.name, Host: m.host, Incarnation: m.incarnation, Standing: m.standing(), Why: m.why,
			Heard: ago(now, m.heard), Silent: c.silent(m, now), Clock: c.clockStatus(m, together),
			Seq: m.last, Behind: len(m.stash), Regions: regionNames(m.regions),
		}
		if m.gapSince != clocksync.MaxInstant {
			one.Gap = ago(now, m.gapSince)
		}
		stamp := m.newest.alive
		row := c.rows.get(m.newest.ref)
		if m.index != noIndex {
			head, ok := heads[m]
			one.Unknown = head.Unknown || !ok
			one.Pending = c.det.Pending(m.index)
			stamp, row = head.End, c.rows.get(head.Ref)
		}
		one.State = NewValues(c.plan.State, row)
		if bound := stamp.Within.Width(); stamp.Domain != "" && stamp.Within.Bounded() {
			half := ((bound + 1) / 2).Seconds()
			one.Clock.Bound = &half
		}
		all = append(all, one)
	}
	return all
}

func (c *Core) groupStatus(now clocksync.Instant) []GroupStatus {
	var all []GroupStatus
	for _, name := range slices.Sorted(maps.Keys(c.others)) {
		g := c.others[name]
		one := GroupStatus{Group: name, Max: g.max, Members: make([]HeardMember, 0, len(g.sorted))}
		for _, m := range g.sorted {
			one.Members = append(one.Members, HeardMember{m.name, m.incarnation, ago(now, m.heard), regionNames(m.regions)})
		}
		all = append(all, one)
	}
	return all
}

func regionNames(regions []wire.Region) []string {
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Name
	}
	return names
}

func (m *member) standing() Standing {
	switch {
	case m.gone && m.index != noIndex:
		return Leaving
	case m.gone:
		return Gone
	case m.index != noIndex:
		return Taking
	case m.newest.known:
		return Ready
	}
	return Mute
}

// silent reports whether a member has let pass twice the time in which it should
// have shown itself.
func (c *Core) silent(m *member, now clocksync.Instant) bool {
	return !c.opt.Local && !m.gone && now.Sub(m.heard) > 2*c.plan.heartbeat()
}

func (c *Core) clockStatus(m *member, together bool) ClockStatus {
	s := ClockStatus{Status: m.quality.Status.String(), Source: m.quality.Source, Domain: string(m.domain)}
	switch {
	case c.exact(m):
		s.Status = "exact"
	case m.quality.Timeline == "" && m.quality.Status == clocksync.Unknown && together:
		s.Status = "local"
	}
	return s
}

// oneDomain reports whether one clock orders the states of all members.
func (c *Core) oneDomain() bool {
	for _, m := range c.inEpoch {
		if m.domain != c.inEpoch[0].domain {
			return false
		}
	}
	return true
}

func (c *Core) predicateStatus(now clocksync.Instant, i int) PredicateStatus {
	r, s := c.plan.rules[i], &c.states[i]
	out := PredicateStatus{Name: r.name, Truth: s.truth.String(), Armed: s.armed || r.every || r.own.exists() && r.until == nil, Hold: c.running(i)}
	p := c.past[r.name]
	if s.told && p != nil {
		since := ago(now, p.since)
		out.Since, out.Reason = &since, p.reason
	}
	if p != nil && p.fired > 0 {
		out.Fired, out.Decision, out.Ago = p.fired, p.last.Decision.String(), ago(now, p.at)
	}
	return out
}

// running is the hold time of a predicate, nil if it does not run.
func (c *Core) running(i int) *Hold {
	s := &c.states[i]
	if !s.holding {
		return nil
	}
	h := &Hold{Wanted: c.plan.rules[i].hold.Seconds()}
	span, open := c.det.Current()
	if _, to, ok := stretch(&span); open && ok {
		h.Certain = max(0, to.Sub(s.since)).Seconds()
	}
	return h
}

// ruleIndex is -1 if there is no predicate of that name.
func (c *Core) ruleIndex(name string) int {
	for i, r := range c.plan.rules {
		if r.name == name {
			return i
		}
	}
	return -1
}

// ago is an age in seconds.
func ago(now, then clocksync.Instant) float64 { return max(0, now.Sub(then)).Seconds() }

// maxKept is how many states of the last witness of a predicate are kept.
const maxKept = 64

// past is what is kept of a predicate beside where it stands.
type past struct {
	epoch   uint64 // 0: not judged yet
	truth   predicates.Truth
	reason  string
	since   clocksync.Instant // it has come to that truth
	fired   uint64
	last    Verdict // that fired, with at most maxKept states
	leftOut int
	at      clocksync.Instant
}

// remark keeps what a step has told of the predicates.
func (c *Core) remark(out *Output) {
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		p := c.past[v.Predicate]
		if p == nil {
			p = &past{}
			c.past[v.Predicate] = p
		}
		if v.Modality == "" { // else it is not on a global state
			if v.Truth != p.truth || v.Epoch != p.epoch {
				p.truth, p.epoch, p.since = v.Truth, v.Epoch, c.now
			}
			p.reason = v.Reason
		}
		if v.Fired {
			p.fired++
			p.last, p.at = *v, c.now
			p.last.Witness, p.leftOut = kept(v.Witness, v.Span.SameClock)
		}
	}
}

// kept is a witness that fits into what is kept: that with the state that began
// last and the one that ended first, which bound the core, and how many are left
// out.
func kept(witness []Part, sameClock bool) (parts []Part, leftOut int) {
	if len(witness) <= maxKept {
		return witness, 0
	}
	late, early := 0, 0
	for i := range witness {
		if from(&witness[i], sameClock) > from(&witness[late], sameClock) {
			late = i
		}
		if to(&witness[i], sameClock) < to(&witness[early], sameClock) {
			early = i
		}
	}
	keep := []int{late, early}
	for i := range maxKept - len(keep) {
		keep = append(keep, i)
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	for _, i := range keep {
		parts = append(parts, witness[i])
	}
	return parts, len(witness) - len(parts)
}

// from is when a part certainly held, by readings or in reference time; to is
// until when.
func from(p *Part, sameClock bool) clocksync.Instant {
	if sameClock {
		return p.State.Start.Mono
	}
	return p.State.Start.Within.Latest
}

func to(p *Part, sameClock bool) clocksync.Instant {
	if sameClock {
		return p.State.End.Mono
	}
	return p.State.End.Within.Earliest
}
