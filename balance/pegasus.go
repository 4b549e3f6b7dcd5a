package balance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// planPegasus is the strategy of the paper: detect an imbalance (section 3.3), class
// the nodes (3.4.1), choose a load of an overloaded one (3.4.2) and an
// underloaded target (3.4.3); then again, with that move counted.
func (b *base) planPegasus(now clocksync.Instant, s *State) Plan {
	m := b.readModel(now, s)
	if m.plan.Verdict = m.isHopeless(); m.plan.Verdict != "" {
		return m.closePlan(m.viewNodes())
	}
	verdict := m.detect()
	views := m.viewNodes()
	m.plan.Verdict = verdict.String()
	for verdict.imbalance && len(m.plan.Moves) < b.cfg.Moves {
		from := m.mostOverloaded()
		if from < 0 {
			break
		}
		if !m.relieve(from) {
			m.places[from].depleted = true
			continue
		}
		verdict = m.detect()
	}
	if b.cfg.Waiting == ByWeight {
		if n := m.replace(); n > 0 {
			m.plan.Verdict += fmt.Sprintf("; loads too large for their node: %d", n)
		}
	}
	return m.closePlan(views)
}

// available is Ind_avail of section 3.3 as a load of some weight would find it.
// As printed that is power x share, of which a probe beside the threads that run
// gets its part. By weight it is equation 3.4 with what the node has counted as
// waiting before that load: Ind_avail x (1 - waiting / (waiting + weight)), which
// falls as the seconds rise that the load would take to be done.
func (m *model) available(node int, weight float64) float64 {
	p := &m.places[node]
	if m.base.cfg.Waiting == ByCount {
		return p.Available / float64(1+p.running)
	}
	if p.Work == 0 {
		return p.Available
	}
	return p.Available * (weight / (p.Work + weight))
}

// corrected is Ind*_avail, equation 3.4. A node without threads has none that
// wait (trap X5).
func (m *model) corrected(node int, weight float64) float64 {
	index := m.available(node, weight)
	if p := &m.places[node]; m.base.cfg.Waiting == ByCount && p.Loads > 0 {
		return index - index*float64(p.Loads-p.running)/float64(p.Loads)
	}
	return index
}

// imbalance is LI of section 3.3.
type imbalance struct {
	imbalance           bool
	least, most, alpha  float64
	leastNode, mostNode string
}

// String is the sentence of a plan.
func (v imbalance) String() string {
	word, than := "balanced", "at most"
	if v.imbalance {
		word, than = "imbalance", "more than"
	}
	return fmt.Sprintf("%s: availability %s of %s is %s %s x %s of %s", word, formatShort(v.most), v.mostNode, than, formatShort(v.alpha), formatShort(v.least), v.leastNode)
}

// detect fills in the indexes and classes. The paper prints the condition of a
// balance under the name of the imbalance: it is max > alpha x min (trap X1). A
// node with nothing to give cannot be the overloaded one: where a slow idle node
// has the least availability, the next one is looked at.
func (m *model) detect() imbalance {
	v := imbalance{alpha: m.base.cfg.Alpha}
	first := true
	for i := range m.places {
		p := &m.places[i]
		p.Class = Aside
		if p.Note != "" {
			continue
		}
		p.Index = m.available(i, m.mean)
		if len(p.waiting) > 0 && (first || p.Index < v.least) {
			v.least, v.leastNode, first = p.Index, p.Name, false
		}
	}
	if first {
		return v
	}
	values, whose := m.scratch[:0], []int(nil)
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" && p.Index >= v.least {
			values, whose = append(values, p.Index), append(whose, i)
			if v.mostNode == "" || p.Index > v.most {
				v.most, v.mostNode = p.Index, p.Name
			}
		}
	}
	classes := make([]Class, len(values))
	classifyValues(values, classes)
	for i, class := range classes {
		m.places[whose[i]].Class = class
	}
	v.imbalance = v.most > v.alpha*v.least
	return v
}

// mostOverloaded is the overloaded node with the least index that can still
// give; -1 if there is none. High availability is little load (trap X2).
func (m *model) mostOverloaded() int {
	found := -1
	for i := range m.places {
		p := &m.places[i]
		if p.Class == Overloaded && len(p.waiting) > 0 && !p.depleted && (found < 0 || p.Index < m.places[found].Index) {
			found = i
		}
	}
	return found
}

// replace plans moves of loads too large for their node: such a load alone would
// take longer there than all work takes on all nodes together. The paper prefers
// loads of the mean size (section 3.4.2), so the largest stay where they are, and
// one that begins late on a slow node decides when all is done. The target is the
// node that is done with it first.
func (m *model) replace() (number int) {
	work, available := 0.0, 0.0
	for i := range m.places {
		if p := &m.places[i]; p.Note == "" {
			work, available = work+p.Work, available+p.Available
		}
	}
	fair := drainTime(work, available)
	var list []candidate
	for i := range m.places {
		for _, l := range m.places[i].waiting { // Those that were not moved just now.
			if alone := drainTime(m.weights[l], m.places[i].Available); alone > fair {
				list = append(list, candidate{load: l, rank: alone})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.rank, a.rank) })
	for _, c := range list {
		from := m.at[c.load]
		if len(m.plan.Moves) == m.base.cfg.Moves {
			break
		}
		if m.refuseResting(c.load) {
			continue
		}
		target, least := -1, 0.0
		refused, after, why := -1, 0.0, BadNode
		for to := range m.places {
			if to == from || m.places[to].Available == 0 {
				continue
			}
			if then, against, ok := m.tryMove(c.load, from, to); !ok {
				refused, after, why = to, then, against
			} else if target < 0 || then < least {
				target, least = to, then
			}
		}
		switch {
		case target >= 0:
		case refused >= 0:
			m.refuseMove(c.load, from, refused, after, why)
			continue
		default:
			m.addRefusal(Refusal{m.state.Loads[c.load].Name, m.places[from].Name, "", NoTarget, "no other node has anything to spare"})
			continue
		}
		move := m.applyMove(c.load, from, target, least)
		move.Alone, move.Fair = c.rank, fair
		number++
	}
	return number
}

