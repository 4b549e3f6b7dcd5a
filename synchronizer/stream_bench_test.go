package synchronizer

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// BenchmarkStandby is the cost of a report for the leader, with and without a standby.
func BenchmarkStandby(b *testing.B) {
	for _, reports := range []int{1, 16} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("reports=%d/standby=%t", reports, on), func(b *testing.B) { benchmarkStandby(b, reports, on) })
		}
	}
}

func benchmarkStandby(b *testing.B, reports int, on bool) {
	b.Helper()
	const members = 100
	cfg, err := ParseConfig("test.yaml", []byte(`synchronizers: {gsync: {members: {group: g, count: 100}, state: {n: int}, predicates: {p: {when: "sum(members, .n) < 0"}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	plan, err := cfg.planOf("")
	if err != nil {
		b.Fatal(err)
	}
	s := &Synchronizer{name: "gsync", level: plan, subjects: ledSubjects, bus: bustest.NewServer(b).Connect(bus.Options{}), leading: newLeading()}
	s.opt.now = func() clocksync.Instant { return 0 }
	s.opt.wall = func() int64 { return 0 }
	s.core = synccore.New(plan, synccore.Options{Term: 1})
	l := newLoop(s)
	l.stream.on = on
	now := clocksync.Instant(0)
	for m := range members {
		name := "m" + strconv.Itoa(m)
		l.advance(now, &synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Domain: "d"}})
	}
	batch := wire.Batch{Incarnation: 1, Again: true, Reports: make([]wire.Report, reports)}
	row := []scgs.Value{scgs.IntValue(1)}
	seq := uint64(0)
	for b.Loop() {
		m := int(seq % members)
		batch.Member = "m" + strconv.Itoa(m)
		for i := range batch.Reports {
			now++
			batch.Reports[i] = wire.Report{Seq: seq/members*uint64(reports) + uint64(i) + 1, At: clocksync.Stamp{Domain: "d", Mono: now, Within: clocksync.Unbounded}, Row: row}
		}
		l.advance(now, &synccore.Input{Kind: synccore.InBatch, From: batch.Member, Batch: &batch, More: true})
		if seq++; seq%16 == 0 {
			l.flushStream(now) // A turn takes what waits.
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*reports), "ns/report")
}
