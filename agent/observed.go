package agent

import (
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/reading"
)

// watchObserve follows Config.Observe until it has to stop.
func (m *Member) watchObserve() (stop func()) {
	if m.cfg.Observe == nil {
		return func() {}
	}
	return m.cfg.Observe.Watch(m.observed)
}

// observed takes a reading: the state that there is goes over to one with it.
func (m *Member) observed(r reading.Reading) {
	var l *level
	defer func() { l.runDue() }()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading, l = r, m.level
	if m.closed {
		return
	}
	if _, err := m.refillState(); err != nil {
		m.log.Warn("observed values cannot be reported", "member", m.cfg.Name, "error", err)
	}
}

// refillState asks the providers again. If a value has changed, a new state begins, which is the present one
// with the new values; refill reports whether that was so. The lock is held.
func (m *Member) refillState() (changed bool, err error) {
	if l := m.level; l != nil && l.summary {
		l.awaitRoom()
		row, ok := l.state.Again(l.plan.Process)
		if !ok || m.closed {
			return false, nil
		}
		return true, l.setRow(row)
	}
	if m.state.Type() == nil { // Else a state was set, so the declaration is there.
		return false, nil
	}
	row, ok := m.state.Again(m.core.Codec().Schema())
	if !ok {
		return false, nil
	}
	return true, m.setRow(row)
}

// noteReading takes a reading of the node: power goes by the cores of the processor.
func (p *processor) noteReading(r reading.Reading) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.reading = &r
	changed := p.fillRow()
	if _, open := p.m.core.Start(); !changed || !open || p.m.closed {
		return // The first phase tells it.
	}
	if err := p.tellRow(); err != nil {
		p.m.log.Warn("observed values cannot be reported", "member", p.m.cfg.Name, "error", err)
	}
}

// fillRow fills the row, and reports whether that has changed it. The lock is held.
func (p *processor) fillRow() (changed bool) {
	if p.reading == nil {
		return false
	}
	r, n := *p.reading, p.node
	part := 1 / float64(n.cfg.Processors)
	if r.Cores > 0 {
		part = min(part, float64(n.cfg.Cores)/float64(r.Cores))
	}
	r.Power *= part
	r.Quota *= part
	return gostate.Observe(p.declaredBlocks(), p.row, &r)
}
