package wire

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// BatchCodec encodes and decodes the batches whose rows have one schema. It does
// not change and may be used by several goroutines at once.
//
// A batch is written in columns: first who reports, then the parts that are seldom there, then
// the stamps of all reports ([coder.writeStamps]), then each field of all rows
// ([BatchCodec.writeColumns]), in the order of the schema, without names and types; an enum's
// word travels as its place in the declared list. Stamps have no domain: that is the member's,
// and the receiver knows it. All numbers are little-endian:
//
//	version, layout, bytes of the name  1 byte each
//	name of the member
//	incarnation, hash of the schema     8 bytes each
//	flags                               1 byte
//	number of reports                   2 bytes
//	regions, quality, trace context     as in other messages, where the flags say so
//	seq of the evidence                 8 bytes, where it is not that of the last report
//	stamps, ends, fields                columns
//
// Releases before wrote one report after another ([BatchCodec.readRows]). That is
// still read.
type BatchCodec struct {
	schema scgs.Schema
	types  []scgs.Type // of its fields: together, since they are looked at with each frame
	hash   uint64
	words  [][]scgs.Value // by field: what a byte stands for, of an enum or a bool
}

// NewBatchCodec makes the codec of a valid schema, which must not change
// afterwards.
func NewBatchCodec(schema scgs.Schema) *BatchCodec {
	b := &BatchCodec{schema: schema, hash: schema.Hash(), words: make([][]scgs.Value, len(schema))}
	for i, f := range schema {
		b.types = append(b.types, f.Type)
		switch f.Type { //nolint:exhaustive // The others have values without end.
		case scgs.Bool:
			b.words[i] = []scgs.Value{scgs.BoolValue(false), scgs.BoolValue(true)}
		case scgs.Enum:
			for _, word := range f.Words {
				b.words[i] = append(b.words[i], scgs.EnumValue(word))
			}
		}
	}
	return b
}

// Schema is the schema of the rows.
func (b *BatchCodec) Schema() scgs.Schema { return b.schema }

// Hash is the schema's hash, which every batch names.
func (b *BatchCodec) Hash() uint64 { return b.hash }

// The flags of a batch. They are part of the format.
const (
	flagAgain = 1 << iota
	flagLeaving
	flagTagged
	flagTraced
	flagRegions  // there are any
	flagEnds     // some of the reports are ends
	flagEvidence // there is evidence
	flagOfLast   // it is of the last report
)

// Append appends a frame with the first n of the reports: all if they fit, else half of
// them or less, at least one. A frame that does not hold them all has neither
// Leaving nor Evidence nor Quality, since these speak of the end of the batch, and only the
// regions known to be open where it stops; the rest needs further frames.
//
// Batch.Schema and the domains of the stamps are not looked at. What a decoder
// would refuse is refused, and dst then returned as it was.
func (b *BatchCodec) Append(dst []byte, m *Batch) (frame []byte, n int, err error) {
	return b.AppendUpTo(dst, m, MaxReports)
}

// AppendUpTo is [BatchCodec.Append] for a frame with at most so many reports,
// which must be positive.
func (b *BatchCodec) AppendUpTo(dst []byte, m *Batch, most int) (frame []byte, n int, err error) {
	var c coder
	c.kind, c.writing, c.start, c.buf = KindBatch, true, len(dst), dst
	n = min(len(m.Reports), most, MaxReports)
	for b.write(&c, m, n); n > 1 && c.err == nil && c.size() > MaxFrameBytes; b.write(&c, m, n) {
		n, c.buf = n/2, c.buf[:len(dst)] // Columns cannot be cut: what fits is tried.
	}
	if err := c.finishFrame(); err != nil {
		return dst, 0, err
	}
	return c.buf, n, nil
}

