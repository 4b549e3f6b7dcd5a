package lookahead

import (
	"slices"

	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Limit is how many states of a member may wait. Nothing is known of a member that has more.
const Limit = 64

// Ahead is what the global states that are not decided yet can be. Each field of a member has the
// value that all its waiting states agree on, and is unknown otherwise. So a condition that is decided
// on that is decided alike on each of those global states.
type Ahead struct {
	rules   []*plan.Rule
	scope   *predicates.Scope
	truths  []predicates.Truth // of the rules
	fresh   bool               // truths are of no members yet
	members []member           // by place in the scope
	touched []int              // places of members with other waiting states than before
	mixed   int                // members whose waiting states cannot be summed up

	states int // of the member that is summed up
	known  bool
	odd    bool
	row    []scgs.Value
}

type member struct{ touched, mixed bool }

// New returns the look-ahead of a level without members, or nil where evidence is always to be asked
// for: where something beside the conditions of predicates reads global states, or where the time at
// which the synchronizer decides counts.
func New(p *plan.Level) *Ahead {
	if p.Prev || p.Summary() || p.Program != nil || p.Balance != nil || p.Work != nil ||
		len(p.Variables) > 0 || len(p.Process) > 0 || len(p.Env.Parent) > 0 || len(p.Below) > 0 {
		return nil
	}
	for _, r := range p.Rules {
		if r.When == nil || r.Judge != nil || r.Until != nil || r.Detector.Exists() || r.Cooldown > 0 || len(r.After) > 0 || len(r.Set) > 0 {
			return nil
		}
	}
	a := &Ahead{rules: p.Rules, truths: make([]predicates.Truth, len(p.Rules)), scope: predicates.NewScope(p.Env)}
	a.scope.Only(p.Reads())
	return a
}

// Reset gives it the members of an epoch, in the order of their places. All are touched.
func (a *Ahead) Reset(names []predicates.Member) {
	a.scope.Reset(names)
	a.members = slices.Grow(a.members[:0], len(names))[:len(names)]
	clear(a.members)
	a.fresh, a.mixed, a.touched = true, 0, a.touched[:0]
	for place := range names {
		a.Touch(place)
	}
}

// Touch notes that other states of a member wait than before.
func (a *Ahead) Touch(place int) {
	if m := &a.members[place]; !m.touched {
		m.touched = true
		a.touched = append(a.touched, place)
	}
}

// Touched returns the places of the members to be summed up: each by [Ahead.Begin], [Ahead.State] for
// each waiting state and [Ahead.End]. It is valid until the next call of Touch.
func (a *Ahead) Touched() []int { return a.touched }

// Begin begins to sum up a member.
func (a *Ahead) Begin() { a.states, a.odd, a.row = 0, false, a.row[:0] }

// State adds a waiting state of the member. Row is its values, and does not count unless they are known.
func (a *Ahead) State(row []scgs.Value, known bool) {
	switch a.states++; {
	case a.states == 1:
		if a.known = known; known {
			a.row = append(a.row, row...)
		}
	case known != a.known || a.states > Limit:
		a.odd = true
	case known && !a.odd:
		for f := range row {
			if row[f] != a.row[f] {
				a.row[f] = scgs.Value{}
			}
		}
	}
}

// End ends the summing up of a member. Of one without a state, whose states are known in part, or with
// more states than [Limit], nothing is said.
func (a *Ahead) End(place int) {
	m, mixed := &a.members[place], a.odd || a.states == 0
	switch {
	case mixed && !m.mixed:
		a.mixed++
	case !mixed && m.mixed:
		a.mixed--
	}
	switch m.touched, m.mixed = false, mixed; {
	case mixed:
	case a.known:
		a.scope.Set(place, a.row)
	default:
		a.scope.SetUnknown(place)
	}
}

// Truths returns where each rule stands on all global states that are not decided yet; Unknown where it
// can be several. It is false if nothing is known. All that is touched must have been summed up.
func (a *Ahead) Truths() ([]predicates.Truth, bool) {
	a.touched = a.touched[:0]
	if a.mixed > 0 {
		return nil, false
	}
	for i, r := range a.rules {
		if a.fresh || a.scope.Affects(r.When) {
			a.truths[i] = r.When.Eval(a.scope).Truth
		}
	}
	a.fresh = false
	a.scope.Settle()
	return a.truths, true
}
