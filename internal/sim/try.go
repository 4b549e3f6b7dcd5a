package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
)

// Options are what trials of a configuration follow from.
type Options struct {
	Level   *plan.Level   // of a group; its predicates are judged by their texts
	Threads *plan.Level   // the level of its members' threads, which trials leave out; nil: there is none
	Faults  Faults        // the kinds that may happen
	Seed    uint64        // of the first trial; the next one has the next
	Trials  int           // at least 1
	Time    time.Duration // of each, in which there are faults; 0: as long as the level's own times need
	Members int           // in each; 0: the level's count, or a few more
	bend    func() *bent  // for one trial; nil: nothing is bent
	narrow  bool          // see trialSpec
}

// Report is what trials have come to. The same options give the same report.
type Report struct {
	Synchronizer string         `json:"synchronizer"`      // its name
	Trials       int            `json:"trials"`            // that were run, up to the first that broke a promise
	Asked        int            `json:"asked"`             // how many were asked for
	Time         time.Duration  `json:"time_ns"`           // of each, with faults
	Steps        int            `json:"steps"`             // of machines
	States       int            `json:"states"`            // that members began
	Global       uint64         `json:"global_states"`     // that were found in the last terms
	Faults       map[string]int `json:"faults"`            // how often each kind has happened
	Killed       map[string]int `json:"killed,omitempty"`  // at each named point
	Rules        []*Tried       `json:"predicates"`        // in the order in which they are judged
	Sent         int            `json:"signals"`           // that were sent
	Applied      int            `json:"applied"`           // that took effect, as the members know
	Fates        map[string]int `json:"fates"`             // as the synchronizer tells them
	Content      time.Duration  `json:"content_ns"`        // after Time, when faults end, until all was right: the worst
	Never        []string       `json:"never"`             // what has not happened
	Breaches     []string       `json:"breaches"`          // of the least trial that breaks a promise
	Promises     []string       `json:"promises"`          // that it breaks, by the letters of their judges
	Least        *Options       `json:"-"`                 // that trial; nil if no promise was broken
	Found        *Options       `json:"-"`                 // the trial that it was made of
	Untried      []string       `json:"untried,omitempty"` // what trials leave out
	Unfired      []string       `json:"unfired,omitempty"` // predicates that have not fired, predicates of Threads as LEVEL.NAME: the promises were not tried on them
}

// MaxTime is how long a trial may have faults.
const MaxTime = time.Hour

// Promises are what judges want, by their letters: the table of docs/testing.md.
var Promises = []string{
	"S: a predicate that fired was true",
	"A: a decision takes effect at most once in a region entry, and only in the one it was decided on",
	"F: every signal ends in one recorded fate, and that is true, also if the synchronizer is killed; unless its target is killed too before the next term has heard of it, or has never had it",
	"G: every lost report is repaired or shown as a gap",
	"C: within 1 s after the last fault has healed, and the time of silence, or the 2 s after which a process that was not answered asks again, who takes part and in which state is the truth; a member that came and went too often is let in when `status` says",
	"L: every queue keeps within its bound",
	"K: a predicate fires no more often, and no sooner, than its `once`, `cooldown`, `until` and `after` say",
}

// Tried is what has become of a predicate.
type Tried struct {
	Name    string        `json:"name"`       // its name
	True    int           `json:"true"`       // how often it became true, of all members that were there
	Longest time.Duration `json:"longest_ns"` // for how long it was true at most
	Fired   int           `json:"fired"`      // how often
	Partial int           `json:"partial"`    // of those: while some member's state was unknown
	Decided Times         `json:"decided"`    // from when it had been true for long enough to the decision
	Handled Times         `json:"handled"`    // to the handler
	Plain   bool          `json:"judged"`     // it was computed again from the true states
}

// Times are how long something took.
type Times struct {
	N      int           `json:"n"`         // how often
	Median time.Duration `json:"median_ns"` // the upper one of two
	Worst  time.Duration `json:"worst_ns"`  // the longest
	all    []time.Duration
}

func (t *Times) addDuration(d time.Duration) { t.all = append(t.all, max(d, 0)) }

func (t *Times) sum() {
	if t.N = len(t.all); t.N > 0 {
		slices.Sort(t.all)
		t.Median, t.Worst = t.all[t.N/2], t.all[t.N-1]
	}
}

