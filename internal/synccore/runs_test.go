package synccore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/rearm"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const runsConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 4}
    silence: {after: 1h, then: block}
    state: {on: bool}
    predicates:
      two: {when: "count(members, .on) >= 2"}
      three: {when: "2 < count(members, .on)"}
      definitely: {when: "all(members, .on)", modality: definitely}
      possibly: {when: "all(members, .on)", modality: possibly}
`

// TestRunsOfRules: what a threshold and a modality fire on is what the detectors
// find that are given the states and nothing else, in the same order. A threshold fires on a set
// only once it was certainly not reached between it and all that it has fired on.
func TestRunsOfRules(t *testing.T) {
	plans, err := configfile.Parse("runs.yaml", []byte(runsConfig))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := comparison{
			core: synccore.New(plans[0], synccore.Options{Term: 1}),
			sets: map[string]*scgs.Threshold{
				"two": scgs.NewThreshold(2, scgs.Options{}), "three": scgs.NewThreshold(3, scgs.Options{}),
			},
			tuples: map[string]*scgs.Detector{
				"definitely": scgs.NewDetector(scgs.Options{Modality: scgs.Definitely}),
				"possibly":   scgs.NewDetector(scgs.Options{Modality: scgs.Possibly}),
			},
			got: map[string][]string{}, want: map[string][]string{}, fired: map[string][][]scgs.Part{}, waits: map[string][][]scgs.Part{},
		}
		bound := time.Duration(rapid.IntRange(0, 8).Draw(t, "bound"))
		c.join()
		at := make([]clocksync.Instant, len(c.domains))
		for range rapid.IntRange(0, 60).Draw(t, "reports") {
			m := rapid.IntRange(0, len(at)-1).Draw(t, "member")
			at[m] += clocksync.Instant(rapid.IntRange(1, 12).Draw(t, "pause"))
			stamp := clocksync.Stamp{Domain: c.domains[m], Mono: at[m], Within: clocksync.Around(at[m], bound)}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				c.alive(m, stamp)
			case 1:
				c.seq[m] += uint64(rapid.IntRange(0, 1).Draw(t, "lost"))
				fallthrough
			default:
				c.report(m, stamp, rapid.IntRange(0, 2).Draw(t, "on") > 0)
			}
		}
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("-the detectors +the synchronizer:\n%s", diff)
		}
	})
}

// comparison feeds a synchronizer and plain detectors alike.
type comparison struct {
	core      *synccore.Core
	out       synccore.Output
	sets      map[string]*scgs.Threshold
	tuples    map[string]*scgs.Detector
	domains   []clocksync.Domain
	seq, told []uint64
	took      []uint64            // the newest that a detector has accepted
	got, want map[string][]string // by predicate, what it fired on

	runs         []scgs.Part              // all that were told
	fired, waits map[string][][]scgs.Part // by threshold, the sets that have fired and that wait
}

func (c *comparison) join() {
	c.domains = []clocksync.Domain{"h1", "h1", "h2", "h3"}
	c.seq, c.told = make([]uint64, len(c.domains)), make([]uint64, len(c.domains))
	specs := make([]scgs.Spec, len(c.domains))
	for m, d := range c.domains {
		specs[m] = scgs.Spec{Domain: d}
		c.step(synccore.Input{Kind: synccore.InHello, Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: d}}, m)
	}
	for _, s := range c.sets {
		s.Epoch(1, nil, specs)
	}
	for _, d := range c.tuples {
		d.Epoch(1, nil, specs)
	}
	for m, d := range c.domains {
		c.report(m, clocksync.Stamp{Domain: d, Within: clocksync.Exactly(0)}, false)
	}
}

func member(m int) string { return fmt.Sprintf("m%d", m) }

func (c *comparison) step(in synccore.Input, m int) {
	in.From = member(m)
	c.core.Step(0, &in, &c.out)
	for _, v := range c.out.Verdicts {
		if !v.Fired {
			continue
		}
		var runs []string
		for _, p := range v.Witness {
			runs = append(runs, fmt.Sprintf("%s:%d", p.Name, p.State.Seq))
		}
		c.got[v.Predicate] = append(c.got[v.Predicate], strings.Join(runs, " "))
	}
	for name, s := range c.sets {
		var set scgs.Set
		old := c.waits[name]
		c.waits[name] = nil
		for s.Next(&set) {
			if !set.Grows {
				c.judge(name, slices.Clone(set.Runs))
			}
		}
		later := c.waits[name]
		c.waits[name] = nil
		for _, parts := range old {
			c.judge(name, parts)
		}
		c.waits[name] = append(c.waits[name], later...)
	}
	for name, d := range c.tuples {
		var ev scgs.Event
		for d.Next(&ev) {
			if ev.Kind == scgs.Opened {
				c.found(name, d.Witness(nil))
			}
		}
	}
}

// judge has a threshold fire on a set, or lets the set wait.
func (c *comparison) judge(name string, set []scgs.Part) {
	k := map[string]int{"two": 2, "three": 3}[name]
	for _, fired := range c.fired[name] {
		if !slices.ContainsFunc(c.kept(), func(r scgs.Part) bool {
			return c.parts(k, &r.Start, 0, fired, set) || !r.Open && c.parts(k, &r.End, 1, fired, set)
		}) {
			c.waits[name] = append(c.waits[name], set)
			return
		}
	}
	c.fired[name] = append(c.fired[name], set)
	c.found(name, set)
}

// kept are the runs that a threshold keeps: the open ones, and the newest of each member.
func (c *comparison) kept() (list []scgs.Part) {
	ended := map[scgs.Member]int{}
	for _, r := range slices.Backward(c.runs) {
		if !r.Open {
			ended[r.Member]++
		}
		if r.Open || ended[r.Member] <= rearm.PastRuns {
			list = append(list, r)
		}
	}
	return list
}

// parts reports whether just before a stamp, or just after it, two sets were on different sides and
// fewer than k members can have had a run.
func (c *comparison) parts(k int, at *clocksync.Stamp, after clocksync.Instant, a, b []scgs.Part) bool {
	members := map[scgs.Member]bool{}
	for _, r := range c.kept() {
		if set := []scgs.Part{r}; !c.past(set, at, after) && !coming(set, at, after) {
			members[r.Member] = true
		}
	}
	return len(members) < k && (c.past(a, at, after) && coming(b, at, after) || c.past(b, at, after) && coming(a, at, after))
}

// past reports whether one of the runs was certainly over then.
func (c *comparison) past(set []scgs.Part, at *clocksync.Stamp, after clocksync.Instant) bool {
	return slices.ContainsFunc(set, func(p scgs.Part) bool {
		r := c.runs[slices.IndexFunc(c.runs, func(r scgs.Part) bool { return r.Member == p.Member && r.Seq == p.Seq })]
		if r.End.Domain == at.Domain {
			return !r.Open && r.End.Mono < at.Mono+after
		}
		return !r.Open && r.End.Within.Latest < at.Within.Earliest
	})
}

// coming reports whether one of the runs had certainly not begun then.
func coming(set []scgs.Part, at *clocksync.Stamp, after clocksync.Instant) bool {
	return slices.ContainsFunc(set, func(p scgs.Part) bool {
		if p.Start.Domain == at.Domain {
			return p.Start.Mono >= at.Mono+after
		}
		return at.Within.Latest < p.Start.Within.Earliest
	})
}

// run notes a state, or only that the newest one still holds.
func (c *comparison) run(m int, at clocksync.Stamp, on, lost bool) {
	i := len(c.runs) - 1
	for i >= 0 && (int(c.runs[i].Member) != m || !c.runs[i].Open) {
		i--
	}
	if i >= 0 {
		r := &c.runs[i]
		if r.Open = on && !lost; lost {
			r.End.Within.Latest = at.Within.Latest
		} else {
			r.End = at
		}
		if r.Open {
			return
		}
	}
	if on {
		c.runs = append(c.runs, scgs.Part{Member: scgs.Member(m), Seq: c.seq[m], Start: at, End: at, Open: true}) //nolint:gosec // There are few.
	}
}

func (c *comparison) found(name string, parts []scgs.Part) {
	var runs []string
	for _, p := range parts {
		runs = append(runs, fmt.Sprintf("%s:%d", member(int(p.Member)), p.Seq))
	}
	c.want[name] = append(c.want[name], strings.Join(runs, " "))
}

// intake is a plain detector of either kind.
type intake interface {
	Start(m scgs.Member, seq uint64, at clocksync.Stamp, ref scgs.Ref) scgs.Reason
	End(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
	Evidence(m scgs.Member, seq uint64, at clocksync.Stamp) scgs.Reason
}

func (c *comparison) each(tell func(intake)) {
	for _, s := range c.sets {
		tell(s)
	}
	for _, d := range c.tuples {
		tell(d)
	}
}

// report begins a state; what has no number between it and the last one is lost.
func (c *comparison) report(m int, at clocksync.Stamp, on bool) {
	c.seq[m]++
	accepted := false
	c.each(func(d intake) {
		if on {
			accepted = d.Start(scgs.Member(m), c.seq[m], at, 0) == scgs.Accepted
		} else {
			accepted = d.End(scgs.Member(m), c.seq[m], at) == scgs.Accepted
		}
	})
	if c.took == nil {
		c.took = make([]uint64, len(c.seq))
	}
	if accepted {
		c.run(m, at, on, c.seq[m] > c.took[m]+1)
		c.took[m] = c.seq[m]
	}
	b := &wire.Batch{Member: member(m), Incarnation: 1, Reports: []wire.Report{{Seq: c.seq[m], At: at, Row: []scgs.Value{scgs.BoolValue(on)}}}}
	c.step(synccore.Input{Kind: synccore.InBatch, Batch: b}, m)
	if c.seq[m] > c.told[m]+1 {
		c.step(synccore.Input{Kind: synccore.InGone, Gone: &wire.Gone{Member: member(m), Incarnation: 1, First: c.seq[m]}}, m)
	}
	c.told[m] = c.seq[m]
}

// alive is evidence of the newest state, if nothing was lost since.
func (c *comparison) alive(m int, at clocksync.Stamp) {
	if c.seq[m] != c.told[m] {
		return
	}
	accepted := false
	c.each(func(d intake) { accepted = d.Evidence(scgs.Member(m), c.seq[m], at) == scgs.Accepted })
	if lost := len(c.took) > 0 && c.seq[m] > c.took[m]; accepted {
		if slices.ContainsFunc(c.runs, func(r scgs.Part) bool { return int(r.Member) == m && r.Open }) {
			c.run(m, at, !lost, lost)
		}
		c.took[m] = c.seq[m]
	}
	b := &wire.Batch{Member: member(m), Incarnation: 1, Evidence: wire.Evidence{Seq: c.seq[m], At: at}}
	c.step(synccore.Input{Kind: synccore.InBatch, Batch: b}, m)
}

// crowd is a synchronizer with so many members, all of them off.
func crowd(t *testing.T, n int, predicate string) *comparison {
	t.Helper()
	plans, err := configfile.Parse("crowd.yaml", fmt.Appendf(nil, `
