package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

var plainSchema = scgs.Schema{
	{Name: "on", Type: scgs.Bool},
	{Name: "n", Type: scgs.Int},
	{Name: "load", Type: scgs.Float},
	{Name: "age", Type: scgs.Duration},
	{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search"}},
}

// drawRow draws a row that may have values missing, unknown words, floats that are
// none, and values of other types.
func drawRow(t *rapid.T) []scgs.Value {
	n := rapid.Int64().Draw(t, "n")
	x := rapid.SampledFrom([]float64{0, 0.5, 0.1, 1e300, 3, -7, 0.25, -math.MaxFloat64, math.Inf(1)}).Draw(t, "x")
	row := []scgs.Value{
		scgs.BoolValue(n%2 == 0), scgs.IntValue(n), scgs.FloatValue(x), scgs.DurationValue(time.Duration(n / 3)),
		scgs.EnumValue(rapid.SampledFrom([]string{"idle", "search", "search", "idle", "search", "idle", "search", "none"}).Draw(t, "word")),
	}
	if i := rapid.IntRange(0, 16*len(row)).Draw(t, "spoilt"); i < len(row) {
		row[i] = rapid.SampledFrom([]scgs.Value{{}, scgs.StringValue("x"), scgs.IntValue(1)}).Draw(t, "other")
	} else if i == len(row) {
		row = row[:i-1]
	}
	return row
}

func drawInstant(t *rapid.T) clocksync.Instant {
	near := rapid.Map(rapid.Int64Range(-200_000, 200_000), func(i int64) clocksync.Instant { return clocksync.Instant(1e15 + i) })
	ends := rapid.SampledFrom([]clocksync.Instant{clocksync.MinInstant, clocksync.MaxInstant, 0})
	if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
		return ends.Draw(t, "end")
	}
	return near.Draw(t, "instant")
}

func drawPlainBatch(t *rapid.T) *Batch {
	b := &Batch{Member: "m0", Incarnation: 7}
	seq := rapid.SampledFrom([]uint64{0, 1, 100, 70_000, math.MaxUint64 - 3}).Draw(t, "seq")
	for range rapid.IntRange(1, 3).Draw(t, "reports") {
		seq += rapid.Uint64Range(0, 200).Draw(t, "step")
		r := Report{Seq: seq, End: rapid.IntRange(0, 5).Draw(t, "end") == 0}
		r.At.Mono = drawInstant(t)
		r.At.Within = clocksync.Interval{Earliest: drawInstant(t), Latest: drawInstant(t)}
		if rapid.Bool().Draw(t, "ordered") {
			r.At.Within = clocksync.Interval{Earliest: min(r.At.Within.Earliest, r.At.Within.Latest), Latest: max(r.At.Within.Earliest, r.At.Within.Latest)}
		}
		if !r.End {
			r.Row = drawRow(t)
		}
		b.Reports = append(b.Reports, r)
	}
	return b
}

// TestPlainIsGeneral: what is coded without a closer look is the same, and refused
// with the same words, as by the general way. So are frames that were tampered with.
func TestPlainIsGeneral(t *testing.T) {
	plain := NewBatchCodec(plainSchema)
	if !plain.plain {
		t.Fatal("the schema is not plain")
	}
	general := *plain
	general.plain = false
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		b := drawPlainBatch(t)
		frame, n, err := plain.Append(nil, b)
		frame2, n2, err2 := general.Append(nil, b)
		if n != n2 || !bytes.Equal(frame, frame2) || !sameError(err, err2) {
			t.Fatalf("the general way writes %d, %v\n%x\nthe plain one %d, %v\n%x", n2, err2, frame2, n, err, frame)
		}
		if err != nil {
			return
		}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(frame)-1).Draw(t, "at")
			switch rapid.IntRange(0, 4).Draw(t, "change") {
			case 0:
				frame[at] = rapid.Byte().Draw(t, "byte")
			case 4: // A number in another form.
				wide := []byte{0xcf, 0, 0, 0, 0, 0, 0, 0, frame[at]}
				wide[1] = rapid.SampledFrom([]byte{0, 0, 0x7f, 0xff}).Draw(t, "high")
				frame = append(frame[:at:at], append(wide, frame[at+1:]...)...)
			case 1:
				frame[at] = rapid.SampledFrom([]byte{0, 1, 3, 8, 0xc0, 0xc3, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3, 0xe0}).Draw(t, "head")
			case 2:
				frame = frame[:at+1]
			case 3:
				frame = append(frame[:at:at], append([]byte{0xcd, 0}, frame[at:]...)...)
			}
		}
		var got, want Batch
		err, err2 = plain.Decode(frame, "d", &got), general.Decode(frame, "d", &want)
		if !sameError(err, err2) || err == nil && !sameBatch(&got, &want) {
			t.Fatalf("%x\nthe general way reads %+v, %v\nthe plain one %+v, %v", frame, want, err2, got, err)
		}
		if err == nil {
			taken += len(got.Reports)
		}
	})
	if taken == 0 {
		t.Error("no report was read at all")
	}
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// sameBatch takes empty rows for equal, whatever they are made of.
func sameBatch(a, b *Batch) bool {
	for _, m := range []*Batch{a, b} {
		for i := range m.Reports {
			if len(m.Reports[i].Row) == 0 {
				m.Reports[i].Row = nil
			}
		}
	}
	return reflect.DeepEqual(a, b)
}