// Try runs trials of a configuration until one breaks a promise, which it makes as small
// as it can. Stop, which may be nil, is asked between two trials.
func Try(o Options, stop func() error) (*Report, error) {
	r := &Report{Synchronizer: o.Level.Name, Time: o.time(), Asked: max(o.Trials, 1)}
	for _, rule := range o.Level.Rules {
		r.Rules = append(r.Rules, &Tried{Name: rule.Name, Plain: readsStatesOnly(rule) && !online(rule)})
	}
	var sum figures
	for i := range r.Asked {
		if stop != nil {
			if err := stop(); err != nil {
				return nil, err
			}
		}
		one := newTrial(o.spec(o.Seed+uint64(i), r.Rules)) //nolint:gosec // Not below 0.
		one.runTrial()
		one.countPredicates()
		sum.addFigures(&one.figures)
		if len(one.breaches) > 0 {
			spec := one.trialSpec
			spec.tried = nil
			r.breaks(&o, &spec, shrink(spec))
			break
		}
	}
	r.tell(&o, &sum)
	return r, nil
}

// breaks notes a trial that breaks a promise, and the least that breaks the same.
func (r *Report) breaks(o *Options, found *trialSpec, least *trial) {
	again := func(s *trialSpec) *Options {
		return &Options{Level: o.Level, Faults: s.faults, Seed: s.seed, Trials: 1, Time: s.time, Members: s.members, bend: o.bend, narrow: o.narrow}
	}
	r.Found, r.Least = again(found), again(&least.trialSpec)
	for _, b := range least.breaches {
		r.Breaches = append(r.Breaches, fmt.Sprintf("%c %s", b.judge, b.text))
	}
	for _, p := range Promises {
		if slices.ContainsFunc(least.breaches, func(b breach) bool { return b.judge == p[0] }) {
			r.Promises = append(r.Promises, p)
		}
	}
}

// time is the length of a trial: enough for the longest times of the level, unless that is a minute or
// more.
func (o *Options) time() time.Duration {
	if o.Time > 0 {
		return o.Time
	}
	return max(2*time.Second, min(2*o.Level.Silence.After, 10*time.Second), min(6*longestWait(o.Level, time.Minute), time.Minute))
}

// longestBelow is the longest time that a predicate has to hold, of those below a limit.
func longestBelow(level *plan.Level, below time.Duration) (d time.Duration) {
	for _, r := range level.Rules {
		if r.Hold < below {
			d = max(d, r.Hold)
		}
	}
	return d
}

// longestWait is the longest time that a predicate has to hold, or waits after another one, of those below a limit.
func longestWait(level *plan.Level, below time.Duration) time.Duration {
	d := longestBelow(level, below)
	for _, r := range level.Rules {
		for _, a := range r.After {
			if a.Wait < below {
				d = max(d, a.Wait)
			}
		}
	}
	return d
}

func (o *Options) spec(seed uint64, tried []*Tried) trialSpec {
	members := o.Members
	if members == 0 {
		few := max(o.Level.Members.Count, 2)
		members = min(few+int(seed%3), max(o.Level.Members.Max, few)) //nolint:gosec // Below 3.
	}
	return trialSpec{level: o.Level, seed: seed, faults: o.Faults, time: o.time(), members: members, tried: tried, byText: true, bend: o.bend, narrow: o.narrow}
}

// tell sums up.
func (r *Report) tell(o *Options, f *figures) {
	r.Trials, r.Steps, r.States, r.Global, r.Content = f.Trials, f.Steps, f.States, f.Global, f.Latest
	r.Sent, r.Applied, r.Fates = f.Sent, f.Applied, f.Ended
	r.Faults, r.Killed = map[string]int{}, map[string]int{}
	r.Never, r.Breaches, r.Promises = []string{}, append([]string{}, r.Breaches...), append([]string{}, r.Promises...)
	for i, n := range f.happened() {
		if o.Faults&(1<<i) == 0 {
			continue
		}
		if r.Faults[faultNames[i]] = n; n == 0 {
			r.Never = append(r.Never, "the fault "+faultNames[i]+" has not happened")
		}
	}
	for i, n := range f.Killed {
		if n > 0 {
			r.Killed[pointNames[i]] = n
		}
	}
	for i, t := range r.Rules {
		if t.Fired == 0 {
			r.Unfired = append(r.Unfired, t.Name)
		}
		t.Decided.sum()
		t.Handled.sum()
		r.Never = append(r.Never, t.never(o.Level.Rules[i], r.Time)...)
		r.Untried = append(r.Untried, t.untried(o.Level.Rules[i], r.Time)...)
	}
	if o.Level.Silence.Then == "fail" {
		r.Untried = append(r.Untried, "the end of all decisions once the synchronizer has failed: it is started again at once")
	}
	for _, g := range o.Level.OtherGroups {
		r.Untried = append(r.Untried, "signals to group "+g.Name+": nobody is in it here")
	}
	if o.Threads != nil {
		r.Untried = append(r.Untried, "the threads below ("+o.Threads.Name+"): a process has states as a whole")
		for _, rule := range o.Threads.Rules {
			r.Unfired = append(r.Unfired, o.Threads.Name+"."+rule.Name)
		}
	}
	if o.Level.Balance != nil {
		r.Untried = append(r.Untried, "the section balance: the loads are drawn like all other values, and no move changes them")
	}
}

