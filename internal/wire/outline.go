package wire

import (
	"encoding/binary"

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
		c.outline(into)
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *coder) outline(m *Batch) {
	flags := uint8(0)
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	c.uint("schema", &m.Schema)
	c.small("flags", &flags, 0, batchFlags)
	m.Again, m.Leaving = flags&flagAgain != 0, flags&flagLeaving != 0
	m.Reports, m.Evidence, m.Tagged, m.Quality, m.Trace = m.Reports[:0], Evidence{}, false, clocksync.Quality{}, control.Trace{}
	end := c.behind(flags)
	switch {
	case c.err != nil:
	case end >= 0:
		c.buf = c.buf[len(c.buf)-end:]
	case c.count("reports", 0, MaxReports, leastBytes) > 0:
		m.Regions = m.Regions[:0] // Else their place would be told.
		return
	}
	c.readRegions(m)
}

func (c *coder) readRegions(m *Batch) {
	m.Regions = resize(m.Regions, c.count("regions", 0, MaxRegions, leastBytes))
	c.each("regions", len(m.Regions), func(i int) { c.region(&m.Regions[i]) })
}

const uint16Code = 0xcd // of a number in two bytes, as MessagePack has it

// reserve keeps the place of the reports' length, which [coder.fill] writes when it
// is known. It returns the place, or -1.
func (c *coder) reserve(there bool) int {
	if !there || c.err != nil {
		return -1
	}
	c.buf = append(c.buf, uint16Code, 0, 0)
	return len(c.buf)
}

func (c *coder) fill(place int) {
	if place >= 0 && c.err == nil {
		binary.BigEndian.PutUint16(c.buf[place-2:], uint16(len(c.buf)-place))
	}
}

// behind reads the length of the reports, if it is there, and returns how many
// bytes follow them; else -1.
func (c *coder) behind(flags uint8) int {
	if flags&flagBehind == 0 {
		return -1
	}
	var length uint64
	c.uint("length", &length)
	if c.err == nil && length > uint64(len(c.buf)) {
		c.fail("length", "the frame ends inside the reports")
	}
	if c.err != nil {
		return -1
	}
	return len(c.buf) - int(length)
}
