package synccore

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// reloadPlan changes to another plan between two steps. The members, the epoch, the current
// global state and the signals under way stay. A predicate with the same text keeps its state;
// any other starts as at the beginning of an epoch, and is judged on the current global state
// at once. A variable of the same name and type keeps its value. A program continues; a
// predicate that begins again is unknown to it until it is judged.
func (c *Core) reloadPlan(plan *plan.Level, out *Output) {
	changes, err := c.plan.Changes(plan)
	if err != nil {
		out.addReject(c.plan.Name, "reload: "+err.Error())
		return
	}
	old := c.plan
	c.plan = plan
	out.Reloads = append(out.Reloads, monitor.Reload{Config: plan.Source.Name, Changes: changes})
	c.listenToGroups()
	params := !slices.EqualFunc(old.Params, plan.Params, func(a, b config.Param) bool { return a.Field.Name == b.Field.Name && a.Value == b.Value })
	c.keepMemory(old)
	c.rebuildScope()
	fresh := c.keepRules(old)
	if params { // What reads them may be another thing on the same global state.
		c.noteChange()
	}
	c.keepRuns(old)
	c.programRenewed(fresh)
	c.balanceBy(plan.Balance)
	if plan.Silence != old.Silence {
		c.hearAgain(plan.Heartbeat() != old.Heartbeat(), out)
	}
	c.changed = true // There may be enough members by now, or too few.
	lasts := !c.paused && len(c.removing) == 0 && c.makesEpoch(len(c.inEpoch))
	if span, ok := c.det.Current(); ok && c.tuple && lasts {
		for _, i := range fresh {
			c.judgeRule(i, plan.Rules[i], true, &span, false, out)
		}
		c.rememberSet()
	}
}

func (c *Core) keepMemory(old *plan.Level) {
	before := c.memory
	c.memory = make([]scgs.Value, len(c.plan.Variables))
	for i, v := range c.plan.Variables {
		c.memory[i] = v.InitialValue()
		for j, w := range old.Variables {
			if v.Field.String() == w.Field.String() && (v.Field.Redact || !w.Field.Redact) { // A redacted value is never shown.
				c.memory[i] = before[j]
			}
		}
	}
}

// rebuildScope makes a scope of the plan that shows what the old one did.
func (c *Core) rebuildScope() {
	c.newScopes()
	for i, v := range c.memory {
		c.setMemory(i, v)
	}
	c.resetScope()
	for _, m := range c.inEpoch {
		if m.state.Seq > 0 { // A state that has ended is set again when the next tuple opens.
			c.scope.Set(m.pos, c.row(m, m.state.Ref))
		}
	}
}

// keepRules carries over where each predicate stands and returns the places of
// those that begin again.
func (c *Core) keepRules(old *plan.Level) (fresh []int) {
	before := c.states
	for i, r := range old.Rules {
		most := c.ended.ofRule(r)
		*most = max(*most, before[i].cause.most)
	}
	c.newStates()
	for i, r := range c.plan.Rules {
		j := slices.IndexFunc(old.Rules, func(o *plan.Rule) bool { return o.Name == r.Name && o.Text == r.Text })
		if j < 0 {
			fresh = append(fresh, i)
			c.states[i].cause.most = *c.ended.ofRule(r)
			continue
		}
		c.states[i] = before[j]
	}
	return fresh
}

// hearAgain counts the silence of every member from now. If the heartbeat has changed
// they are asked for a hello, whose answer tells them.
func (c *Core) hearAgain(pace bool, out *Output) {
	for _, m := range c.sorted {
		if m.gone {
			continue
		}
		m.heard = c.now
		if pace {
			c.addWelcome(m.name, m.incarnation, out)
		}
	}
}

// restartTerm begins a new term with nothing of the old one but the program: the results of
// runs that have ended, and where the others were started. Whether they still run is
// seen in the states of the members that come back; the others are lost after the time
// of silence.
//
// The end of a program that has ended is reported once more.
func (c *Core) restartTerm(r *Options, out *Output) {
	if r.Term <= c.opt.Term && !r.Follows {
		out.addReject(c.plan.Name, fmt.Sprintf("a life in term %d does not follow one in term %d", r.Term, c.opt.Term))
		return
	}
	exec, now, was, formed, general := c.exec, c.now, c.now, c.begun, c.general
	if exec == nil {
		exec = c.recalled
	}
	if r.Hold != plan.HoldNone && r.Reference != c.opt.Reference {
		was = c.was
	}
	before := c.outlivedFates()
	*c = *New(c.plan, *r)
	c.earlier = before
	c.now, c.stepped, c.looked, c.general = now, true, now, general
	if r.Follows || r.Program != 0 { // An execution begins.
		return
	}
	if c.exec = exec; exec != nil {
		exec.Restart(now, formed, c.epochBegun(), r.Runs, r.Hold, was, &c.done)
	}
}

// raiseTerm continues in a later term, since members obey no earlier one. Everything stays as it
// is: members, epoch and its number, memory, where the predicates stand, the program. A
// signal under way is sent again in the new term, where its target can read that it is the
// same; else a member that has taken the new term refuses it, as at the beginning of an
// epoch, so that none takes effect twice.
func (c *Core) raiseTerm(term uint64, out *Output) {
	if term <= c.opt.Term {
		out.addReject(c.plan.Name, fmt.Sprintf("term %d does not follow term %d", term, c.opt.Term))
		return
	}
	c.earlier.led = append(c.earlier.led, control.Decision{Term: c.opt.Term, Number: c.decisions})
	c.opt.Term, c.termAt = term, c.now
	c.outbox.Renew(term)
	if c.opt.Follows {
		c.succeedLeader()
	}
	if c.exec == nil {
		return
	}
	c.exec.Epoch(c.now, c.epochBegun(), &c.done)
	// The program's inputs of the old term count no more: they are repeated.
	for i, r := range c.plan.Rules {
		if s := &c.states[i]; s.told && r.Read {
			truth := s.truth
			if truth == predicates.True && r.Hold > 0 && s.armed {
				truth = predicates.Unknown // It has not held for long enough.
			}
			c.exec.Verdict(r.Name, truth, control.Decision{})
		}
	}
}
