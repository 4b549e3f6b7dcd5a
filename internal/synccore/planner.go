package synccore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// planner is where the section balance of a machine stands.
type planner struct {
	*plan.Balance
	strategy balance.Strategy
	resting  map[string]clocksync.Instant // until when a member whose order came to nothing gets no other
	flights  []*flight                    // in the order of their decisions
	fresh    bool                         // a global state was opened in this step
	stirred  bool                         // the global state is another one than at the last look, or what is under way
	due      clocksync.Instant            // no look before
	again    clocksync.Instant            // when a load that rests may move; MaxInstant: none does
	idle     bool                         // that nothing can be moved was told
	ordered  map[string]*flight           // by load

	// For people.
	looks, quiet, plans, moves uint64
	acted                      uint64 // plans with moves
	decision                   control.Decision
	at                         clocksync.Instant // of that decision
	last                       monitor.Plan

	totals []balance.Total
	values []scgs.Value
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
	seq     uint64 // of the state; 0: none was read
	power   float64
	share   float64
	note    string // why it says nothing
	names   []string
	weights []float64
	rest    float64
}

// keepPlanner begins with the section of the plan, or goes over to it: what is under
// way stays so, and the strategy's memory stays with its values.
func (c *Core) keepPlanner() {
	b, before := c.plan.Balance, c.planner
	if b == nil || c.opt.Local {
		c.planner = nil
		return
	}
	if before != nil && before.Text == b.Text {
		before.Balance = b
		return
	}
	strategy, err := balance.New(b.Config)
	if err != nil {
		panic("synccore: a plan with a bad section balance: " + err.Error())
	}
	c.planner = &planner{
		Balance: b, strategy: strategy, stirred: true, due: clocksync.MinInstant, again: clocksync.MaxInstant,
		ordered: map[string]*flight{}, resting: map[string]clocksync.Instant{},
	}
	for _, m := range c.sorted {
		m.reading = reading{}
	}
	if before != nil {
		c.planner.flights = before.flights
	}
}

// regroupPlanner forgets at a new epoch what was under way between members of which
// one is gone: whether the load has come nobody can tell.
func (c *Core) regroupPlanner() {
	p := c.planner
	if p == nil {
		return
	}
	p.flights = slices.DeleteFunc(p.flights, func(f *flight) bool {
		from, to := c.inNow(f.from), c.inNow(f.to)
		return from == nil || to == nil || from.incarnation != f.source || to.incarnation != f.target
	})
	p.fresh, p.stirred, p.idle = false, true, false
}

// inNow is the member of that name in the epoch, or nil.
func (c *Core) inNow(name string) *member {
	i, found := slices.BinarySearchFunc(c.inEpoch, name, func(m *member, name string) int { return cmp.Compare(m.name, name) })
	if !found {
		return nil
	}
	return c.inEpoch[i]
}

// unsettle notes a new global state.
func (c *Core) unsettle() {
	if p := c.planner; p != nil {
		p.fresh, p.stirred = true, true
	}
}

// landed looks for loads under way in a member's report. The state in which a load
// came may be part of no global state.
func (c *Core) landed(m *member, r *wire.Report) {
	p := c.planner
	if p == nil || r.End || !slices.ContainsFunc(p.flights, func(f *flight) bool { return f.to == m.name && f.landed == 0 }) {
		return
	}
	names := p.names(nil, c.readAlone(m, r.Row))
	for _, f := range p.flights {
		if f.to == m.name && f.target == m.incarnation && f.landed == 0 && slices.Contains(names, f.load) {
			f.landed, p.stirred = r.Seq, true
		}
	}
}

// readAlone are the loads that a row names.
func (c *Core) readAlone(m *member, row []scgs.Value) []scgs.Value {
	c.single[0].Name, c.single[0].Host = m.name, m.host
	c.alone.Reset(c.single[:])
	c.alone.Set(0, row)
	c.planner.values, _ = c.planner.Loads.Eval(c.planner.values[:0], c.alone, 0)
	return c.planner.values
}

// names are those of loads.
func (p *planner) names(dst []string, values []scgs.Value) []string {
	for _, v := range values {
		if v.Type() == scgs.Int {
			dst = append(dst, strconv.FormatInt(v.Int(), 10))
			continue
		}
		dst = append(dst, v.Text())
	}
	return dst
}

