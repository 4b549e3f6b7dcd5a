package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const longConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 100}
    state: {phase: {enum: [idle, search]}, load: float, best: int}
    predicates:
      all-idle: {when: "all(members, .phase == \"idle\")"}
`

// writeLongJournal writes a journal of 100 members that report in turn, a report a line. In one round of a hundred all are
// idle, which is a decision. Each hundredth line is a tick.
func writeLongJournal(tb testing.TB, lines int) string {
	tb.Helper()
	const members, domain = 100, "host-0123456789abcdef"
	plans, err := configfile.Parse("long.yaml", []byte(longConfig))
	if err != nil {
		tb.Fatal(err)
	}
	name := filepath.Join(tb.TempDir(), "20260102T030405.000000Z-gsync.journal.jsonl")
	f, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	header := journal.NewHeader(plans[0], synccore.Options{Term: 1, Relative: true})
	header.Started, header.Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano(), 1
	if _, err := w.Write(journal.AppendHeader(nil, &header)); err != nil {
		tb.Fatal(err)
	}
	core := synccore.New(plans[0], header.Options)
	now, digest, out, line := clocksync.Instant(1), journal.Digest{}, synccore.Output{}, []byte(nil)
	step := func(in *synccore.Input) {
		now += 50_000
		if line, err = journal.AppendInput(line[:0], plans[0].State, now, in); err != nil {
			tb.Fatal(err)
		}
		core.Step(now, in, &out)
		digest.Add(&out)
		line = journal.AppendOutput(line, &digest)
		if _, err := w.Write(line); err != nil {
			tb.Fatal(err)
		}
	}
	stamp := func() clocksync.Stamp {
		at := now + 25_000
		return clocksync.Stamp{Domain: domain, Mono: at, Within: clocksync.Interval{Earliest: at - 10_000, Latest: at + 10_000}}
	}
	for m := range members {
		name := fmt.Sprintf("w%03d", m)
		step(&synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: 1, Host: "host-1", Domain: domain, Quality: clocksync.Quality{Source: "ntp", Timeline: "utc"}}})
	}
	for i := range lines - members {
		m, round := i%members, i/members
		if m == 99 && round%2 == 1 {
			step(&synccore.Input{Kind: synccore.InTick})
			continue
		}
		phase := "search"
		if round%100 > 97 {
			phase = "idle"
		}
		seq := uint64(round + 1)
		if m == 99 {
			seq = uint64(round/2 + 1)
		}
		b := &wire.Batch{Member: fmt.Sprintf("w%03d", m), Incarnation: 1, Schema: plans[0].State.Hash(), Reports: []wire.Report{
			{Seq: seq, At: stamp(), Row: []scgs.Value{scgs.EnumValue(phase), scgs.FloatValue(float64(i) / 7), scgs.IntValue(int64(i))}},
		}}
		b.Evidence = wire.Evidence{Seq: seq, At: stamp()}
		step(&synccore.Input{Kind: synccore.InBatch, From: b.Member, Batch: b})
	}
	if _, err := w.Write(journal.AppendEnd(nil, uint64(lines), "")); err != nil {
		tb.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return name
}

// BenchmarkOpenJournal reads a journal as pegasus ui --journal does. PEGASUS_JOURNAL_LINES sets the number of lines.
func BenchmarkOpenJournal(b *testing.B) {
	lines := testcount.Of(b, "JOURNAL_LINES", 100_000)
	file := writeLongJournal(b, lines)
	for b.Loop() {
		r := &recordings{}
		events, _, err := r.read(b.Context(), file, b.Output())
		if err != nil {
			b.Fatal(err)
		}
		if len(events) == 0 || len(r.states)+r.left == 0 {
			b.Fatalf("%d events, %d states", len(events), len(r.states))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(lines), "ns/line")
}