// happened is how often each kind of fault has happened, in the order of faultNames.
func (f *figures) happened() []int {
	return []int{f.Dropped, f.Doubled, f.Overtaken, f.Delays, f.Partitions, f.Oneways, f.Pauses, f.Suspends, f.Crashes, f.Restarts, f.Corrections + f.LostBounds, f.Closings, f.Reloads}
}

// untried says which times of a predicate are longer than a trial.
func (t *Tried) untried(r *plan.Rule, trial time.Duration) (list []string) {
	longer := func(d time.Duration) string {
		if d >= MaxTime {
			return fmt.Sprintf("trials are of %v, and of %v at most", trial, MaxTime)
		}
		return fmt.Sprintf("trials are of %v: try --time %v", trial, min(6*d, MaxTime))
	}
	if r.Hold >= trial && t.Fired == 0 {
		list = append(list, fmt.Sprintf("%s: it has to hold for %v, and %s", t.Name, r.Hold, longer(r.Hold)))
	}
	for _, a := range r.After {
		if a.Wait >= trial && t.Fired == 0 {
			list = append(list, fmt.Sprintf("%s: it waits for %v after %s, and %s", t.Name, a.Wait, a.Rule, longer(a.Wait)))
		}
	}
	if r.Cooldown >= trial {
		list = append(list, fmt.Sprintf("a second firing of %s: its cooldown is %v, and %s", t.Name, r.Cooldown, longer(r.Cooldown)))
	}
	return list
}

// never says what a predicate has not done.
func (t *Tried) never(r *plan.Rule, trial time.Duration) (list []string) {
	own := slices.ContainsFunc(r.Signals, func(s plan.Send) bool { return s.Group == "" })
	switch {
	case t.Fired > 0 && own && t.Handled.N == 0:
		return []string{fmt.Sprintf("no handler has begun for %s", t.Name)}
	case t.Fired > 0:
		return nil
	case !t.Plain:
		return []string{fmt.Sprintf("%s has not fired; whether it was ever true is not known, since it does not read states of members alone", t.Name)}
	case t.True == 0:
		return []string{fmt.Sprintf("%s has not fired: it was never true of the states that were drawn", t.Name)}
	case r.Hold >= trial:
		return nil // It is not tried.
	case r.Hold > t.Longest:
		more := ""
		if longer := min(6*r.Hold, MaxTime); longer > trial {
			more = fmt.Sprintf(": try --time %v", longer)
		}
		return []string{fmt.Sprintf("%s has not fired: it was true %d times, for %v at most, and has to hold for %v%s", t.Name, t.True, t.Longest, r.Hold, more)}
	}
	return []string{fmt.Sprintf("%s has not fired, though it was true %d times, for %v at most", t.Name, t.True, t.Longest)}
}

// shrink makes a trial that breaks a promise smaller, and it still breaks the same promise:
// with fewer kinds of faults, fewer processes or members, for a shorter time.
func shrink(spec trialSpec) *trial {
	run := func(s trialSpec) *trial {
		one := newTrial(s)
		one.runTrial()
		return one
	}
	least := run(spec)
	judge := least.breaches[0].judge
	try := func(s trialSpec) bool {
		one := run(s)
		if len(one.breaches) == 0 || one.breaches[0].judge != judge {
			return false
		}
		least, spec = one, s
		return true
	}
	for better := true; better; {
		better = false
		for i := range faultNames {
			if s := spec; s.faults&(1<<i) != 0 {
				s.faults &^= 1 << i
				better = try(s) || better
			}
		}
		for s := spec; s.processes > 2 || s.members > max(s.level.Members.Count, 2); {
			s.processes--
			s.members = max(s.members-1, 0)
			if !try(s) {
				break
			}
			better = true
		}
		for _, part := range []time.Duration{2, 4, 8} {
			s := spec
			if s.time -= s.time / part; s.time >= 50*time.Millisecond && try(s) {
				better = true
				break
			}
		}
	}
	return least
}

// namedMembers are the members that signals of a level name.
func namedMembers(level *plan.Level) (names []string) {
	for _, r := range level.Rules {
		for i := range r.Signals {
			names = append(names, r.Signals[i].Names...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noteReaction notes that a handler has begun for a decision.
func (t *trial) noteReaction(s *control.Signal) {
	if since, ok := t.became[s.Decision]; ok {
		t.texts[t.trialSpec.level][s.Predicate].tried.Handled.addDuration(t.now.Sub(since))
	}
}

// lastedLong reports whether a stretch is as long as a predicate has to hold; clocks that differ
// by 200 ppm measure a slightly shorter stretch as that long.
func lastedLong(from, to clocksync.Instant, hold time.Duration) bool {
	return to == clocksync.MaxInstant || from == clocksync.MinInstant || to.Sub(from) >= hold-hold/1000
}
