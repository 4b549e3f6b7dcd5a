package web

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const witnessed = `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    state: {idle: bool}
    predicates:
      inst: {when: "all(members, .idle)"}
      some: {when: "any(members, .idle)"}
      definitely: {when: "all(members, .idle)", modality: definitely}
      possibly: {when: "all(members, .idle)", modality: possibly}
`

// rawMember is what a member has reported so far, and the true times. The number of a report is its index plus 1.
type rawMember struct {
	name     string
	domain   clocksync.Domain
	offset   clocksync.Instant
	stamps   []clocksync.Stamp
	truth    []clocksync.Instant
	idle     []bool
	evidence clocksync.Stamp // that the last state still held
	within   clocksync.Interval
}

// rawWorld drives a synchronizer with random reports of members whose clocks have random bounds.
type rawWorld struct {
	dice    *rand.Rand
	core    *synccore.Core
	level   *plan.Level
	out     synccore.Output
	now     clocksync.Instant // true time, and the clock of the synchronizer
	members []*rawMember
	one     bool // all members read one clock
}

// TestPairsAgain makes decisions and computes the inequalities of the page again, from the reports alone. PEGASUS_PAIRS sets
// the number of decisions.
func TestPairsAgain(t *testing.T) {
	decisions := testcount.Of(t, "PAIRS", 400)
	kinds := map[string]int{}
	for seed := uint64(1); kinds["decisions"] < decisions; seed++ {
		w := newRawWorld(t, seed)
		for range 400 {
			w.step(t, kinds)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, kind := range []string{"inst", "definitely", "possibly", "one clock", "several clocks", "open", "over"} {
		if kinds[kind] < decisions/50 {
			t.Errorf("%d of the decisions are %q: %v", kinds[kind], kind, kinds)
		}
	}
	t.Logf("%v", kinds)
}

func newRawWorld(t *testing.T, seed uint64) *rawWorld {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 41)) //nolint:gosec // A simulation.
	w := &rawWorld{dice: dice, one: dice.IntN(3) == 0, now: clocksync.Instant(time.Hour)}
	n := 2 + dice.IntN(4)
	levels, err := configfile.Parse("witness.yaml", fmt.Appendf(nil, witnessed, n))
	if err != nil {
		t.Fatal(err)
	}
	w.level = levels[0]
	w.core = synccore.New(w.level, synccore.Options{Term: 1, Timeline: clocksync.UTC})
	for i := range n {
		m := &rawMember{name: fmt.Sprintf("m%d", i), domain: "host"}
		if !w.one {
			m.domain = clocksync.Domain(m.name)
			m.offset = clocksync.Instant(dice.Int64N(int64(time.Minute)))
		}
		w.members = append(w.members, m)
		w.input(&synccore.Input{Kind: synccore.InHello, From: m.name, Hello: &wire.Hello{
			Member: m.name, Incarnation: 1, Domain: m.domain,
			Quality: clocksync.Quality{Source: "ntp", Timeline: clocksync.UTC, Status: clocksync.Synchronized, Expires: clocksync.MaxInstant},
		}})
	}
	return w
}

func (w *rawWorld) input(in *synccore.Input) { w.core.Step(w.now, in, &w.out) }

// stamp is a reading of a member's clock now. The bound contains the true time, and its ends never go back.
func (w *rawWorld) stamp(m *rawMember) clocksync.Stamp {
	wide := func() clocksync.Instant { return clocksync.Instant(w.dice.Int64N(int64(2 * time.Millisecond))) }
	m.within = clocksync.Interval{Earliest: max(m.within.Earliest, w.now-wide()), Latest: max(m.within.Latest, w.now+wide())}
	return clocksync.Stamp{Domain: m.domain, Mono: w.now + m.offset, Within: m.within}
}

// step has a member report a state, or that the last one still holds, and checks the decisions.
func (w *rawWorld) step(t *testing.T, kinds map[string]int) {
	t.Helper()
	w.now += clocksync.Instant(1 + w.dice.Int64N(int64(4*time.Millisecond)))
	m := w.members[w.dice.IntN(len(w.members))]
	b := &wire.Batch{Member: m.name, Incarnation: 1, Schema: w.level.State.Hash()}
	if len(m.stamps) == 0 || w.dice.IntN(3) > 0 {
		at := w.stamp(m)
		idle := w.dice.IntN(3) > 0
		m.stamps, m.truth, m.idle = append(m.stamps, at), append(m.truth, w.now), append(m.idle, idle)
		b.Reports = []wire.Report{{Seq: uint64(len(m.stamps)), At: at, Row: []scgs.Value{scgs.BoolValue(idle)}}}
		w.now++
	}
	m.evidence = w.stamp(m)
	b.Evidence = wire.Evidence{Seq: uint64(len(m.stamps)), At: m.evidence}
	w.now += clocksync.Instant(w.dice.Int64N(int64(time.Millisecond)))
	w.input(&synccore.Input{Kind: synccore.InBatch, From: m.name, Batch: b})
	if len(w.out.Rejected) > 0 {
		t.Fatalf("%+v", w.out.Rejected)
	}
	var fired []string
	for i := range w.out.Verdicts {
		if w.out.Verdicts[i].Fired {
			fired = append(fired, w.out.Verdicts[i].Predicate)
		}
	}
	slices.Sort(fired)
	for _, name := range slices.Compact(fired) {
		w.input(&synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Explain: name}})
		kinds["decisions"]++
		w.check(t, name, w.out.Answer.Explanation, kinds)
	}
}

