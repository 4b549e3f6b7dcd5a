package synccore

import (
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/predicates"
)

// follows reports whether all that a predicate waits for have fired long enough ago, and
// are not ready to fire again. If they have only fired too lately, it is looked at again
// when the time is over.
func (c *Core) follows(r *plan.Rule, s *ruleState) bool {
	due, fired := c.now, true
	for _, a := range r.After {
		o := &c.states[c.ruleIndex(a.Rule)]
		fired = fired && o.first != 0
		due = max(due, o.first.Add(a.Wait))
	}
	switch {
	case !fired:
		s.release()
	case due > c.now:
		s.due = due
	default:
		return true
	}
	return false
}

// lookAtFollowers has those looked at that wait for a predicate which has fired.
func (c *Core) lookAtFollowers(r *plan.Rule) {
	for i, other := range c.plan.Rules {
		for _, a := range other.After {
			if s := &c.states[i]; a.Rule == r.Name && s.told && s.armed && s.truth == predicates.True {
				s.due = c.now.Add(a.Wait)
				c.waiting.add(i)
			}
		}
	}
}
