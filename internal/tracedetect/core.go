package tracedetect

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/tracefile"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Core finds the global states of a trace. It must not be used by two goroutines
// at once.
type Core struct {
	o       Options
	emit    func(*State)
	index   map[string]scgs.Member
	members []member

	columns     *tracefile.Columns
	row         []scgs.Value
	where, when *condition

	in       intake
	joined   bool            // the members have joined the detector
	detector *scgs.Detector  // nil for atLeast
	sets     *scgs.Threshold // for atLeast
	records  []record        // by Ref
	free     []scgs.Ref

	event    scgs.Event
	set      scgs.Set
	parts    []scgs.Part
	released []scgs.Ref
	state    State
	rows     [][]scgs.Value // of state.Parts, for when
	judged   []predicates.Member

	// With Final: the global states that wait, and the first of them.
	now     []scgs.Ref // of each member in the newest tuple, 0 if UNKNOWN
	changed []scgs.Member
	waiting []tuple
	done    int // of waiting, that are delivered
	shown   []scgs.Ref
	loaded  bool         // shown is the next of waiting
	unended int          // states in shown that have not ended
	found   [][]scgs.Ref // the sets of atLeast

	stats Stats
}

// intake is how lines reach a detector of either kind.
type intake interface {
	Epoch(id uint64, remove []scgs.Member, add []scgs.Spec) []scgs.Member
	Start(m scgs.Member, seq uint64, at clocksync.Stamp, ref scgs.Ref) scgs.Reason
	End(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Evidence(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Restart(m scgs.Member, domain clocksync.Domain, ended clocksync.Instant) scgs.Reason
	Ended(dst []scgs.Part) []scgs.Part
	Released(dst []scgs.Ref) []scgs.Ref
}

// Line takes the next line. An error that is a *tracefile.Error says why the line is
// refused; then nothing has changed. Any other says that a condition makes no
// sense with the type of a field that became known; then nothing more is to be
// done.
func (c *Core) Line(l *tracefile.Line) error {
	id, ok := c.index[string(l.Participant)]
	if !ok {
		c.stats.NotMembers++
		return nil
	}
	m := &c.members[id]
	if m.dropped(l, &c.stats) {
		return nil
	}
	if err := m.check(l); err != nil {
		return err
	}
	if l.Type == tracefile.State && c.columns.Row(l.State, c.row) {
		if err := c.learn(); err != nil {
			return fmt.Errorf("%w\n  a field that is not declared has the type of its first value", err)
		}
	}
	c.stats.count(l)
	if c.o.Note != nil {
		c.o.Note(int(id), l, c.columns.Schema(), c.row)
	}
	if !c.joined {
		c.join(clocksync.Domain(l.Domain))
	}
	c.begin(id, m, l)
	c.take(id, m, l, m.stamp(l))
	c.pump()
	return nil
}

// Missing returns the fields that the conditions read and that no state had so
// far: a condition that needs one of them is unknown.
func (c *Core) Missing() (names []string) {
	for _, f := range c.columns.Schema() {
		if f.Type == scgs.Invalid && !slices.Contains(ownNames, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Rounded returns the fields that the conditions read and that had a whole number which
// no float holds exactly: their value was unknown there.
func (c *Core) Rounded() []string { return c.columns.Rounded() }

// Absent returns the members of which no line was taken so far.
func (c *Core) Absent() (names []string) {
	for i := range c.members {
		if c.members[i].incarnation == 0 {
			names = append(names, c.members[i].name)
		}
	}
	return names
}

// ownNames are those of a member that are no fields of its state.
var ownNames = []string{"name", "host", "online"}

// Finish tells that there are no more lines. What waits is emitted.
func (c *Core) Finish() {
	if c.detector != nil {
		c.detector.Finish()
	}
	c.pump()
	c.Flush()
}

// Flush emits what is certain and waits for its end, where the lines to come
// cannot be read. Nothing more is to be done then.
func (c *Core) Flush() {
	c.advance(true)
	c.flushSets()
}

// begin begins the incarnation of the line, if it is another one.
func (c *Core) begin(id scgs.Member, m *member, l *tracefile.Line) {
	if l.Incarnation == m.incarnation {
		return
	}
	first := m.incarnation == 0
	m.incarnation, m.left, m.seen, m.open = l.Incarnation, false, seen{gaps: m.seen.gaps[:0]}, 0
	if string(l.Domain) != string(m.domain) {
		m.move(clocksync.Domain(l.Domain))
	} else if first {
		return
	}
	if !first {
		c.stats.Restarts++
	}
	c.must(c.in.Restart(id, m.domain, l.Within.Latest), m, l)
}

// take hands a line to the detector.
func (c *Core) take(id scgs.Member, m *member, l *tracefile.Line, at clocksync.Stamp) {
	if next := m.seen.newest + 1; l.Seq > next || l.Seq == next && l.Type == tracefile.Alive {
		c.gap(m, l)
	}
	switch l.Type {
	case tracefile.Alive:
		if why := c.in.Evidence(id, l.Seq, at); why != scgs.Stale { // Nothing is known to hold.
			c.must(why, m, l)
		}
		m.seen.miss(l.Seq)
		if m.open != 0 {
			c.records[m.open].end = at.Within
		}
	case tracefile.State:
		if c.where == nil || c.holds(m) {
			c.start(id, m, l, at)
		} else {
			c.must(c.in.End(id, l.Seq, at), m, l)
			m.open = 0
		}
		m.seen.add(l.Seq)
	case tracefile.Leave:
		c.leave(id, m, l, at)
		m.seen.add(l.Seq)
	}
	m.note(l)
}

// gap counts a loss. Before the first line nothing is known to be lost.
func (c *Core) gap(m *member, l *tracefile.Line) {
	m.open = 0
	if m.seen.newest == 0 {
		return
	}
	c.stats.Gaps++
	c.stats.Lost += l.Seq - m.seen.newest
	if l.Type != tracefile.Alive {
		c.stats.Lost--
	}
}

// start begins a state, or continues with a run.
func (c *Core) start(id scgs.Member, m *member, l *tracefile.Line, at clocksync.Stamp) {
	if m.open == 0 || !c.o.runs() {
		m.open = c.record(record{member: int32(id), incarnation: l.Incarnation, first: l.Seq, start: at.Within})
	}
	r := &c.records[m.open]
	r.last, r.end = l.Seq, at.Within
	r.row = append(r.row[:0], c.row...)
	r.holds++
	c.must(c.in.Start(id, l.Seq, at, m.open), m, l)
}

// leave ends the member's state. With epochs being gone is what follows, as a
// state that takes the next number and lasts for ever.
func (c *Core) leave(id scgs.Member, m *member, l *tracefile.Line, at clocksync.Stamp) {
	c.must(c.in.End(id, l.Seq, at), m, l)
	m.open, m.left = 0, true
	if !c.o.Epochs {
		return
	}
	m.gone = true
	forever := clocksync.Exactly(clocksync.MaxInstant)
	ref := c.record(record{member: int32(id), start: at.Within, end: forever, gone: true, holds: 1})
	c.must(c.in.Start(id, l.Seq+1, at, ref), m, l)
	c.must(c.in.Evidence(id, l.Seq+1, clocksync.Stamp{Domain: m.domain, Mono: clocksync.MaxInstant, Within: forever}), m, l)
}

// holds judges the condition on the member's newest state, which is in row.
func (c *Core) holds(m *member) bool {
	c.judged = append(c.judged[:0], predicates.Member{Name: m.name})
	return c.where.holds(c.judged, func(int) []scgs.Value { return c.row })
}

// must panics if the detector refuses what has passed all checks.
func (c *Core) must(why scgs.Reason, m *member, l *tracefile.Line) {
	if why != scgs.Accepted {
		panic(fmt.Sprintf("tracedetect: %s: %v, of member %+v by line %+v", m.title(), why, *m, *l))
	}
}

// pump takes out what has become certain.
func (c *Core) pump() {
	if c.sets != nil {
		c.pumpSets()
	} else {
		c.pumpTuples()
	}
	if c.o.Final {
		c.parts = c.in.Ended(c.parts[:0])
		for i := range c.parts {
			c.ended(&c.parts[i])
		}
		c.advance(false)
	}
	c.released = c.in.Released(c.released[:0])
	for _, ref := range c.released {
		c.release(ref)
	}
}

// pumpTuples takes out the tuples that have become certain.
func (c *Core) pumpTuples() {
	for c.detector.Next(&c.event) {
		if c.event.Kind != scgs.Opened {
			continue
		}
		if c.o.Final {
			c.keep()
		}
		switch {
		case c.event.Partial:
			c.stats.Partial++
		case c.o.Final:
			c.queue()
		default:
			c.reset()
			c.parts = c.detector.Witness(c.parts[:0])
			for _, p := range c.parts {
				c.add(p.Ref, p.Open)
			}
			c.fill(&c.event.Span)
			c.deliver()
		}
	}
}