// again is an inequality by the reports.
type again struct {
	began, ended string
	start, end   clocksync.Instant
	open         bool
}

// check computes the inequalities of a decision from the reports of the states that the decision names.
func (w *rawWorld) check(t *testing.T, name string, e *monitor.Explanation, kinds map[string]int) {
	t.Helper()
	d := e.Last
	kinds[cmp.Or(d.Modality, "inst")]++
	if d.SameClock {
		kinds["one clock"]++
	} else {
		kinds["several clocks"]++
	}
	possibly := name == "possibly"
	sure := map[string]clocksync.Instant{} // Until then the state certainly held.
	start, end, open := map[string]clocksync.Instant{}, map[string]clocksync.Instant{}, map[string]bool{}
	truly := [2]clocksync.Instant{clocksync.MinInstant, clocksync.MaxInstant} // From when on, and until when, all held.
	for i := range d.Witness {
		s := &d.Witness[i]
		m := w.members[slices.IndexFunc(w.members, func(m *rawMember) bool { return m.name == s.Member })]
		first, last, next := m.stamps[s.Seq-1], m.evidence, int(s.Seq) //nolint:gosec // It is small.
		if name == "definitely" || name == "possibly" {                // The state lasts as long as the condition.
			for next < len(m.stamps) && m.idle[next] {
				next++
			}
		}
		open[m.name] = next == len(m.stamps)
		truly[0] = max(truly[0], m.truth[s.Seq-1])
		if !open[m.name] {
			last = m.stamps[next]
			truly[1] = min(truly[1], m.truth[next])
			kinds["over"]++
		} else {
			kinds["open"]++
		}
		sure[m.name] = last.Within.Earliest
		switch {
		case w.one:
			start[m.name], end[m.name] = first.Mono, last.Mono
		case possibly:
			start[m.name], end[m.name] = first.Within.Earliest, last.Within.Latest
		default:
			start[m.name], end[m.name] = first.Within.Latest, last.Within.Earliest
		}
	}
	if !possibly && truly[0] >= truly[1] {
		t.Errorf("%s: by the true time the states did not hold together: %+v", name, d)
	}
	var want []again
	for a := range start {
		for b := range end {
			if a != b {
				want = append(want, again{began: a, ended: b, start: start[a], end: end[b], open: open[b]})
			}
		}
	}
	origin, lasts := clocksync.MinInstant, clocksync.MaxInstant // When the last one certainly began, and the first one may have ended.
	earliest := clocksync.MinInstant
	for i := range d.Witness {
		m := w.members[slices.IndexFunc(w.members, func(m *rawMember) bool { return m.name == d.Witness[i].Member })]
		if first := m.stamps[d.Witness[i].Seq-1]; w.one {
			origin = max(origin, first.Mono)
		} else {
			origin, earliest, lasts = max(origin, first.Within.Latest), max(earliest, first.Within.Earliest), min(lasts, sure[m.name])
		}
	}
	if origin > lasts { // At no instant all certainly held.
		origin = earliest
	}
	after := func(at clocksync.Instant) string {
		if at < origin {
			return "-" + monitor.Seconds(origin.Sub(at).Seconds())
		}
		return monitor.Seconds(at.Sub(origin).Seconds())
	}
	v := newWhyView(e).Last
	if len(v.Pairs)+v.More != len(want) {
		t.Fatalf("%s: %d pairs and %d more, not %d", name, len(v.Pairs), v.More, len(want))
	}
	for i, p := range v.Pairs {
		k := slices.IndexFunc(want, func(a again) bool { return a.began == p.Began && a.ended == p.Ended })
		if k < 0 {
			t.Fatalf("%s: %s before %s is there twice, or not of the witness", name, p.Began, p.Ended)
		}
		a := want[k]
		want = slices.Delete(want, k, k+1)
		if margin := a.end.Sub(a.start); p.margin != margin {
			t.Errorf("%s: %s before %s: a margin of %v (%s), not %v\n%+v\n%+v", name, p.Began, p.Ended, p.margin, p.Margin, margin, a, d)
		}
		if end, _ := strings.CutSuffix(p.End, ", not over then"); p.Start != after(a.start) || end != after(a.end) {
			t.Errorf("%s: %s before %s: %s and %s, not %s and %s: %+v", name, p.Began, p.Ended, p.Start, p.End, after(a.start), after(a.end), d)
		}
		if a.open != strings.HasSuffix(p.End, ", not over then") {
			t.Errorf("%s: open is %t, and the page has %q", name, a.open, p.End)
		}
		if i > 0 && p.margin < v.Pairs[i-1].margin {
			t.Errorf("%s: pair %d is closer than the one before", name, i)
		}
		if !possibly && p.margin < 0 {
			t.Errorf("%s: a pair that proves nothing: %+v", name, p)
		}
	}
	if len(want) > 0 && len(v.Pairs) < maxPairs {
		t.Errorf("%s: pairs are missing: %+v", name, want)
	}
}
