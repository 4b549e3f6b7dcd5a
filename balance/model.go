package balance

import (
	"fmt"
	"math"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

const (
	// Numbers beyond these are refused, and powers below tiny count as 0, so that
	// no sum, product or quotient overflows.
	huge, tiny = 1e100, 1e-100
	// shown is how many refusals a plan lists.
	shown = 100
	// A node's weights are judged by the median of at least judged loads that
	// wait; a power or a median is judged beside those of two other nodes.
	judged, others = 4, 2
	// cancelled is the part of a sum below which too little of it is left for
	// differences: what is left is added up again.
	cancelled = 1e-6
)

// lastMove is the most recent move of a load.
type lastMove struct {
	from string
	at   clocksync.Instant
	// available is that of the node it went to. It is infinite once the node that it left
	// is withdrawn or gone: when that returns, the load may go back.
	available float64
}

// base is every strategy: they differ in how they plan.
type base struct {
	cfg    Config
	memory map[string]lastMove // by load
	plan   func(clocksync.Instant, *State) Plan
}

func (b *base) Name() string { return b.cfg.Strategy }

func (b *base) Plan(now clocksync.Instant, s *State) Plan { return b.plan(now, s) }

// place is a node while a plan is made.
type place struct {
	NodeView
	running  int
	loads    []int   // places in State.Loads
	waiting  []int   // of them, those that can move
	sorted   bool    // waiting has the heaviest first
	summed   float64 // Work at most, since it was last added up
	depleted bool    // no more moves from here
}

// model is the state of a plan: the believed part of the report, with the moves planned so far.
type model struct {
	base     *base
	now      clocksync.Instant
	state    *State
	plan     Plan
	places   []place
	at       []int     // by load: its place, or -1
	weights  []float64 // by load, as in the state
	movable  []bool    // by load: it waits and was not moved yet
	mean     float64   // weight of a load
	partners [][]share // by load, what it sends and receives
	scratch  []float64
	ranking  []candidate // the room of the last one
	options  []option
}

// share is the traffic of a load with another.
type share struct {
	with   int
	volume float64
}

// readModel reads a state. What cannot be believed is refused and told.
func (b *base) readModel(now clocksync.Instant, s *State) *model {
	m := &model{
		base: b, now: now, state: s, at: make([]int, len(s.Loads)), weights: make([]float64, len(s.Loads)), movable: make([]bool, len(s.Loads)),
		plan:   Plan{Strategy: b.Name(), At: now, Again: clocksync.MaxInstant},
		places: make([]place, len(s.Nodes)), scratch: make([]float64, len(s.Nodes)),
	}
	m.readNodes()
	m.readLoads()
	m.judge()
	m.readTraffic()
	total, number := 0.0, 0
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" {
			total, number = total+p.Work, number+p.Loads
		}
	}
	if number > 0 {
		m.mean = total / float64(number)
	}
	m.queues()
	m.plan.Before = m.longest()
	m.forget()
	return m
}

func (m *model) readNodes() {
	seen := make(map[string]bool, len(m.places))
	for i, n := range m.state.Nodes {
		p := &m.places[i]
		p.Name = n.Name
		switch {
		case n.Name == "":
			p.Note = "it has no name"
		case seen[n.Name]:
			p.Note = "another node has the same name"
		case n.Note != "":
			p.Note = n.Note
		default:
			if p.Note = n.Fault(); p.Note != "" {
				break
			}
			if p.Available = n.Power * n.Share; p.Available < tiny {
				p.Available = 0
			}
		}
		seen[n.Name] = true
	}
}

func (m *model) readLoads() {
	nodes := make(map[string]int, len(m.places))
	for i := range slices.Backward(m.places) { // The first of a name keeps it.
		nodes[m.places[i].Name] = i
	}
	seen := make(map[string]bool, len(m.at))
	for i := range m.state.Loads {
		l := &m.state.Loads[i]
		m.at[i], m.weights[i] = -1, l.Weight
		i0, ok := nodes[l.Node]
		if to, on := nodes[l.To]; on && l.To != "" {
			i0, ok = to, true // What is under way counts there, even if the node it left is gone.
		}
		p := &place{}
		if ok {
			p = &m.places[i0]
		}
		switch {
		case l.Name == "" || seen[l.Name]:
			m.addRefusal(Refusal{l.Name, l.Node, "", BadLoad, "it has no name of its own"})
			continue
		case !ok:
			m.addRefusal(Refusal{l.Name, l.Node, l.To, BadLoad, "no such node is known"})
			continue
		case l.Fault() != "":
			if p.Note == "" {
				p.Note = l.Fault()
			}
			continue
		}
		seen[l.Name] = true
		m.at[i] = i0
		p.loads = append(p.loads, i)
		p.Loads++
		p.Work += l.Weight
		p.summed = p.Work
		switch {
		case l.Running && l.To == "":
			p.running++
		case l.To == "" && l.Weight > 0:
			p.waiting = append(p.waiting, i)
			m.movable[i] = true
		}
	}
}

