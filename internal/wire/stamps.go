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

// happens reports whether an event can lie in an interval.
func happens(earliest, latest clocksync.Instant) bool {
	return earliest <= latest && earliest != clocksync.MaxInstant && latest != clocksync.MinInstant
}

// checkPossible refuses a stamp that no event has.
func (c *coder) checkPossible(mono clocksync.Instant, within clocksync.Interval) {
	c.needTrue(mono.Finite(), "mono", "a reading is not infinite")
	c.needTrue(within.Earliest != clocksync.MaxInstant, "earliest", "no event is at plus infinity")
	c.needTrue(within.Latest != clocksync.MinInstant, "latest", "no event is at minus infinity")
	c.needTrue(within.Valid(), "earliest", "the earliest time is after the latest time")
}

// inOrder keeps the order of a batch: every seq is above the one before.
func (c *coder) inOrder(seq uint64, last *uint64) {
	switch {
	case seq == 0:
		c.keepFault("seq", zeroSeq)
	case seq <= *last:
		c.keepFault("seq", "the number is not above the number before")
	}
	*last = seq
}

// writeStamps writes the stamps of the reports and of the evidence, if there is any.
// It counts the reports that are ends. Where a report cannot be written, or has not as
// many values as there are fields, ok is false.
func (c *coder) writeStamps(reports []Report, evidence *clocksync.Stamp, fields int) (ends int, ok bool) {
	first, seq := evidence, uint64(0)
	if len(reports) > 0 {
		first, seq = &reports[0].At, reports[0].Seq
	} else if evidence == nil {
		return 0, true
	}
	var seqs, starts, stops uint64 // the bits of seqs and offsets that are not always the same
	start, stop := first.Within.Earliest-first.Mono, first.Within.Latest-first.Mono
	last, others := uint64(0), len(reports)-1
	for i := range reports {
		r := &reports[i]
		mono, w := r.At.Mono, &r.At.Within
		if r.Seq <= last || !mono.Finite() || !happens(w.Earliest, w.Latest) {
			return 0, false
		}
		if r.End {
			ends++
		} else if len(r.Row) != fields {
			return 0, false
		}
		last = r.Seq
		seqs |= (last - uint64(i)) ^ seq
		starts |= uint64((w.Earliest - mono) ^ start)
		stops |= uint64((w.Latest - mono) ^ stop)
	}
	if evidence != nil {
		mono, w := evidence.Mono, &evidence.Within
		if !mono.Finite() || !happens(w.Earliest, w.Latest) {
			return 0, false
		}
		others++
		starts |= uint64((w.Earliest - mono) ^ start)
		stops |= uint64((w.Latest - mono) ^ stop)
	}
	widths := 0
	if first.Within.Earliest == clocksync.MinInstant || first.Within.Latest == clocksync.MaxInstant {
		early, late := bounds(reports, evidence)
		if !early {
			start, starts, widths = 0, 0, unbounded<<8
		}
		if !late {
			stop, stops, widths = 0, 0, widths|unbounded<<12
		}
	}
	at := len(c.buf)
	buf := makeRoom(c.buf, stampBytes)
	binary.LittleEndian.PutUint64(buf[at+2:], seq)
	binary.LittleEndian.PutUint64(buf[at+10:], uint64(first.Mono))
	binary.LittleEndian.PutUint64(buf[at+18:], uint64(start))
	binary.LittleEndian.PutUint64(buf[at+26:], uint64(stop))
	buf = buf[:at+stampBytes]
	if seqs > 0 {
		buf = appendStamps(buf, 0, int64(seq), reports, evidence, &widths) //nolint:gosec // Its bits.
	}
	if others > 0 {
		buf = appendStamps(buf, 1, int64(first.Mono), reports, evidence, &widths)
	}
	if starts > 0 {
		buf = appendStamps(buf, 2, int64(start), reports, evidence, &widths)
	}
	if stops > 0 {
		buf = appendStamps(buf, 3, int64(stop), reports, evidence, &widths)
	}
	binary.LittleEndian.PutUint16(buf[at:], uint16(widths)) //nolint:gosec // Four bits each.
	c.buf = buf
	return ends, true
}

// bounds reports whether any of the intervals has a bound on either side.
func bounds(reports []Report, evidence *clocksync.Stamp) (early, late bool) {
	look := func(i clocksync.Interval) {
		early, late = early || i.Earliest != clocksync.MinInstant, late || i.Latest != clocksync.MaxInstant
	}
	for i := range reports {
		look(reports[i].At.Within)
	}
	if evidence != nil {
		look(evidence.Within)
	}
	return early, late
}

