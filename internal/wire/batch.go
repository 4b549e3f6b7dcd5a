package wire

import (
	"math"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// BatchCodec encodes and decodes the batches whose rows have one schema. It does
// not change and may be used by several goroutines at once.
//
// The rows of a batch are positional: the values of the schema's fields in its
// order, without names and types; an enum's word travels as its place in the
// declared list. A stamp is written as its difference from the one before it in
// the batch, without its domain: that is the member's, and the receiver knows it.
type BatchCodec struct {
	schema scgs.Schema
	hash   uint64
	plain  bool
}

// NewBatchCodec makes the codec of a valid schema, which must not change
// afterwards.
func NewBatchCodec(schema scgs.Schema) *BatchCodec {
	return &BatchCodec{schema: schema, hash: schema.Hash(), plain: isPlain(schema)}
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
	flagBehind // the length of the reports stands before them, since regions follow
	batchFlags = flagAgain | flagLeaving | flagTagged | flagTraced | flagBehind
)

// No report and no region is shorter than this.
const leastBytes = 3

// Append appends a frame with the first n of the reports, as many as fit: at
// least one if there are any. A frame that does not hold them all has neither
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
	c := newWriter(dst, KindBatch)
	n = b.write(&c, m, min(most, MaxReports))
	if err := c.finish(); err != nil {
		return dst, 0, err
	}
	return c.buf, n, nil
}

func (b *BatchCodec) write(c *coder, m *Batch, most int) int {
	hash, flags := b.hash, uint8(0)
	if m.Again {
		flags |= flagAgain
	}
	if m.Trace.Valid() {
		flags |= flagTraced
	}
	if len(m.Reports) > 0 && len(m.Regions) > 0 {
		flags |= flagBehind
	}
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	c.uint("schema", &hash)
	c.small("flags", &flags, 0, batchFlags)
	place := len(c.buf) - 1
	length := c.reserve(flags&flagBehind != 0)
	var run run
	n := c.fit("reports", len(m.Reports), most, tailBytes(m), func(i int) {
		b.report(c, &m.Reports[i], &run, nil)
	})
	c.fill(length)
	if n < len(m.Reports) && c.err == nil {
		c.writeRegions(m.Regions, m.Reports[n-1].Seq)
		c.evidence(&Evidence{}, &run)
		c.trace(&m.Trace, flags&flagTraced != 0)
		return n
	}
	if m.Leaving && c.err == nil {
		c.buf[place] |= flagLeaving
	}
	c.writeRegions(m.Regions, math.MaxUint64)
	c.evidence(&m.Evidence, &run)
	if m.Tagged && c.err == nil {
		c.buf[place] |= flagTagged
		c.tag(&m.Quality)
	}
	c.trace(&m.Trace, flags&flagTraced != 0)
	return n
}

// tag codes a quality but for its timeline.
func (c *coder) tag(q *clocksync.Quality) {
	c.text("quality", &q.Source, MaxHostBytes)
	c.bool("assumed", &q.Assumed)
	c.standing(q)
}

// writeRegions writes the regions that were entered up to the state last.
func (c *coder) writeRegions(regions []Region, last uint64) {
	n := 0
	for i := range regions {
		if regions[i].Since <= last {
			n++
		}
	}
	c.count("regions", n, MaxRegions, 0)
	c.each("regions", len(regions), func(i int) {
		if regions[i].Since <= last {
			c.region(&regions[i])
		}
	})
}

// tailBytes bounds what follows the reports of a frame.
func tailBytes(m *Batch) int {

	size := 3 + number + 1 + 3*number // the count of the regions, the evidence
	if m.Tagged {
		size += 2 + len(m.Quality.Source) + 1 + 1 + 1 + number
	}
	if m.Trace.Valid() {
		size += traceBytes
	}
	for i := range m.Regions {
		size += 2 + len(m.Regions[i].Name) + 2*number
	}
	return size
}

// Decode reads a frame into a batch whose slices, rows and texts it reuses: once
// they have grown, nothing is allocated. Whatever is kept of the batch must be
// copied before it is decoded into again; copying a row is enough, since values
// do not change. An End has an empty row. The stamps get the given domain, the
// member's.
//
// A batch that names another schema is refused with [ErrSchema]. After any error
// the batch holds nothing of use.
func (b *BatchCodec) Decode(frame []byte, domain clocksync.Domain, into *Batch) error {
	c := newReader(frame, KindBatch)
	if c.err == nil {
		b.read(&c, domain, into)
	}
	return c.finish()
}

func (b *BatchCodec) read(c *coder, domain clocksync.Domain, m *Batch) {
	flags := uint8(0)
	c.token("member", &m.Member)
	c.uint("incarnation", &m.Incarnation)
	c.uint("schema", &m.Schema)
	if c.err == nil && m.Schema != b.hash {
		c.fail("schema", "the rows have another one than this side expects: introduce the member again")
		c.err.Err = ErrSchema
		return
	}
	c.small("flags", &flags, 0, batchFlags)
	m.Again, m.Leaving = flags&flagAgain != 0, flags&flagLeaving != 0

	end := c.behind(flags)
	var run run
	var above []scgs.Value
	m.Reports = resize(m.Reports, c.count("reports", 0, MaxReports, leastBytes))
	c.each("reports", len(m.Reports), func(i int) {
		r := &m.Reports[i]
		r.At.Domain = domain
		if b.report(c, r, &run, above); !r.End {
			above = r.Row
		}
	})
	c.need(end < 0 || len(c.buf) == end, "length", "the reports have another one")
	c.readRegions(m)
	m.Evidence = Evidence{At: clocksync.Stamp{Domain: domain}}
	c.evidence(&m.Evidence, &run)
	if m.Evidence.Seq == 0 {
		m.Evidence.At = clocksync.Stamp{}
	}
	m.Tagged = flags&flagTagged != 0
	m.Quality = clocksync.Quality{}
	if m.Tagged {
		c.tag(&m.Quality)
	}
	m.Trace = control.Trace{}
	c.trace(&m.Trace, flags&flagTraced != 0)
}

// resize keeps what the items beyond the old length hold, for reuse.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}
