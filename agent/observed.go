package agent

import (
	"slices"

	"github.com/gopegasus/pegasus/observe"
	"github.com/gopegasus/pegasus/scgs"
)

// observable reports whether a declared field is one that observation fills.
func observable(f scgs.Field) bool {
	return f.Type == scgs.Float && slices.Contains(observe.Fields(), f.Name)
}

// observedValue is what a field has by a reading: its default where that is not known.
func observedValue(f scgs.Field, r *observe.Reading) scgs.Value {
	if v, known := r.Field(f.Name); known {
		return scgs.FloatValue(v)
	}
	return f.Default
}

// observe fills the fields of a row that the program does not, and reports whether
// that has changed one.
func (e *encoder) observe(row []scgs.Value, r *observe.Reading) (changed bool) {
	if r == nil {
		return false
	}
	for i, f := range e.declared {
		if e.columns[i].goName == "" && observable(f) {
			v := observedValue(f, r)
			changed = changed || v != row[i]
			row[i] = v
		}
	}
	return changed
}

// watch follows Config.Observe until it is told to stop.
func (m *Member) watch() (stop func()) {
	if m.cfg.Observe == nil {
		return func() {}
	}
	m.state.observed = &m.reading
	return m.cfg.Observe.Watch(m.observed)
}

// observed takes a reading: the state that there is goes over to one with it.
func (m *Member) observed(r observe.Reading) {
	var l *level
	defer func() { l.runDue() }()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading, l = r, m.level
	if m.closed {
		return
	}
	var err error
	if l != nil && l.summary {
		l.await()
		if row, ok := l.state.again(l.plan.Process); ok && !m.closed {
			err = l.setRow(row)
		}
	} else if m.state.encoder != nil { // A state was set, so the declaration is there.
		if row, ok := m.state.again(m.core.Codec().Schema()); ok {
			err = m.setRow(row)
		}
	}
	if err != nil {
		m.log.Warn("what was observed cannot be told", "member", m.cfg.Name, "error", err)
	}
}

// observed takes a reading of the node: power goes by the cores of the processor.
func (p *processor) observed(r observe.Reading) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.reading = &r
	changed := p.observe()
	if _, open := p.m.core.Start(); !changed || !open || p.m.closed {
		return // The first phase tells it.
	}
	if err := p.tell(); err != nil {
		p.m.log.Warn("what was observed cannot be told", "member", p.m.cfg.Name, "error", err)
	}
}

// observe fills the row, and reports whether that has changed it. The lock is held.
func (p *processor) observe() (changed bool) {
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
	for i, f := range p.declared() {
		if observable(f) {
			v := observedValue(f, &r)
			changed = changed || v != p.row[i]
			p.row[i] = v
		}
	}
	return changed
}
