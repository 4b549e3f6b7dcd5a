package synccore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// BenchmarkBatch is the way of a report through a synchronizer, from the bytes of its
// batch to the judgement of the global states that it completes: a frame is decoded
// and the machine takes a step with it. Each member tells 64 states at a time and a
// predicate looks at each of the global states.
func BenchmarkBatch(b *testing.B) {
	for _, members := range []int{10, 1000} {
		for _, hosts := range []int{1, members} {
			b.Run(fmt.Sprintf("members=%d/hosts=%d", members, hosts), func(b *testing.B) { benchmarkWay(b, members, hosts) })
		}
	}
}

const (
	wayBatch = 64
	wayStep  = 100 // ns from one member's state to the next one's
)

func benchmarkWay(b *testing.B, members, hosts int) {
	b.Helper()
	plans, err := configfile.Parse("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {load: float, n: int}
    memory: {answered: {type: int, initial: 0}}
    predicates:
      answer: {when: "sum(map(members, .n)) >= memory.answered + 1000000000", every: true, signal: []}
`, members))
	if err != nil {
		b.Fatal(err)
	}
	codec := wire.NewBatchCodec(plans[0].State)
	core := synccore.New(plans[0], synccore.Options{Term: 1, Reference: "host-0"})
	var out synccore.Output
	domains := make([]clocksync.Domain, members)
	frames, names := make([][]byte, members), make([]string, members)
	for m := range members {
		names[m] = member(m)
		domains[m] = clocksync.Domain(fmt.Sprintf("host-%d", m%hosts))
		hello := wire.Hello{Member: names[m], Incarnation: 1, Domain: domains[m]}
		if hosts > 1 {
			hello.Quality.Timeline = "host-0"
		}
		core.Step(0, &synccore.Input{Kind: synccore.InHello, From: names[m], Hello: &hello}, &out)
		batch := wire.Batch{Member: names[m], Incarnation: 1}
		for i := range wayBatch + 1 {
			mono := clocksync.Instant(1e12 + (i*members+m)*wayStep)
			at := clocksync.Stamp{Domain: domains[m], Mono: mono, Within: clocksync.Around(mono, 30*time.Nanosecond)}
			if i == wayBatch {
				batch.Evidence = wire.Evidence{Seq: wayBatch, At: at}
				batch.Evidence.At.Mono = batch.Reports[i-1].At.Mono + 1
				break
			}
			row := []scgs.Value{scgs.FloatValue(0.5), scgs.IntValue(int64(100_000 + i))}
			batch.Reports = append(batch.Reports, wire.Report{Seq: uint64(i + 1), At: at, Row: row})
		}
		if frames[m], _, err = codec.Append(nil, &batch); err != nil {
			b.Fatal(err)
		}
	}
	var batch wire.Batch
	in := synccore.Input{Kind: synccore.InBatch, Batch: &batch}
	now, told, seen := clocksync.Instant(0), 0, uint64(0)
	step := func() {
		m, round := told%members, told/members
		told++
		batch.Member = names[m] // As the subject gives it.
		if err := codec.Decode(frames[m], domains[m], &batch); err != nil {
			b.Fatal(err)
		}
		shift(&batch, round*wayBatch, clocksync.Instant(round*wayBatch*members*wayStep))
		now += wayBatch * wayStep
		in.From, in.More = batch.Member, told%members != 0
		core.Step(now, &in, &out)
		seen += uint64(len(out.Rejected))
	}
	for range 2 * members {
		step()
	}
	before := core.Counts().Global
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		step()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/wayBatch, "ns/report")
	if f := core.Counts(); seen > 0 || f.Global-before < uint64(max(0, b.N-members))*wayBatch {
		b.Fatalf("%d reports were refused, %d global states found of %d reports", seen, f.Global-before, b.N*wayBatch)
	}
}

// shift makes the next batch of a member of the same one.
func shift(batch *wire.Batch, seq int, by clocksync.Instant) {
	move := func(at *clocksync.Stamp) {
		at.Mono, at.Within.Earliest, at.Within.Latest = at.Mono+by, at.Within.Earliest+by, at.Within.Latest+by
	}
	for i := range batch.Reports {
		batch.Reports[i].Seq += uint64(seq)
		move(&batch.Reports[i].At)
	}
	batch.Evidence.Seq += uint64(seq)
	move(&batch.Evidence.At)
}