// judge leaves nodes alone that differ implausibly from the others.
func (m *model) judge() {
	m.outliers("its power", func(_ *place, n *Node) (float64, bool) { return n.Power, n.Power > 0 })
	if !m.alike() {
		m.outliers("the median of its weights", func(p *place, _ *Node) (float64, bool) {
			weights := make([]float64, len(p.waiting))
			for i, l := range p.waiting {
				weights[i] = m.weights[l]
			}
			return median(weights), len(weights) >= judged
		})
	}
	for i := range m.places {
		if p := &m.places[i]; p.Note != "" {
			p.Available, p.waiting = 0, nil
			m.addRefusal(Refusal{"", p.Name, "", BadNode, p.Note})
		}
	}
}

// alike reports that more than half of the weights of each node that is judged by them
// are within bounds about the mean of all that no two medians can be too far apart in.
// That is so nearly always, and costs less than medians do.
func (m *model) alike() bool {
	sum, number := 0.0, 0
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" {
			for _, l := range p.waiting {
				sum += m.weights[l]
			}
			number += len(p.waiting)
		}
	}
	low := sum / float64(max(1, number)) / math.Sqrt(m.base.cfg.Outlier)
	high := low * m.base.cfg.Outlier * (1 - rounding)
	for i := range m.places {
		p := &m.places[i]
		if p.Note != "" || len(p.waiting) < judged {
			continue
		}
		within := 0
		for _, l := range p.waiting {
			if w := m.weights[l]; w >= low && w <= high {
				within++
			}
		}
		if 2*within <= len(p.waiting) {
			return false
		}
	}
	return true
}

func (m *model) outliers(what string, of func(*place, *Node) (float64, bool)) {
	var values []float64
	var whose []int
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" {
			if v, ok := of(p, &m.state.Nodes[i]); ok {
				values, whose = append(values, v), append(whose, i)
			}
		}
	}
	if len(values) <= others {
		return
	}
	usual := median(values)
	for i, v := range values {
		if limit := m.base.cfg.Outlier; v > usual*limit || v < usual/limit {
			m.places[whose[i]].Note = fmt.Sprintf("%s %s differs more than %s times from %s, the median of the nodes", what, formatShort(v), formatShort(limit), formatShort(usual))
		}
	}
}

// median is the middle value, the lower one of two; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

func (m *model) readTraffic() {
	if len(m.state.Traffic) == 0 {
		return
	}
	loads := make(map[string]int, len(m.at))
	for i := range slices.Backward(m.state.Loads) {
		loads[m.state.Loads[i].Name] = i
	}
	m.partners = make([][]share, len(m.at))
	for _, t := range m.state.Traffic {
		from, ok := loads[t.From]
		to, known := loads[t.To]
		switch {
		case !ok || !known || from == to: // A partner may have ended.
		case !(t.Volume >= 0 && t.Volume <= huge):
			m.addRefusal(Refusal{t.From, "", "", BadLoad, fmt.Sprintf("its traffic %v with %s is not from 0 to %g", t.Volume, t.To, huge)})
		default:
			m.partners[from] = append(m.partners[from], share{to, t.Volume})
			m.partners[to] = append(m.partners[to], share{from, t.Volume})
		}
	}
}

// forget drops the memory of loads that have gone, and of moves that did not
// happen. It notes which nodes are withdrawn or gone: of one with a Note nobody knows.
func (m *model) forget() {
	b := m.base
	if len(b.memory) == 0 {
		return
	}
	stays := make(map[string]bool, len(m.places))
	for i := range m.places {
		p := &m.places[i]
		stays[p.Name] = p.Note != "" || p.Available > 0
	}
	kept := make(map[string]lastMove, len(b.memory))
	for i := range m.state.Loads {
		l := &m.state.Loads[i]
		if p, ok := b.memory[l.Name]; ok && (l.To != "" || l.Node != p.from) {
			if !stays[p.from] {
				p.available = math.Inf(1)
			}
			kept[l.Name] = p
		}
	}
	b.memory = kept
}

func (m *model) addRefusal(r Refusal) {
	if slices.Contains(m.plan.Refused, r) {
		return // It was considered more than once.
	}
	if len(m.plan.Refused) < shown {
		m.plan.Refused = append(m.plan.Refused, r)
		return
	}
	m.plan.More++
}

// drainTime is the seconds that work takes at an availability.
func drainTime(work, available float64) float64 {
	switch {
	case work <= 0:
		return 0
	case available == 0:
		return math.Inf(1)
	}
	return work / available
}

func (m *model) queues() {
	for i := range m.places {
		m.places[i].Queue = drainTime(m.places[i].Work, m.places[i].Available)
	}
}

// longest is over the nodes that are believed.
func (m *model) longest() (most float64) {
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" {
			most = max(most, p.Queue)
		}
	}
	return most
}

