package balance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
)

// planNone moves nothing.
func (b *base) planNone(now clocksync.Instant, s *State) Plan {
	m := b.readModel(now, s)
	m.plan.Verdict = "nothing is to be moved"
	return m.closePlan(m.viewNodes())
}

// planGreedy takes the largest load that gains anything from the longest queue to
// the shortest (PEGASUS paper, section 3).
func (b *base) planGreedy(now clocksync.Instant, s *State) Plan {
	return b.pairs(now, s, func(m *model, from, to int) bool { return m.give(from, to, 1) > 0 })
}

// planLargest evens out the most loaded node with the least loaded one (PEGASUS
// paper, section 4.2), one pair a plan.
func (b *base) planLargest(now clocksync.Instant, s *State) Plan {
	return b.pairs(now, s, func(m *model, from, to int) bool {
		m.give(from, to, b.cfg.Moves)
		return false
	})
}

// pairs hands the nodes of the longest and the shortest queue to even until
// that does not continue. A node that gained nothing is passed over.
func (b *base) pairs(now clocksync.Instant, s *State, even func(m *model, from, to int) bool) Plan {
	m := b.readModel(now, s)
	views := m.viewNodes()
	if m.plan.Verdict = m.isHopeless(); m.plan.Verdict != "" {
		return m.closePlan(views)
	}
	for first := true; len(m.plan.Moves) < b.cfg.Moves; first = false {
		from, to := m.extremes()
		if first {
			m.plan.Verdict = "no queue can be evened out with another"
		}
		if from < 0 || to < 0 {
			break
		}
		if first {
			m.plan.Verdict = fmt.Sprintf("the longest queue is %s of %s, the shortest %s of %s",
				formatSeconds(m.places[from].Queue), m.places[from].Name, formatSeconds(m.places[to].Queue), m.places[to].Name)
		}
		before := len(m.plan.Moves)
		if !even(m, from, to) {
			if len(m.plan.Moves) > before {
				break
			}
			m.places[from].depleted = true
		}
	}
	return m.closePlan(views)
}

// extremes are the nodes with the longest queue that can give, and the shortest
// of the others; -1 for none.
func (m *model) extremes() (from, to int) {
	from, to = -1, -1
	for i := range m.places {
		p := &m.places[i]
		if len(p.waiting) > 0 && !p.depleted && (from < 0 || p.Queue > m.places[from].Queue) {
			from = i
		}
	}
	for i := range m.places {
		p := &m.places[i]
		if i != from && p.Available > 0 && (to < 0 || p.Queue < m.places[to].Queue) {
			to = i
		}
	}
	return from, to
}

// give plans moves of the largest loads first, some number at most, and returns
// how many.
func (m *model) give(from, to, most int) (number int) {
	p := &m.places[from]
	if !p.sorted {
		slices.SortStableFunc(p.waiting, func(a, b int) int { return cmp.Compare(m.weights[b], m.weights[a]) })
		p.sorted = true
	}
	for i := 0; i < len(p.waiting) && number < most && len(m.plan.Moves) < m.base.cfg.Moves; {
		l := p.waiting[i]
		i++
		if m.refuseResting(l) {
			continue
		}
		after, against, ok := m.tryMove(l, from, to)
		if !ok {
			m.refuseMove(l, from, to, after, against)
			continue
		}
		m.applyMove(l, from, to, after) // It waits here no more.
		i--
		number++
	}
	return number
}
