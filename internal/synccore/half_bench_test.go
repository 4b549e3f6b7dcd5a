package synccore_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// BenchmarkHalf is a report of a thousand members, half of which hold a condition that a
// threshold wants of half of them: the more a member changes between two of its batches,
// the more reports a batch has.
func BenchmarkHalf(b *testing.B) {
	for _, k := range []int{2, 50, 200, 400, 500, 600} {
		for _, each := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("k=%d/reports=%d", k, each), func(b *testing.B) { benchmarkHalf(b, k, each) })
		}
	}
}

func benchmarkHalf(b *testing.B, k, each int) {
	b.Helper()
	const members = 1000
	plans, err := configfile.Parse("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {on: bool}
    predicates:
      half: {when: 'count(members, .on) >= %d'}
`, members, k))
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	var out synccore.Output
	in := synccore.Input{Kind: synccore.InBatch, Batch: &wire.Batch{Incarnation: 1}}
	seq := make([]uint64, members)
	now, random, fired := clocksync.Instant(1e9), uint64(1), 0
	batch := func(m, n int) {
		in.From, in.Batch.Member = member(m), member(m)
		in.Batch.Reports = in.Batch.Reports[:0]
		at := clocksync.Stamp{Domain: "d", Mono: now, Within: clocksync.Unbounded}
		for i := range n { // Since its last batch.
			random = random*6364136223846793005 + 1442695040888963407
			seq[m]++
			at.Mono = now - clocksync.Instant((n-1-i)*members*1000) - clocksync.Instant(random>>54)
			in.Batch.Reports = append(in.Batch.Reports, wire.Report{Seq: seq[m], At: at, Row: []scgs.Value{scgs.BoolValue(random>>63 != 0)}})
		}
		at.Mono = now + 1
		in.Batch.Evidence = wire.Evidence{Seq: seq[m], At: at}
		core.Step(now, &in, &out)
		for i := range out.Verdicts {
			if out.Verdicts[i].Fired {
				fired++
			}
		}
	}
	for m := range members {
		core.Step(0, &synccore.Input{Kind: synccore.InHello, From: member(m), Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: "d"}}, &out)
	}
	for m := range members {
		now += 2000
		batch(m, 1)
	}
	b.ResetTimer()
	told := 0
	for i := 0; told < b.N; i++ {
		now += clocksync.Instant(each * 1000)
		in.More = i%64 != 0
		batch(i%members, each)
		told += each
	}
	b.ReportMetric(float64(fired)/float64(told), "firings/report")
}
