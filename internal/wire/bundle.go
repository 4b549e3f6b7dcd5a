package wire

import (
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/gopegasus/pegasus/clocksync"
)

// Bundle carries, over one connection, messages from or to several members: the members of a
// multiplexer, which speaks for the members of a process that share their connection. A part is
// the frame that would travel alone, and means the same.
//
// Upwards it travels on the State subject of the multiplexer and brings frames of
// [Batch], [Gone], [Ack] and [Body], and then Roster and Held; downwards on its Probe and
// Signal subjects, and brings frames of the kinds that are there for members.
type Bundle struct {
	Parts  []Part  // at most [MaxParts]
	Alive  []Alive // from agents of releases before, whose multiplexers have no roster; at most [MaxParts]; upwards only
	Roster         // upwards only; Version 0: there is none
	Held           // upwards only; Of 0: there is none
}

// Part is a frame of a member or for it. A decoded one shares the memory of the bundle's frame.
type Part struct {
	Member string // who sent it or who it is for
	Frame  []byte // any kind but a Bundle; a part to send has at most [MaxPart] bytes
}

// Alive is, from agents of releases before, evidence of a member. Its stamp has no domain: that is the member's, and
// the receiver knows it.
type Alive struct {
	Member      string   // whose evidence it is
	Incarnation uint64   // of the member
	Evidence    Evidence // its Seq is never 0
}

// Roster names the members whose evidence a multiplexer gives, all at once, by [Held].
// It is repeated every heartbeat and where a [Probe] asks for it, in as many pieces as
// it takes.
type Roster struct {
	Version uint64   // larger with every change
	Total   uint64   // members in all pieces, at most [MaxListed]
	First   uint64   // how many of them are in the pieces before this one
	Listed  []Listed // of this piece
}

// Listed is a member on a [Roster].
type Listed struct {
	Member      string   `json:"member"`      // its name
	Incarnation uint64   `json:"incarnation"` // the member that is spoken for
	Seq         uint64   `json:"seq"`         // of its newest report that was sent: who lacks it can ask for it; [Held] has a sum of its own
	Regions     []Region `json:"regions"`     // open now, as in [Batch]
}

// Held is evidence that the state which each member on a roster told last still held at a
// stamp. A receiver that has taken in other reports as their newest ones must not use it, and
// Sum shows that: it is the sum of [Listed.Share], which other numbers share by a chance of
// 2^-64, even where messages have overtaken each other.
type Held struct {
	Of  uint64          // the version of the roster
	Sum uint64          // of the newest reports told
	At  clocksync.Stamp // without a domain: that is the members', and the receiver knows it
}

// Share is what the newest report of a member contributes to [Held].Sum.
func (l *Listed) Share() uint64 { return l.Seq * Weight(l.Member, l.Incarnation) }

// Weight is what each report of an incarnation of a member adds to its [Listed.Share].
func Weight(member string, incarnation uint64) uint64 {
	const prime, mix1, mix2 = 0x100000001b3, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb // of FNV-1a and SplitMix64
	h := uint64(0xcbf29ce484222325)
	for i := range len(member) {
		h = (h ^ uint64(member[i])) * prime
	}
	h += incarnation
	h = (h ^ h>>30) * mix1
	h = (h ^ h>>27) * mix2
	return h ^ h>>31 | 1
}

// Multiplexes reports whether a multiplexer without a roster may speak for a member: its
// name and a hyphen begin the member's.
func Multiplexes(multiplexer, member string) bool {
	rest, ok := strings.CutPrefix(member, multiplexer)
	return ok && len(rest) > 1 && rest[0] == '-'
}

// AppendBundle appends a frame with the first of the parts and, if it has all of them, the
// first of Alive and then of the roster, as many as fit, and Held if it has all of these. It
// returns the rest for further frames, as an empty bundle if there is nothing; every frame has
// at least something. A part of more than [MaxPart] bytes is refused: it has to travel alone.
func AppendBundle(dst []byte, m *Bundle) (frame []byte, rest Bundle, err error) {
	frame, err = encode(dst, KindBundle, func(c *coder) { rest = c.writeBundle(*m) })
	if err != nil {
		rest = *m
	}
	return frame, rest, err
}