// orderFate takes the fate of an order. Where its handler cannot have run the loads
// stay; else they are under way for the transit time at most. A member whose order
// came to nothing rests as long, so that it is not asked again and again.
func (c *Core) orderFate(s *control.Signal, f control.Fate) {
	p := c.planner
	if p == nil || s.Predicate != config.BalanceName {
		return
	}
	until := c.now.Add(p.Set.Transit)
	if f != control.Applied {
		p.resting[s.Target] = until
	}
	switch f { //nolint:exhaustive // The others are no fates of a signal that was sent.
	case control.NoSuchEntry, control.OldEpoch, control.Refused:
		until = c.now
	}
	for _, x := range p.flights {
		if x.decision == s.Decision && x.from == s.Target {
			x.until = until
		}
	}
}

// balanceWake is when the planner next has something to do by itself.
func (c *Core) balanceWake() clocksync.Instant {
	if !c.planning() {
		return clocksync.MaxInstant
	}
	return c.planner.next()
}

// planning reports whether there is a global state to plan on.
func (c *Core) planning() bool {
	return c.planner != nil && (c.tuple || c.planner.fresh) && !c.paused && len(c.removing) == 0
}

// next is when to look again.
func (p *planner) next() clocksync.Instant {
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

// balance looks at the global state in force, if it is time, and has loads moved
// where the strategy finds a move. Of several that a step has opened it takes the last,
// which may be over: where members change faster than they are heard, none is in force
// at the end of a step.
func (c *Core) balance(out *Output) {
	p := c.planner
	if p == nil {
		return
	}
	ready := c.planning() && c.now >= p.next()
	p.fresh = false
	if !ready {
		return
	}
	p.stirred, p.again, p.due = false, clocksync.MaxInstant, c.now.Add(p.Set.Every)
	c.readStates()
	c.endFlights()
	if len(p.flights) >= maxFlights || p.When != nil && p.When.Eval(c.scope).Truth != predicates.True {
		return
	}
	p.looks++
	c.addUp()
	if p.Config.Quiet(p.totals) {
		p.quiet++
		return
	}
	one := monitor.Plan{Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Plan: p.strategy.Plan(c.now, c.loadState())}
	p.plans++
	p.again = one.Plan.Again
	idle := len(one.Plan.Moves) == 0
	if !idle {
		one.Decision = c.decision()
		c.order(&one, out)
		p.acted, p.decision, p.at = p.acted+1, one.Decision, c.now
	}
	c.balanced[slices.Index(balance.Names, p.Config.Strategy)].count(&one.Plan)
	p.last = one
	if !idle || !p.idle {
		out.Plans = append(out.Plans, one)
	}
	p.idle = idle
}

// readStates reads the states of the global state that were not read before.
func (c *Core) readStates() {
	for _, m := range c.inEpoch {
		if m.state.Unknown || m.reading.seq == m.state.Seq {
			continue
		}
		m.reading = reading{seq: m.state.Seq, names: m.reading.names[:0], weights: m.reading.weights[:0]}
		m.reading.note = c.planner.read(&m.reading, c.scope, m.pos)
	}
}

// read evaluates the expressions of the section on one member. What cannot be read
// is told.
func (p *planner) read(r *reading, s *predicates.Scope, i int) (note string) {
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
	r.names = p.names(r.names, p.values)
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
	if note != "" {
		r.names, r.weights, r.rest = r.names[:0], r.weights[:0], 0
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

// endFlights takes out what is under way no longer: it shows at the target, or at
// somebody else's, it was not sent, or its time is over.
func (c *Core) endFlights() {
	p := c.planner
	clear(p.ordered)
	maps.DeleteFunc(p.resting, func(_ string, until clocksync.Instant) bool { return c.now >= until })
	if len(p.flights) == 0 {
		return
	}
	on := map[string]*member{}
	for _, m := range c.inEpoch {
		if !m.state.Unknown {
			for _, name := range m.reading.names {
				on[name] = m
			}
		}
	}
	p.flights = slices.DeleteFunc(p.flights, func(f *flight) bool {
		to, at := c.inNow(f.to), on[f.load]
		return c.now >= f.until || at != nil && at.name != f.from ||
			f.landed > 0 && to != nil && !to.state.Unknown && to.state.Seq >= f.landed
	})
	for _, f := range p.flights {
		p.ordered[f.load] = f
	}
}

// leaves is the flight of a load that stands in its source's state still, or nil.
func (p *planner) leaves(m *member, load string) *flight {
	if f := p.ordered[load]; f != nil && f.from == m.name {
		return f
	}
	return nil
}

// standsAside says why a member neither gives nor takes.
func (c *Core) standsAside(m *member) string {
	switch {
	case m.state.Unknown:
		return "nothing is known of its state"
	case c.entry(m.pos, c.planner.Set.Region, &occasion{}) == 0:
		return "it was not in region " + c.planner.Set.Region
	}
	return m.reading.note
}

// addUp makes the totals of the members.
func (c *Core) addUp() {
	p := c.planner
	p.totals = p.totals[:0]
	for _, m := range c.inEpoch {
		r := &m.reading
		_, rests := p.resting[m.name]
		t := balance.Total{Node: balance.Node{Name: m.name, Power: r.power, Share: r.share, Note: c.standsAside(m)}, Work: r.rest}
		if r.rest != 0 {
			t.Loads++
		}
		for i, w := range r.weights {
			if len(p.ordered) > 0 && p.leaves(m, r.names[i]) != nil {
				continue
			}
			t.Work += w
			t.Loads++
			if rests {
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
		if to := c.inNow(f.to); to != nil {
			p.totals[to.pos].Work += f.weight
			p.totals[to.pos].Loads++
		}
	}
}

// loadState is the state that a strategy decides on.
func (c *Core) loadState() *balance.State {
	p := c.planner
	s := &balance.State{Nodes: make([]balance.Node, len(c.inEpoch))}
	if seconds := p.Set.Transfer.Seconds(); seconds > 0 {
		s.Transfer = func(int, int, float64) float64 { return seconds }
	}
	listed := map[string]bool{}
	for i, m := range c.inEpoch {
		s.Nodes[i] = p.totals[i].Node
		r := &m.reading
		if m.state.Unknown {
			continue
		}
		_, rests := p.resting[m.name]
		for j, name := range r.names {
			l := balance.Load{Name: name, Node: m.name, Weight: r.weights[j], Running: rests}
			if f := p.leaves(m, name); f != nil {
				l.To, listed[name] = f.to, true
			}
			s.Loads = append(s.Loads, l)
		}
		if r.rest != 0 {
			s.Loads = append(s.Loads, balance.Load{Name: m.name + "/rest", Node: m.name, Weight: r.rest, Running: true})
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

// order sends the moves of a plan to the members that have the loads, a signal each.
// What a signal has no room for is left to a later plan.
func (c *Core) order(one *monitor.Plan, out *Output) {
	p, plan := c.planner, &one.Plan
	texts := map[string]string{} // by source
	var sources []string
	plan.Moves = slices.DeleteFunc(plan.Moves, func(m balance.Move) bool {
		text := balance.AppendOrder(texts[m.From], balance.Order{Load: m.Load, To: m.To, Weight: m.Weight})
		if len(text) > ordersRoom {
			plan.Refused = append(plan.Refused, balance.Refusal{
				Load: m.Load, From: m.From, To: m.To, Reason: balance.Unsent,
				Detail: fmt.Sprintf("an order holds %d bytes: it is left to a later plan", ordersRoom),
			})
			return true
		}
		if texts[m.From] == "" {
			sources = append(sources, m.From)
		}
		texts[m.From] = text
		return false
	})
	for _, name := range sources {
		from := c.inNow(name)
		signal := &control.Signal{
			Decision: one.Decision, Name: p.Set.Name, Predicate: config.BalanceName, Kind: control.Activate,
			Target: name, Region: p.Set.Region, Entry: c.entry(from.pos, p.Set.Region, &occasion{}), TTL: p.Set.Expires,
			Data: []control.Datum{{Name: balance.OrdersDatum, Value: scgs.StringValue(texts[name])}},
		}
		sent := c.post("", from.incarnation, signal, out)
		plan.Moves = slices.DeleteFunc(plan.Moves, func(m balance.Move) bool {
			switch {
			case m.From != name:
				return false
			case !sent:
				plan.Refused = append(plan.Refused, balance.Refusal{
					Load: m.Load, From: m.From, To: m.To, Reason: balance.Unsent, Detail: "too many signals wait for their fate: it is left to a later plan",
				})
				return true
			}
			p.moves++
			p.flights = append(p.flights, &flight{
				load: m.Load, from: name, to: m.To, source: from.incarnation, target: c.inNow(m.To).incarnation,
				weight: m.Weight, decision: one.Decision, since: c.now, until: clocksync.MaxInstant,
			})
			return false
		})
	}
}
