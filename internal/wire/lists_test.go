package wire_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// lists is a schema with a list of every type, and with defaults.
var lists = scgs.Schema{
	{Name: "phases", Type: scgs.ListOf(scgs.Enum), Words: []string{"idle", "busy"}, Default: phaseList("busy")},
	{Name: "loads", Type: scgs.ListOf(scgs.Float)},
	{Name: "counts", Type: scgs.ListOf(scgs.Int)},
	{Name: "tags", Type: scgs.ListOf(scgs.String), Default: scgs.ListValue(scgs.String)},
	{Name: "waits", Type: scgs.ListOf(scgs.Duration)},
	{Name: "flags", Type: scgs.ListOf(scgs.Bool)},
	{Name: "best", Type: scgs.Float, Default: scgs.FloatValue(0.5)},
}

var listRow = []scgs.Value{
	phaseList("busy", "idle"),
	scgs.ListValue(scgs.Float, scgs.FloatValue(0.5), scgs.FloatValue(-2)),
	scgs.ListValue(scgs.Int, scgs.IntValue(-2)),
	scgs.ListValue(scgs.String, scgs.StringValue("gpu"), scgs.StringValue("")),
	scgs.ListValue(scgs.Duration, scgs.DurationValue(3*time.Nanosecond)),
	scgs.ListValue(scgs.Bool, scgs.BoolValue(true), scgs.BoolValue(false)),
	{},
}

func phaseList(words ...string) scgs.Value {
	var list []scgs.Value
	for _, w := range words {
		list = append(list, scgs.EnumValue(w))
	}
	return scgs.ListValue(scgs.Enum, list...)
}

// listFrames encodes a welcome and a batch of the schema.
func listFrames(tb testing.TB) (frames [2][]byte) {
	tb.Helper()
	var err error
	frames[0], err = wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: "g", Member: "w", Accepted: true, Schema: lists})
	if err != nil {
		tb.Fatal(err)
	}
	batch := wire.Batch{Member: "w", Schema: lists.Hash(), Reports: []wire.Report{
		{Seq: 1, At: clocksync.Stamp{Domain: "boot-7", Mono: 5, Within: clocksync.Unbounded}, Row: listRow},
		{Seq: 2, At: clocksync.Stamp{Domain: "boot-7", Mono: 6, Within: clocksync.Unbounded}, Row: make([]scgs.Value, len(lists))},
	}}
	if frames[1], _, err = wire.NewBatchCodec(lists).Append(nil, &batch); err != nil {
		tb.Fatal(err)
	}
	return frames
}

// TestLayoutOfLists pins the bytes: a change here needs another Version.
func TestLayoutOfLists(t *testing.T) {
	golden := [2]string{
		// name, type (128 a list, 64 with a default), words | default
		`01 05 a167 00 00 a177 00 c3 c2 a0
			97 a6706861736573 ccc6 92 a469646c65 a462757379  91 01
			a56c6f616473 cc83 90
			a6636f756e7473 cc82 90
			a474616773 ccc4 90  90
			a57761697473 cc85 90
			a5666c616773 cc81 90
			a462657374 43 90  ca3f000000
			c400 00 00 00 a0 a0`,
		`01 0d 01 77 0000000000000000 HASH 00 0200
			10ff 0100000000000000 0500000000000000 0000000000000000 0000000000000000 01
			00 92 01 00 c0  00 92 ca3f000000 cac0000000 c0  00 91 fe c0  00 92 a3677075 a0 c0  00 91 03 c0  00 92 c3 c2 c0  01 c0`,
	}
	golden[1] = strings.Replace(golden[1], "HASH", hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, lists.Hash())), 1)
	for i, frame := range listFrames(t) {
		if got, want := hex.EncodeToString(frame), strings.Join(strings.Fields(golden[i]), ""); got != want {
			t.Errorf("%d:\n got %s\nwant %s", i, got, want)
		}
	}
}

func TestHostileListsAreRefused(t *testing.T) {
	head := fmt.Sprintf("01 02 a177 00 cf%016x 00 91 01 06 05 ", lists.Hash())
	for _, c := range []struct{ row, want string }{
		{"ddffffffff", "phases: 4294967295 of them, at most 64 are allowed"},
		{"dc0041" + strings.Repeat("00", 65), "phases: 65 of them, at most 64 are allowed"},
		{"dc0040 00", "phases: the frame ends inside it"},
		{"a3677075", "phases: the value is not a list"},
		{"92 00 02", "phases[1]: word 2 of 2"},
		{"92 00 c0", "phases[1]: the value is not an unsigned 64-bit integer"},
		{"90 92 00 cb7ff8000000000001", "loads[0]: the value is not a float"},
		{"90 91 cb7ff8000000000001", "loads[0]: NaN is not a finite number"},
		{"90 91 caff800000", "loads[0]: -Inf is not a finite number"},
		{"90 91 91 ca3f000000 c0c0c0c0c0c0c0c0c0", "loads[0]: the value is not a float"},
		{"90 90 91 cfffffffffffffffff", "counts[0]: the value is not a signed 64-bit integer"},
		{"90 90 90 91 a180", "tags[0]: the text is not UTF-8"},
		{"90 90 90 91 da0101" + strings.Repeat("61", 257), "tags[0]: 257 bytes, at most 256 are allowed"},
		{"90 90 90 92 d98161" + strings.Repeat("61", 128) + "d98161" + strings.Repeat("61", 128), "tags: its elements together have 258 bytes, at most 256 are allowed"},
		{"90 90 90 90 90 91 05", "flags[0]: the value is not true or false"},
		{"90 90 90 90 90 90 90 c0c0c0c0c0c0c0c0c0", "best: the value is not a float"},
	} {
		want := "wire: batch: reports[0]." + c.want
		if err := decodeAny(unhex(t, head+c.row)); err == nil || err.Error() != want {
			t.Errorf("row %s\n got %v\nwant %s", c.row, err, want)
		}
	}
	for _, frame := range listFrames(t) {
		for n := range frame {
			if err := decodeAny(frame[:n]); err == nil {
				t.Errorf("%d of %d bytes are taken for a whole frame", n, len(frame))
			}
		}
	}
}

