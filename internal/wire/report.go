package wire

import "github.com/gopegasus/pegasus/scgs"

// The flags of a report, and all but the first of an evidence. They are part of
// the format.
const (
	flagEnd        = 1 << iota
	flagNoEarliest // the earliest time is unbounded and not in the frame
	flagNoLatest   // the latest time is unbounded and not in the frame

	boundFlags  = flagNoEarliest | flagNoLatest
	reportFlags = flagEnd | boundFlags
)

// report codes one report after another of a batch. Reading takes texts from
// above, the row before it, where they are the same.
func (b *BatchCodec) report(c *coder, r *Report, run *run, above []scgs.Value) {
	if b.plain && (c.writing && b.writePlain(c, r, run) || !c.writing && b.readPlain(c, r, run)) {
		return
	}
	flags := boundFlagsOf(r.At.Within)
	if r.End {
		flags |= flagEnd
	}
	run.seq(c, &r.Seq)
	c.small("flags", &flags, 0, reportFlags)
	run.inOrder(c, r.Seq)
	run.stamp(c, &r.At, flags)
	switch {
	case c.writing && !r.End:
		b.writeRow(c, r.Row)
	case c.writing:
	case flags&flagEnd != 0:
		r.End, r.Row = true, r.Row[:0]
	default:
		r.End, r.Row = false, resize(r.Row, len(b.schema))
		b.readRow(c, r.Row, above)
	}
}

// evidence codes the last field of a batch.
func (c *coder) evidence(e *Evidence, run *run) {
	c.uint("evidence", &e.Seq)
	if c.err != nil || e.Seq == 0 {
		return
	}
	flags := boundFlagsOf(e.At.Within)
	c.small("flags", &flags, 0, reportFlags)
	c.need(flags&flagEnd == 0, "flags", "evidence cannot be an end")
	run.stamp(c, &e.At, flags)
}

func (c *coder) region(r *Region) {
	c.token("name", &r.Name)
	c.uint("entry", &r.Entry)
	c.need(r.Entry > 0, "entry", "it is 0, the entries of regions count from 1")
	c.uint("since", &r.Since)
}
