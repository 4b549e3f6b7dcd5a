package synccore

import (
	"fmt"
	"math"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/predicates"
)

// BalanceStatus is where the section balance stands, counted since the start or the
// last change of the section. Durations are in seconds.
type BalanceStatus struct {
	Strategy string `json:"strategy"`
	// Looks are the global states that were looked at, Quiet those of them that were
	// in balance by their totals, Plans the others. Moves were ordered.
	Looks uint64 `json:"looks"`
	Quiet uint64 `json:"quiet"`
	Plans uint64 `json:"plans"`
	Moves uint64 `json:"moves"`
	// UnderWay are the loads that were ordered to go and have not been seen to come,
	// 100 at most; Flights counts them all.
	UnderWay []FlightStatus `json:"under_way"`
	Flights  int            `json:"flights"`
	// Last is the newest plan, nil before the first.
	Last *PlanStatus `json:"last_plan"`
}

// FlightStatus is a load under way.
type FlightStatus struct {
	Load     string  `json:"load"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Weight   float64 `json:"weight"`
	Decision string  `json:"decision"`
	Ago      float64 `json:"ago_seconds"`
	// Phase is "ordered" before the order has a fate, "sent" after it, and "landed"
	// when the target has told the load, in a state that no global state has yet.
	Phase string `json:"phase"`
}

// PlanStatus is a plan as people and programs read it. Durations are in seconds, nil
// where they are without end.
type PlanStatus struct {
	Decision string     `json:"decision"` // empty without moves
	Epoch    uint64     `json:"epoch"`
	Index    uint64     `json:"state"`
	Partial  bool       `json:"partial"`
	Strategy string     `json:"strategy"`
	Verdict  string     `json:"verdict"`
	Before   *float64   `json:"longest_before_seconds"`
	After    *float64   `json:"longest_after_seconds"`
	Nodes    []PlanNode `json:"nodes"`
	Moves    []PlanMove `json:"moves"`
	// Refused are the first of what was refused, LeftOut counts the others.
	Refused []PlanRefusal `json:"refused"`
	LeftOut int           `json:"left_out"`
}

// PlanNode is a member as the strategy saw it.
type PlanNode struct {
	Name      string   `json:"name"`
	Available float64  `json:"available"`
	Index     float64  `json:"index"`
	Class     string   `json:"class"`
	Loads     int      `json:"loads"`
	Work      float64  `json:"work"`
	Queue     *float64 `json:"queue_seconds"`
	Then      *float64 `json:"then_seconds"`
	Note      string   `json:"note,omitempty"` // why it was left alone
}

// PlanMove is a move.
type PlanMove struct {
	Load   string  `json:"load"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	Weight float64 `json:"weight"`
	Why    string  `json:"why"` // why this load, and why that target
}

// PlanRefusal is what was not done, and why.
type PlanRefusal struct {
	Load   string `json:"load,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

// Status is the plan for people and programs.
func (p *Planned) Status() PlanStatus {
	s := PlanStatus{
		Epoch: p.Epoch, Index: p.Index, Partial: p.Partial, Strategy: p.Plan.Strategy, Verdict: p.Plan.Verdict,
		Before: bounded(p.Plan.Before), After: bounded(p.Plan.After), LeftOut: p.Plan.More,
		Nodes: make([]PlanNode, len(p.Plan.Nodes)), Moves: make([]PlanMove, len(p.Plan.Moves)),
		Refused: make([]PlanRefusal, len(p.Plan.Refused)),
	}
	if p.Decision.Number > 0 {
		s.Decision = p.Decision.String()
	}
	for i := range p.Plan.Nodes {
		n := &p.Plan.Nodes[i]
		s.Nodes[i] = PlanNode{Name: n.Name, Class: n.Class.String(), Loads: n.Loads, Note: n.Note}
		if n.Note == "" {
			s.Nodes[i].Available, s.Nodes[i].Index, s.Nodes[i].Work = n.Available, n.Index, n.Work
			s.Nodes[i].Queue, s.Nodes[i].Then = bounded(n.Queue), bounded(n.Then)
		}
	}
	for i := range p.Plan.Moves {
		m := &p.Plan.Moves[i]
		s.Moves[i] = PlanMove{m.Load, m.From, m.To, m.Weight, m.Why()}
	}
	for i := range p.Plan.Refused {
		r := &p.Plan.Refused[i]
		s.Refused[i] = PlanRefusal{r.Load, r.From, r.To, r.Reason.String(), r.Detail}
	}
	return s
}

// bounded is nil for what JSON has no number for.
func bounded(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// shownFlights is how many loads under way a status has.
const shownFlights = 100

// balanceStatus is nil without the section.
func (c *Core) balanceStatus(now clocksync.Instant) *BalanceStatus {
	p := c.planner
	if p == nil {
		return nil
	}
	s := &BalanceStatus{
		Strategy: p.strategy.Name(), Looks: p.looks, Quiet: p.quiet, Plans: p.plans, Moves: p.moves,
		UnderWay: []FlightStatus{}, Flights: len(p.flights),
	}
	for _, f := range p.flights[:min(len(p.flights), shownFlights)] {
		one := FlightStatus{
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
func (c *Core) explainBalance(now clocksync.Instant) Explanation {
	p := c.planner
	e := Explanation{
		Synchronizer: c.plan.Name, PredicateStatus: PredicateStatus{Name: BalanceName, Truth: predicates.True.String(), Armed: true},
		When: fmt.Sprintf("every %v", p.set.Every), Every: true, Epoch: c.Epoch(), State: c.stateStatus(),
		Parts: []Condition{}, Missing: []Missing{}, Balance: c.balanceStatus(now),
	}
	if p.acted > 0 {
		e.Fired, e.Decision, e.Ago = p.acted, p.decision.String(), ago(now, p.at)
	}
	if p.when != nil {
		e.When = p.when.Source()
		v := p.when.Eval(c.scope)
		e.Truth, e.Reason = v.Truth.String(), v.Reason
		if e.State != nil {
			for _, part := range p.when.Explain(c.scope) {
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
			e.Missing = append(e.Missing, Missing{Kind: "rests", Member: m.name, Text: text})
		}
		if note := c.standsAside(m); note != "" && e.State != nil {
			e.Missing = append(e.Missing, Missing{Kind: "aside", Member: m.name, Text: "it is left alone: " + note})
		}
	}
	e.Missing = c.missingMembers(e.Missing, now)
	e.Missing = c.missingEvidence(e.Missing, now, noRule)
	return e
}

// noRule is in the place of a rule's number where there is none.
const noRule = -1
