package scgs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/scgs"
)

// crowded draws a system of many members that nearly all hold the condition, on
// so many clocks, so that sets are large and differ in little.
func crowded(rng *rand.Rand, members, clocks, reports, width int) *system {
	s := &system{}
	rules := make([]clocksync.Monotone, clocks)
	seq := make([]uint64, members)
	for m := range members {
		s.domains = append(s.domains, name(m%clocks))
	}
	for n := range reports {
		m := n % members
		if n >= members {
			m = rng.IntN(members)
		}
		now := clocksync.Instant(10 * n)
		at, _ := rules[m%clocks].Next(clocksync.Stamp{
			Domain: s.domains[m], Mono: now,
			Within: clocksync.Interval{Earliest: now - clocksync.Instant(rng.IntN(width)), Latest: now + clocksync.Instant(rng.IntN(width))},
		})
		msg := message{member: m, action: evidence, at: at}
		if state := rng.IntN(10); n < members || state < 4 {
			seq[m]++
			msg.action = start
			if n >= members && state == 0 {
				msg.action = end
			}
		}
		msg.seq = seq[m]
		s.arrived = append(s.arrived, msg)
	}
	return s
}

// maximal are the maximal sets by the plain algorithm of Bron and Kerbosch, with
// a pivot, over all runs.
func (r *thresholdReference) maximal() [][]*thresholdRun {
	var all []*thresholdRun
	for _, x := range r.runs {
		if overlapping(x, x) {
			all = append(all, x)
		}
	}
	over := make(map[*thresholdRun]map[*thresholdRun]bool)
	for _, x := range all {
		over[x] = map[*thresholdRun]bool{}
		for _, y := range all {
			if x.member != y.member && overlapping(x, y) {
				over[x][y] = true
			}
		}
	}
	var sets [][]*thresholdRun
	near := func(x *thresholdRun, from []*thresholdRun) (to []*thresholdRun) {
		for _, y := range from {
			if over[x][y] {
				to = append(to, y)
			}
		}
		return to
	}
	var extend func(set, may, before []*thresholdRun)
	extend = func(set, may, before []*thresholdRun) {
		if len(may)+len(before) == 0 {
			if len(set) >= r.k {
				sets = append(sets, slices.Clone(set))
			}
			return
		}
		var pivot *thresholdRun
		most := -1
		for _, x := range slices.Concat(may, before) {
			if n := len(near(x, may)); n > most {
				pivot, most = x, n
			}
		}
		for _, x := range slices.Clone(may) {
			if over[pivot][x] {
				continue
			}
			extend(append(slices.Clone(set), x), near(x, may), near(x, before))
			may = slices.DeleteFunc(slices.Clone(may), func(y *thresholdRun) bool { return y == x })
			before = append(before, x)
		}
	}
	extend(nil, all, nil)
	return sets
}

func key(set []*thresholdRun) string {
	slices.SortFunc(set, compareThresholdRuns)
	var b strings.Builder
	for _, x := range set {
		fmt.Fprintf(&b, "%d.%d ", x.member, x.seq)
	}
	return b.String()
}

func keyOf(parts []scgs.Part) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d.%d ", p.Member, p.Seq)
	}
	return b.String()
}

