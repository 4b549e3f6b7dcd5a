// Package planner applies the section balance of a configuration: on global states it
// has a strategy of package balance plan which loads move, sends the orders, and
// keeps account of the loads that are under way. The predicate of its signals, and the
// name by which it explains itself, is config.BalanceName.
//
// A planner is pure and belongs to one machine (internal/synccore), which tells it
// what has happened and takes plans and signals from it.
package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Planner is where the section balance of a machine stands.
type Planner struct {
	*plan.Balance
	strategy balance.Strategy
	readings []reading                    // of the members of the epoch
	resting  map[string]clocksync.Instant // until when a member whose order came to nothing gets no other
	flights  []*flight                    // in the order of their decisions
	fresh    bool                         // a global state was opened in this step
	stirred  bool                         // the global state is another one than at the last look, or the moves under way are
	due      clocksync.Instant            // no look before
	again    clocksync.Instant            // when a load that rests may move; MaxInstant: none does
	idle     bool                         // that nothing can be moved was reported
	ordered  map[string]*flight           // by load

	// For people.
	looks, quiet, plans, moves uint64
	declined                   uint64 // orders that a member has refused
	acted                      uint64 // plans with moves
	decision                   control.Decision
	at                         clocksync.Instant // of that decision
	last, moved                monitor.Plan      // the newest one, and the newest one with moves

	members []Member // of the look
	totals  []balance.Total
	values  []scgs.Value
}

// Member is a member of the epoch, with its state in the global state.
type Member struct {
	Name        string // as it joined
	Incarnation uint64 // of the process
	Seq         uint64 // of the state
	Unknown     bool   // nothing is known of it
	Entry       uint64 // of the region that orders go to, 0: it is not in it
}

// State is the global state that a look is at.
type State struct {
	Epoch, Index uint64            // of the global state, as in its Verdicts
	Partial      bool              // the state of some member is unknown
	Members      []Member          // by name, as in the scope
	Scope        *predicates.Scope // in which the section's expressions are evaluated
	Room         int               // how many signals can be sent
	Decision     control.Decision  // of a plan with moves
}

// maxFlights is how many loads are under way at most; with more no plan is made.
const maxFlights = 65_536

// flight is a load that was ordered to go and is not known to have come.
type flight struct {
	load           string
	from, to       string
	source, target uint64 // incarnations
	weight         float64
	decision       control.Decision
	since          clocksync.Instant
	until          clocksync.Instant // it counts no longer; MaxInstant before its order has a fate
	landed         uint64            // the target's report that has it first; 0: none has
}

// reading is what a member's state says to the section balance.
type reading struct {
	name        string // of the member
	incarnation uint64
	seq         uint64 // of the state; 0: none was read
	power       float64
	share       float64
	note        string // why it says nothing
	names       []string
	weights     []float64
	rest        float64
	objects
}

// New begins with a section, or changes to it from the section before: moves under way stay so,
// and the strategy's memory stays with its values.
func New(b *plan.Balance, before *Planner) *Planner {
	if before != nil && before.Text == b.Text {
		before.Balance = b
		return before
	}
	strategy, err := balance.New(b.Config)
	if err != nil {
		panic("planner: a bad section balance: " + err.Error())
	}
	p := &Planner{
		Balance: b, strategy: strategy, stirred: true, due: clocksync.MinInstant, again: clocksync.MaxInstant,
		ordered: map[string]*flight{}, resting: map[string]clocksync.Instant{},
	}
	if before != nil {
		p.flights = before.flights
	}
	return p
}

// Regroup forgets at a new epoch the moves under way between members of which one is gone:
// whether the load has come nobody can tell.
func (p *Planner) Regroup(members []Member) {
	is := func(name string, incarnation uint64) bool {
		m := find(members, name)
		return m != nil && m.Incarnation == incarnation
	}
	p.flights = slices.DeleteFunc(p.flights, func(f *flight) bool { return !is(f.from, f.source) || !is(f.to, f.target) })
	p.align(members)
	p.fresh, p.stirred, p.idle = false, true, false
}

