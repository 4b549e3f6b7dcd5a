package synccore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// BenchmarkRate is a step with a batch of decoded reports from one of ten members that
// read one clock, and a predicate that changes on none of their states: a sum as in
// internal/bench, one over floats, or the sum beside 49 predicates over another field.
func BenchmarkRate(b *testing.B) {
	const sum = `
      answer: {when: "sum(map(members, .n)) >= memory.answered + 1000000000000", every: true, signal: []}`
	others := &strings.Builder{}
	for i := range 49 {
		fmt.Fprintf(others, "\n      p%02d: {when: 'sum(members, .other) > %d'}", i, i+1)
	}
	for _, load := range []struct{ name, predicates string }{
		{"sum", sum},
		{"floats", "\n      high: {when: 'sum(members, .load) > 1000000'}"},
		{"others", sum + others.String()},
		{"hold", sum + "\n      calm: {when: 'max(map(members, .load)) < 1000', for: 1h}"},
	} {
		for _, reports := range []int{1, 64} {
			b.Run(fmt.Sprintf("rules=%s/reports=%d", load.name, reports), func(b *testing.B) { benchmarkRate(b, load.predicates, reports) })
		}
	}
}

func benchmarkRate(b *testing.B, predicates string, reports int) {
	b.Helper()
	const members = 10
	plans, err := configfile.Parse("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {load: float, n: int, other: int}
    memory: {answered: {type: int, initial: 0}}
    predicates: %s
`, members, predicates))
	if err != nil {
		b.Fatal(err)
	}
	const host = "host-0123456789abcdef"
	core := synccore.New(plans[0], synccore.Options{Term: 1, Reference: host})
	var out synccore.Output
	batches := make([]wire.Batch, members)
	for m := range batches {
		name := member(m)
		core.Step(0, &synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Domain: host}}, &out)
		batches[m] = wire.Batch{Member: name, Incarnation: 1, Regions: []wire.Region{{Name: "bench", Entry: 1, Since: 1}}}
		for range reports {
			batches[m].Reports = append(batches[m].Reports, wire.Report{Row: make([]scgs.Value, 3)})
		}
	}
	in := synccore.Input{Kind: synccore.InBatch}
	now, told, refused := clocksync.Instant(1e12), 0, 0
	step := func() {
		m, round := told%members, told/members
		told++
		batch := &batches[m]
		for i := range batch.Reports {
			r, n := &batch.Reports[i], round*reports+i
			mono := clocksync.Instant(1e12 + (n*members+m)*100)
			r.Seq, r.At = uint64(n+1), clocksync.Stamp{Domain: host, Mono: mono, Within: clocksync.Unbounded}
			r.Row[0], r.Row[1], r.Row[2] = scgs.FloatValue(float64(n%1000)/8), scgs.IntValue(int64(n)), scgs.IntValue(0)
		}
		last := &batch.Reports[reports-1]
		batch.Evidence = wire.Evidence{Seq: last.Seq, At: last.At}
		batch.Evidence.At.Mono++
		now += clocksync.Instant(reports * 100)
		in.From, in.Batch, in.More = batch.Member, batch, told%64 != 0
		core.Step(now, &in, &out)
		refused += len(out.Rejected)
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(reports), "ns/report")
	if found := core.Counts().Global - before; refused > 0 || found < uint64(max(0, b.N-members))*uint64(reports) {
		b.Fatalf("%d inputs were refused, %d global states found of %d reports", refused, found, b.N*reports)
	}
}