func (c *coder) writeBundle(rest Bundle) Bundle {
	const counts, held = 3 + 1 + 3*longest + 3, 1 + 5*longest // of the entries that may follow the parts
	n := c.fitItems("parts", len(rest.Parts), MaxParts, counts+held, func(i int) { c.part(&rest.Parts[i]) })
	rest.Parts = rest.Parts[n:]
	if len(rest.Parts) > 0 {
		c.fitItems("alive", 0, 0, 0, nil)
		return rest
	}
	var run run
	n = c.fitItems("alive", len(rest.Alive), MaxParts, counts+held, func(i int) { c.alive(&rest.Alive[i], &run) })
	rest.Alive = rest.Alive[n:]
	if len(rest.Alive) > 0 || rest.Version == 0 && rest.Of == 0 {
		return rest
	}
	c.codeUint("version", &rest.Version)
	if rest.Version > 0 {
		c.rosterHead(&rest.Roster)
		n = c.fitItems("listed", len(rest.Listed), MaxParts, held, func(i int) { c.listed(&rest.Listed[i]) })
		rest.First, rest.Listed = rest.First+uint64(n), rest.Listed[n:] //nolint:gosec // It is no less than 0.
		if len(rest.Listed) > 0 {
			c.held(&Held{})
			return rest
		}
	}
	c.held(&rest.Held)
	return Bundle{}
}

// Empty reports whether there is nothing in it to be sent.
func (m *Bundle) Empty() bool {
	return len(m.Parts) == 0 && len(m.Alive) == 0 && m.Version == 0 && m.Of == 0
}

// DecodeBundle reads the frame of a Bundle into one whose slices and texts it
// reuses.
func DecodeBundle(frame []byte, into *Bundle) error {
	c := newReader(frame, KindBundle)
	into.Parts = resizeSlice(into.Parts, c.codeCount("parts", 0, MaxParts, leastPart))
	c.codeEach("parts", len(into.Parts), func(i int) { c.part(&into.Parts[i]) })
	into.Alive = resizeSlice(into.Alive, c.codeCount("alive", 0, MaxParts, leastPart))
	var run run
	c.codeEach("alive", len(into.Alive), func(i int) { c.alive(&into.Alive[i], &run) })
	into.Roster, into.Held = Roster{Listed: into.Listed[:0]}, Held{}
	if c.err == nil && len(c.buf) > 0 { // Else it is of a multiplexer without a roster, or has none to tell.
		c.codeUint("version", &into.Version)
		if into.Version > 0 {
			c.rosterHead(&into.Roster)
			into.Listed = resizeSlice(into.Listed, c.codeCount("listed", 0, MaxParts, leastPart))
			c.codeEach("listed", len(into.Listed), func(i int) { c.listed(&into.Listed[i]) })
			c.needTrue(into.First+uint64(len(into.Listed)) <= into.Total, "listed", "there are more than in all")
		}
		c.held(&into.Held)
	}
	return c.finishFrame()
}

func (c *coder) rosterHead(r *Roster) {
	c.codeUint("total", &r.Total)
	c.codeUint("first", &r.First)
	c.needTrue(r.Total <= MaxListed, "total", "a roster has at most "+strconv.Itoa(MaxListed)+" members")
	c.needTrue(r.First <= r.Total, "first", "the first number is beyond the total")
}

func (c *coder) listed(l *Listed) {
	c.codeToken("member", &l.Member)
	c.codeUint("incarnation", &l.Incarnation)
	c.codeUint("seq", &l.Seq)
	if c.writing {
		c.codeCount("regions", len(l.Regions), MaxRegions, 0)
	} else {
		l.Regions = resizeSlice(l.Regions, c.codeCount("regions", 0, MaxRegions, leastBytes))
	}
	c.codeEach("regions", len(l.Regions), func(i int) { c.codeRegion(&l.Regions[i]) })
}

// held codes the last field of a bundle, of which 0 is the shortest form.
func (c *coder) held(h *Held) {
	c.codeUint("of", &h.Of)
	if c.err != nil || h.Of == 0 {
		return
	}
	flags := boundFlagsOf(h.At.Within)
	c.codeUint("sum", &h.Sum)
	c.codeSmall("flags", &flags, 0, reportFlags)
	c.needTrue(flags&flagEnd == 0, "flags", "evidence cannot be an end")
	(&run{}).codeStamp(c, &h.At, flags)
}

// No item of either list is shorter than this.
const (
	leastPart = 4
	longest   = 9 // bytes of the longest
)

func (c *coder) part(p *Part) {
	c.codeToken("member", &p.Member)
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
	c.needTrue(!c.writing || len(p.Frame) <= MaxPart, "frame", tooLong(len(p.Frame), MaxPart)) // Releases before sent a little longer ones.
	kind, fault := kindOf(p.Frame)
	switch {
	case fault != nil:
		c.keepFault("frame", fault.Field+": "+fault.Reason)
	case kind == KindBundle:
		c.keepFault("frame", "a bundle in a bundle")
	}
}

func (c *coder) alive(h *Alive, run *run) {
	c.codeToken("member", &h.Member)
	c.codeUint("incarnation", &h.Incarnation)
	if !c.writing {
		h.Evidence = Evidence{}
	}
	c.codeEvidence(&h.Evidence, run)
	c.needTrue(h.Evidence.Seq > 0, "evidence", zeroSeq)
}
