package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/scgs"
)

func level(t *testing.T, text string) *plan.Level {
	t.Helper()
	plans, err := configfile.Parse("try.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

func try(t *testing.T, o Options) (*Report, string) {
	t.Helper()
	r, err := Try(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

// TestTry: predicates that are known by their texts alone all fire, and what is told of
// them is the same each time.
func TestTry(t *testing.T) {
	o := Options{Level: trialLevel(t), Faults: AllFaults, Seed: 1, Trials: 60}
	r, text := try(t, o)
	if len(r.Breaches)+len(r.Never) > 0 {
		t.Errorf("broken: %v, never: %v", r.Breaches, r.Never)
	}
	for _, x := range r.Rules {
		if x.True == 0 || x.Longest == 0 || x.Fired == 0 || x.Decided.N == 0 || x.Decided.Median <= 0 || x.Decided.Worst < x.Decided.Median || !x.Plain {
			t.Errorf("%+v", x)
		}
	}
	if r.Sent == 0 || r.Applied == 0 || r.Fates["applied"] == 0 || r.Content == 0 {
		t.Errorf("signals %d, applied %d, fates %v, right again after %v", r.Sent, r.Applied, r.Fates, r.Content)
	}
	if _, again := try(t, o); again != text {
		t.Error("the same options have another report")
	}
	if o.Seed++; o.Seed > 0 {
		if _, other := try(t, o); other == text {
			t.Error("another seed has the same report")
		}
	}
}

// TestTryConfigurations tries the configurations of the project.
func TestTryConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../configs/*[a-z].yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plans, err := configfile.Parse(file, src)
		if strings.HasSuffix(file, "_test.yaml") {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			if p.Parent != "" {
				continue
			}
			r, _ := try(t, Options{Level: p, Faults: AllFaults, Seed: 1, Trials: 30})
			if len(r.Breaches) > 0 {
				t.Errorf("%s: %s: %v", file, p.Name, r.Breaches)
			}
			if !slices.ContainsFunc(r.Rules, func(x *Tried) bool { return x.Fired > 0 }) {
				t.Errorf("%s: no predicate of %s has fired", file, p.Name)
			}
		}
	}
}

// TestTryTellsWhatNeverHappened.
func TestTryTellsWhatNeverHappened(t *testing.T) {
	r, _ := try(t, Options{Trials: 3, Seed: 1, Time: time.Second, Members: 3, Faults: restarts, Level: level(t, `
synchronizers:
  s:
    members: {group: g, count: 2}
    silence: {after: 3s, then: fail}
    state: {n: int, tags: {list: string}, d: duration, x: float, word: string}
    memory: {most: {type: int, initial: 7}}
    predicates:
      seldom: {when: 'all(members, .n == 7)', for: 950ms}
      too-long: {when: 'any(members, .n == 7)', for: 1m}
      for-ever: {when: 'any(members, .n == 7)', for: 2h}
      once: {when: 'any(members, .n == 7)', cooldown: 5s}
      away: {when: 'any(members, not .online)'}
      others: {when: 'any(members, .n == 7)', signal: {kind: activate, region: r, to: {group: others}}}
      remembers: {when: 'any(members, .n > memory.most) and memory.most > 8'}
      nobody: {when: 'any(members, .n == 7)', signal: {kind: activate, region: r, to: [stranger]}}
      unlikely: {when: 'all(members, .x == 0.123 and .n == 9) and any(members, .n == 8)'}
      happens: {when: 'any(members, "a" in .tags) or any(members, .d > duration("3s"))'}
`)})
	got := strings.Join(r.Never, "\n")
	for _, want := range []string{
		"remembers has not fired; whether it was ever true is not known, since it does not read states of members alone",
		"away has not fired; whether it was ever true is not known",
		"and has to hold for 950ms: try --time 5.7s", "seldom has not fired: it was true ", "unlikely has not fired: it was never true of the states that were drawn",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "happens") || strings.Contains(got, "too-long") || strings.Contains(got, "others") {
		t.Error(got)
	}
	if want := []string{
		"a second firing of once: its cooldown is 5s, and trials are of 1s: try --time 30s",
		"too-long: it has to hold for 1m0s, and trials are of 1s: try --time 6m0s",
		"for-ever: it has to hold for 2h0m0s, and trials are of 1s, and of 1h0m0s at most",
		"the end of all decisions once the synchronizer has failed: it is started again at once",
		"signals to group others: nobody is in it here",
	}; !sameSet(r.Untried, want) {
		t.Errorf("not tried: %q", r.Untried)
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestPromisesAreThoseOfThePage: the text about a promise is in the table of judges.
func TestPromisesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Promises {
		letter, text, _ := strings.Cut(p, ": ")
		if !strings.Contains(string(page), "| "+letter+" | "+text+" | ") {
			t.Errorf("testing.md has another row for %s", p)
		}
	}
}

// TestParseFaults: all and none stand alone.
func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		"all": "", "none": "", "drop,crash": "",
		"all,drop":   `"all,drop": all stands alone`,
		"crash,none": `"crash,none": none stands alone`,
		"drop,flood": `there is no kind of fault "flood": the kinds are drop, `,
		"":           `there is no kind of fault ""`,
	} {
		if _, err := ParseFaults(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFoundByTexts: the trials of configurations that once broke a promise.
func TestFoundByTexts(t *testing.T) {
	rule := `
synchronizers:
  gsync:
    members: {group: workers, count: 2}
    state: {d: int}
    predicates:
      slow: {each: members, when: .d > 300, UNTIL signal: []}
`
	sticky, plain := strings.Replace(rule, "UNTIL", "until: .d < 100,", 1), strings.Replace(rule, "UNTIL ", "", 1)
	quiescence, err := os.ReadFile("../../configs/quiescence.yaml")
	if err != nil {
		t.Fatal(err)
	}
	most := drops | doubles | reorders | delays | partitions | oneways | pauses | crashes | clocks
	for what, o := range map[string]struct {
		config  string
		seed    uint64
		faults  Faults
		time    time.Duration
		members int
	}{
		"until was not true before a gap":                       {sticky, 82, drops, 5250 * time.Millisecond, 3},
		"likewise, over a cut":                                  {sticky, 339, oneways, 6 * time.Second, 2},
		"a process was killed in the instant of its last stamp": {plain, 2194, most | restarts, 6 * time.Second, 3},
		"a dead process kept the name of a living one for ever": {string(quiescence), 77905, most, 6 * time.Second, 3},
	} {
		r, _ := try(t, Options{Level: level(t, o.config), Faults: o.faults, Seed: o.seed, Trials: 1, Time: o.time, Members: o.members, narrow: true})
		if len(r.Breaches) > 0 {
			t.Errorf("%s: %v", what, r.Breaches)
		}
	}
}

// TestFiresOnEarlierStates: a machine that takes over may fire on states from before the last firing of the
// other one. The judge knows since when the predicate was true there.
func TestFiresOnEarlierStates(t *testing.T) {
	one := newTrial(trialSpec{
		seed: 792, faults: AllFaults &^ reloads, time: 2 * time.Second, processes: 3, members: 3, byText: true, pair: withPair,
		level: level(t, `
synchronizers:
  gsync:
    members: {group: workers, count: 2, max: 9}
    state: {d: int}
    predicates:
      glob: {when: "any(members, .d > 300)", until: "all(members, .d < 100)", signal: []}
`),
	})
	one.runTrial()
	if len(one.breaches) > 0 {
		t.Error(one.breaches)
	}
}

// TestTryHoldTimes: no promise is broken, however long a predicate has to hold.
func TestTryHoldTimes(t *testing.T) {
	times := testcount.Of(t, "HOLDS", 1)
	for hold, trials := range map[string]int{"500ms": 15, "2s": 15, "4s": 20, "10s": 40, "20s": 40, "1h": 25} {
		for _, faults := range []Faults{AllFaults, 0} {
			r, _ := try(t, Options{Trials: trials * times, Seed: 1, Faults: faults, Level: level(t, strings.ReplaceAll(`
synchronizers:
  s:
    members: {group: g, count: 3}
    state: {n: int}
    predicates:
      long: {when: 'all(members, .n == 0)', for: HOLD}
`, "HOLD", hold))})
			if len(r.Breaches) > 0 {
				t.Errorf("for %s under %v: %v in trial %d", hold, faults, r.Breaches, r.Trials)
			}
			if x := r.Rules[0]; x.True == 0 || (x.Fired == 0) != (hold == "1h") {
				t.Errorf("for %s under %v: %+v", hold, faults, x)
			}
		}
	}
}

// TestTrySilence: whatever follows on silence, no promise is broken. A synchronizer that fails is started again.
func TestTrySilence(t *testing.T) {
	for silence, hold := range map[string]string{"{after: 300ms, then: fail}": "100ms", "{after: 500ms, then: block}": "12s", "{after: 20s, then: drop}": "0s"} {
		r, _ := try(t, Options{Trials: 60, Seed: 1, Faults: AllFaults, Level: level(t, strings.NewReplacer("SILENCE", silence, "HOLD", hold).Replace(`
synchronizers:
  s:
    members: {group: g, count: 3}
    silence: SILENCE
    state: {n: int}
    predicates:
      long: {when: 'all(members, .n == 1)', for: HOLD, signal: {kind: activate, region: r}}
      short: {when: 'all(members, .n == 1)', signal: {kind: activate, region: r}}
`))})
		if len(r.Breaches) > 0 || r.Rules[1].Fired == 0 {
			t.Errorf("%s: %v in trial %d, %+v", silence, r.Breaches, r.Trials, r.Rules[1])
		}
	}
}

// TestLetInAsIsSaid: who came and went too often has to be let in when it is said to be, and
// not be put off for longer than anybody may.
func TestLetInAsIsSaid(t *testing.T) {
	long := level(t, `
synchronizers:
  s:
    members: {group: g, count: 3}
    state: {n: int}
    predicates:
      long: {when: 'all(members, .n == 0)', for: 4s}
`)
	for _, said := range []string{"", "10ms", "1h0m0s"} {
		r, _ := try(t, Options{Trials: 40, Seed: 1, Faults: AllFaults, Level: long, bend: func() *bent {
			return &bent{answer: func(a *synccore.Answer) {
				for i := range a.Status.Members {
					if why, _, ok := strings.Cut(a.Status.Members[i].Why, "admitted again in "); ok && said != "" {
						a.Status.Members[i].Why = why + "admitted again in " + said
					}
				}
			}}
		}})
		if said == "" {
			if len(r.Breaches) > 0 || r.Content < 5*time.Second {
				t.Errorf("%v, all was right again after %v", r.Breaches, r.Content)
			}
		} else if len(r.Breaches) == 0 || !strings.Contains(r.Breaches[0], "and is admitted again in "+said) {
			t.Errorf("who is let in later than in %s: %v", said, r.Breaches)
		}
	}
}

// TestTextsBite: what a machine does wrong is noticed where a predicate is known by its text
// alone, and made small.
func TestTextsBite(t *testing.T) {
	exact := func() *bent {
		return &bent{stamp: func(s *clocksync.Stamp) {
			if s.Within.Bounded() {
				s.Within = clocksync.Exactly(s.Within.Earliest.Add(s.Within.Width() / 2))
			}
		}}
	}
	r, _ := try(t, Options{Level: trialLevel(t), Faults: AllFaults, Seed: 1, Trials: 100, bend: exact})
	if r.Least == nil || !strings.HasPrefix(r.Breaches[0], "S at ") || r.Trials >= r.Asked || !slices.Equal(r.Promises, Promises[:1]) {
		t.Fatalf("%+v", r)
	}
	if found, _ := try(t, *r.Found); found.Least == nil || found.Least.Faults != r.Least.Faults || found.Least.Time != r.Least.Time {
		t.Errorf("the trial in which it was found, once more: %+v", found)
	}
	never := level(t, strings.Replace(trialConfig, "predicates:", "predicates:\n      never: {when: 'any(members, .n < 0 and .n > 0)'}", 1))
	if r, _ := try(t, Options{Level: never, Faults: AllFaults, Seed: 1, Trials: 100, bend: exact}); r.Least == nil || !slices.ContainsFunc(r.Never, func(s string) bool { return strings.HasPrefix(s, "never has not fired: it was never true") }) {
		t.Errorf("a predicate that cannot be true goes unmentioned: %v", r.Never)
	}
	if again, _ := try(t, *r.Least); !slices.Equal(again.Breaches, r.Breaches) || again.Least.Faults != r.Least.Faults {
		t.Errorf("the least trial, once more: %v, and was %v", again.Breaches, r.Breaches)
	}
	// The machine has another text than the judge knows.
	for _, change := range [][2]string{
		{"for: 20ms", "for: 5ms"},
		{"when: count(members, .on) >= 2\n        for: 30ms", "when: count(members, .on) >= 2\n        for: 10ms"},
		{"count(members, .on) <= 1", "count(members, .on) <= 2"},
		{"modality: possibly", "modality: definitely"}, // which is no mistake
		{"when: sum(members, .n) >= 150", "when: sum(members, .n) >= 140"},
		{"modality: definitely\n        for: 5ms", "modality: definitely\n        for: 1ms"},
		{"all-on:\n        when: all", "all-on:\n        when: any"},
	} {
		text := strings.ReplaceAll(trialConfig, change[0], change[1])
		if text == trialConfig {
			t.Fatalf("there is no %q", change[0])
		}
		wrong, broken := level(t, text), false
		for seed := uint64(1); seed <= 100 && !broken; seed++ {
			one := newTrial(trialSpec{level: wrong, byText: true, seed: seed, faults: AllFaults, time: time.Second, processes: 4, members: 3})
			one.texts[wrong] = newTexts(trialLevel(t), nil)
			one.runTrial()
			broken = len(one.breaches) > 0 && one.breaches[0].judge == 'S'
		}
		if want := !strings.Contains(change[0], "possibly"); broken != want {
			t.Errorf("%q in place of %q: broken is %v", change[1], change[0], broken)
		}
	}
}

// TestNamedMembers: those that signals name take part.
func TestNamedMembers(t *testing.T) {
	r, _ := try(t, Options{Trials: 20, Seed: 1, Level: level(t, `
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {word: {enum: [a, b]}}
    predicates:
      p: {when: 'all(members, .word == "a")', signal: {kind: activate, region: r, to: [bert]}}
`)})
	if r.Rules[0].Handled.N == 0 {
		t.Errorf("%+v", r.Rules[0])
	}
}

// TestDrawnValues: of every type, and those that predicates compare with.
func TestDrawnValues(t *testing.T) {
	one := newTrial(trialSpec{byText: true, seed: 1, members: 4, time: time.Second, level: level(t, `
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {n: int, x: float, d: duration, w: string, e: {enum: [a, b]}, b: bool, l: {list: int}}
    memory: {limit: {type: int, initial: 4321}}
    predicates:
      p: {when: 'sum(members, .n) > 1_000 and any(members, .x < 2.5 or .d >= duration("1m") or .w == "word" or .n == memory.limit)'}
`)})
	seen := map[string]bool{}
	for range 2000 {
		for i, f := range one.level.State {
			v := one.drawn.drawField(one, i)
			if !f.Accepts(v) {
				t.Fatalf("%v is no value of %v", v, f)
			}
			seen[f.Name+v.String()] = true
		}
		if one.Rand.IntN(5) == 0 {
			one.drawn.drawAgain(one)
		}
	}
	for _, want := range []scgs.Value{scgs.IntValue(1000), scgs.IntValue(999), scgs.IntValue(250), scgs.IntValue(4322)} {
		if !seen["n"+want.String()] {
			t.Errorf("n has never been %v", want)
		}
	}
	for _, want := range []string{"x2.5", "dduration(\"1m0s\")", "w\"word\"", "bfalse", "btrue"} {
		if !seen[want] && !seen[strings.NewReplacer(`duration("`, "", `")`, "", `"`, "").Replace(want)] {
			t.Errorf("%s has never been drawn", want)
		}
	}
}

// TestDrawnAroundParameters: the value of a parameter, its bounds, just above and below them; what names stand for, and the
// until of one member. Pinned trials have the values that they had.
func TestDrawnAroundParameters(t *testing.T) {
	config := `
params:
  limit: {type: int, default: 5000, min: 3000, max: 7000}
  late: {type: duration, default: 200ms}
  word: {type: string, default: parameter}
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {n: int, d: duration, w: string, x: float, m: int}
    let: {long: .x > 123.5}
    predicates:
      p: {when: 'sum(members, .n) > params.limit or any(members, .w == params.word) or any(members, long)'}
      q: {each: members, when: .d > params.late or .m > 4000, until: .m < 2000}
`
	for _, narrow := range []bool{false, true} {
		one := newTrial(trialSpec{byText: true, narrow: narrow, seed: 1, members: 4, time: time.Second, level: level(t, config)})
		seen := map[string]bool{}
		for range 4000 {
			for i, f := range one.level.State {
				seen[f.Name+"="+one.drawn.draw(one.Rand, i, f).String()] = true
			}
		}
		for _, want := range []string{"n=5000", "n=4999", "n=5001", "n=1250", "n=3000", "n=6999", "n=7001", "n=10000", `d=duration("199ms")`, `d=duration("200ms")`, `d=duration("201ms")`, `w="parameter"`, "x=123.5", "m=2000", "m=1999"} {
			want = strings.NewReplacer(`duration("`, "", `")`, "").Replace(want)
			if seen[want] == narrow {
				t.Errorf("narrow %v: %s drawn: %v", narrow, want, seen[want])
			}
		}
	}
}

// TestTimeOfTrials: long enough for what waits after another predicate.
func TestTimeOfTrials(t *testing.T) {
	o := Options{Level: level(t, `
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {n: int}
    predicates:
      p: {when: 'any(members, .n == 1)'}
      q: {when: 'any(members, .n == 1)', after: {p: 5s}}
`)}
	if got := o.time(); got != 30*time.Second {
		t.Errorf("trials are of %v", got)
	}
	o.Trials, o.Time = 1, time.Second
	if r, _ := try(t, o); !slices.Contains(r.Untried, "q: it waits for 5s after p, and trials are of 1s: try --time 30s") || !slices.Equal(r.Unfired, []string{"q"}) {
		t.Errorf("not tried: %q, not fired: %q", r.Untried, r.Unfired)
	}
}

// TestBreachTexts: a breach names states as the configuration writes them, and the condition that was false with what its names
// and parameters stand for.
func TestBreachTexts(t *testing.T) {
	config := `
params:
  slow: {type: duration, default: 200ms}
synchronizers:
  s:
    members: {group: g, count: 2}
    state: {d: duration, on: bool}
    let: {late: .d > params.slow}
    predicates:
      one: {each: members, when: late}
      every-one: {when: 'all(members, late)'}
      held: {when: 'all(members, .on)', for: 50ms}
`
	for change, want := range map[string]string{
		"one: {each: members, when: late}":             `S at \S+: one fired on the state d=\S+ on=\S+ of p\d-\d, and its condition was false on that: late, which is \.d > params\.slow, params\.slow = 200ms`,
		"every-one: {when: 'all(members, late)'}":      `S at \S+: every-one fired, and its condition is false on its witness: all\(members, late\), which is all\(members, \.d > params\.slow\), params\.slow = 200ms: p\d-\d: d=\S+ on=\S+; p`,
		"held: {when: 'all(members, .on)', for: 50ms}": `S at \S+: held fired, and its condition was true from \S+s to \S+, not for 50ms: all\(members, \.on\): p\d-\d: d=\S+ on=true; p`,
	} {
		other := strings.NewReplacer("late}", ".d > params.slow - duration(\"5ms\")}", "late)", ".d > params.slow - duration(\"5ms\"))", "for: 50ms", "for: 5ms").Replace(change)
		text := ""
		for seed := uint64(1); seed <= 100 && text == ""; seed++ {
			one := newTrial(trialSpec{level: level(t, strings.Replace(config, change, other, 1)), byText: true, seed: seed, time: time.Second, processes: 4, members: 3})
			one.texts[one.level] = newTexts(level(t, config), nil)
			one.runTrial()
			for _, b := range one.breaches {
				text = string(b.judge) + " " + b.text
			}
		}
		if !regexp.MustCompile(want).MatchString(text) || strings.ContainsAny(text, "{}") {
			t.Errorf("%s: %s", other, text)
		}
	}
}
