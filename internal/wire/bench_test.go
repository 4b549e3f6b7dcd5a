package wire_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

var workerState = scgs.Schema{
	{Name: "phase", Type: scgs.Enum, Words: []string{"idle", "search", "done"}},
	{Name: "best", Type: scgs.Float},
	{Name: "sent", Type: scgs.Int},
	{Name: "task", Type: scgs.String},
}

// workerBatch is n reports 1 ms apart of a worker whose task changes now and
// then, stamped by a clock whose bound is half a millisecond.
func workerBatch(n int) *wire.Batch {
	start := clocksync.Instant(3600 * time.Second)
	stamp := func(i int) clocksync.Stamp {
		at := start.Add(time.Duration(i) * time.Millisecond)
		return clocksync.Stamp{Domain: "boot-7", Mono: at, Within: clocksync.Around(at.Add(1e18), 500*time.Microsecond)}
	}
	b := &wire.Batch{
		Member:      "worker-3",
		Incarnation: 1_790_000_000_000_000_000,
		Regions:     []wire.Region{{Name: "search", Entry: 4, Since: 80}},
		Evidence:    wire.Evidence{Seq: uint64(99 + n), At: stamp(n)},
	}
	for i := range n {
		b.Reports = append(b.Reports, wire.Report{
			Seq: uint64(100 + i),
			At:  stamp(i),
			Row: []scgs.Value{
				scgs.EnumValue("search"),
				scgs.FloatValue(math.Sqrt(float64(i + 2))),
				scgs.IntValue(int64(i) * 3),
				scgs.StringValue(fmt.Sprintf("task-%d", i/16)),
			},
		})
	}
	return b
}

// rateBatch is workerBatch of a state of two numbers, as nearly every state is, with a
// clock that is exact, and evidence.
func rateBatch(n int) *wire.Batch {
	b := workerBatch(n)
	b.Member, b.Regions = "m0", nil
	for i := range b.Reports {
		r := &b.Reports[i]
		r.At.Within, r.Row = clocksync.Exactly(r.At.Mono), []scgs.Value{scgs.FloatValue(float64(i) / 8), scgs.IntValue(int64(i % 2))}
	}
	b.Evidence.At.Within = clocksync.Exactly(b.Evidence.At.Mono)
	b.Evidence.Seq = b.Reports[n-1].Seq
	return b
}

// codings benchmarks with batches of one and of many reports.
func codings(b *testing.B, run func(b *testing.B, codec *wire.BatchCodec, batch *wire.Batch)) {
	b.Helper()
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("numbers/reports=%d", n), func(b *testing.B) {
			run(b, wire.NewBatchCodec(scgs.Schema{{Name: "load", Type: scgs.Float}, {Name: "n", Type: scgs.Int}}), rateBatch(n))
		})
		b.Run(fmt.Sprintf("texts/reports=%d", n), func(b *testing.B) {
			run(b, wire.NewBatchCodec(workerState), workerBatch(n))
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	codings(b, func(b *testing.B, codec *wire.BatchCodec, batch *wire.Batch) {
		b.Helper()
		n := len(batch.Reports)
		var frame []byte
		b.ReportAllocs()
		for b.Loop() {
			frame, _, _ = codec.Append(frame[:0], batch)
		}
		b.ReportMetric(float64(len(frame))/float64(n), "bytes/report")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/report")
	})
}

func BenchmarkDecode(b *testing.B) {
	codings(b, func(b *testing.B, codec *wire.BatchCodec, batch *wire.Batch) {
		b.Helper()
		frame, n, err := codec.Append(nil, batch)
		if err != nil {
			b.Fatal(err)
		}
		var into wire.Batch
		b.ReportAllocs()
		for b.Loop() {
			if err := codec.Decode(frame, "boot-7", &into); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/report")
	})
}

func TestBatchesAllocateNothingInSteadyState(t *testing.T) {
	for _, n := range []int{0, 1, 64} {
		codec, batch := wire.NewBatchCodec(workerState), workerBatch(n)
		frame, _, err := codec.Append(nil, batch)
		if err != nil {
			t.Fatal(err)
		}
		if allocs := testing.AllocsPerRun(100, func() { frame, _, _ = codec.Append(frame[:0], batch) }); allocs != 0 {
			t.Errorf("encoding %d reports allocates %v times", n, allocs)
		}
		var into wire.Batch
		decode := func() {
			if err := codec.Decode(frame, "boot-7", &into); err != nil {
				t.Fatal(err)
			}
		}
		if allocs := testing.AllocsPerRun(100, decode); allocs != 0 {
			t.Errorf("decoding %d reports allocates %v times", n, allocs)
		}
		// The next frame of the member brings new numbers and the same texts.
		moved := workerBatch(n)
		for i := range moved.Reports {
			moved.Reports[i].Seq += 1000
			moved.Reports[i].Row[3] = scgs.StringValue("task-0")
		}
		other, _, err := codec.Append(nil, moved)
		if err != nil {
			t.Fatal(err)
		}
		same := func() {
			if err := codec.Decode(other, "boot-7", &into); err != nil {
				t.Fatal(err)
			}
		}
		if allocs := testing.AllocsPerRun(100, same); allocs != 0 {
			t.Errorf("decoding %d reports with the texts of before allocates %v times", n, allocs)
		}
	}
}

func TestReportSize(t *testing.T) {
	frame, _, err := wire.NewBatchCodec(workerState).Append(nil, workerBatch(64))
	if err != nil {
		t.Fatal(err)
	}
	if size := len(frame) / 64; size > 40 {
		t.Errorf("a report of %d fields takes %d bytes, want at most 40", len(workerState), size)
	}
}
