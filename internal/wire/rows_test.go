package wire_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// goldenRows is the frame of goldenBatch as releases before wrote it, one report after
// another. It has to be read as long as they are.
//
// Member, incarnation, schema, flags | length, count | reports | regions | evidence | quality.
const goldenRows = `01 02 a27731 cd012c cf5b487f17ec3a5ad5 17 cd0027 dc0003
	09 00 d103e8 d10f3c d11004  01 ca3f000000 fe a161 03 c3
	01 01 0a 00 00
	01 06 0a  c0 c0 c0 c0 c0 c0
	91 a6736561726368 02 09
	0b 00 0a 00 02
	a470656572 c2 c3 02 d1012c`

// goldenListRows is that of the batch of listFrames.
var goldenListRows = fmt.Sprintf(`01 02 a177 00 cf%016x 00 dc0002
	01 06 05  92 01 00  92 ca3f000000 cac0000000  91 fe  92 a3677075 a0  91 03  92 c3 c2  c0
	01 06 01  c0 c0 c0 c0 c0 c0 c0
	90 00`, lists.Hash())

const goldenTrace = "c419 0102030405060708090a0b0c0d0e0f10 1112131415161718 19"

// rowFrames are frames of releases before, with and without a trace context.
func rowFrames(tb testing.TB) [][]byte {
	tb.Helper()
	return [][]byte{
		unhex(tb, goldenRows), unhex(tb, strings.Replace(goldenRows, " 17 ", " 1f ", 1)+goldenTrace), unhex(tb, goldenListRows),
	}
}

func TestGoldenRowsAreRead(t *testing.T) {
	frames, columns := rowFrames(t), [][]byte{goldenFrames(t)[wire.KindBatch], tracedFrames(t)[wire.KindBatch], listFrames(t)[1]}
	for i, frame := range frames {
		again, err := decoders[wire.KindBatch](frame)
		if err != nil || !slices.Equal(again, columns[i]) {
			t.Errorf("%d: read and written again\n%x, %v, want\n%x", i, again, err, columns[i])
		}
		for n := range frame {
			if err := decodeAny(frame[:n]); err == nil {
				t.Errorf("%d: %d of %d bytes are taken for a whole frame", i, n, len(frame))
			}
		}
	}
}

// appendRows encodes a batch as releases before did.
func appendRows(schema scgs.Schema, m *wire.Batch) []byte {
	buf := msgp.AppendString([]byte{wire.Version, byte(wire.KindBatch)}, m.Member)
	buf = msgp.AppendUint64(msgp.AppendUint64(buf, m.Incarnation), schema.Hash())
	flags, behind := byte(0), len(m.Reports) > 0 && len(m.Regions) > 0
	for i, set := range []bool{m.Again, m.Leaving, m.Tagged, m.Trace.Valid(), behind} {
		if set {
			flags |= 1 << i
		}
	}
	reports := []byte{0xdc, byte(len(m.Reports) >> 8), byte(len(m.Reports))}
	var last uint64
	var mono, early, late clocksync.Instant
	stamp := func(buf []byte, s clocksync.Stamp, flags byte) []byte {
		difference := func(v clocksync.Instant, base *clocksync.Instant) {
			buf = msgp.AppendInt64(buf, int64(v-*base))
			*base = v
		}
		place := len(buf)
		buf = append(buf, flags)
		difference(s.Mono, &mono)
		if s.Within.Earliest == clocksync.MinInstant {
			buf[place] |= 2
		} else {
			difference(s.Within.Earliest-mono, &early)
		}
		if s.Within.Latest == clocksync.MaxInstant {
			buf[place] |= 4
		} else {
			difference(s.Within.Latest-mono, &late)
		}
		return buf
	}
	for i := range m.Reports {
		r := &m.Reports[i]
		reports, last = msgp.AppendUint64(reports, r.Seq-last), r.Seq
		if r.End {
			reports = stamp(reports, r.At, 1)
			continue
		}
		reports = stamp(reports, r.At, 0)
		for j, v := range r.Row {
			reports = appendValue(reports, schema[j], v)
		}
	}
	if buf = append(buf, flags); behind {
		buf = append(buf, 0xcd, byte(len(reports)>>8), byte(len(reports)))
	}
	buf = append(buf, reports...)
	buf = msgp.AppendArrayHeader(buf, uint32(len(m.Regions)))
	for _, r := range m.Regions {
		buf = msgp.AppendUint64(msgp.AppendUint64(msgp.AppendString(buf, r.Name), r.Entry), r.Since)
	}
	if buf = msgp.AppendUint64(buf, m.Evidence.Seq); m.Evidence.Seq > 0 {
		buf = stamp(buf, m.Evidence.At, 0)
	}
	if q := &m.Quality; m.Tagged {
		buf = msgp.AppendBool(msgp.AppendBool(msgp.AppendString(buf, q.Source), q.Assumed), q.Unverified)
		buf = msgp.AppendInt64(msgp.AppendUint64(buf, uint64(q.Status)), int64(q.Expires))
	}
	if m.Trace.Valid() {
		buf = msgp.AppendBytes(buf, m.Trace[:])
	}
	return buf
}