// closePlan closes the plan. What the nodes looked like at first stands in views.
func (m *model) closePlan(views []NodeView) Plan {
	m.plan.After = m.longest()
	for i := range views {
		views[i].Then = m.places[i].Queue
	}
	m.plan.Nodes = views
	return m.plan
}

func (m *model) viewNodes() []NodeView {
	list := make([]NodeView, len(m.places))
	for i := range m.places {
		list[i] = m.places[i].NodeView
	}
	return list
}

// isHopeless says why there can be no move at all, if so.
func (m *model) isHopeless() string {
	usable, movable := 0, 0
	for i := range m.places {
		movable += len(m.places[i].waiting)
		if m.places[i].Available > 0 {
			usable++
		}
	}
	switch {
	case len(m.places) == 0:
		return "there are no nodes"
	case len(m.places) == 1:
		return "there is one node only"
	case usable == 0:
		return "no node that is believed has anything to spare"
	case movable == 0:
		return "no load waits on a node that is believed"
	}
	return ""
}

// refuseResting refuses a load that was moved a short while ago.
func (m *model) refuseResting(load int) bool {
	l := &m.state.Loads[load]
	p, ok := m.base.memory[l.Name]
	until := p.at.Add(m.base.cfg.Cooldown)
	if !ok || m.now >= until {
		return false
	}
	m.plan.Again = min(m.plan.Again, until)
	m.addRefusal(Refusal{l.Name, l.Node, "", Resting, fmt.Sprintf("it came from %s %s ago", p.from, formatSeconds(m.now.Sub(p.at).Seconds()))})
	return true
}

// tryMove looks at a move: how long the target's queue would be, and what there is
// against it. No move that passes makes the longest queue of the two nodes longer,
// and none can be undone by another while weights and availability stay.
func (m *model) tryMove(load, from, to int) (after float64, against Reason, ok bool) {
	l, src, dst := &m.state.Loads[load], &m.places[from], &m.places[to]
	cost := 0.0
	if m.state.Transfer != nil {
		cost = m.state.Transfer(from, to, l.Size)
	}
	after = max(dst.Queue, cost) + drainTime(m.weights[load], dst.Available)
	if !(cost >= 0) || math.IsInf(cost, 1) {
		return after, NoTarget, false
	}
	if len(m.base.memory) > 0 {
		if p, ok := m.base.memory[l.Name]; ok && p.from == dst.Name && src.Available >= m.base.cfg.Return*p.available && src.Available > 0 {
			return after, NoReturn, false
		}
	}
	limit := src.Queue * (1 - m.base.cfg.Margin)
	if math.IsInf(after, 1) || !(after < limit || after <= limit && limit < src.Queue) {
		return after, NoGain, false
	}
	return after, 0, true
}

// refuseMove tells what try has against a move.
func (m *model) refuseMove(load, from, to int, after float64, against Reason) {
	l, src := &m.state.Loads[load], &m.places[from]
	var why string
	switch against {
	case NoReturn:
		why = fmt.Sprintf("it came from there, and %s still has %s of the %s it had then",
			src.Name, formatShort(src.Available), formatShort(m.base.memory[l.Name].available))
	case NoGain:
		why = fmt.Sprintf("its queue would be %s, and that of %s is %s", formatSeconds(after), src.Name, formatSeconds(src.Queue))
	default:
		why = "there is no way"
	}
	m.addRefusal(Refusal{l.Name, src.Name, m.places[to].Name, against, why})
}

// applyMove plans a move that try let pass, and fills in what it is and does. It holds
// until the next one.
func (m *model) applyMove(load, from, to int, after float64) *Move {
	l, src, dst := &m.state.Loads[load], &m.places[from], &m.places[to]
	move := Move{
		Load: l.Name, From: src.Name, To: dst.Name, Weight: l.Weight, Size: l.Size,
		FromBefore: src.Queue, ToBefore: dst.Queue, ToAfter: after,
	}
	is := func(l int) bool { return l == load }
	src.loads = slices.DeleteFunc(src.loads, is)
	src.waiting = slices.DeleteFunc(src.waiting, is)
	src.Loads--
	if src.Work -= l.Weight; src.Work < src.summed*cancelled {
		src.Work = 0
		for _, l := range src.loads {
			src.Work += m.weights[l]
		}
		src.summed = src.Work
	}
	dst.Work += l.Weight
	dst.summed = max(dst.summed, dst.Work)
	dst.Loads++
	dst.loads = append(dst.loads, load)
	src.Queue, dst.Queue = drainTime(src.Work, src.Available), drainTime(dst.Work, dst.Available)
	move.FromAfter = src.Queue
	m.at[load], m.movable[load] = to, false
	m.plan.Moves = append(m.plan.Moves, move)
	memory := lastMove{src.Name, m.now, dst.Available}
	if src.Available == 0 {
		memory.available = math.Inf(1)
	}
	m.base.memory[l.Name] = memory
	return &m.plan.Moves[len(m.plan.Moves)-1]
}