// align makes a reading for each member, in their order, and keeps those that are
// there.
func (p *Planner) align(members []Member) {
	readings := make([]reading, len(members))
	for i := range members {
		m := &members[i]
		readings[i].name, readings[i].incarnation = m.Name, m.Incarnation
		k, found := slices.BinarySearchFunc(p.readings, m.Name, func(r reading, name string) int { return cmp.Compare(r.name, name) })
		if found && p.readings[k].incarnation == m.Incarnation {
			readings[i] = p.readings[k]
		}
	}
	p.readings = readings
}

// find is the member of that name, or nil.
func find(members []Member, name string) *Member {
	i, found := slices.BinarySearchFunc(members, name, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
	if !found {
		return nil
	}
	return &members[i]
}

// Opened notes a new global state.
func (p *Planner) Opened() { p.fresh, p.stirred = true, true }

// Awaits reports whether loads are under way to a member: then its states are to be
// told to [Planner.Reported].
func (p *Planner) Awaits(member string) bool {
	return slices.ContainsFunc(p.flights, func(f *flight) bool { return f.to == member && f.landed == 0 })
}

// Reported looks for loads under way in the report of a member, whose state is all
// that the scope has. The state in which a load came may be part of no global state.
func (p *Planner) Reported(member string, incarnation, seq uint64, s *predicates.Scope) {
	p.values, _ = p.Loads.Eval(p.values[:0], s, 0)
	names := loadNames(nil, p.values)
	for _, f := range p.flights {
		if f.to == member && f.target == incarnation && f.landed == 0 && slices.Contains(names, f.load) {
			f.landed, p.stirred = seq, true
		}
	}
}

// loadNames are the names of loads.
func loadNames(dst []string, values []scgs.Value) []string {
	for _, v := range values {
		if v.Type() == scgs.Int {
			dst = append(dst, strconv.FormatInt(v.Int(), 10))
			continue
		}
		dst = append(dst, v.Text())
	}
	return dst
}

// Settled takes the fate of an order. Where its handler cannot have run the loads
// stay; else they are under way for the transit time at most. A member whose order
// came to nothing rests as long, so that it is not asked again and again.
func (p *Planner) Settled(now clocksync.Instant, s *control.Signal, f control.Fate) {
	until := now.Add(p.Set.Transit)
	if f != control.Applied {
		p.resting[s.Target] = until
	}
	switch f { //nolint:exhaustive // The others are no fates of a signal that was sent.
	case control.NoSuchEntry, control.OldEpoch, control.Refused:
		until = now
	}
	for _, x := range p.flights {
		if x.decision == s.Decision && x.from == s.Target {
			x.until = until
		}
	}
}

// Wake is when there is something to look at; inForce is set if a global state is.
func (p *Planner) Wake(inForce bool) clocksync.Instant {
	if !inForce && !p.fresh {
		return clocksync.MaxInstant
	}
	return p.next()
}

// next is when to look again.
func (p *Planner) next() clocksync.Instant {
	at := p.again
	if p.stirred {
		at = p.due
	}
	for _, f := range p.flights {
		at = min(at, f.until)
	}
	for _, until := range p.resting {
		at = min(at, until)
	}
	return max(at, p.due)
}

// Due reports whether it is time for a look. It ends the step: of several global states that
// one has opened the last counts, which may be over; where members change faster than they are
// heard, none is current at the end of a step.
func (p *Planner) Due(now clocksync.Instant, inForce, deciding bool) bool {
	due := deciding && now >= p.Wake(inForce)
	p.fresh = false
	return due
}

// Look looks at a global state and has loads moved where the strategy finds a move.
// The plan is nil if there is nothing to plan; tell is false if it says what the one
// before has said. Its signals are to be sent in this order.
func (p *Planner) Look(now clocksync.Instant, s *State) (made *monitor.Plan, tell bool, signals []*control.Signal) {
	p.stirred, p.again, p.due = false, clocksync.MaxInstant, now.Add(p.Set.Every)
	p.members = s.Members
	if len(p.readings) != len(p.members) {
		p.align(p.members) // A section that began within the epoch.
	}
	p.readStates(s.Scope)
	p.endDeclined()
	p.endFlights(now)
	if len(p.flights) >= maxFlights || p.When != nil && p.When.Eval(s.Scope).Truth != predicates.True {
		return nil, false, nil
	}
	p.looks++
	p.addUp()
	if p.Config.Quiet(p.totals) {
		p.quiet++
		return nil, false, nil
	}
	one := monitor.Plan{Epoch: s.Epoch, Index: s.Index, Partial: s.Partial, Plan: p.strategy.Plan(now, p.loadState())}
	p.plans++
	p.again = one.Plan.Again
	idle := len(one.Plan.Moves) == 0
	if !idle {
		one.Decision = s.Decision
		signals = p.order(now, &one, s.Room)
		p.acted, p.decision, p.at = p.acted+1, one.Decision, now
	}
	p.explainObjects(&one)
	if p.last = one; !idle {
		p.moved = one
	}
	tell = !idle || !p.idle
	p.idle = idle
	return &one, tell, signals
}

// readStates reads the states of the global state that were not read before.
func (p *Planner) readStates(s *predicates.Scope) {
	for i := range p.members {
		m := &p.members[i]
		r := &p.readings[i]
		if m.Unknown || r.seq == m.Seq {
			continue
		}
		*r = reading{name: m.Name, incarnation: m.Incarnation, seq: m.Seq, names: r.names[:0], weights: r.weights[:0]}
		r.note = p.read(r, s, i)
	}
}

// read evaluates the expressions of the section on one member. An expression that cannot be
// read is reported.
func (p *Planner) read(r *reading, s *predicates.Scope, i int) (note string) {
	number := func(key string, of *predicates.MemberExpression, to *float64) {
		var reason string
		if p.values, reason = of.Eval(p.values[:0], s, i); reason != "" && note == "" {
			note = key + " is unknown: " + reason
		}
		for _, v := range p.values {
			*to = v.Float()
		}
	}
	number("power", p.Power, &r.power)
	number("share", p.Share, &r.share)
	number("rest", p.Rest, &r.rest)
	var reason string
	if p.values, reason = p.Loads.Eval(p.values[:0], s, i); reason != "" && note == "" {
		note = "loads is unknown: " + reason
	}
	r.names = loadNames(r.names, p.values)
	if p.values, reason = p.Weights.Eval(p.values[:0], s, i); reason != "" && note == "" {
		note = "weights is unknown: " + reason
	}
	for _, v := range p.values {
		r.weights = append(r.weights, v.Float())
	}
	switch {
	case note != "":
	case p.Single:
		for len(r.weights) < len(r.names) {
			r.weights = append(r.weights, r.weights[0])
		}
		r.weights = r.weights[:len(r.names)]
	case len(r.weights) != len(r.names):
		note = fmt.Sprintf("its loads are %d and its weights %d", len(r.names), len(r.weights))
	}
	if p.Objects != nil && note == "" {
		note = p.readObjects(r, s, i)
	}
	if note != "" {
		r.names, r.weights, r.rest, r.objects = r.names[:0], r.weights[:0], 0, objects{}
		return note
	}
	return r.fault()
}

// fault says which of the numbers no strategy believes.
func (r *reading) fault() string {
	if note := (&balance.Node{Power: r.power, Share: r.share}).Fault(); note != "" {
		return note
	}
	if note := (&balance.Load{Name: "its rest", Weight: r.rest}).Fault(); note != "" {
		return note
	}
	for i, w := range r.weights {
		if note := (&balance.Load{Name: r.names[i], Weight: w}).Fault(); note != "" {
			return note
		}
	}
	return ""
}

// endFlights takes out moves that are under way no longer: the load shows at the target, or at
// another member, it was not sent, or its time is over.
func (p *Planner) endFlights(now clocksync.Instant) {
	clear(p.ordered)
	maps.DeleteFunc(p.resting, func(_ string, until clocksync.Instant) bool { return now >= until })
	if len(p.flights) == 0 {
		return
	}
	on := map[string]string{}
	for i := range p.members {
		if m := &p.members[i]; !m.Unknown {
			for _, load := range p.readings[i].names {
				on[load] = m.Name
			}
		}
	}
	p.flights = slices.DeleteFunc(p.flights, func(f *flight) bool {
		to := find(p.members, f.to)
		at, shown := on[f.load]
		return now >= f.until || shown && at != f.from ||
			f.landed > 0 && to != nil && !to.Unknown && to.Seq >= f.landed
	})
	for _, f := range p.flights {
		p.ordered[f.load] = f
	}
}

// placeOf is the place of the member of that name.
func (p *Planner) placeOf(name string) (int, bool) {
	return slices.BinarySearchFunc(p.members, name, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
}

// leaves is the flight of a load that stands in its source's state still, or nil.
func (p *Planner) leaves(m *Member, load string) *flight {
	if f := p.ordered[load]; f != nil && f.from == m.Name {
		return f
	}
	return nil
}

// Aside says why a member neither gives nor takes, "" if it does; i is its place.
func (p *Planner) Aside(i int, m *Member) string {
	switch {
	case m.Unknown:
		return "nothing is known of its state"
	case m.Entry == 0:
		return "it was not in region " + p.Set.Region
	}
	if i < len(p.readings) {
		return p.readings[i].note
	}
	return ""
}

// addUp makes the totals of the members.
func (p *Planner) addUp() {
	p.totals = p.totals[:0]
	for i := range p.members {
		m := &p.members[i]
		r := &p.readings[i]
		_, rests := p.resting[m.Name]
		t := balance.Total{Node: balance.Node{Name: m.Name, Power: r.power, Share: r.share, Note: p.Aside(i, m)}, Work: r.rest}
		if r.rest != 0 {
			t.Loads++
		}
		for j, w := range r.weights {
			if len(p.ordered) > 0 && p.leaves(m, r.names[j]) != nil {
				continue
			}
			t.Work += w
			t.Loads++
			if _, declined := r.declined[r.names[j]]; rests || declined {
				continue
			}
			if t.Waiting == 0 || w < t.Least {
				t.Least = w
			}
			if t.Waiting++; t.Waiting == 1 || w > t.Most {
				t.Most = w
			}
		}
		p.totals = append(p.totals, t)
	}
	for _, f := range p.flights {
		if to, found := p.placeOf(f.to); found {
			p.totals[to].Work += f.weight
			p.totals[to].Loads++
		}
	}
}

// loadState is the state that a strategy decides on.
func (p *Planner) loadState() *balance.State {
	s := &balance.State{Nodes: make([]balance.Node, len(p.members))}
	if seconds := p.Set.Transfer.Seconds(); seconds > 0 {
		s.Transfer = func(int, int, float64) float64 { return seconds }
	}
	listed := map[string]bool{}
	for i := range p.members {
		m := &p.members[i]
		s.Nodes[i] = p.totals[i].Node
		r := &p.readings[i]
		if m.Unknown {
			continue
		}
		_, rests := p.resting[m.Name]
		for j, name := range r.names {
			_, declined := r.declined[name]
			l := balance.Load{Name: name, Node: m.Name, Weight: r.weights[j], Running: rests || declined}
			if f := p.leaves(m, name); f != nil {
				l.To, listed[name] = f.to, true
			}
			s.Loads = append(s.Loads, l)
		}
		s.Traffic = append(s.Traffic, r.traffic...)
		if r.rest != 0 {
			s.Loads = append(s.Loads, balance.Load{Name: m.Name + "/rest", Node: m.Name, Weight: r.rest, Running: true})
		}
	}
	for _, f := range p.flights {
		if !listed[f.load] {
			s.Loads = append(s.Loads, balance.Load{Name: f.load, Node: f.from, To: f.to, Weight: f.weight})
		}
	}
	return s
}

// ordersRoom is how many bytes the orders of a signal have.
const ordersRoom = control.MaxDataBytes - len(balance.OrdersDatum) - 9

// order makes the signals that order the moves of a plan: one for each member that has
// loads to give. What a signal has no room for, and what there is no room for among the
// signals that wait, is left to a later plan; that signal is made, to be refused.
func (p *Planner) order(now clocksync.Instant, one *monitor.Plan, room int) (signals []*control.Signal) {
	moves := &one.Plan
	texts := map[string]string{} // by source
	var sources []string
	unsent := func(m *balance.Move, detail string) {
		moves.Refused = append(moves.Refused, balance.Refusal{Load: m.Load, From: m.From, To: m.To, Reason: balance.Unsent, Detail: detail})
	}
	moves.Moves = slices.DeleteFunc(moves.Moves, func(m balance.Move) bool {
		text := balance.AppendOrder(texts[m.From], balance.Order{Load: m.Load, To: m.To, Weight: m.Weight})
		if len(text) > ordersRoom {
			unsent(&m, fmt.Sprintf("an order holds %d bytes: it is left to a later plan", ordersRoom))
			return true
		}
		if texts[m.From] == "" {
			sources = append(sources, m.From)
		}
		texts[m.From] = text
		return false
	})
	for i, name := range sources {
		from := find(p.members, name)
		signals = append(signals, &control.Signal{
			Decision: one.Decision, Name: p.Set.Name, Predicate: config.BalanceName, Kind: control.Activate,
			Target: name, Region: p.Set.Region, Entry: from.Entry, TTL: p.Set.Expires,
			Data: []control.Datum{{Name: balance.OrdersDatum, Value: scgs.StringValue(texts[name])}},
		})
		moves.Moves = slices.DeleteFunc(moves.Moves, func(m balance.Move) bool {
			switch {
			case m.From != name:
				return false
			case i >= room:
				unsent(&m, "too many signals wait for their fate: it is left to a later plan")
				return true
			}
			p.moves++
			p.flights = append(p.flights, &flight{
				load: m.Load, from: name, to: m.To, source: from.Incarnation, target: find(p.members, m.To).Incarnation,
				weight: m.Weight, decision: one.Decision, since: now, until: clocksync.MaxInstant,
			})
			return false
		})
	}
	return signals
}

// Rests is how long a member whose order came to nothing still gets no other, 0 if it
// may.
func (p *Planner) Rests(now clocksync.Instant, member string) time.Duration {
	until, rests := p.resting[member]
	if !rests {
		return 0
	}
	return max(0, until.Sub(now))
}

// Acted counts the plans with moves, and gives the decision of the last and its age.
func (p *Planner) Acted(now clocksync.Instant) (plans uint64, last control.Decision, age time.Duration) {
	return p.acted, p.decision, max(0, now.Sub(p.at))
}

// shownFlights is how many loads under way, and earlier moves, a status has.
const shownFlights = 100

// Status tells where the section stands.
func (p *Planner) Status(now clocksync.Instant) *monitor.BalanceStatus {
	s := &monitor.BalanceStatus{
		Strategy: p.strategy.Name(), Looks: p.looks, Quiet: p.quiet, Plans: p.plans, Moves: p.moves, Refused: p.declined,
		UnderWay: []monitor.FlightStatus{}, Flights: len(p.flights),
	}
	for _, f := range p.flights[:min(len(p.flights), shownFlights)] {
		one := monitor.FlightStatus{
			Load: p.label(f.load), From: f.from, To: f.to, Weight: f.weight, Decision: f.decision.String(), Ago: max(0, now.Sub(f.since)).Seconds(), Phase: "ordered",
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
		if p.acted > 0 && p.last.Decision.Number == 0 {
			moved := p.moved.Status()
			moved.Moves = moved.Moves[:min(len(moved.Moves), shownFlights)]
			s.Moved = &moved
		}
	}
	return s
}
