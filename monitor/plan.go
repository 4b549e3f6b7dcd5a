package monitor

import (
	"math"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/control"
)

// BalanceStatus is where the section balance stands, counted since the start or the
// last change of the section. Durations are in seconds.
type BalanceStatus struct {
	Strategy string `json:"strategy"` // by name
	// Looks counts the global states examined, Quiet those that were in balance by their
	// totals, Plans the others. Moves were ordered.
	Looks uint64 `json:"looks"`
	Quiet uint64 `json:"quiet"` // see Looks
	Plans uint64 `json:"plans"` // see Looks
	Moves uint64 `json:"moves"` // see Looks
	// Refused counts the orders to move objects of a space that their members have refused.
	Refused uint64 `json:"refused,omitempty"`
	// UnderWay are the loads that were ordered to go and have not been seen to come,
	// 100 at most; Flights counts them all.
	UnderWay []FlightStatus `json:"under_way"`
	Flights  int            `json:"flights"` // see UnderWay
	// Last is the newest plan, nil before the first.
	Last *PlanStatus `json:"last_plan"`
	// Moved is the newest plan with moves, 100 of them at most; nil if there is none or it is Last.
	Moved *PlanStatus `json:"last_moves,omitempty"`
}

// FlightStatus is a load under way.
type FlightStatus struct {
	Load     string  `json:"load"`        // its name
	From     string  `json:"from"`        // the member that gives it
	To       string  `json:"to"`          // the member that gets it
	Weight   float64 `json:"weight"`      // as the strategy knew it
	Decision string  `json:"decision"`    // that ordered it
	Ago      float64 `json:"ago_seconds"` // since the order
	// Phase is "ordered" before the order has a fate, "sent" after it, and "landed"
	// when the target has told the load, in a state that no global state has yet.
	Phase string `json:"phase"`
}

// Plan is a plan of the section balance. The moves that it has were sent as
// signals of Decision, but for those that stand in Refused as well.
type Plan struct {
	Decision control.Decision // zero if there are no moves
	Epoch    uint64           // of the global state
	Index    uint64           // of the global state within the epoch
	Partial  bool             // some member's state was unknown
	Plan     balance.Plan     // what the strategy found
}

// PlanStatus is a plan as people and programs read it. Durations are in seconds, nil
// where they are without end.
type PlanStatus struct {
	Decision string     `json:"decision"`               // empty without moves
	Epoch    uint64     `json:"epoch"`                  // of the global state
	Index    uint64     `json:"state"`                  // its number in the epoch
	Partial  bool       `json:"partial"`                // some member's state was unknown
	Strategy string     `json:"strategy"`               // by name
	Verdict  string     `json:"verdict"`                // what the strategy found, in words
	Before   *float64   `json:"longest_before_seconds"` // the longest queue
	After    *float64   `json:"longest_after_seconds"`  // the longest queue after the moves
	Nodes    []PlanNode `json:"nodes"`                  // as the strategy saw the members
	Moves    []PlanMove `json:"moves"`                  // to be carried out in any order
	// Refused are the first refusals, LeftOut counts the others.
	Refused []PlanRefusal `json:"refused"`
	LeftOut int           `json:"left_out"` // see Refused
}

// PlanNode is a member as the strategy saw it.
type PlanNode struct {
	Name      string   `json:"name"`           // of the member
	Available float64  `json:"available"`      // of its power, for the program
	Index     float64  `json:"index"`          // what imbalance and classes look at
	Class     string   `json:"class"`          // a word of [balance.Class], before the moves
	Loads     int      `json:"loads"`          // how many it has
	Work      float64  `json:"work"`           // their weight
	Queue     *float64 `json:"queue_seconds"`  // seconds that they take; nil without end
	Then      *float64 `json:"then_seconds"`   // the same after the moves
	Note      string   `json:"note,omitempty"` // why it was left alone
}

// PlanMove is a move.
type PlanMove struct {
	Load   string  `json:"load"`   // its name
	From   string  `json:"from"`   // the member that gives it
	To     string  `json:"to"`     // the member that gets it
	Weight float64 `json:"weight"` // as the strategy knew it
	Why    string  `json:"why"`    // why this load, and why that target
}

// PlanRefusal is a refused part of a plan, and why.
type PlanRefusal struct {
	Load   string `json:"load,omitempty"` // its name, if it is about one
	From   string `json:"from,omitempty"` // the member that would have given it
	To     string `json:"to,omitempty"`   // the member that would have got it
	Reason string `json:"reason"`         // a word of [balance.Reason]
	Detail string `json:"detail"`         // in full
}

// Status is the plan for people and programs.
func (p *Plan) Status() PlanStatus {
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
