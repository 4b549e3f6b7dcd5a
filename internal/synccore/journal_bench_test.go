package synccore_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const benchConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 100}
    state: {phase: {enum: [idle, search]}, load: float, best: int}
    predicates:
      all-idle: {when: "all(members, .phase == \"idle\")"}
`

// BenchmarkJournal steps a machine of 100 members with batches of some reports, each with a new
// state, with and without a journal. The time is per batch.
func BenchmarkJournal(b *testing.B) {
	for _, journal := range []bool{false, true} {
		for _, reports := range []int{1, 16} {
			b.Run(fmt.Sprintf("journal=%t/reports=%d", journal, reports), func(b *testing.B) { benchJournal(b, journal, reports) })
		}
	}
}

func benchJournal(b *testing.B, recorded bool, reports int) {
	b.Helper()
	const members = 100
	plans, err := configfile.Parse("bench.yaml", []byte(benchConfig))
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	var out synccore.Output
	var digest journal.Digest
	var line []byte
	now, size := clocksync.Instant(1), 0
	batches := make([]wire.Batch, members)
	step := func(in *synccore.Input) {
		now += 1000
		if !recorded {
			core.Step(now, in, &out)
			return
		}
		if line, err = journal.AppendInput(line[:0], core.Level().State, now, in); err != nil {
			b.Fatal(err)
		}
		core.Step(now, in, &out)
		digest.Add(&out)
		line = journal.AppendOutput(line, &digest)
		size += len(line)
	}
	stamp := func() clocksync.Stamp {
		now++
		return clocksync.Stamp{Domain: "host-0123456789abcdef", Mono: now, Within: clocksync.Unbounded}
	}
	round := func(i int) {
		m := i % members
		batch := &batches[m]
		for k := range batch.Reports {
			r := &batch.Reports[k]
			r.Seq += uint64(reports)
			r.At = stamp()
			r.Row[1], r.Row[2] = scgs.FloatValue(float64(i)/7), scgs.IntValue(int64(i))
		}
		batch.Evidence = wire.Evidence{Seq: batch.Reports[reports-1].Seq, At: stamp()}
		step(&synccore.Input{Kind: synccore.InBatch, From: batch.Member, Batch: batch})
	}
	for m := range batches {
		name := fmt.Sprintf("w%03d", m)
		step(&synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Domain: "host-0123456789abcdef"}})
		batches[m] = wire.Batch{Member: name, Incarnation: 1, Regions: []wire.Region{{Name: "search", Entry: 1, Since: 1}}}
		for k := range reports {
			row := []scgs.Value{scgs.EnumValue("search"), scgs.FloatValue(0), scgs.IntValue(0)}
			batches[m].Reports = append(batches[m].Reports, wire.Report{Seq: uint64(k+1) - uint64(reports), Row: row})
		}
	}
	for i := range 10 * members {
		round(i)
	}
	size = 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		round(i)
	}
	if recorded {
		b.ReportMetric(float64(size)/float64(b.N*reports), "B/report")
	}
}
