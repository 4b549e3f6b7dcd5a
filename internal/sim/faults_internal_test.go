package sim

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/scgs"
)

var (
	trialFirst  = flag.Uint64("first", 1, "the seed of the first of them")
	trialSeed   = flag.Uint64("seed", 0, "one trial to repeat")
	trialFaults = flag.String("faults", "all", "the kinds of faults, joined by a comma")
	trialTime   = flag.Duration("time", 2*time.Second, "for how long there are faults")
	trialPair   = flag.Bool("standby", true, "in every third trial a process stands by")
	trialSize   = flag.Int("processes", 4, "how many processes there are at most")
)

const trialConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 600ms, then: drop}
    state: {on: bool, n: int}
    predicates:
      all-on:
        when: all(members, .on)
        signal: {kind: activate, region: r}
      two-on:
        when: count(members, .on) >= 2
        signal: {kind: activate, region: r, expires: 2s}
      few-on:
        when: count(members, .on) <= 1
        signal: {kind: cancel, region: q}
      steady:
        when: any(members, .on)
        for: 20ms
      far:
        when: sum(members, .n) >= 150
        every: true
      two-steady:
        when: count(members, .on) >= 2
        for: 30ms
        cooldown: 100ms
        signal: {kind: activate, region: r, name: two-on, to: holders}
      throughout:
        when: all(members, .on)
        modality: definitely
        for: 5ms
        until: any(members, not .on)
        signal: {kind: activate, region: r, name: all-on}
      perhaps:
        when: all(members, .on)
        modality: possibly
        cooldown: 20ms
        signal: {kind: activate, region: r, name: all-on}