// write writes the first n of the reports and what goes with them. It may give up
// where the frame is too long.
func (b *BatchCodec) write(c *coder, m *Batch, n int) {
	if !isToken(m.Member) {
		c.codeToken("member", &m.Member)
		return
	}
	reports, whole := m.Reports[:n], n == len(m.Reports)
	flags, upTo := uint8(0), uint64(math.MaxUint64)
	var evidence *clocksync.Stamp
	if m.Again {
		flags = flagAgain
	}
	if whole && m.Leaving {
		flags |= flagLeaving
	}
	if whole && m.Tagged {
		flags |= flagTagged
	}
	if binary.LittleEndian.Uint64(m.Trace[16:]) != 0 && m.Trace.Valid() { // The first is quick, and there seldom is one.
		flags |= flagTraced
	}
	if len(m.Regions) > 0 {
		flags |= flagRegions
	}
	switch {
	case !whole:
		upTo = reports[n-1].Seq
	case m.Evidence.Seq > 0:
		evidence = &m.Evidence.At
		if flags |= flagEvidence; n > 0 && reports[n-1].Seq == m.Evidence.Seq {
			flags |= flagOfLast
		}
	}
	place := len(c.buf)
	buf := makeRoom(c.buf, 3+len(m.Member)+headBytes)
	buf[place], buf[place+1], buf[place+2] = Version, byte(batchInColumns), byte(len(m.Member))
	place += 3 + copy(buf[place+3:], m.Member)
	binary.LittleEndian.PutUint64(buf[place:], m.Incarnation)
	binary.LittleEndian.PutUint64(buf[place+8:], b.hash)
	place += 2 * 8
	binary.LittleEndian.PutUint16(buf[place+1:], uint16(n)) //nolint:gosec // At most [MaxReports].
	buf[place], c.buf = flags, buf[:place+3]
	if flags&(flagRegions|flagTagged|flagTraced) != 0 {
		if flags&flagRegions != 0 {
			c.writeRegions(m.Regions, upTo)
		}
		if flags&flagTagged != 0 {
			c.codeTag(&m.Quality)
		}
		c.codeTrace(&m.Trace, flags&flagTraced != 0)
		if c.err != nil {
			return
		}
	}
	if flags&(flagEvidence|flagOfLast) == flagEvidence {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, m.Evidence.Seq)
	}
	ends, ok := c.writeStamps(reports, evidence, len(b.schema))
	if ends > 0 {
		c.buf[place] |= flagEnds
		c.writeEnds(reports)
	}
	if !ok || !b.writeColumns(c, reports, n-ends) {
		b.blame(c, reports, evidence)
	}
}

// blame names the fault of the first of the reports or the evidence that cannot be written.
func (b *BatchCodec) blame(c *coder, reports []Report, evidence *clocksync.Stamp) {
	last := uint64(0)
	c.codeEach("reports", len(reports), func(i int) {
		r := &reports[i]
		c.inOrder(r.Seq, &last)
		c.checkPossible(r.At.Mono, r.At.Within)
		if !r.End {
			b.rowFault(c, r.Row)
		}
	})
	if evidence != nil && c.err == nil {
		c.checkPossible(evidence.Mono, evidence.Within)
	}
}

// codeTag codes a quality but for its timeline.
func (c *coder) codeTag(q *clocksync.Quality) {
	c.codeText("quality", &q.Source, MaxHostBytes)
	c.codeBool("assumed", &q.Assumed)
	c.codeStanding(q)
}

// writeRegions writes the regions that were entered up to the state last.
func (c *coder) writeRegions(regions []Region, last uint64) {
	n := 0
	for i := range regions {
		if regions[i].Since <= last {
			n++
		}
	}
	c.codeCount("regions", n, MaxRegions, 0)
	c.codeEach("regions", len(regions), func(i int) {
		if regions[i].Since <= last {
			c.codeRegion(&regions[i])
		}
	})
}

// Decode reads a frame into a batch whose slices, rows and texts it reuses: once
// they have grown, nothing is allocated. Whatever is kept of the batch must be
// copied before it is decoded into again; copying a row is enough, since values
// do not change. An End has an empty row. The stamps get the given domain, the
// member's. Where the batch has the Member of the frame already, it is taken for a
// valid name.
//
// A batch that names another schema is refused with [ErrSchema]. After any error
// the batch holds nothing of use, and no Member.
func (b *BatchCodec) Decode(frame []byte, domain clocksync.Domain, into *Batch) error {
	var c coder
	if len(frame) > 2 && len(frame) <= MaxFrameBytes && frame[0] == Version && frame[1] == byte(batchInColumns) {
		c.kind, c.buf = KindBatch, frame[2:]
		b.read(&c, frame, domain, into)
	} else if c = newReader(frame, KindBatch); c.err == nil {
		b.readRows(&c, domain, into)
	}
	err := c.finishFrame()
	if err != nil {
		into.Member = "" // It may be no name.
	}
	return err
}