func TestListsThatCannotBeEncoded(t *testing.T) {
	codec := wire.NewBatchCodec(lists)
	long := make([]scgs.Value, scgs.MaxElements+1)
	for i := range long {
		long[i] = scgs.BoolValue(true)
	}
	half := scgs.StringValue(strings.Repeat("x", scgs.MaxTextBytes/2+1))
	for _, c := range []struct {
		field int
		value scgs.Value
		want  string
	}{
		{0, phaseList("idle", "done"), `state: field "phases": element 1: "done" is not one of its words`},
		{1, scgs.ListValue(scgs.Float, scgs.FloatValue(math.Inf(1))), `state: field "loads": element 0: +Inf is not a finite number`},
		{1, scgs.ListValue(scgs.Int), `state: field "loads": its type is list of float, not list of int`},
		{1, scgs.FloatValue(1), `state: field "loads": its type is list of float, not float`},
		{3, scgs.ListValue(scgs.String, scgs.StringValue("\xff")), `state: field "tags": element 0: the text is not UTF-8`},
		{3, scgs.ListValue(scgs.String, half, half), `state: field "tags": its elements together have 258 bytes, at most 256 are allowed`},
		{5, scgs.ListValue(scgs.Bool, long...), `state: field "flags": 65 of them, at most 64 are allowed`},
	} {
		row := make([]scgs.Value, len(lists))
		row[c.field] = c.value
		if err := codec.CheckRow(row); err == nil || err.Error() != c.want {
			t.Errorf("CheckRow = %v, want %s", err, c.want)
		}
		_, _, err := codec.Append(nil, &wire.Batch{Member: "w", Reports: []wire.Report{{Seq: 1, At: clocksync.Stamp{Within: clocksync.Unbounded}, Row: row}}})
		if err == nil {
			t.Errorf("%v is encoded", c.value)
		}
	}
}

// TestListsOfBeforeAreShared decodes lists that the batch held before: they cost
// no memory.
func TestListsOfBeforeAreShared(t *testing.T) {
	codec, frame := wire.NewBatchCodec(lists), listFrames(t)[1]
	var into wire.Batch
	decode := func() {
		if err := codec.Decode(frame, "boot-7", &into); err != nil {
			t.Fatal(err)
		}
	}
	if allocs := testing.AllocsPerRun(100, decode); allocs != 0 {
		t.Errorf("decoding the lists of before allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		into.Reports[0].Row[1] = scgs.Value{}
		decode()
	}); allocs != 1 {
		t.Errorf("decoding a new list allocates %v times, want 1", allocs)
	}
	batch := wire.Batch{Member: "w", Reports: into.Reports}
	if allocs := testing.AllocsPerRun(100, func() { frame, _, _ = codec.Append(frame[:0], &batch) }); allocs != 0 {
		t.Errorf("encoding lists allocates %v times", allocs)
	}
}

func BenchmarkLists(b *testing.B) {
	for _, n := range []int{1, 8, scgs.MaxElements} {
		elements := make([]scgs.Value, n)
		for i := range elements {
			elements[i] = scgs.FloatValue(math.Sqrt(float64(i + 2)))
		}
		schema := scgs.Schema{{Name: "loads", Type: scgs.ListOf(scgs.Float)}}
		codec, batch := wire.NewBatchCodec(schema), workerBatch(1)
		batch.Reports[0].Row = []scgs.Value{scgs.ListValue(scgs.Float, elements...)}
		frame, _, err := codec.Append(nil, batch)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("encode/elements=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				frame, _, _ = codec.Append(frame[:0], batch)
			}
		})
		b.Run(fmt.Sprintf("decode/elements=%d", n), func(b *testing.B) {
			var into wire.Batch
			b.ReportAllocs()
			for b.Loop() {
				if err := codec.Decode(frame, "boot-7", &into); err != nil {
					b.Fatal(err)
				}
				into.Reports[0].Row[0] = scgs.Value{}
			}
		})
	}
}
