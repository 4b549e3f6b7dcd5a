package wire

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/gopegasus/pegasus/clocksync"
)

// The stamps of a frame are four columns: the seq of each report less its place in
// the frame, so that it is the same for reports that follow one another; the reading;
// and how far each end of the interval lies from the reading, which hardly changes.
// The stamp of the evidence is the last entry of the latter three.
//
// First the widths of the columns stand in two bytes, four bits each, then the first
// entry of each column in 8 bytes, then column by column the differences of the
// others from the one before, in so many bytes as the width says: none where all
// entries are the same. Sums and differences wrap around, so no distance is too large,
// and an end without a bound has an offset as others have; unbounded as a width says
// that no stamp of the frame has a bound on that side.
const (
	stampBytes = 2 + 4*8
	unbounded  = 15
	maxWidth   = 8
)

// differences finds how wide a column is.
type differences struct {
	first, last int64
	all         uint64 // the bits that any difference has, with its sign as the lowest
}

func begin(v int64) differences { return differences{first: v, last: v} }

func (d *differences) add(v int64) {
	x := v - d.last
	d.all |= uint64(x<<1) ^ uint64(x>>63) //nolint:gosec // Its bits.
	d.last = v
}

// width is how many bytes hold any of the differences.
func (d *differences) width() int { return (bits.Len64(d.all) + 7) / 8 }

// happens reports whether an event can lie in an interval.
func happens(earliest, latest clocksync.Instant) bool {
	return earliest <= latest && earliest != clocksync.MaxInstant && latest != clocksync.MinInstant
}

// possible refuses a stamp that no event has.
func (c *coder) possible(mono clocksync.Instant, within clocksync.Interval) {
	c.need(mono.Finite(), "mono", "a reading is not infinite")
	c.need(within.Earliest != clocksync.MaxInstant, "earliest", "no event is at plus infinity")
	c.need(within.Latest != clocksync.MinInstant, "latest", "no event is at minus infinity")
	c.need(within.Valid(), "earliest", "it lies after the latest time")
}

// inOrder keeps the order of a batch: every seq is above the one before.
func (c *coder) inOrder(seq uint64, last *uint64) {
	switch {
	case seq == 0:
		c.fail("seq", zeroSeq)
	case seq <= *last:
		c.fail("seq", "it is not above the one before")
	}
	*last = seq
}

// writeStamps writes the stamps of the reports and of the evidence, if there is any.
// It counts the reports that are ends. Where a report cannot be written, or has not as
// many values as there are fields, ok is false.
func (c *coder) writeStamps(reports []Report, evidence *clocksync.Stamp, fields int) (ends int, ok bool) {
	var seqs differences
	begins := evidence
	if len(reports) > 0 {
		begins, seqs = &reports[0].At, begin(int64(reports[0].Seq)) //nolint:gosec // Its bits.
	} else if evidence == nil {
		return 0, true
	}
	mono := int64(begins.Mono)
	monos, starts, stops := begin(mono), begin(int64(begins.Within.Earliest)-mono), begin(int64(begins.Within.Latest)-mono)
	early, late, last := false, false, uint64(0)
	for i := range reports {
		r := &reports[i]
		mono, w := int64(r.At.Mono), &r.At.Within
		if r.Seq <= last || !r.At.Mono.Finite() || !happens(w.Earliest, w.Latest) || !r.End && len(r.Row) != fields {
			return 0, false
		}
		if r.End {
			ends++
		}
		last = r.Seq
		early, late = early || w.Earliest != clocksync.MinInstant, late || w.Latest != clocksync.MaxInstant
		seqs.add(int64(r.Seq) - int64(i)) //nolint:gosec // Its bits.
		monos.add(mono)
		starts.add(int64(w.Earliest) - mono)
		stops.add(int64(w.Latest) - mono)
	}
	if evidence != nil {
		mono, w := int64(evidence.Mono), &evidence.Within
		if !evidence.Mono.Finite() || !happens(w.Earliest, w.Latest) {
			return 0, false
		}
		early, late = early || w.Earliest != clocksync.MinInstant, late || w.Latest != clocksync.MaxInstant
		monos.add(mono)
		starts.add(int64(w.Earliest) - mono)
		stops.add(int64(w.Latest) - mono)
	}
	widths := [4]int{seqs.width(), monos.width(), starts.width(), stops.width()}
	if len(reports) > 1 {
		widths[1] = max(1, widths[1]) // So that no frame is shorter than the number of its reports.
	}
	if !early {
		starts.first, widths[2] = 0, unbounded
	}
	if !late {
		stops.first, widths[3] = 0, unbounded
	}
	buf := binary.LittleEndian.AppendUint16(c.buf, uint16(widths[0]|widths[1]<<4|widths[2]<<8|widths[3]<<12)) //nolint:gosec // Four bits each.
	buf = binary.LittleEndian.AppendUint64(buf, uint64(seqs.first))                                           //nolint:gosec // Its bits.
	buf = binary.LittleEndian.AppendUint64(buf, uint64(monos.first))                                          //nolint:gosec // Its bits.
	buf = binary.LittleEndian.AppendUint64(buf, uint64(starts.first))                                         //nolint:gosec // Its bits.
	buf = binary.LittleEndian.AppendUint64(buf, uint64(stops.first))                                          //nolint:gosec // Its bits.
	for column, width := range widths {
		if width%unbounded > 0 {
			buf = appendDifferences(buf, column, width, reports, evidence)
		}
	}
	c.buf = buf
	return ends, true
}

