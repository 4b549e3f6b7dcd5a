package wire

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
)

// DecodeOutline reads of the frame of a batch what a listener understands that does
// not know its schema: the member, its incarnation, Again, Leaving and the Regions.
// The rest of the batch is left empty, and what stands in the frame for it is not
// looked at. The slices and texts of the batch are reused, as in
// [BatchCodec.Decode].
func DecodeOutline(frame []byte, into *Batch) error {
	c := newReader(frame, KindBatch)
	if c.err == nil {
		c.outline(into, frame[1] == byte(batchInColumns))
	}
	if c.err != nil {
		into.Member = ""
		return c.err
	}
	return nil
}

func (c *coder) outline(m *Batch, columns bool) {
	m.Reports, m.Regions = m.Reports[:0], m.Regions[:0]
	m.Evidence, m.Tagged, m.Quality, m.Trace = Evidence{}, false, clocksync.Quality{}, control.Trace{}
	if columns {
		if flags, _ := c.readHead(m); c.err == nil && flags&flagRegions != 0 {
			c.readRegions(m)
		}
		return
	}
	c.rowsHead(m)
	end := c.readBehind(c.rowsFlags(m))
	switch {
	case c.err != nil:
	case end >= 0:
		c.buf = c.buf[len(c.buf)-end:]
		c.readRegions(m)
	case c.codeCount("reports", 0, MaxReports, leastBytes) == 0: // Else their place would be told.
		c.readRegions(m)
	}
}

func (c *coder) readRegions(m *Batch) {
	m.Regions = resizeSlice(m.Regions, c.codeCount("regions", 0, MaxRegions, leastBytes))
	c.codeEach("regions", len(m.Regions), func(i int) { c.codeRegion(&m.Regions[i]) })
}

// readBehind reads the length of reports in rows, if it is there, and returns how many
// bytes follow them; else -1.
func (c *coder) readBehind(flags uint8) int {
	if flags&flagBehind == 0 {
		return -1
	}
	var length uint64
	c.codeUint("length", &length)
	if c.err == nil && length > uint64(len(c.buf)) {
		c.keepFault("length", "the frame ends inside the reports")
	}
	if c.err != nil {
		return -1
	}
	return len(c.buf) - int(length)
}