func (b *BatchCodec) read(c *coder, frame []byte, domain clocksync.Domain, m *Batch) {
	flags, n := c.readHead(m)
	if c.err != nil || !b.checkSchema(c, m) {
		return
	}
	m.Regions = m.Regions[:0]
	m.Trace = control.Trace{} // Alone, so that it is no copy.
	if m.Tagged || flags&flagTagged != 0 {
		m.Tagged, m.Quality = flags&flagTagged != 0, clocksync.Quality{}
	}
	if flags&(flagRegions|flagTagged|flagTraced) != 0 {
		if flags&flagRegions != 0 {
			c.readRegions(m)
		}
		if m.Tagged {
			c.codeTag(&m.Quality)
		}
		c.codeTrace(&m.Trace, flags&flagTraced != 0)
		if c.err != nil {
			return
		}
	}
	switch flags & (flagEvidence | flagOfLast) {
	case 0:
		m.Evidence = Evidence{}
	case flagEvidence:
		if len(c.buf) < 8 {
			c.keepFault("evidence", cut)
			return
		}
		m.Evidence.Seq, c.buf = binary.LittleEndian.Uint64(c.buf), c.buf[8:]
		c.needTrue(m.Evidence.Seq > 0, "evidence", zeroSeq)
	case flagOfLast:
		c.keepFault("flags", "there is no evidence to be of the last report")
	}
	if n > len(c.buf) { // Each takes a byte at least, for its reading.
		c.keepFault("reports", cut)
	}
	if c.err != nil {
		return
	}
	m.Reports = resizeSlice(m.Reports, n)
	m.values = resizeSlice(m.values, n*len(b.schema))
	at := c.readStamps(frame, domain, m, flags&flagEvidence != 0, len(b.schema))
	if c.err != nil {
		return
	}
	if flags&flagOfLast != 0 {
		if n == 0 {
			c.keepFault("evidence", "the evidence is for the last report, and there is no report")
			return
		}
		m.Evidence.Seq = m.Reports[n-1].Seq
	}
	if flags&flagEnds != 0 {
		if at, n = c.readEnds(frame, at, m, len(b.schema)); c.err != nil {
			return
		}
	}
	if n > 0 {
		at = b.readColumns(c, frame, at, m.values, n)
	}
	if c.err == nil {
		c.buf = frame[at:]
	}
}

// headBytes is how long what follows the name is: incarnation, hash, flags, number.
const headBytes = 2*8 + 3

// readHead reads what a batch in columns begins with.
func (c *coder) readHead(m *Batch) (flags uint8, reports int) {
	size := 0
	if len(c.buf) > 0 {
		size = int(c.buf[0])
	}
	if len(c.buf) < 1+size+headBytes {
		c.keepFault("member", cut)
		return 0, 0
	}
	name, fixed := c.buf[1:1+size], c.buf[1+size:1+size+headBytes]
	c.buf = c.buf[1+size+headBytes:]
	if m.Member != string(name) || size == 0 {
		if size > MaxTokenBytes || !isToken(string(name)) {
			c.keepFault("member", strconv.Quote(string(name))+": "+tokenRule)
			return 0, 0
		}
		m.Member = string(name)
	}
	m.Incarnation = binary.LittleEndian.Uint64(fixed)
	m.Schema = binary.LittleEndian.Uint64(fixed[8:])
	flags = fixed[16]
	m.Again, m.Leaving = flags&flagAgain != 0, flags&flagLeaving != 0
	if reports = int(binary.LittleEndian.Uint16(fixed[17:])); reports > MaxReports {
		c.keepFault("reports", tooMany(reports, MaxReports))
	}
	return flags, reports
}

// checkSchema refuses a batch of another schema.
func (b *BatchCodec) checkSchema(c *coder, m *Batch) bool {
	if m.Schema == b.hash {
		return true
	}
	c.keepFault("schema", "the rows have another one than this side expects: introduce the member again")
	c.err.Err = ErrSchema
	return false
}

// resizeSlice keeps what the items beyond the old length hold, for reuse.
func resizeSlice[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}
