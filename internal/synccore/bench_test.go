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

// BenchmarkReport is a step with one report of a group in which every tenth member
// is on for a while, in turn: with no predicate but one on global states, and with
// thresholds and modalities beside it.
func BenchmarkReport(b *testing.B) {
	const plain = `
      none: {when: "none(members, .on)"}`
	for name, predicates := range map[string]string{
		"plain":      plain,
		"thresholds": plain + "\n      p: {when: 'count(members, .on) >= 2'}\n      q: {when: 'count(members, .on) >= 50'}",
		"modalities": plain + "\n      p: {when: 'all(members, .on)', modality: definitely}\n      q: {when: 'all(members, .on)', modality: possibly}",
	} {
		for _, members := range []int{10, 1000} {
			for _, more := range []int{1, 64} { // reports that wait in a row
				b.Run(fmt.Sprintf("rules=%s/members=%d/waiting=%d", name, members, more), func(b *testing.B) {
					benchmarkReport(b, members, more, predicates)
				})
			}
		}
	}
}

func benchmarkReport(b *testing.B, members, more int, predicates string) {
	b.Helper()
	plans, err := configfile.Parse("bench.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {on: bool}
    predicates: %s
`, members, predicates))
	if err != nil {
		b.Fatal(err)
	}
	core := synccore.New(plans[0], synccore.Options{Term: 1})
	var out synccore.Output
	in := synccore.Input{Kind: synccore.InBatch, Batch: &wire.Batch{Incarnation: 1}}
	seq := make([]uint64, members)
	row := []scgs.Value{{}}
	now := clocksync.Instant(0)
	report := func(m int, on bool) {
		now += 1000
		seq[m]++
		row[0] = scgs.BoolValue(on)
		at := clocksync.Stamp{Domain: "d", Mono: now, Within: clocksync.Unbounded}
		in.From, in.Batch.Member = member(m), member(m)
		in.Batch.Reports = append(in.Batch.Reports[:0], wire.Report{Seq: seq[m], At: at, Row: row})
		at.Mono++
		in.Batch.Evidence = wire.Evidence{Seq: seq[m], At: at}
		core.Step(now, &in, &out)
	}
	for m := range members {
		core.Step(0, &synccore.Input{Kind: synccore.InHello, From: member(m), Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: "d"}}, &out)
	}
	for m := range members {
		report(m, false)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m := i % members
		in.More = i%more != 0
		report(m, (i/members+m)%10 == 0)
	}
}
