package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Most reports hold nothing but numbers and words of enums, and nothing is wrong
// with them. They are coded here without a call for each field and without a word
// about faults; all others, from their beginning, by the general way, whose format
// this is.

// isPlain reports whether the rows of a schema are numbers, booleans and words.
func isPlain(s scgs.Schema) bool {
	return !slices.ContainsFunc(s, func(f scgs.Field) bool { return f.Type == scgs.String || f.Type.IsList() })
}

// writePlain appends a report, or returns false and changes nothing.
func (b *BatchCodec) writePlain(c *coder, r *Report, run *run) bool {
	if c.err != nil || r.Seq <= run.last || (!r.End && len(r.Row) != len(b.schema)) {
		return false
	}
	w, mono := &r.At.Within, int64(r.At.Mono)
	if !r.At.Mono.Finite() || !happens(w) {
		return false
	}
	flags := boundFlagsOf(*w)
	if r.End {
		flags |= flagEnd
	}
	next := *run
	buf := msgp.AppendUint64(c.buf, r.Seq-next.last)
	buf = append(buf, flags)
	buf = msgp.AppendInt64(buf, mono-next.mono)
	if flags&flagNoEarliest == 0 {
		offset := int64(w.Earliest) - mono
		buf = msgp.AppendInt64(buf, offset-next.early)
		next.early = offset
	}
	if flags&flagNoLatest == 0 {
		offset := int64(w.Latest) - mono
		buf = msgp.AppendInt64(buf, offset-next.late)
		next.late = offset
	}
	if !r.End {
		for i := range r.Row {
			var ok bool
			if buf, ok = appendPlain(buf, &b.schema[i], &r.Row[i]); !ok {
				return false
			}
		}
	}
	next.last, next.mono = r.Seq, mono
	c.buf, *run = buf, next
	return true
}

// happens reports whether an event can lie in an interval.
func happens(w *clocksync.Interval) bool {
	return w.Valid() && w.Earliest != clocksync.MaxInstant && w.Latest != clocksync.MinInstant
}

func appendPlain(buf []byte, f *scgs.Field, v *scgs.Value) ([]byte, bool) {
	if v.Type() != f.Type {
		return buf, false
	}
	switch f.Type {
	case scgs.Int, scgs.Duration:
		return msgp.AppendInt64(buf, v.Int()), true
	case scgs.Float:
		x := v.Float()
		return msgp.AppendFloat(buf, x), math.Abs(x) <= math.MaxFloat64
	case scgs.Bool:
		return msgp.AppendBool(buf, v.Bool()), true
	case scgs.Enum:
		word := slices.Index(f.Words, v.Text())
		return msgp.AppendInt(buf, word), word >= 0
	case scgs.Invalid, scgs.String:
	}
	return buf, false
}

// readPlain reads a report, or returns false: then nothing but the report itself
// has changed.
func (b *BatchCodec) readPlain(c *coder, r *Report, run *run) bool {
	if c.err != nil {
		return false
	}
	q, next := plainReader{buf: c.buf, ok: true}, *run
	step, flags := q.int(), q.int()
	next.mono += q.int()
	within := clocksync.Unbounded
	if flags&flagNoEarliest == 0 {
		next.early += q.int()
		within.Earliest = clocksync.Instant(next.mono + next.early)
	}
	if flags&flagNoLatest == 0 {
		next.late += q.int()
		within.Latest = clocksync.Instant(next.mono + next.late)
	}
	next.last = run.last + uint64(step) //nolint:gosec // It is above 0.
	mono := clocksync.Instant(next.mono)
	if step <= 0 || next.last <= run.last || flags < 0 || flags > reportFlags || !mono.Finite() || !happens(&within) {
		return false
	}
	r.End, r.Row = flags&flagEnd != 0, r.Row[:0]
	if !r.End {
		r.Row = resize(r.Row, len(b.schema))
		for i := range r.Row {
			q.value(&b.schema[i], &r.Row[i])
		}
	}
	if !q.ok {
		return false
	}
	r.Seq, r.At.Mono, r.At.Within = next.last, mono, within
	c.buf, *run = q.buf[q.at:], next
	return true
}

// plainReader reads the forms that plain values have. Once it has met another one
// ok is false.
type plainReader struct {
	buf []byte
	at  int
	ok  bool
}

// The first bytes of values in MessagePack.
const (
	oneByte  = 0x80 // numbers below it are one byte, itself ...
	negative = 0xe0 // ... and negative ones from it on
	falsity  = 0xc2
	truthful = 0xc3
	float32s = 0xca
	float64s = 0xcb
	uint8s   = 0xcc // then 16, 32, 64 bits
	int8s    = 0xd0 // then 16, 32, 64 bits
)

// int reads an integer that fits an int64.
func (q *plainReader) int() int64 {
	rest := q.buf[q.at:]
	if len(rest) == 0 {
		q.ok = false
		return 0
	}
	head := rest[0]
	if head < oneByte || head >= negative {
		q.at++
		return int64(int8(head)) //nolint:gosec // Its bits.
	}
	return q.long(head, rest[1:])
}

// long reads an integer of several bytes.
func (q *plainReader) long(head byte, rest []byte) int64 {
	size := 1 << (head & 3)
	if head < uint8s || head > int8s+3 || len(rest) < size {
		q.ok = false
		return 0
	}
	q.at += 1 + size
	switch head {
	case uint8s:
		return int64(rest[0])
	case uint8s + 1:
		return int64(binary.BigEndian.Uint16(rest))
	case uint8s + 2:
		return int64(binary.BigEndian.Uint32(rest))
	case int8s:
		return int64(int8(rest[0])) //nolint:gosec // Its bits.
	case int8s + 1:
		return int64(int16(binary.BigEndian.Uint16(rest))) //nolint:gosec // Its bits.
	case int8s + 2:
		return int64(int32(binary.BigEndian.Uint32(rest))) //nolint:gosec // Its bits.
	}
	v := int64(binary.BigEndian.Uint64(rest)) //nolint:gosec // Its bits.
	q.ok = q.ok && (head == int8s+3 || v >= 0)
	return v
}

func (q *plainReader) value(f *scgs.Field, v *scgs.Value) {
	rest := q.buf[q.at:]
	switch f.Type {
	case scgs.Int:
		*v = scgs.IntValue(q.int())
		return
	case scgs.Duration:
		*v = scgs.DurationValue(time.Duration(q.int()))
		return
	case scgs.Float:
		switch {
		case len(rest) >= 9 && rest[0] == float64s:
			x := math.Float64frombits(binary.BigEndian.Uint64(rest[1:]))
			*v = scgs.FloatValue(x)
			q.at += 9
			q.ok = q.ok && math.Abs(x) <= math.MaxFloat64
			return
		case len(rest) >= 5 && rest[0] == float32s:
			x := float64(math.Float32frombits(binary.BigEndian.Uint32(rest[1:])))
			*v = scgs.FloatValue(x)
			q.at += 5
			q.ok = q.ok && math.Abs(x) <= math.MaxFloat64
			return
		}
	case scgs.Enum:
		if word := q.int(); q.ok && word >= 0 && word < int64(len(f.Words)) {
			*v = scgs.EnumValue(f.Words[word])
			return
		}
	case scgs.Bool:
		if len(rest) > 0 && (rest[0] == falsity || rest[0] == truthful) {
			*v = scgs.BoolValue(rest[0] == truthful)
			q.at++
			return
		}
	case scgs.Invalid, scgs.String:
	}
	q.ok = false
}
