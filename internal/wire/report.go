package wire

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// The flags of a report in a row, and all but the first of an evidence. They are part
// of the format.
const (
	flagEnd        = 1 << iota
	flagNoEarliest // the earliest time is unbounded and not in the frame
	flagNoLatest   // the latest time is unbounded and not in the frame

	boundFlags  = flagNoEarliest | flagNoLatest
	reportFlags = flagEnd | boundFlags
)

// readRows reads a batch of releases before: one report after another, whose numbers and values
// are written as in other messages.
func (b *BatchCodec) readRows(c *coder, domain clocksync.Domain, m *Batch) {
	c.rowsHead(m)
	if c.err != nil || !b.checkSchema(c, m) {
		return
	}
	flags := c.rowsFlags(m)
	end := c.readBehind(flags)
	var run run
	var above []scgs.Value
	n, fields := c.codeCount("reports", 0, MaxReports, leastBytes), len(b.schema)
	m.Reports, m.values = resizeSlice(m.Reports, n), resizeSlice(m.values, n*fields)
	c.codeEach("reports", n, func(i int) {
		r := &m.Reports[i]
		r.At.Domain, r.Row = domain, m.values[i*fields:(i+1)*fields:(i+1)*fields]
		if b.report(c, r, &run, above); !r.End {
			above = r.Row
		}
	})
	c.needTrue(end < 0 || len(c.buf) == end, "length", "the reports have another one")
	c.readRegions(m)
	m.Evidence = Evidence{At: clocksync.Stamp{Domain: domain}}
	c.codeEvidence(&m.Evidence, &run)
	if m.Evidence.Seq == 0 {
		m.Evidence.At = clocksync.Stamp{}
	}
	m.Tagged = flags&flagTagged != 0
	m.Quality = clocksync.Quality{}
	if m.Tagged {
		c.codeTag(&m.Quality)
	}
	m.Trace = control.Trace{}
	c.codeTrace(&m.Trace, flags&flagTraced != 0)
}

// The flags of a batch in rows are the first four of a batch in columns, and this.
const (
	flagBehind   = flagTraced << 1 // the length of the reports stands before them, since regions follow
	rowsMaxFlags = flagBehind<<1 - 1
)

// No report in a row and no region is shorter than this.
const leastBytes = 3

// rowsHead reads what a batch in rows begins with.
func (c *coder) rowsHead(m *Batch) {
	c.codeToken("member", &m.Member)
	c.codeUint("incarnation", &m.Incarnation)
	c.codeUint("schema", &m.Schema)
}

func (c *coder) rowsFlags(m *Batch) (flags uint8) {
	c.codeSmall("flags", &flags, 0, rowsMaxFlags)
	m.Again, m.Leaving = flags&flagAgain != 0, flags&flagLeaving != 0
	return flags
}

// report reads one report after another. Texts are taken from above, the row before it,
// where they are the same.
func (b *BatchCodec) report(c *coder, r *Report, run *run, above []scgs.Value) {
	var step uint64
	var flags uint8
	c.codeUint("seq", &step)
	c.codeSmall("flags", &flags, 0, reportFlags)
	r.Seq = run.last + step
	c.inOrder(r.Seq, &run.last)
	run.codeStamp(c, &r.At, flags)
	if r.End = flags&flagEnd != 0; r.End {
		r.Row = r.Row[:0:0]
		return
	}
	b.readRow(c, r.Row, above)
}

// codeEvidence codes evidence, which a batch in rows has last.
func (c *coder) codeEvidence(e *Evidence, run *run) {
	c.codeUint("evidence", &e.Seq)
	if c.err != nil || e.Seq == 0 {
		return
	}
	flags := boundFlagsOf(e.At.Within)
	c.codeSmall("flags", &flags, 0, reportFlags)
	c.needTrue(flags&flagEnd == 0, "flags", "evidence cannot be an end")
	run.codeStamp(c, &e.At, flags)
}

func (c *coder) codeRegion(r *Region) {
	c.codeToken("name", &r.Name)
	c.codeUint("entry", &r.Entry)
	c.needTrue(r.Entry > 0, "entry", "the entry is 0: the entries of regions count from 1")
	c.codeUint("since", &r.Since)
}
