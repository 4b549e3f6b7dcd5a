package wire

import (
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// Bundle carries, over one connection, what several members have to say or are to
// be told: those of a multiplexer, the process whose connection they share. A part is
// the frame that would travel alone, and means the same. Alive says without a
// [Batch] for each member which open states still held.
//
// Upwards it travels on the State subject of the multiplexer and brings frames of
// [Hello], [Batch], [Gone], [Ack] and [Body], and Alive; downwards on its Probe and
// Signal subjects, and brings frames of the kinds that are there for members.
type Bundle struct {
	Parts []Part  // at most [MaxParts]
	Alive []Alive // at most [MaxParts]; upwards only
}

// Part is a frame of one member or for it. A decoded one shares the memory of the
// bundle's frame.
type Part struct {
	Member string // who sent it or who it is for
	Frame  []byte // at most [MaxPart] bytes; any kind but a Bundle
}

// Alive is evidence of a member. Its stamp has no domain: that is the member's, and
// the receiver knows it.
type Alive struct {
	Member      string   // whose evidence it is
	Incarnation uint64   // of the member
	Evidence    Evidence // its Seq is never 0
}

// Multiplexes reports whether a multiplexer may speak for a member: its name and a hyphen
// begin the member's.
func Multiplexes(multiplexer, member string) bool {
	rest, ok := strings.CutPrefix(member, multiplexer)
	return ok && len(rest) > 1 && rest[0] == '-'
}

// AppendBundle appends a frame with the first of the parts and, if it has all of
// them, the first of Alive, as many as fit. It returns how many of each, at least one
// if there is any; what is left needs further frames. A part of more than [MaxPart]
// bytes is refused: it has to travel alone.
func AppendBundle(dst []byte, m *Bundle) (frame []byte, parts, alive int, err error) {
	const count = 3 // bytes for the count of alive
	frame, err = encode(dst, KindBundle, func(c *coder) {
		parts = c.fit("parts", len(m.Parts), MaxParts, count, func(i int) { c.part(&m.Parts[i]) })
		rest := m.Alive
		if parts < len(m.Parts) {
			rest = nil
		}
		var run run
		alive = c.fit("alive", len(rest), MaxParts, 0, func(i int) { c.alive(&rest[i], &run) })
	})
	return frame, parts, alive, err
}

// DecodeBundle reads the frame of a Bundle into one whose slices and texts it
// reuses.
func DecodeBundle(frame []byte, into *Bundle) error {
	c := newReader(frame, KindBundle)
	into.Parts = resize(into.Parts, c.count("parts", 0, MaxParts, leastPart))
	c.each("parts", len(into.Parts), func(i int) { c.part(&into.Parts[i]) })
	into.Alive = resize(into.Alive, c.count("alive", 0, MaxParts, leastPart))
	var run run
	c.each("alive", len(into.Alive), func(i int) { c.alive(&into.Alive[i], &run) })
	return c.finish()
}

// No item of either list is shorter than this.
const leastPart = 6

func (c *coder) part(p *Part) {
	c.token("member", &p.Member)
	switch {
	case c.err != nil:
		return
	case c.writing:
		c.buf = msgp.AppendBytes(c.buf, p.Frame)
	default:
		got, rest, err := msgp.ReadBytesZC(c.buf)
		if err != nil {
			c.failRead("frame", "a string of bytes", err)
			return
		}
		p.Frame, c.buf = got, rest
	}
	c.need(len(p.Frame) <= MaxPart, "frame", tooLong(len(p.Frame), MaxPart))
	kind, fault := kindOf(p.Frame)
	switch {
	case fault != nil:
		c.fail("frame", fault.Field+": "+fault.Reason)
	case kind == KindBundle:
		c.fail("frame", "a bundle in a bundle")
	}
}

func (c *coder) alive(h *Alive, run *run) {
	c.token("member", &h.Member)
	c.uint("incarnation", &h.Incarnation)
	if !c.writing {
		h.Evidence = Evidence{}
	}
	c.evidence(&h.Evidence, run)
	c.need(h.Evidence.Seq > 0, "evidence", zeroSeq)
}
