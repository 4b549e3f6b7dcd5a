package synccore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

const limited = `
synchronizers:
  gsync:
    members: {group: g, count: 2, max: 9}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      once-each: {each: members, when: .n > 3, once: member, signal: {kind: activate, region: r}}
      cool: {each: members, when: .n > 3, cooldown: 30m, signal: {kind: activate, region: r}}
      sticky: {each: members, when: .n > 3, until: .n < 0, signal: {kind: activate, region: r}}
      first: {when: "sum(members, .n) > 3", once: run, signal: {kind: activate, region: r}}
      base: {when: "sum(members, .n) > 3", signal: {kind: activate, region: r}}
      later: {when: "sum(members, .n) > 3", after: {base: 10m}, signal: {kind: activate, region: r}}
`

// limiter has members a and b report, and notes which predicates fire.
type limiter struct {
	t     *testing.T
	core  *synccore.Core
	now   clocksync.Instant
	seqs  map[string]uint64
	out   synccore.Output
	fired []string
	seen  func(in *synccore.Input) // after each step
}

func (l *limiter) step(in synccore.Input) {
	l.now++
	l.core.Step(l.now, &in, &l.out)
	for i := range l.out.Verdicts {
		if v := &l.out.Verdicts[i]; v.Fired {
			fired := v.Predicate
			if v.Modality == "each" {
				fired += " of " + v.Witness[0].Name
			}
			l.fired = append(l.fired, fired)
		}
	}
	if l.seen != nil {
		l.seen(&in)
	}
}

func (l *limiter) hello(name string, incarnation uint64) {
	l.step(synccore.Input{Kind: synccore.InHello, From: name, Hello: &wire.Hello{Member: name, Incarnation: incarnation, Domain: "host", Causes: true}})
}

// tell has a member report a state, and all show that theirs hold, and returns what has fired.
func (l *limiter) tell(name string, incarnation uint64, n int64) string {
	l.t.Helper()
	l.seqs[name]++
	l.now = l.now.Add(time.Millisecond)
	l.step(synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
		Member: name, Incarnation: incarnation, Regions: []wire.Region{{Name: "r", Entry: 5}},
		Reports: []wire.Report{{Seq: l.seqs[name], At: l.at(), Row: []scgs.Value{scgs.IntValue(n)}}},
	}})
	return l.pass(time.Millisecond, incarnation)
}

func (l *limiter) at() clocksync.Stamp {
	return clocksync.Stamp{Domain: "host", Mono: l.now, Within: clocksync.Unbounded}
}

// pass lets time pass, after which all states hold still.
func (l *limiter) pass(d time.Duration, incarnation uint64) string {
	l.now = l.now.Add(d)
	for name, seq := range l.seqs {
		of := uint64(1)
		if name == "a" {
			of = incarnation
		}
		l.step(synccore.Input{Kind: synccore.InBatch, From: name, Batch: &wire.Batch{
			Member: name, Incarnation: of, Regions: []wire.Region{{Name: "r", Entry: 5}}, Evidence: wire.Evidence{Seq: seq, At: l.at()},
		}})
	}
	l.step(synccore.Input{Kind: synccore.InTick})
	slices.Sort(l.fired)
	fired := strings.Join(l.fired, ", ")
	l.fired = l.fired[:0]
	return fired
}

func (l *limiter) wants(what, got, want string) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestLimits: what fires once, for each member, or after another one, does so over new epochs and
// reloads, and in a machine that has followed and continues.
func TestLimits(t *testing.T) {
	for _, taken := range []bool{false, true} {
		l := &limiter{t: t, core: synccore.New(compile(t, limited), synccore.Options{Term: 1}), seqs: map[string]uint64{}}
		var f *follower
		l.hello("a", 1)
		l.hello("b", 1)
		l.wants("nothing", l.tell("a", 1, 1)+l.tell("b", 1, 1), "")
		if taken {
			f = &follower{t: t, of: func() *synccore.Core { return l.core }}
			f.attach(l.now)
			l.seen = func(in *synccore.Input) { f.follow(l.now, in, l.core.MadeAlone(&l.out)) }
		}
		l.wants("a", l.tell("a", 1, 5), "base, cool of a, first, once-each of a, sticky of a")
		l.wants("a, as before", l.tell("a", 1, 6), "")
		l.wants("a, less", l.tell("a", 1, 0), "")
		l.wants("a, again", l.tell("a", 1, 5), "base")
		l.wants("b", l.tell("b", 1, 5), "cool of b, once-each of b, sticky of b")

		switch {
		case taken:
			l.seen, l.core = nil, f.core
			l.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
			l.wants("the takeover", l.pass(time.Millisecond, 1), "")
		default:
			l.step(synccore.Input{Kind: synccore.InLevel, Level: compile(t, limited+"      more: {when: \"all(members, .n < 0)\", signal: []}\n")})
			l.wants("the reload", l.pass(time.Millisecond, 1), "")
		}
		l.wants("a, once more", l.tell("a", 1, 0)+l.tell("a", 1, 5), "")
		l.wants("a, until", l.tell("a", 1, -1)+l.tell("a", 1, 5), "sticky of a")
		l.wants("too early", l.pass(9*time.Minute, 1), "")
		l.wants("after", l.pass(2*time.Minute, 1), "later")
		l.wants("b, less", l.tell("b", 1, 0), "")
		l.wants("after the cooldown", l.pass(time.Hour, 1), "cool of a")
		l.wants("b, again", l.tell("b", 1, 5), "cool of b")

		l.hello("a", 2)
		l.seqs["a"] = 0
		// There is an epoch of b alone before it is back, in which there is nobody new.
		l.wants("another life of a", l.tell("a", 2, 5), "base, cool of a, later, once-each of a, sticky of a")
	}
}

