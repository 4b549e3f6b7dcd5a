package lookahead

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// mostTried is how many states of a member may wait, on average, in a trial. It bounds its cost.
const mostTried = 8

// Trial finds the global states that would follow if the newest known state of each member lasted for
// ever. As long as no predicate fires on one of them, none fires on what the detector lacks evidence for.
type Trial struct {
	rules    []*plan.Rule
	scope    *predicates.Scope
	det      *scgs.Detector
	specs    []scgs.Spec
	members  []scgs.Member // of the detector, by place
	places   []int         // of the members, by their numbers in the detector
	truths   []predicates.Truth
	ev       scgs.Event
	epoch    uint64
	released []scgs.Ref // which the detector has dropped
	states   int
	sound    bool
	fresh    bool // truths are of no global state of this trial
}

// NewTrial returns the trial of a level that has an [Ahead], without members.
func NewTrial(p *plan.Level) *Trial {
	t := &Trial{rules: p.Rules, truths: make([]predicates.Truth, len(p.Rules)), det: scgs.NewDetector(scgs.Options{}), scope: predicates.NewScope(p.Env)}
	t.scope.Only(p.Reads())
	return t
}

// Reset gives it the members of an epoch and their clock domains, in the order of their places.
func (t *Trial) Reset(names []predicates.Member, domains []clocksync.Domain) {
	t.scope.Reset(names)
	t.specs = t.specs[:0]
	for _, d := range domains {
		t.specs = append(t.specs, scgs.Spec{Domain: d})
	}
}

// Begin begins a trial without states.
func (t *Trial) Begin() {
	t.epoch++
	t.members = t.det.Epoch(t.epoch, t.members, t.specs)
	for place, m := range t.members {
		t.places = append(t.places, make([]int, max(0, int(m)+1-len(t.places)))...)
		t.places[m] = place
	}
	t.states, t.sound, t.fresh = 0, true, true
	t.released = t.det.Released(t.released[:0])
}

// Add adds the states of a member that wait, oldest first.
func (t *Trial) Add(place int, states []scgs.Part) {
	if t.states += len(states); len(states) == 0 || t.states > mostTried*len(t.specs) {
		t.sound = false
	}
	if !t.sound {
		return
	}
	m := t.members[place]
	for i := range states {
		p := &states[i]
		last := i == len(states)-1
		if p.Unknown || p.Open != last || !last && p.End != states[i+1].Start || t.det.Start(m, uint64(i+1), p.Start, p.Ref) != scgs.Accepted {
			t.sound = false
			return
		}
	}
	forever := clocksync.Stamp{Domain: t.specs[place].Domain, Mono: clocksync.MaxInstant, Within: clocksync.Interval{Earliest: clocksync.MaxInstant, Latest: clocksync.MaxInstant}}
	t.sound = t.det.Evidence(m, uint64(len(states)), forever) == scgs.Accepted
}

// Sound reports whether the trial shows all that can follow. It does not if a state is unknown or missing,
// or if more states wait than it takes.
func (t *Trial) Sound() bool { return t.sound }

// Stand is where a predicate stands before a trial.
type Stand struct {
	Truth predicates.Truth // on the last global state
	Armed bool             // it fires at the next true
	Spent bool             // it does not fire again in this epoch
}

// Run reports whether a predicate fires, or may be unknown, on one of the global states that follow, and
// otherwise whether its truth is another one on one of them. If open is set, the first of them is the last
// global state. Run changes stands. Row returns the values of a state.
func (t *Trial) Run(stands []Stand, open bool, row func(place int, ref scgs.Ref) []scgs.Value) (fires, changes bool) {
	for ; ; open = false {
		truths, more := t.Next(row)
		if !more {
			return false, changes
		}
		for i := range stands {
			s := &stands[i]
			switch changes = changes || truths[i] != s.Truth; truths[i] {
			case predicates.False:
				s.Armed = !s.Spent
			case predicates.True:
				if s.Armed || t.rules[i].Every && !open {
					return true, false
				}
			default:
				return true, false
			}
		}
	}
}

// Next returns where each rule stands on the next global state, or false if none follows. Row returns the
// values of a state.
func (t *Trial) Next(row func(place int, ref scgs.Ref) []scgs.Value) ([]predicates.Truth, bool) {
	for {
		if !t.det.Advance(&t.ev) {
			return nil, false
		}
		if t.ev.Kind == scgs.Opened {
			break
		}
	}
	for _, ch := range t.ev.Changed {
		place := t.places[ch.Member]
		t.scope.Set(place, row(place, ch.Ref))
	}
	for i, r := range t.rules {
		if t.fresh || t.scope.Affects(r.When) {
			t.truths[i] = r.When.Eval(t.scope).Truth
		}
	}
	t.fresh = false
	t.scope.Settle()
	return t.truths, true
}
