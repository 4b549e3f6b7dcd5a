package tracedetect

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// record is what is known of a state or a run beside what the detector knows.
type record struct {
	member      int32
	holds       int32 // by the detector, one for each Start, and by tuples that wait
	incarnation uint64
	first, last uint64
	row         []scgs.Value // of its newest state
	start, end  clocksync.Interval
	ended       bool
	gone        bool // no state: the member has left for ever
}

// record files a record and returns its handle.
func (c *Core) record(r record) scgs.Ref {
	n := len(c.free)
	if n == 0 {
		c.records = append(c.records, r)
		return scgs.Ref(len(c.records) - 1)
	}
	ref := c.free[n-1]
	c.free = c.free[:n-1]
	r.row = c.records[ref].row[:0]
	c.records[ref] = r
	return ref
}

// release takes back one hold, and with the last one the record.
func (c *Core) release(ref scgs.Ref) {
	r := &c.records[ref]
	if r.holds--; r.holds == 0 {
		c.free = append(c.free, ref)
	}
}

// reset empties the state that is to be delivered.
func (c *Core) reset() {
	c.state = State{Parts: c.state.Parts[:0]}
	c.rows = c.rows[:0]
}

// add appends a record to the state that is to be delivered.
func (c *Core) add(ref scgs.Ref, open bool) {
	r := &c.records[ref]
	if r.gone {
		return
	}
	p := Part{Member: int(r.member), Incarnation: r.incarnation, First: r.first, Last: r.last, Open: open}
	c.state.Parts = append(c.state.Parts, p)
	if c.when != nil {
		c.rows = append(c.rows, r.row)
	}
}

// deliver emits the state if it is one and the condition holds on it.
func (c *Core) deliver() {
	s := &c.state
	if len(s.Parts) == 0 {
		return // All have left.
	}
	if c.o.Epochs {
		s.Epoch = 1 + uint64(len(c.members)-len(s.Parts))
	}
	if c.when != nil {
		c.judged = c.judged[:0]
		for _, p := range s.Parts {
			c.judged = append(c.judged, predicates.Member{Name: c.members[p.Member].name})
		}
		if !c.when.holds(c.judged, func(i int) []scgs.Value { return c.rows[i] }) {
			c.stats.Filtered++
			return
		}
	}
	c.stats.Emitted++
	c.emit(s)
}