const stuck = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1h, then: drop}
    state: {n: int}
    predicates:
      each: {each: members, when: .n > 300, until: .n < 100, signal: []}
      once: {each: members, when: .n > 300, once: epoch, signal: []}
      all: {modality: definitely, when: "all(members, .n > 300)", until: "all(members, .n < 100)", signal: []}
      any: {when: "any(members, .n > 300)", until: "all(members, .n < 100)", signal: []}
`

// TestUntilOverATakeover: a machine that continues in place of another one knows which predicates are not
// ready to fire again, by all that their members have told since they fired.
func TestUntilOverATakeover(t *testing.T) {
	for _, later := range []bool{false, true} {
		untilOverATakeover(t, later)
	}
}

// untilOverATakeover has the machine that continues follow from the start or, if later is set, since just before.
func untilOverATakeover(t *testing.T, later bool) {
	t.Helper()
	for _, c := range []struct {
		name       string
		told       []int64 // by both, after they were above
		lost       uint64  // reports of both before the takeover
		fires, end string  // above after the takeover; after until
	}{
		{"between both thresholds", []int64{210, 350, 205, 200}, 0, "", "all, any, each of a, each of b"},
		{"above", nil, 0, "", "all, any, each of a, each of b"},
		{"ready", []int64{200, 50, 200}, 0, "all, any, each of a, each of b", "all, any, each of a, each of b"},
		{"a gap", []int64{200}, 2, "each of a, each of b", "all, any, each of a, each of b"},
	} {
		l := &limiter{t: t, core: synccore.New(compile(t, stuck), synccore.Options{Term: 1}), seqs: map[string]uint64{}}
		both := func(n int64) string {
			l.t.Helper()
			fired := append(strings.Split(l.tell("a", 1, n), ", "), strings.Split(l.tell("b", 1, n), ", ")...)
			slices.Sort(fired)
			return strings.TrimPrefix(strings.Join(slices.Compact(fired), ", "), ", ")
		}
		l.hello("a", 1)
		l.hello("b", 1)
		both(0)
		f := &follower{t: t, of: func() *synccore.Core { return l.core }}
		f.attach(l.now)
		l.seen = func(in *synccore.Input) { f.follow(l.now, in, l.core.MadeAlone(&l.out)) }
		l.wants(c.name+": above", both(400), "all, any, each of a, each of b, once of a")
		for _, n := range c.told {
			both(n)
		}
		if c.lost > 0 {
			for name := range l.seqs {
				l.seqs[name] += c.lost
			}
			both(200)
			l.now = l.now.Add(time.Second)
			both(200)
		}
		if later {
			f.attach(l.now)
		}
		l.seen, l.core = nil, f.core
		l.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
		l.wants(c.name+": the takeover", l.pass(time.Millisecond, 1), "")
		l.wants(c.name+": between", both(200), "")
		l.wants(c.name+": above again", both(400), c.fires)
		l.wants(c.name+": until", both(50)+both(400), c.end)
	}
}

// TestLimitsOfAnotherMachine: a machine that continues from what another one had in mind, on another clock,
// knows for which members a predicate has fired.
func TestLimitsOfAnotherMachine(t *testing.T) {
	for incarnation, want := range map[uint64]string{1: "", 2: "cool of a, once-each of a, sticky of a"} {
		l := &limiter{t: t, core: synccore.New(compile(t, limited), synccore.Options{Term: 1}), seqs: map[string]uint64{}}
		l.hello("a", 1)
		l.hello("b", 1)
		l.tell("a", 1, 1)
		l.tell("b", 1, 1)
		l.wants("a", l.tell("a", 1, 5), "base, cool of a, first, once-each of a, sticky of a")
		kept := l.core.Kept()
		l.core, l.now = synccore.New(compile(t, limited), synccore.Options{Term: 2}), l.now.Add(-time.Millisecond)
		l.step(synccore.Input{Kind: synccore.InKept, Kept: kept})
		l.hello("a", incarnation)
		l.hello("b", 1)
		l.seqs["a"]-- // It tells its state again.
		fired := l.tell("a", incarnation, 5) + l.tell("b", 1, 1)
		l.wants("another machine", strings.TrimPrefix(strings.Replace(fired, "base, ", "", 1), "base"), want)
	}
}

// TestOnceInAnEpochOverATakeover: a machine that has not come to the same global state judges again, in the
// same epoch.
func TestOnceInAnEpochOverATakeover(t *testing.T) {
	l := &limiter{t: t, core: synccore.New(compile(t, strings.Replace(stuck, "predicates:", `predicates:
      sum: {when: "sum(members, .n) > 300", once: epoch, signal: []}`, 1)), synccore.Options{Term: 1}), seqs: map[string]uint64{}}
	l.hello("a", 1)
	l.hello("b", 1)
	l.tell("a", 1, 1)
	l.tell("b", 1, 1)
	l.wants("above", l.tell("a", 1, 400), "any, each of a, once of a, sum")
	next := synccore.New(l.core.Level(), synccore.Options{Follows: true})
	l.core.Retell(func(in *synccore.Input) {
		if in.Kind == synccore.InKept {
			in.Kept.Heads++
		}
		next.Step(l.now, in, &l.out)
	})
	if _, same := next.Follows(); same {
		t.Fatal("it has come to the same global state")
	}
	l.core = next
	l.step(synccore.Input{Kind: synccore.InTerm, Term: 2})
	l.wants("the takeover", l.pass(time.Millisecond, 1), "")
	l.wants("above again", l.tell("a", 1, 1)+l.tell("a", 1, 400), "any, each of a")
}