// candidate is a load that could move.
type candidate struct {
	load                        int
	rank, attraction, deviation float64
}

// relieve plans one move from an overloaded node: the load of the least rank for
// which there is a target; of equal ranks the first in the state.
func (m *model) relieve(from int) bool {
	list := m.candidates(from)
	refused := -1 // place of the lightest load with no gain anywhere
	for i := range list {
		switch i {
		case 0: // It mostly moves, and then the others need no order.
			least := 0
			for j := range list {
				if c, d := &list[j], &list[least]; c.rank < d.rank || c.rank == d.rank && c.load < d.load {
					least = j
				}
			}
			list[0], list[least] = list[least], list[0]
		case 1:
			slices.SortFunc(list[1:], func(c, d candidate) int { return cmp.Or(cmp.Compare(c.rank, d.rank), cmp.Compare(c.load, d.load)) })
		}
		c := &list[i]
		l := &m.state.Loads[c.load]
		if m.worse(refused, l) || m.refuseResting(c.load) {
			continue
		}
		best, anywhere := m.target(c, from)
		if best == nil {
			if !anywhere && (refused < 0 || l.Weight <= m.state.Loads[refused].Weight) {
				refused = c.load
			}
			continue
		}
		move := m.applyMove(c.load, from, best.node, best.after)
		move.Rank, move.Attraction, move.Deviation, move.Of = c.rank, c.attraction, c.deviation, len(list)
		move.Quality, move.Pull, move.Spare, move.Targets = best.quality, best.pull, best.spare, len(m.options)
		return true
	}
	return false
}

// worse reports whether a load is at least as heavy and large as one that had no
// gain anywhere: it has none either, and need not be tried and told.
func (m *model) worse(refused int, l *Load) bool {
	if refused < 0 {
		return false
	}
	r := &m.state.Loads[refused]
	return l.Weight >= r.Weight && l.Size >= r.Size
}

// candidates are the loads of a node that wait, with their rank (equation 3.2), in no
// order. Attraction and deviation are divided by their greatest on the node, and are
// 0 where that is 0 (trap X5).
func (m *model) candidates(node int) []candidate {
	p, beta := &m.places[node], m.base.cfg.Beta
	mean := p.Work / float64(max(1, p.Loads)) // Equation 3.1.
	mostAttraction, mostDeviation := 0.0, 0.0
	list := m.ranking[:0]
	for _, l := range p.loads {
		c := candidate{load: l, attraction: m.attraction(l, node), deviation: absolute(m.weights[l] - mean)}
		mostAttraction, mostDeviation = max(mostAttraction, c.attraction), max(mostDeviation, c.deviation)
		if m.movable[l] {
			list = append(list, c)
		}
	}
	for i := range list {
		c := &list[i]
		c.attraction, c.deviation = part(c.attraction, mostAttraction), part(c.deviation, mostDeviation)
		c.rank = beta*c.attraction + (1-beta)*c.deviation
	}
	m.ranking = list
	return list
}

// attraction is attr(j) on the node of a load and attrext(j, n) on another.
func (m *model) attraction(load, node int) (sum float64) {
	if m.partners == nil {
		return 0
	}
	for _, s := range m.partners[load] {
		if m.at[s.with] == node {
			sum += s.volume
		}
	}
	return sum
}

// part is x of a whole; of nothing it is 0.
func part(x, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return x / whole
}

func absolute(x float64) float64 { return max(x, -x) }

// option is a node that a load could go to.
type option struct {
	node                 int
	quality, pull, spare float64
	after                float64 // its queue
	against              Reason
}

// target chooses the underloaded node of the highest quality (equation 3.3) that
// the move is no loss for. Else it refuses the best one, and says whether a heavier
// load might do better.
func (m *model) target(c *candidate, from int) (best *option, anywhere bool) {
	gamma, weight := m.base.cfg.Gamma, m.weights[c.load]
	list := m.options[:0]
	mostPull, mostSpare := 0.0, 0.0
	for i := range m.places {
		p := &m.places[i]
		if i == from || p.Note != "" {
			continue
		}
		o := option{node: i, pull: m.attraction(c.load, i), spare: m.corrected(i, weight)}
		mostPull, mostSpare = max(mostPull, o.pull), max(mostSpare, o.spare)
		if p.Class == Underloaded && p.Available > 0 {
			list = append(list, o)
		}
	}
	m.options = list
	var refused *option // the one of the highest quality
	for i := range list {
		o := &list[i]
		o.pull, o.spare = part(o.pull, mostPull), part(o.spare, mostSpare)
		o.quality = gamma*o.pull + (1-gamma)*o.spare
		if best != nil && o.quality <= best.quality {
			continue
		}
		var ok bool
		o.after, o.against, ok = m.tryMove(c.load, from, o.node)
		switch {
		case ok:
			best = o
		case refused == nil || o.quality > refused.quality:
			refused = o
		}
		anywhere = anywhere || o.against == NoReturn
	}
	switch {
	case best != nil:
	case refused != nil:
		m.refuseMove(c.load, from, refused.node, refused.after, refused.against)
	default:
		m.addRefusal(Refusal{m.state.Loads[c.load].Name, m.places[from].Name, "", NoTarget, "no other node is underloaded"})
	}
	return best, anywhere
}