// appendDifferences appends all but the first entry of a column.
func appendDifferences(buf []byte, column, width int, reports []Report, evidence *clocksync.Stamp) []byte {
	at, last := len(buf), int64(0)
	buf = room(buf, (len(reports)+1)*width)
	put := func(v int64) { // The bytes beyond the width are written over.
		binary.LittleEndian.PutUint64(buf[at:], uint64(v-last)) //nolint:gosec // Its bits.
		at, last = at+width, v
	}
	begin := at
	for i := range reports {
		r := &reports[i]
		switch column {
		case 0:
			put(int64(r.Seq) - int64(i)) //nolint:gosec // Its bits.
		case 1:
			put(int64(r.At.Mono))
		case 2:
			put(int64(r.At.Within.Earliest - r.At.Mono))
		default:
			put(int64(r.At.Within.Latest - r.At.Mono))
		}
		if i == 0 {
			at = begin // It stands before the columns.
		}
	}
	if evidence == nil {
		return buf[:at]
	}
	switch column {
	case 0:
	case 1:
		put(int64(evidence.Mono))
	case 2:
		put(int64(evidence.Within.Earliest - evidence.Mono))
	default:
		put(int64(evidence.Within.Latest - evidence.Mono))
	}
	return buf[:at]
}

// room makes place for so many bytes, and for a number that begins in them.
func room(buf []byte, n int) []byte {
	if n += len(buf) + 8; n <= cap(buf) {
		return buf[:n]
	}
	return append(buf, make([]byte, n-len(buf))...)
}

// entries reads a column.
type entries struct {
	value      int64
	end, width int // of the difference before
}

// number reads the signed number of so many bytes, 1 to 8, that ends there: it stands at
// the top of the 8 bytes that do. The head of a frame has more than these.
func number(frame []byte, end, width int) int64 {
	return int64(binary.LittleEndian.Uint64(frame[end-8:end])) >> uint(64-8*width) //nolint:gosec // Its bits.
}

func (e *entries) next(frame []byte) {
	if e.width > 0 {
		e.end += e.width
		e.value += number(frame, e.end, e.width)
	}
}