`

func isOn(row []scgs.Value) bool { return row[0].Bool() }

func countOn(rows [][]scgs.Value) (n int) {
	for _, row := range rows {
		if isOn(row) {
			n++
		}
	}
	return n
}

var trialRules = map[string]reference{
	"all-on": {local: isOn, holds: func(rows [][]scgs.Value, members int) bool { return countOn(rows) == members }},
	"two-on": {local: isOn, holds: func(rows [][]scgs.Value, _ int) bool { return countOn(rows) >= 2 }},
	"few-on": {local: isOn, holds: func(rows [][]scgs.Value, members int) bool { return members-len(rows)+countOn(rows) <= 1 }},
	"steady": {local: isOn, holds: func(rows [][]scgs.Value, _ int) bool { return countOn(rows) >= 1 }},
	"far": {always: true, holds: func(rows [][]scgs.Value, _ int) bool {
		sum := int64(0)
		for _, row := range rows {
			sum += row[1].Int()
		}
		return sum >= 150
	}},
	"two-steady": {local: isOn, hold: 30 * time.Millisecond, holds: func(rows [][]scgs.Value, _ int) bool { return countOn(rows) >= 2 }},
	"throughout": {local: isOn, hold: 5 * time.Millisecond, holds: func(rows [][]scgs.Value, members int) bool { return countOn(rows) == members }},
	"perhaps":    {local: isOn, holds: func(rows [][]scgs.Value, members int) bool { return countOn(rows) == members }},
}

// otherConfig is the configuration that synchronizers change to: predicates with other numbers,
// a new predicate, and one predicate less.
var otherConfig = strings.NewReplacer(
	"after: 600ms", "after: 500ms",
	"count(members, .on) >= 2\n        signal: {kind: activate, region: r, expires", "count(members, .on) >= 3\n        signal: {kind: activate, region: r, expires",
	"for: 20ms", "for: 40ms",
	"for: 30ms", "for: 60ms",
	"for: 5ms", "for: 10ms",
	"few-on:", "fewest-on:", "<= 1", "<= 0",
).Replace(trialConfig)

var otherRules = func() map[string]reference {
	rules := maps.Clone(trialRules)
	rules["two-on"] = reference{local: isOn, holds: func(rows [][]scgs.Value, _ int) bool { return countOn(rows) >= 3 }}
	rules["fewest-on"] = reference{local: isOn, holds: func(rows [][]scgs.Value, members int) bool { return members-len(rows)+countOn(rows) <= 0 }}
	delete(rules, "few-on")
	for name, hold := range map[string]time.Duration{"two-steady": 60 * time.Millisecond, "throughout": 10 * time.Millisecond} {
		rule := rules[name]
		rule.hold = hold
		rules[name] = rule
	}
	return rules
}()

// trialOf is what the trials of this package have in common.
func trialOf(tb testing.TB, kinds Faults, length time.Duration) trialSpec {
	tb.Helper()
	return trialSpec{
		level: trialLevel(tb), rules: trialRules, other: parsed(tb, otherConfig), others: otherRules,
		faults: kinds, time: length, processes: 4,
	}
}

func trialLevel(tb testing.TB) *plan.Level {
	tb.Helper()
	return parsed(tb, trialConfig)
}

func parsed(tb testing.TB, text string) *plan.Level {
	tb.Helper()
	plans, err := configfile.Parse("trial.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return plans[0]
}

// TestFaults runs trials: groups of members and a synchronizer, all of them the machines
// of production, under every kind of fault that the seed draws. No promise is broken, and
// each kind of fault, each point and each predicate had its part in it.
func TestFaults(t *testing.T) {
	kinds, err := ParseFaults(*trialFaults)
	if err != nil {
		t.Fatal(err)
	}
	spec := trialOf(t, kinds, *trialTime)
	if spec.processes = *trialSize; *trialPair {
		spec.pair = withPair
	}
	keys := spec
	keysTrial(t, &keys)
	of := func(seed uint64) trialSpec { return seeded(spec, keys, seed) }
	if *trialSeed != 0 {
		spec = of(*trialSeed)
		one := newTrial(spec)
		one.runTrial()
		for _, b := range one.breaches {
			t.Errorf("%c %s", b.judge, b.text)
		}
		t.Logf("trace %016x\n%s", one.hash, &one.figures)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // Each trial begins with new machines.
	var sum figures
	n := testcount.Of(t, "TRIALS", 200)
	fires := map[string]int{} // in how many trials each predicate has fired
	for one := range trials(of, *trialFirst, n) {
		for name := range one.Fired {
			fires[name]++
		}
		if len(one.breaches) > 0 {
			least := shrink(one.trialSpec)
			for _, b := range least.breaches {
				t.Errorf("%c %s", b.judge, b.text)
			}
			t.Fatalf("trial %d broke a promise: repeat it with\n%s", one.seed, command(&least.trialSpec))
		}
		sum.addFigures(&one.figures)
	}
	t.Log(&sum)
	if kinds == AllFaults && n >= 100 {
		sum.judgeFull(t)
		for _, r := range keys.level.Rules {
			if fires[r.Name] < n/20 {
				t.Errorf("%s has fired in %d of %d trials", r.Name, fires[r.Name], n)
			}
		}
	}
}

// trials runs so many trials on all processors, and gives them in the order of their
// seeds.
func trials(of func(seed uint64) trialSpec, first uint64, n int) iter.Seq[*trial] {
	return func(yield func(*trial) bool) {
		const chunk = 64
		for from := 0; from < n; from += chunk {
			var done [chunk]*trial
			var group sync.WaitGroup
			size := min(chunk, n-from)
			next := make(chan int, size)
			for i := range size {
				next <- i
			}
			close(next)
			for range runtime.GOMAXPROCS(0) {
				group.Go(func() {
					for i := range next {
						done[i] = newTrial(of(first + uint64(from+i))) //nolint:gosec // Not below 0.
						done[i].runTrial()
					}
				})
			}
			group.Wait()
			for _, one := range done[:size] {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// TestFoundSeeds: the trials that once broke a promise.
func TestFoundSeeds(t *testing.T) {
	for what, found := range map[string]struct {
		seed      uint64
		faults    Faults
		time      time.Duration
		processes int
		standby   bool
	}{
		"expired was recorded for what was applied":               {161, drops | reorders | oneways, 1125 * time.Millisecond, 2, false},
		"a state that was to begin again was told by nobody":      {58, drops | doubles | reorders | crashes | restarts | clocks | closings, 1125 * time.Millisecond, 4, false},
		"a state older than the stamps of its clock kept it mute": {111, reorders | oneways | pauses | restarts, time.Second, 3, false},
		"a hello soon after another one was not answered": {
			11238, drops | doubles | reorders | delays | partitions | oneways | pauses | suspends | crashes | clocks | closings, 2 * time.Second, 4, false,
		},
		"fates were lost with the synchronizer": {1, restarts, 1125 * time.Millisecond, 2, false},
		"so was one whose handler had ended under the next one": {
			123, drops | doubles | reorders | delays | partitions | pauses | suspends | crashes | restarts, 2 * time.Second, 3, false,
		},
		"fates that were told in vain were not told again": {
			297431, drops | doubles | reorders | delays | partitions | suspends | crashes | restarts | closings | reloads, 2 * time.Second, 4, false,
		},
		"who was refused asked again too late": {
			351016, drops | doubles | reorders | delays | partitions | pauses | crashes | restarts | clocks | closings, 2 * time.Second, 3, false,
		},
		"a dead process came between two incarnations of one": {
			30733, drops | doubles | reorders | delays | oneways | pauses | suspends | crashes | restarts | clocks, 2 * time.Second, 4, false,
		},
		"the same firing by other incarnations": {
			211264, drops | doubles | reorders | delays | partitions | pauses | suspends | restarts | clocks | reloads, 2 * time.Second, 4, false,
		},
		"a firing that was made again, and recorded by a third term": {
			242171, drops | doubles | reorders | delays | partitions | pauses | crashes | restarts, 2 * time.Second, 4, false,
		},
		"a renewed signal, and a firing on the same runs": {
			696, drops | doubles | reorders | delays | partitions, 2 * time.Second, 4, true,
		},
		"reports of a member that was gone": {
			1047, drops | doubles | reorders | delays | partitions | pauses | crashes | restarts | clocks | closings, 2 * time.Second, 4, true,
		},
		"a signal of an epoch that was over was renewed": {
			8598, drops | doubles | reorders | crashes | restarts, 375 * time.Millisecond, 4, true,
		},
		"a state that came, and was of no use, was not handed over": {
			7458, drops | reorders | delays | partitions | pauses | restarts, 2 * time.Second, 4, true,
		},
		"the second firing on runs of which it is not known where they began": {
			22026, drops | doubles | reorders | pauses | crashes | restarts, 2 * time.Second, 4, true,
		},
		"the same after a takeover": {
			16326, drops | doubles | reorders | delays | partitions | oneways | suspends | crashes | restarts | clocks | reloads, 2 * time.Second, 4, true,
		},
		"a member that knew a later term said so to nobody": {
			48039, drops | partitions | oneways | pauses | crashes | restarts, 2 * time.Second, 4, true,
		},
		"a member that had not heard of a term was not called": {
			58968, drops | doubles | reorders | delays | partitions | oneways | pauses | suspends | restarts | clocks | closings | reloads, 2 * time.Second, 4, true,
		},
		"who stood by went on by itself as the leader raised its term": {
			100416, drops | doubles | delays | partitions | restarts, 1500 * time.Millisecond, 4, true,
		},
		"a member that said hello had not told all yet, and its stamps were forgotten": {
			379413, drops | doubles | reorders | delays | partitions | oneways | pauses | crashes | restarts | clocks | closings, 2 * time.Second, 4, true,
		},
		"likewise, as a standby took over": {
			555624, drops | doubles | reorders | partitions | oneways | crashes | restarts | clocks | reloads, 2 * time.Second, 3, true,
		},
		"two that led had made a signal each": {
			26001, drops | doubles | reorders | delays | partitions | pauses | suspends | crashes | restarts, 2 * time.Second, 3, true,
		},
		"a predicate that came back with a reload made a firing of a number that it had made": {
			385200, partitions | restarts | reloads, 2 * time.Second, 3, true,
		},
		"a renewed signal had no answer, and its first copy was fenced off": {
			725145, drops | doubles | reorders | delays | partitions | oneways | crashes | restarts | clocks | reloads, 2 * time.Second, 3, true,
		},
		"two lives of a process went above the same incarnation by as much": {
			571962, drops | doubles | reorders | delays | partitions | oneways | pauses | crashes | clocks | closings, 2 * time.Second, 4, false,
		},
		"a late hello of a dead life took the place of the next, which was not called back": {
			800741, doubles | reorders | delays | pauses | suspends | crashes | restarts | clocks | reloads, 2 * time.Second, 4, true,
		},
		"likewise, under partitions": {
			807460, drops | doubles | reorders | delays | partitions | oneways | pauses | crashes | restarts | closings | reloads, 2 * time.Second, 4, false,
		},
		"reports from before a member was taken in were held for known to one that stood by": {988965, AllFaults, 2 * time.Second, 4, true},
	} {
		spec := trialOf(t, found.faults, found.time)
		spec.seed, spec.processes = found.seed, found.processes
		if found.standby {
			spec.pair = withPair
		}
		one := newTrial(spec)
		one.runTrial()
		for _, b := range one.breaches {
			t.Errorf("%s: %c %s", what, b.judge, b.text)
		}
	}
}

// TestFoundKeys: the same of trials with the predicates of all keys.
func TestFoundKeys(t *testing.T) {
	for what, found := range map[string]struct {
		seed      uint64
		faults    Faults
		time      time.Duration
		processes int
	}{
		"runs that began with a state that began again": {8299, drops | restarts | clocks, 187500 * time.Microsecond, 3},
		"a hold time ended with an epoch, and the witness was of the next one": {
			1100568, drops | doubles | reorders | delays | partitions | pauses | crashes | restarts | clocks | closings | reloads, 2 * time.Second, 2,
		},
	} {
		spec := trialOf(t, found.faults, found.time)
		spec.processes, spec.pair = found.processes, withPair
		keys := spec
		keysTrial(t, &keys)
		one := newTrial(seeded(spec, keys, found.seed))
		one.runTrial()
		for _, b := range one.breaches {
			t.Errorf("%s: %c %s", what, b.judge, b.text)
		}
	}
}

// TestTheSameSeedIsTheSameTrial: all that goes in and comes out is the same, in order.
func TestTheSameSeedIsTheSameTrial(t *testing.T) {
	spec := trialOf(t, AllFaults, time.Second)
	spec.pair = withPair
	keys := spec
	keysTrial(t, &keys)
	seen := map[uint64]uint64{}
	for round := range 2 {
		of := func(seed uint64) trialSpec { return seeded(spec, keys, seed) }
		for one := range trials(of, 1, 20) {
			if round > 0 && seen[one.seed] != one.hash {
				t.Errorf("trial %d has the traces %x and %x", one.seed, seen[one.seed], one.hash)
			}
			seen[one.seed] = one.hash
		}
	}
	if seen[1] == seen[2] {
		t.Error("two trials have one trace")
	}
}

func command(s *trialSpec) string {
	more := ""
	if s.pair == nil {
		more = " -standby=false"
	}
	return fmt.Sprintf("go test ./internal/sim -run TestFaults -seed %d -faults %s -time %v -processes %d%s -v", s.seed, s.faults, s.time, s.processes, more)
}

// BenchmarkTrials tells how many steps of machines a second one processor makes, with all
// that is around them.
func BenchmarkTrials(b *testing.B) {
	spec := trialOf(b, AllFaults, 2*time.Second)
	spec.pair = withPair
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	steps := 0
	for b.Loop() {
		spec.seed++
		one := newTrial(spec)
		one.runTrial()
		steps += one.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

// String tells what has happened, for people.
func (f *figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d trials, %d steps of machines, %d frames; content %v after the last fault at the latest\n", f.Trials, f.Steps, f.Frames, f.Latest)
	fmt.Fprintf(&b, "faults: frames dropped %d, doubled %d, overtaken %d, cut %d, overflown %d; partitions %d, pauses %d, suspends %d, crashes %d, restarts %d, closings %d, reloads %d; clocks corrected %d, bounds lost %d\n",
		f.Dropped, f.Doubled, f.Overtaken, f.Cut, f.Overflown, f.Partitions, f.Pauses, f.Suspends, f.Crashes, f.Restarts, f.Closings, f.Reloads, f.Corrections, f.LostBounds)
	b.WriteString("killed at:")
	for i, name := range pointNames {
		fmt.Fprintf(&b, " %s %d of %d", name, f.Killed[i], f.Passed[i])
	}
	fmt.Fprintf(&b, "\nstates %d, global states %d (in the last terms), epochs %d, bundles %d with evidence of all %d, probes %d, resends %d, gaps %d, rejoins %d, rejected %d\n",
		f.States, f.Global, f.Epochs, f.Bundles, f.Evidence, f.Probes, f.Resends, f.Gaps, f.Rejoins, f.Rejected)
	fmt.Fprintf(&b, "decisions %d, %d of them on partial states; signals %d, applied %d, regions left %d, fates %d, unconfirmed %d, repeated in a later term %d; recorded by a later term %d, by a second one %d, by none as both ends were killed %d\nprocesses that stood by: told all %d times, told less than all %d; went on warm %d, with another clock or as they differed %d, cold %d; two led %d, terms raised %d\nfired:",
		f.Firings, f.Partial, f.Sent, f.Applied, f.Cancelled, f.Fates, f.Unconfirmed, f.Repeated, f.FatesLate, f.FatesAgain, f.FatesLost, f.Retold, f.Torn, f.Warm, f.Other, f.Cold, f.Superseded, f.Raised)
	for _, name := range slices.Sorted(maps.Keys(f.Fired)) {
		fmt.Fprintf(&b, " %s %d", name, f.Fired[name])
	}
	return b.String()
}

// judgeFull fails if something that trials are for has not happened in any.
func (f *figures) judgeFull(t *testing.T) {
	t.Helper()
	for what, n := range map[string]int{
		"dropped": f.Dropped, "doubled": f.Doubled, "overtaken": f.Overtaken, "cut": f.Cut, "overflown": f.Overflown, "partitions": f.Partitions, "partitions in one direction": f.Oneways, "delays": f.Delays,
		"pauses": f.Pauses, "suspends": f.Suspends, "crashes": f.Crashes, "restarts": f.Restarts, "closings": f.Closings, "reloads": f.Reloads, "corrections": f.Corrections,
		"lost bounds": f.LostBounds, "firings": f.Firings, "signals": f.Sent, "applied": f.Applied, "cancelled": f.Cancelled, "fates": f.Fates,
		"unconfirmed": f.Unconfirmed, "recorded by a later term": f.FatesLate, "gaps": f.Gaps, "resends": f.Resends, "probes": f.Probes, "rejoins": f.Rejoins, "epochs": f.Epochs,
		"repeated in a later term": f.Repeated + max(0, 5000-f.Trials), // That is rare.
		"partial":                  f.Partial, "rejected": f.Rejected, "bundles": f.Bundles, "evidence": f.Evidence,
	} {
		if n == 0 {
			t.Errorf("%s: none in %d trials", what, f.Trials)
		}
	}
	if *trialPair && (f.Warm == 0 || f.Cold == 0) {
		t.Errorf("takeovers warm: %d, cold: %d", f.Warm, f.Cold)
	}
	if *trialPair && f.Trials >= 500 && (f.Other == 0 || f.Superseded == 0 || f.Torn == 0) {
		t.Errorf("takeovers with another clock, or of what was not the same: %d; two that lead: %d; torn streams: %d", f.Other, f.Superseded, f.Torn)
	}
	for i, name := range pointNames {
		if f.Killed[i] == 0 {
			t.Errorf("nothing was killed at %s, which was passed %d times", name, f.Passed[i])
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(trialRules)), []string{"fewest-on"}) {
		if f.Fired[name] == 0 {
			t.Errorf("%s has not fired", name)
		}
	}
}