synchronizers:
  gsync:
    members: {group: g, count: %d}
    silence: {after: 1h, then: block}
    state: {on: bool}
    predicates:
      p: {%s}
`, n, predicate))
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{core: synccore.New(plans[0], synccore.Options{Term: 1}), got: map[string][]string{}}
	c.seq, c.told = make([]uint64, n), make([]uint64, n)
	for m := range n {
		c.step(synccore.Input{Kind: synccore.InHello, Hello: &wire.Hello{Member: member(m), Incarnation: 1, Domain: "d"}}, m)
	}
	for m := range n {
		c.report(m, reading(0), false)
	}
	return c
}

func reading(at int) clocksync.Stamp {
	return clocksync.Stamp{Domain: "d", Mono: clocksync.Instant(at), Within: clocksync.Unbounded}
}

// A third member that comes and goes adds nothing to two who stay, whatever the number
// of times; in a new epoch the two are an alarm again, if that is asked for.
func TestStandingSets(t *testing.T) {
	for refire, alarms := range map[string]int{"newcomers": 1, "epoch": 2} {
		t.Run(refire, func(t *testing.T) { standing(t, refire, alarms) })
	}
}

// standing wants as many alarms of the two alone.
func standing(t *testing.T, refire string, want int) {
	t.Helper()
	c := crowd(t, 3, `when: "count(members, .on) >= 2", refire: `+refire)
	for m := range 2 {
		c.report(m, reading(10), true)
	}
	at := 20
	for range 200 {
		c.report(2, reading(at), true)
		c.alive(0, reading(at+1))
		c.alive(1, reading(at+1))
		c.alive(2, reading(at+1))
		c.report(2, reading(at+2), false)
		at += 10
		if len(c.out.Rejected) > 0 {
			t.Fatal(c.out.Rejected)
		}
	}
	leave := &wire.Batch{Member: member(2), Incarnation: 1, Leaving: true}
	c.step(synccore.Input{Kind: synccore.InBatch, Batch: leave}, 2)
	alarms := 0 // Of the two alone.
	for _, runs := range c.got["p"] {
		if runs == "m0:2 m1:2" {
			alarms++
		}
	}
	if last := c.got["p"][len(c.got["p"])-1]; alarms != want || last != "m0:2 m1:2" || c.core.Epoch() != 2 {
		t.Errorf("epoch %d: the two have fired %d times, last fired %s", c.core.Epoch(), alarms, last)
	}
}

// Sets that wait for their hold time are bounded in number, and what is left out is
// told.
func TestTooManySetsWait(t *testing.T) {
	const members = 70
	c := crowd(t, members, `when: "count(members, .on) >= 2", for: 1h`)
	left := 0
	for m := range members { // each overlaps the next one, and no other
		c.report(m, reading(10+10*m), true)
		left += len(c.out.Rejected)
		c.alive(m, reading(10+10*m+15))
		left += len(c.out.Rejected)
	}
	want := "predicate p: more than 64 sets of members wait until they have held for long enough, or for the cooldown: the oldest is left out"
	if left != members-1-64 || len(c.out.Rejected) != 1 || c.out.Rejected[0].Detail != want {
		t.Errorf("%d sets were left out: %v", left, c.out.Rejected)
	}
	if len(c.got["p"]) > 0 {
		t.Errorf("fired on %v", c.got["p"])
	}
	told := "2 members have been found that hold it together; they are not known to have done so for 1h0m0s"
	if e, _ := c.core.Explain(0, "p"); e.Missing[0].Kind != "hold" || e.Missing[0].Text != told {
		t.Errorf("told is %+v", e.Missing[0])
	}
}
