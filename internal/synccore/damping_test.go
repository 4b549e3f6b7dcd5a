package synccore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

// TestEpochsAreDamped: a member that comes and goes every 200 ms does not keep a hold time
// from ever running out. It is said that it is put off, and when it stays it is let in.
func TestEpochsAreDamped(t *testing.T) {
	for _, hold := range []string{"1s", "6s"} {
		t.Run(hold, func(t *testing.T) {
			plans, err := configfile.Parse("test.yaml", []byte(strings.Replace(`
synchronizers:
  gsync:
    members: {group: g, count: 1, max: 2}
    silence: {after: 1h, then: drop}
    state: {on: bool}
    predicates:
      steady: {when: "any(members, .on)", for: HOLD, refire: epoch}
`, "HOLD", hold, 1)))
			if err != nil {
				t.Fatal(err)
			}
			core := synccore.New(plans[0], synccore.Options{Term: 1})
			var out synccore.Output
			now, fired, told := clocksync.Instant(0), 0, 0
			step := func(in synccore.Input) {
				core.Step(now, &in, &out)
				for i := range out.Verdicts {
					if out.Verdicts[i].Fired {
						fired++
					}
				}
			}
			at := func() clocksync.Stamp {
				return clocksync.Stamp{Domain: "d", Mono: now + 1, Within: clocksync.Unbounded}
			}
			hello := func(name string, incarnation uint64) {
				step(synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: incarnation, Domain: "d"}})
			}
			batch := func(b wire.Batch, seq uint64) {
				if seq > 0 {
					b.Reports = []wire.Report{{Seq: seq, At: at(), Row: []scgs.Value{scgs.BoolValue(true)}}}
				}
				step(synccore.Input{Kind: synccore.InBatch, From: b.Member, Batch: &b})
			}
			hello("a", 1)
			batch(wire.Batch{Member: "a", Incarnation: 1}, 1)
			seq := uint64(1)
			comes := func(incarnation uint64) {
				hello("b", incarnation)
				batch(wire.Batch{Member: "b", Incarnation: incarnation}, 1)
			}
			pass := func(lasts time.Duration) {
				for until := now.Add(lasts); now < until; {
					now = now.Add(20 * time.Millisecond)
					seq++ // Its state changes all the time, and the predicate holds throughout.
					e := at()
					e.Mono += 2
					batch(wire.Batch{Member: "a", Incarnation: 1, Evidence: wire.Evidence{Seq: seq, At: e}}, seq)
				}
			}
			for i := range int(time.Minute / (400 * time.Millisecond)) {
				comes(uint64(i + 1))
				pass(200 * time.Millisecond)
				for _, m := range core.Status(now).Members {
					if m.Name == "b" && m.Why != "" {
						told++
					}
				}
				batch(wire.Batch{Member: "b", Incarnation: uint64(i + 1), Leaving: true}, 0)
				pass(200 * time.Millisecond)
			}
			epochs := core.Epoch()
			t.Logf("%d epochs, %d firings, told %d times", epochs, fired, told)
			if epochs > 60 || fired < 3 || told == 0 {
				t.Errorf("%d epochs and %d firings within a minute; it was told %d times that a member is put off", epochs, fired, told)
			}
			comes(1000)
			pass(20 * time.Second)
			if s := core.Status(now); s.Members[1].Standing != monitor.InEpoch {
				t.Errorf("in the end it is %+v", s.Members[1])
			}
		})
	}
}

// TestTheGoneAreBounded: of members that come and go under new names no more are remembered
// than max and some hundred, the newest of them, and those that are put off.
func TestTheGoneAreBounded(t *testing.T) {
	core := synccore.New(compile(t, strings.Replace(lone, "group: g", "group: g, max: 4", 1)), synccore.Options{Term: 1})
	var out synccore.Output
	now := clocksync.Instant(0)
	come := func(name string, incarnation uint64, reports ...wire.Report) {
		now++
		core.Step(now, &synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: incarnation, Domain: "d"}}, &out)
		core.Step(now, &synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{Member: name, Incarnation: incarnation, Reports: reports}}, &out)
	}
	leave := func(name string, incarnation uint64) {
		core.Step(now, &synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{Member: name, Incarnation: incarnation, Leaving: true}}, &out)
	}
	report := wire.Report{Seq: 1, At: clocksync.Stamp{Domain: "d", Mono: 1, Within: clocksync.Unbounded}, Row: []scgs.Value{scgs.IntValue(0)}}
	come("a", 1, report)
	for i := range uint64(5) {
		come("z", i+1, report)
		leave("z", i+1)
	}
	most, last := 0, ""
	for i := range 3000 {
		last = fmt.Sprintf("x%d", i)
		come(last, 1)
		leave(last, 1)
		if i%100 == 0 {
			most = max(most, len(core.Status(now).Members))
		}
	}
	come("z", 9, report)
	members := core.Status(now).Members
	if z := members[len(members)-1]; most > 4+4+512 || z.Name != "z" || z.Standing != monitor.Ready || z.Why == "" {
		t.Errorf("%d members at most, and in the end %+v", most, z)
	}
	if !slices.ContainsFunc(members, func(m monitor.MemberStatus) bool { return m.Name == last && m.Standing == monitor.Gone }) {
		t.Errorf("%s is forgotten", last)
	}
	for i := range 3 { // The gone do not count among those that are here.
		come(fmt.Sprintf("y%d", i), 1)
	}
	members = core.Status(now).Members
	knows := func(name string) bool {
		return slices.ContainsFunc(members, func(m monitor.MemberStatus) bool { return m.Name == name })
	}
	if !knows("y1") || knows("y2") {
		t.Error("two are to have room beside a and z, and not three")
	}
}
