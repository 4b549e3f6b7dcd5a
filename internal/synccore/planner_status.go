package synccore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// shownFlights is how many loads under way a status has.
const shownFlights = 100

// balanceStatus is nil without the section.
func (c *Core) balanceStatus(now clocksync.Instant) *monitor.BalanceStatus {
	p := c.planner
	if p == nil {
		return nil
	}
	s := &monitor.BalanceStatus{
		Strategy: p.strategy.Name(), Looks: p.looks, Quiet: p.quiet, Plans: p.plans, Moves: p.moves,
		UnderWay: []monitor.FlightStatus{}, Flights: len(p.flights),
	}
	for _, f := range p.flights[:min(len(p.flights), shownFlights)] {
		one := monitor.FlightStatus{
			Load: f.load, From: f.from, To: f.to, Weight: f.weight, Decision: f.decision.String(), Ago: ago(now, f.since), Phase: "ordered",
		}
		switch {
		case f.landed > 0:
			one.Phase = "landed"
		case f.until != clocksync.MaxInstant:
			one.Phase = "sent"
		}
		s.UnderWay = append(s.UnderWay, one)
	}
	if p.plans > 0 {
		last := p.last.Status()
		s.Last = &last
	}
	return s
}

// explainBalance is the explanation of the section balance in the place of a
// predicate.
func (c *Core) explainBalance(now clocksync.Instant) monitor.Explanation {
	p := c.planner
	e := monitor.Explanation{
		Synchronizer: c.plan.Name, PredicateStatus: monitor.PredicateStatus{Name: config.BalanceName, Truth: predicates.True.String(), Armed: true},
		When: fmt.Sprintf("every %v", p.Set.Every), Every: true, Epoch: c.Epoch(), State: c.stateStatus(),
		Parts: []monitor.Condition{}, Missing: []monitor.Missing{}, Balance: c.balanceStatus(now),
	}
	if p.acted > 0 {
		e.Fired, e.Decision, e.Ago = p.acted, p.decision.String(), ago(now, p.at)
	}
	if p.When != nil {
		e.When = p.When.Source()
		v := p.When.Eval(c.scope)
		e.Truth, e.Reason = v.Truth.String(), v.Reason
		if e.State != nil {
			for _, part := range p.When.Explain(c.scope) {
				e.Parts = append(e.Parts, c.condition(&part))
			}
		}
	}
	if e.Epoch == 0 || e.State == nil {
		e.Truth, e.Reason = predicates.Unknown.String(), "there is no global state"
	}
	for _, m := range c.inEpoch {
		if until, rests := p.resting[m.name]; rests && now < until {
			text := fmt.Sprintf("its last order came to nothing: it gets none for %v", rough(until.Sub(now).Seconds()))
			e.Missing = append(e.Missing, monitor.Missing{Kind: "rests", Member: m.name, Text: text})
		}
		if note := c.standsAside(m); note != "" && e.State != nil {
			e.Missing = append(e.Missing, monitor.Missing{Kind: "aside", Member: m.name, Text: "it is left alone: " + note})
		}
	}
	e.Missing = c.missingMembers(e.Missing, now)
	e.Missing = c.missingEvidence(e.Missing, now, noRule)
	return e
}

// noRule is in the place of a rule's number where there is none.
const noRule = -1