func TestThresholdOfManyMembers(t *testing.T) {
	total := 0
	for i, clocks := range []int{90, 9, 3, 1} {
		s := crowded(rand.New(rand.NewPCG(uint64(i), 0)), 90, clocks, 260, 400)
		reference := newThresholdReference(45, s)
		detector := scgs.NewThreshold(45, scgs.Options{})
		detector.Epoch(1, nil, s.specs())
		reported := map[string]bool{}
		for n, msg := range s.arrived {
			put(detector, scgs.Member(msg.member), msg)
			reference.take(msg)
			var set scgs.Set
			var got, want []string
			for detector.Next(&set) {
				got = append(got, keyOf(set.Runs))
			}
			for _, m := range reference.maximal() {
				if k := key(m); !reported[k] {
					want = append(want, k)
					reported[k] = true
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%d clocks, report %d: got\n%s\nwant\n%s", clocks, n, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			total += len(got)
		}
		if n := detector.Stats().Truncated; n > 0 {
			t.Errorf("%d inputs were cut short", n)
		}
	}
	if total < 50 {
		t.Errorf("only %d sets", total)
	}
}

// Beyond its limits a Threshold still finds sets, and nothing but sets.
func TestThresholdBeyondItsLimits(t *testing.T) {
	s := crowded(rand.New(rand.NewPCG(7, 0)), 60, 60, 300, 400)
	reference := newThresholdReference(2, s)
	detector := scgs.NewThreshold(2, scgs.Options{MaxPending: 2})
	detector.Epoch(1, nil, s.specs())
	found := 0
	for n, msg := range s.arrived {
		put(detector, scgs.Member(msg.member), msg)
		reference.take(msg)
		count := 0
		var set scgs.Set
		for ; detector.Next(&set); count++ {
			var runs []*thresholdRun
			for _, p := range set.Runs {
				i := slices.IndexFunc(reference.runs, func(x *thresholdRun) bool { return x.member == int(p.Member) && x.seq == p.Seq })
				runs = append(runs, reference.runs[i])
			}
			for i, x := range runs {
				for _, y := range runs[i:] {
					if !overlapping(x, y) {
						t.Fatalf("report %d: %v and %v do not overlap", n, x, y)
					}
				}
			}
		}
		if count > 2 {
			t.Errorf("report %d completes %d sets", n, count)
		}
		found += count
	}
	if stats := detector.Stats(); stats.Truncated == 0 || found < 100 || stats.Global != uint64(found) {
		t.Errorf("%d sets, %+v", found, stats)
	}
}

func TestThresholdKeepsFewRuns(t *testing.T) {
	for _, domains := range []int{20, 4, 1} {
		e := newThresholdEngine(2, 20, domains, 50)
		most := 0
		for range 20_000 {
			e.step()
			most = max(most, e.d.Kept())
		}
		if most > 200 {
			t.Errorf("%d clocks: %d runs kept", domains, most)
		}
	}
}

// One run continues for ever while others come and go.
func TestThresholdKeepsFewRunsBesideALongOne(t *testing.T) {
	c := newThresholdCase(2, scgs.Options{})
	for _, word := range []string{"+a0", "-c0", "-d0", "-e0"} {
		c.input(word)
	}
	most := 0
	for i := range 2000 {
		for _, word := range []string{"~a%d", "+b%d", "~c%d", "~d%d", "~e%d", "-b%d"} {
			c.input(fmt.Sprintf(word, 10*i+1))
			c.input(fmt.Sprintf(strings.Replace(word, "+", "~", 1), 10*i+5))
			c.found()
		}
		most = max(most, c.d.Kept())
	}
	if most > 10 {
		t.Errorf("%d runs kept", most)
	}
}

// A member that is never heard of keeps all runs, up to the limit.
func TestThresholdMaxPending(t *testing.T) {
	c := newThresholdCase(3, scgs.Options{MaxPending: 5})
	given := 0
	for i := range 100 {
		for _, word := range []string{"+a%d", "-a%d"} {
			c.input(fmt.Sprintf(word, 10*i+given))
			given++
		}
		c.found()
	}
	if kept, stats := c.d.Kept(), c.d.Stats(); kept != 5 || stats.Collapsed != 95 {
		t.Errorf("%d runs kept, %+v", kept, stats)
	}
	if n := len(c.d.Released(nil)); n != 95 {
		t.Errorf("%d refs came back", n)
	}
}

func TestThresholdAllocatesNothingInSteadyState(t *testing.T) {
	for _, k := range []int{2, 25} {
		e := newThresholdEngine(k, 30, 10, 2)
		for range 50_000 {
			e.step()
		}
		e.found = 0
		if n := testing.AllocsPerRun(2000, e.step); n > 0 {
			t.Errorf("k=%d: %v allocations", k, n)
		}
	}
	h := newHolders(8, 64, 32, 8, scgs.Options{Alarms: true})
	h.changeEvery = 1 << 30
	if n := testing.AllocsPerRun(2000, h.step); n > 0 {
		t.Errorf("alarms: %v allocations", n)
	}
}

// Many more sets are reported than are remembered, and none is hidden by that: what
// is reported is all that is an alarm, and then some that only grow.
func TestThresholdForgetsTheOldestSets(t *testing.T) {
	every, few := newHolders(2, 200, 100, 10, scgs.Options{Alarms: true}), newHolders(2, 200, 100, 10, scgs.Options{Alarms: true, MaxPending: 4})
	every.changeEvery, few.changeEvery = 2, 2
	steps := testcount.Of(t, "STEPS", 5000)
	for range steps {
		every.step()
		few.step()
	}
	if every.found < steps/4 || few.found < every.found {
		t.Errorf("%d sets, and %d by who remembers few", every.found, few.found)
	}
	if n := few.d.Remembered(); n > 128*4 {
		t.Errorf("%d runs are remembered", n)
	}
}

// What an alarm detector leaves out of large sets that differ in little is what grows.
func TestThresholdAlarmsOfManyMembers(t *testing.T) {
	alarms := 0
	for i, clocks := range []int{90, 30, 9, 3, 1} {
		for _, k := range []int{2, 20, 45} {
			s := crowded(rand.New(rand.NewPCG(uint64(i), 1)), 90, clocks, 700, 400)
			every, alone := scgs.NewThreshold(k, scgs.Options{}), scgs.NewThreshold(k, scgs.Options{Alarms: true})
			every.Epoch(1, nil, s.specs())
			alone.Epoch(1, nil, s.specs())
			for n, msg := range s.arrived {
				put(every, scgs.Member(msg.member), msg)
				put(alone, scgs.Member(msg.member), msg)
				want := slices.DeleteFunc(drainThreshold(every), func(line string) bool { return strings.HasSuffix(line, "grows=true") })
				if got := drainThreshold(alone); !slices.Equal(got, want) {
					t.Fatalf("%d clocks, k=%d, report %d: got\n%s\nwant\n%s", clocks, k, n, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				alarms += len(want)
			}
			if cut := every.Stats().Truncated + alone.Stats().Truncated; cut > 0 {
				t.Errorf("%d clocks, k=%d: %d inputs were cut short", clocks, k, cut)
			}
		}
	}
	if alarms < 200 {
		t.Errorf("only %d alarms", alarms)
	}
}

// Every ref that was accepted comes back once, or is of a run that is kept.
func TestThresholdReturnsRefs(t *testing.T) {
	for seed := range uint64(300) {
		d := draw(rand.New(rand.NewPCG(seed, 1)).IntN)
		s := newThresholdSystem(d, hazards{loss: 10, duplicates: 10, ends: 40, losts: 5, restarts: 10, moves: 50})
		detector := scgs.NewThreshold(2, scgs.Options{})
		members := detector.Epoch(1, nil, s.specs())
		given := map[scgs.Ref]int{}
		for _, msg := range s.arrived {
			if why := put(detector, scgs.Member(msg.member), msg); why == scgs.Accepted && msg.action == start {
				given[msg.ref]++
			}
			drainThreshold(detector)
		}
		detector.Epoch(2, members, nil)
		for _, ref := range detector.Released(nil) {
			given[ref]--
		}
		for ref, n := range given {
			if n != 0 {
				t.Errorf("seed %d: ref %d came back %d times too few", seed, ref, n)
			}
		}
		if n := detector.Kept(); n != 0 {
			t.Errorf("seed %d: %d runs kept without members", seed, n)
		}
	}
}