func appendValue(buf []byte, f scgs.Field, v scgs.Value) []byte {
	switch v.Type() {
	case scgs.Bool:
		return msgp.AppendBool(buf, v.Bool())
	case scgs.Int, scgs.Duration:
		return msgp.AppendInt64(buf, v.Int())
	case scgs.Float:
		return msgp.AppendFloat(buf, v.Float())
	case scgs.String:
		return msgp.AppendString(buf, v.Text())
	case scgs.Enum:
		return msgp.AppendInt(buf, slices.Index(f.Words, v.Text()))
	case scgs.Invalid:
		return msgp.AppendNil(buf)
	}
	buf = msgp.AppendArrayHeader(buf, uint32(v.Len()))
	for i := range v.Len() {
		buf = appendValue(buf, f.Element(), v.At(i))
	}
	return buf
}

// TestColumnsSayWhatRowsSay sends the same batches in both layouts, into batches that
// are used again.
func TestColumnsSayWhatRowsSay(t *testing.T) {
	if got, want := hex.EncodeToString(appendRows(small, &goldenBatch)), strings.Join(strings.Fields(goldenRows), ""); got != want {
		t.Fatalf("rows as of before:\n got %s\nwant %s", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		schema := schemas().Draw(t, "schema")
		codec := wire.NewBatchCodec(schema)
		var rows, columns, mixed wire.Batch
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			sent := batches(schema, "boot-7").Draw(t, "batch")
			frame, n, err := codec.Append(nil, &sent)
			if err != nil || n != len(sent.Reports) {
				t.Fatalf("Append = %d of %d reports, %v", n, len(sent.Reports), err)
			}
			before := appendRows(schema, &sent)
			either := [][]byte{frame, before}[rapid.IntRange(0, 1).Draw(t, "layout")]
			for _, c := range []struct {
				frame []byte
				into  *wire.Batch
			}{{before, &rows}, {frame, &columns}, {either, &mixed}} {
				if err := codec.Decode(c.frame, "boot-7", c.into); err != nil {
					t.Fatal(err)
				}
				if d := diff(sent, *c.into); d != "" {
					t.Fatalf("changed on the way (-sent +received):\n%s", d)
				}
			}
		}
	})
}

// TestNoBadNameIsLearned: a name that was refused is not taken for one that the batch has
// had already.
func TestNoBadNameIsLearned(t *testing.T) {
	codec := wire.NewBatchCodec(small)
	var into wire.Batch
	for range 2 {
		for _, head := range []string{"01 02 a3612e62 00 cf5b487f17ec3a5ad5 00 90 90 00", "01 0d 03 612e62 0000000000000000 d55a3aec177f485b 00 0000"} {
			for name, err := range map[string]error{
				"codec": codec.Decode(unhex(t, head), "boot-7", &into), "outline": wire.DecodeOutline(unhex(t, head), &into),
			} {
				if err == nil || err.Error() != `wire: batch: member: "a.b": use letters, digits, - and _, at most 64` {
					t.Errorf("%s: %s: %v", head, name, err)
				}
			}
		}
	}
}

// TestWideIntegers: integers whose first needs 8 bytes, such as nanoseconds of the wall clock, with
// differences of each width.
func TestWideIntegers(t *testing.T) {
	schema := scgs.Schema{{Name: "at", Type: scgs.Int}, {Name: "for", Type: scgs.Duration}}
	codec := wire.NewBatchCodec(schema)
	at := clocksync.Stamp{Domain: "boot-1", Within: clocksync.Unbounded}
	for _, first := range []int64{0, 127, 128, 1 << 39, 1 << 54, 1 << 55, 1_700_000_000_000_000_000, -1 << 60, math.MaxInt64, math.MinInt64} {
		for shift := range 63 {
			second := first + 1<<shift
			sent := wire.Batch{Member: "m", Schema: schema.Hash()}
			for i, v := range []int64{first, second} {
				sent.Reports = append(sent.Reports, wire.Report{Seq: uint64(i + 1), At: at, Row: []scgs.Value{scgs.IntValue(v), scgs.DurationValue(time.Duration(v))}})
			}
			frame, n, err := codec.Append(nil, &sent)
			if err != nil || n != 2 {
				t.Fatalf("%d, %d: %d reports, %v", first, second, n, err)
			}
			var got wire.Batch
			if err := codec.Decode(frame, "boot-1", &got); err != nil || !slices.Equal(got.Reports[1].Row, sent.Reports[1].Row) || !slices.Equal(got.Reports[0].Row, sent.Reports[0].Row) {
				t.Fatalf("%d, %d: read as %v, %v", first, second, got.Reports, err)
			}
		}
	}
}