// entry is the entry of a stamp in the second to fourth column.
func entry(column int, s *clocksync.Stamp) int64 {
	switch column {
	case 1:
		return int64(s.Mono)
	case 2:
		return int64(s.Within.Earliest - s.Mono)
	}
	return int64(s.Within.Latest - s.Mono)
}

// appendStamps appends all but the first entry of a column, and adds its width.
func appendStamps(buf []byte, column int, last int64, reports []Report, evidence *clocksync.Stamp, widths *int) []byte {
	begin, all, at := len(buf), uint64(0), len(buf)
	buf = makeRoom(buf, 8*len(reports))
	for i := 1; i < len(reports); i++ {
		v := entry(column, &reports[i].At)
		if column == 0 {
			v = int64(reports[i].Seq) - int64(i) //nolint:gosec // Its bits.
		}
		binary.LittleEndian.PutUint64(buf[at:], uint64(v-last)) //nolint:gosec // Its bits.
		all |= zigzagOf(v - last)
		last, at = v, at+8
	}
	if column == 1 && len(reports) > 1 {
		all |= 1 // So that no frame is shorter than the number of its reports.
	}
	if evidence != nil && column > 0 {
		v := entry(column, evidence)
		binary.LittleEndian.PutUint64(buf[at:], uint64(v-last)) //nolint:gosec // Its bits.
		all |= zigzagOf(v - last)
		at += 8
	}
	buf, width := narrowNumbers(buf[:at], begin, all)
	*widths |= width << (4 * column)
	return buf
}

// zigzagOf has the sign of a number as its lowest bit, so that small ones are.
func zigzagOf(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) } //nolint:gosec // Its bits.

// widthOf is how many bytes hold numbers whose zigzags have no other bits than these.
func widthOf(all uint64) int { return (bits.Len64(all) + 7) / 8 }

// narrowNumbers makes the numbers that stand from begin on in 8 bytes each as narrow as all of
// them can be.
func narrowNumbers(buf []byte, begin int, all uint64) (_ []byte, width int) {
	width = widthOf(all)
	if width == 0 || width == 8 {
		return buf[:begin+(len(buf)-begin)/8*width], width
	}
	at := begin
	for from := begin; from < len(buf); from += 8 {
		binary.LittleEndian.PutUint64(buf[at:], binary.LittleEndian.Uint64(buf[from:]))
		at += width
	}
	return buf[:at], width
}

// makeRoom makes place for so many bytes, and for a number that begins in them.
func makeRoom(buf []byte, n int) []byte {
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

// readNumber reads the signed number of so many bytes, 1 to 8, that ends there: it stands at
// the top of the 8 bytes that do. The head of a frame has more than these.
func readNumber(frame []byte, end, width int) int64 {
	return int64(binary.LittleEndian.Uint64(frame[end-8:end])) >> (-8 * width & 63) //nolint:gosec // Its bits.
}

func (e *entries) nextEntry(frame []byte) {
	if e.width > 0 {
		e.end += e.width
		e.value += readNumber(frame, e.end, e.width)
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
		c.keepFault("stamps", cut)
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
		c.keepFault("stamps", "widths "+strconv.FormatUint(uint64(widths), 16)+" are not up to 8 each")
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
		c.keepFault("stamps", cut)
		return at
	}
	var within clocksync.Interval
	last, rows, varied := uint64(0), m.values, seqs.width+starts.width+stops.width > 0
	for i := range reports {
		r := &reports[i]
		if i > 0 {
			monos.nextEntry(frame)
			if varied {
				seqs.nextEntry(frame)
				starts.nextEntry(frame)
				stops.nextEntry(frame)
			}
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
			c.checkPossible(mono, within)
			c.noteWithin("reports", i)
			return at
		}
		last = seq
		r.Seq, r.End, r.Row, rows = seq, false, rows[:fields:fields], rows[fields:]
		r.At.Domain, r.At.Mono, r.At.Within = domain, mono, within
	}
	if !evidence {
		return at
	}
	if n > 0 {
		monos.nextEntry(frame)
		starts.nextEntry(frame)
		stops.nextEntry(frame)
	}
	mono := clocksync.Instant(monos.value)
	within.Earliest, within.Latest = mono+clocksync.Instant(starts.value), mono+clocksync.Instant(stops.value)
	if noEarliest {
		within.Earliest = clocksync.MinInstant
	}
	if noLatest {
		within.Latest = clocksync.MaxInstant
	}
	c.checkPossible(mono, within)
	m.Evidence.At.Domain, m.Evidence.At.Mono, m.Evidence.At.Within = domain, mono, within
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
		c.keepFault("ends", cut)
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
