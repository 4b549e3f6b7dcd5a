package synccore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const clocksConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    state: {n: int}
    predicates:
      both: {when: "all(members, .n == 1)"}
`

// clockHost hosts a machine whose own clock is the clock of the domain "root".
type clockHost struct {
	t    *testing.T
	core *synccore.Core
	out  synccore.Output
	now  clocksync.Instant
	seq  map[string]uint64
}

func newClockHost(t *testing.T, opt synccore.Options) *clockHost {
	t.Helper()
	plans, err := configfile.Parse("test.yaml", []byte(clocksConfig))
	if err != nil {
		t.Fatal(err)
	}
	opt.Term, opt.Reference = 1, "root"
	return &clockHost{t: t, core: synccore.New(plans[0], opt), seq: map[string]uint64{}}
}

func (h *clockHost) step(in synccore.Input) *synccore.Output {
	h.now++
	h.core.Step(h.now, &in, &h.out)
	return &h.out
}

func (h *clockHost) hello(name string, incarnation uint64, domain clocksync.Domain, q clocksync.Quality) *wire.Welcome {
	h.t.Helper()
	out := h.step(synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{
		Member: name, Incarnation: incarnation, Domain: domain, Quality: q,
	}})
	if len(out.Welcomes) != 1 {
		h.t.Fatalf("%+v; want one welcome", out)
	}
	return &out.Welcomes[0].Msg
}

// says starts a state with n = 1 that still holds at the evidence.
func (h *clockHost) says(name string, at, evidence clocksync.Stamp) *synccore.Output {
	h.seq[name]++
	return h.step(synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
		Member: name, Incarnation: 1, Reports: []wire.Report{{Seq: h.seq[name], At: at, Row: []scgs.Value{scgs.IntValue(1)}}},
		Evidence: wire.Evidence{Seq: h.seq[name], At: evidence},
	}})
}

func at(domain clocksync.Domain, mono clocksync.Instant, within clocksync.Interval) clocksync.Stamp {
	return clocksync.Stamp{Domain: domain, Mono: mono, Within: within}
}

func synchronized(source string, timeline clocksync.Timeline) clocksync.Quality {
	return clocksync.Quality{Source: source, Timeline: timeline, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant}
}

// TestTheReferenceIsExact: a member on the reference clock needs no bound to be compared with a
// member that measured itself against it.
func TestTheReferenceIsExact(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	if w := h.hello("near", 1, "root", clocksync.Quality{Source: "system"}); !w.Accepted || w.Domain != "root" || w.Timeline != "" {
		t.Errorf("%+v", w)
	}
	if w := h.hello("far", 1, "d", synchronized("peer", "root")); !w.Accepted || w.Timeline != "root" {
		t.Errorf("%+v", w)
	}
	h.says("near", at("root", 1000, clocksync.Unbounded), at("root", 1001, clocksync.Unbounded))
	out := h.says("far", at("d", 5, clocksync.Around(1010, 20)), at("d", 90, clocksync.Around(1095, 20)))
	want := []wire.Addressed[wire.Probe]{{To: "near", Msg: wire.Probe{
		Incarnation: 1, Seq: 1, AfterMono: 1030, AfterTime: clocksync.MinInstant,
	}}}
	if d := cmp.Diff(want, out.Probes); d != "" {
		t.Errorf("the member on the reference clock is asked for a reading, which it can tell (-want +got):\n%s", d)
	}
	out = h.step(synccore.Input{Kind: synccore.InBatch, From: "near", Batch: &wire.Batch{
		Member: "near", Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: at("root", 1031, clocksync.Unbounded)},
	}})
	if len(out.Verdicts) != 1 || !out.Verdicts[0].Fired || out.Verdicts[0].Bound != 20 || out.Verdicts[0].Sources != "peer" {
		t.Errorf("%+v; want a verdict by the bound of the one that has one", out.Verdicts)
	}
}

func TestMixedTimelines(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	w := h.hello("a", 1, "d", synchronized("ntp", clocksync.UTC))
	if want := `member "a" stamps by the timeline "utc", and gsync compares by "root"`; !w.Refused || !strings.HasPrefix(w.Reason, want) {
		t.Errorf("%+v\nwant %s", w, want)
	}
	h = newClockHost(t, synccore.Options{Timeline: clocksync.UTC})
	if w := h.hello("a", 1, "d", synchronized("ntp", clocksync.UTC)); !w.Accepted || w.Domain != "" {
		t.Errorf("%+v; want it taken, and no clock to measure against", w)
	}
	// One incarnation has one timeline, of which it may learn late.
	h = newClockHost(t, synccore.Options{})
	h.hello("a", 1, "d", clocksync.Quality{})
	if w := h.hello("a", 1, "d", synchronized("peer", "root")); !w.Accepted || w.Timeline != "root" {
		t.Errorf("%+v", w)
	}
}

// TestABoundOnNoTimelineCountsForNothing.
func TestABoundOnNoTimelineCountsForNothing(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	h.hello("near", 1, "root", clocksync.Quality{})
	h.hello("far", 1, "d", clocksync.Quality{Source: "mine", Status: clocksync.Synchronized})
	h.says("near", at("root", 1000, clocksync.Unbounded), at("root", 9000, clocksync.Unbounded))
	out := h.says("far", at("d", 5, clocksync.Around(1010, 20)), at("d", 9, clocksync.Around(1095, 20)))
	if len(out.Verdicts) > 0 || len(out.Rejected) != 1 || !strings.Contains(out.Rejected[0].Detail, "names no timeline") {
		t.Errorf("verdicts %+v, rejected %+v", out.Verdicts, out.Rejected)
	}
	if out = h.says("far", at("d", 15, clocksync.Around(1110, 20)), at("d", 19, clocksync.Around(1195, 20))); len(out.Rejected) > 0 {
		t.Errorf("said again: %+v", out.Rejected)
	}
}

// TestClockEvents: a status is reported when it changes.
func TestClockEvents(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	var got []string
	note := func() {
		for _, c := range h.out.Clocks {
			got = append(got, c.Name+" "+c.Quality.Source+" "+c.Quality.Status.String())
		}
	}
	h.hello("near", 1, "root", clocksync.Quality{Source: "system"})
	note()
	h.hello("far", 1, "d", synchronized("peer", "root"))
	note()
	for _, s := range []clocksync.Status{clocksync.Degraded, clocksync.Degraded, clocksync.Unknown, clocksync.Synchronized} {
		h.step(synccore.Input{Kind: synccore.InBatch, From: "far", Batch: &wire.Batch{
			Member: "far", Incarnation: 1, Tagged: true, Quality: clocksync.Quality{Source: "peer", Status: s},
		}})
		note()
	}
	want := []string{"far peer synchronized", "far peer degraded", "far peer unknown", "far peer synchronized"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestProcessesThatMeasureApart: the stamps of one domain are moved between those
// of the other processes in it, whoever came first.
func TestProcessesThatMeasureApart(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	h.hello("a", 1, "d", synchronized("peer", "root"))
	h.says("a", at("d", 100, clocksync.Around(1100, 5)), at("d", 101, clocksync.Around(1101, 5)))
	h.hello("b", 1, "d", synchronized("peer", "root"))
	// Its bound is wider, and it began later: not before the other's reading.
	h.says("b", at("d", 110, clocksync.Around(1110, 50)), at("d", 111, clocksync.Around(1111, 50)))
	out := h.step(synccore.Input{Kind: synccore.InBatch, From: "a", Batch: &wire.Batch{
		Member: "a", Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: at("d", 120, clocksync.Around(1120, 5))},
	}})
	if len(out.Verdicts) != 1 || !out.Verdicts[0].Fired {
		t.Fatalf("%+v; want a verdict by the same clock", out)
	}
	for _, p := range out.Verdicts[0].Witness {
		want := clocksync.Around(1100, 5)
		if p.Name == "b" {
			want = clocksync.Interval{Earliest: 1096, Latest: 1160}
		}
		if p.State.Start.Within != want {
			t.Errorf("%s started within %v, want %v", p.Name, p.State.Start.Within, want)
		}
	}
	// Forgotten stamps cannot be put in order any more.
	h.now += clocksync.Instant(time.Second)
	h.step(synccore.Input{Kind: synccore.InBatch, From: "b", Batch: &wire.Batch{
		Member: "b", Incarnation: 1, Evidence: wire.Evidence{Seq: 1, At: at("d", 130, clocksync.Around(1130, 50))},
	}})
	h.now += clocksync.Instant(time.Second)
	h.step(synccore.Input{Kind: synccore.InTick})
	out = h.says("b", at("d", 112, clocksync.Around(1112, 50)), at("d", 140, clocksync.Around(1140, 50)))
	if len(out.Rejected) != 1 || !strings.Contains(out.Rejected[0].Detail, "the reading 112 is older") {
		t.Errorf("rejected %+v", out.Rejected)
	}
}

// TestAClockThatContradictsItself takes the other processes of its host along.
func TestAClockThatContradictsItself(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	for _, name := range []string{"a", "b"} {
		h.hello(name, 1, "d", synchronized("peer", "root"))
		h.says(name, at("d", 100, clocksync.Around(1100, 5)), at("d", 101, clocksync.Around(1101, 5)))
	}
	h.hello("a", 2, "d", clocksync.Quality{Source: "peer", Timeline: "root", Status: clocksync.Untrusted})
	var dropped []string
	for _, e := range h.out.Epochs {
		for _, d := range e.Dropped {
			dropped = append(dropped, d.Name+": "+d.Reason)
		}
	}
	want := []string{`b: the clock of its host contradicts itself, as "a" has measured`, "a: came back as a new incarnation"}
	if d := cmp.Diff(want, dropped); d != "" {
		t.Error(d)
	}
}

// TestTheReferenceStandsStill: bounds measured against it before are void, and its own members
// stay.
func TestTheReferenceStandsStill(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	h.hello("near", 1, "root", clocksync.Quality{Source: "system"})
	h.hello("far", 1, "d", synchronized("peer", "root"))
	h.says("near", at("root", 1000, clocksync.Unbounded), at("root", 1001, clocksync.Unbounded))
	h.says("far", at("d", 5, clocksync.Around(1010, 20)), at("d", 90, clocksync.Around(1095, 20)))
	out := h.step(synccore.Input{Kind: synccore.InTimeline, Timeline: "root+7ms"})
	if len(out.Epochs) != 1 || len(out.Epochs[0].Dropped) != 1 || out.Epochs[0].Dropped[0].Name != "far" {
		t.Errorf("%+v; want the member dropped that had measured itself", out.Epochs)
	}
	if w := h.hello("far", 2, "d", synchronized("peer", "root")); !w.Refused || w.Timeline != "root+7ms" {
		t.Errorf("%+v; want what was measured before refused, and the timeline that is in force", w)
	}
	if w := h.hello("far", 2, "d", synchronized("peer", "root+7ms")); !w.Accepted || w.Domain != "root" {
		t.Errorf("%+v", w)
	}
}

// TestAnOldStateBeginsAtItsEvidence: the state of a member that comes to a clock of others is
// older than the stamps that are kept of that clock. It counts from the first stamp at which
// it still held.
func TestAnOldStateBeginsAtItsEvidence(t *testing.T) {
	bounded := func(mono clocksync.Instant) clocksync.Stamp { return at("d", mono, clocksync.Around(mono+1000, 5)) }
	h := newClockHost(t, synccore.Options{})
	h.hello("a", 1, "d", synchronized("peer", "root"))
	mono := clocksync.Instant(100)
	for range 300 {
		h.says("a", bounded(mono), bounded(mono+1))
		mono += 2
	}
	h.hello("b", 1, "d", synchronized("peer", "root"))
	out := h.step(synccore.Input{Kind: synccore.InBatch, From: "b", Batch: &wire.Batch{
		Member: "b", Incarnation: 1, Reports: []wire.Report{{Seq: 1, At: bounded(50), Row: []scgs.Value{scgs.IntValue(1)}}},
	}})
	if len(out.Rejected) != 1 || !strings.Contains(out.Rejected[0].Detail, "older than the stamps of its clock domain") || len(out.Epochs) > 0 {
		t.Fatalf("%+v", out)
	}
	evidence := func(name string, seq uint64, mono clocksync.Instant) *synccore.Output {
		return h.step(synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
			Member: name, Incarnation: 1, Evidence: wire.Evidence{Seq: seq, At: bounded(mono)},
		}})
	}
	if out = evidence("b", 1, mono); len(out.Epochs) != 1 {
		t.Fatalf("it takes no part: %+v", out)
	}
	out = evidence("a", 300, mono+20)
	fired := out.Verdicts
	out = evidence("b", 1, mono+40)
	if fired = append(fired, out.Verdicts...); len(fired) != 1 || !fired[0].Fired || len(fired[0].Witness) != 2 || fired[0].Witness[1].State.Start.Mono != mono {
		t.Errorf("%+v; want a verdict on the state from %d on", fired, mono)
	}
}

// TestEveryHelloIsAnswered: a member that is gone hears so each time that it says hello.
func TestEveryHelloIsAnswered(t *testing.T) {
	h := newClockHost(t, synccore.Options{})
	h.hello("a", 1, "root", clocksync.Quality{Source: "system"})
	h.step(synccore.Input{Kind: synccore.InBatch, From: "a", Batch: &wire.Batch{Member: "a", Incarnation: 1, Leaving: true}})
	for range 3 {
		if w := h.hello("a", 1, "root", clocksync.Quality{Source: "system"}); w.Accepted || w.Reason != "left" {
			t.Errorf("%+v", w)
		}
	}
}