// readStamps reads the stamps into the reports and the evidence of a batch, and gives
// each report a row of so many fields. It returns where they end in the frame.
func (c *coder) readStamps(frame []byte, domain clocksync.Domain, m *Batch, evidence bool, fields int) (at int) {
	reports, n := m.Reports, len(m.Reports)
	at = len(frame) - len(c.buf)
	if n == 0 && !evidence {
		return at
	}
	if len(c.buf) < stampBytes {
		c.fail("stamps", cut)
		return at
	}
	widths := binary.LittleEndian.Uint16(c.buf)
	column := func(i int) entries {
		return entries{value: int64(binary.LittleEndian.Uint64(c.buf[2+8*i:])), width: int(widths >> (4 * i) & 15)} //nolint:gosec // Its bits.
	}
	seqs, monos, starts, stops := column(0), column(1), column(2), column(3)
	noEarliest, noLatest := starts.width == unbounded, stops.width == unbounded
	if noEarliest {
		starts.width = 0
	}
	if noLatest {
		stops.width = 0
	}
	if max(seqs.width, monos.width, starts.width, stops.width) > maxWidth {
		c.fail("stamps", "widths "+strconv.FormatUint(uint64(widths), 16)+" are not up to 8 each")
		return at
	}
	others := n - 1
	if evidence {
		others++
	}
	seqs.end = at + stampBytes
	monos.end = seqs.end + max(0, n-1)*seqs.width
	starts.end = monos.end + others*monos.width
	stops.end = starts.end + others*starts.width
	if at = stops.end + others*stops.width; at > len(frame) {
		c.fail("stamps", cut)
		return at
	}
	var within clocksync.Interval
	last := uint64(0)
	for i := range reports {
		r := &reports[i]
		if i > 0 {
			seqs.next(frame)
			monos.next(frame)
			starts.next(frame)
			stops.next(frame)
		}
		seq, mono := uint64(seqs.value)+uint64(i), clocksync.Instant(monos.value) //nolint:gosec // Its bits.
		within.Earliest, within.Latest = mono+clocksync.Instant(starts.value), mono+clocksync.Instant(stops.value)
		if noEarliest {
			within.Earliest = clocksync.MinInstant
		}
		if noLatest {
			within.Latest = clocksync.MaxInstant
		}
		if seq <= last || !mono.Finite() || !happens(within.Earliest, within.Latest) {
			c.inOrder(seq, &last)
			c.possible(mono, within)
			c.within("reports", i)
			return at
		}
		last = seq
		r.Seq, r.End, r.Row = seq, false, m.values[i*fields:(i+1)*fields:(i+1)*fields]
		r.At.Domain, r.At.Mono, r.At.Within = domain, mono, within
	}
	if !evidence {
		return at
	}
	if n > 0 {
		monos.next(frame)
		starts.next(frame)
		stops.next(frame)
	}
	mono := clocksync.Instant(monos.value)
	within.Earliest, within.Latest = mono+clocksync.Instant(starts.value), mono+clocksync.Instant(stops.value)
	if noEarliest {
		within.Earliest = clocksync.MinInstant
	}
	if noLatest {
		within.Latest = clocksync.MaxInstant
	}
	c.possible(mono, within)
	m.Evidence.At = clocksync.Stamp{Domain: domain, Mono: mono, Within: within}
	return at
}

// writeEnds writes a bit for each report that is an end, the first one's lowest.
func (c *coder) writeEnds(reports []Report) {
	at := len(c.buf)
	c.buf = append(c.buf, make([]byte, (len(reports)+7)/8)...)
	for i := range reports {
		if reports[i].End {
			c.buf[at+i/8] |= 1 << (i % 8)
		}
	}
}

// readEnds takes the rows of ends from them, and hands the first rows to the others,
// whose number it returns.
func (c *coder) readEnds(frame []byte, at int, m *Batch, fields int) (end, rows int) {
	end = at + (len(m.Reports)+7)/8
	if end > len(frame) {
		c.fail("ends", cut)
		return at, 0
	}
	for i := range m.Reports {
		r := &m.Reports[i]
		if r.End = frame[at+i/8]>>(i%8)&1 != 0; r.End {
			r.Row = r.Row[:0:0]
			continue
		}
		r.Row = m.values[rows*fields : (rows+1)*fields : (rows+1)*fields]
		rows++
	}
	return end, rows
}
