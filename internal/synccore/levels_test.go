package synccore_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/scgs"
)

const levelsConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1s, then: drop}
    state: {on: bool, n: int}
    predicates:
      all-on:
        when: all(members, .on)
        signal: {kind: activate, region: r}
      sum-three:
        when: sum(members, .n) % 3 == 0
      far:
        when: sum(members, .n) >= 0
        every: true
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {on: bool, n: int}
    summary:
      on: all(members, .on)
      n: sum(members, .n)
`

// TestLevels is TestWorld with processes of several threads, each with a
// thread-level synchronizer of its own: what the upper level decides on the
// summaries must have been true of all threads at one instant.
func TestLevels(t *testing.T) {
	first, last := uint64(1), uint64(worlds(t))
	if *seed != 0 {
		first, last = *seed, *seed
	}
	for s := first; s <= last; s++ {
		w := emptyWorld(t, s, levelsConfig)
		w.check = w.judgeLevels
		for _, a := range w.members {
			a.level = newLevel(a)
		}
		w.run()
		if t.Failed() {
			t.Fatalf("repeat with: go test ./internal/synccore -run TestLevels -seed %d", s)
		}
	}
}

// level is the inside of a process: threads and the synchronizer of theirs.
type level struct {
	*actor
	core    *synccore.Core
	out     synccore.Output
	threads []*worker
}

// worker is a thread and what it truly did.
type worker struct {
	name    string
	seq     uint64
	reports []wire.Report // not taken yet
	truth   []stretch
}

func newLevel(a *actor) *level {
	plans, err := configfile.Parse("levels.yaml", []byte(levelsConfig))
	if err != nil {
		a.t.Fatal(err)
	}
	l := &level{actor: a, core: synccore.New(plans.Get("tsync"), synccore.Options{Term: 1, Local: true})}
	a.input(agentcore.Input{Kind: agentcore.InSummary})
	for i := range 2 + a.rng.IntN(2) {
		th := &worker{name: fmt.Sprintf("t%d", i)}
		l.threads = append(l.threads, th)
		l.step(synccore.Input{Kind: synccore.InHello, From: th.name, Hello: &wire.Hello{Member: th.name, Incarnation: 1, Domain: a.domain}})
	}
	return l
}

// change sets a new state of a thread, and of all that have none yet.
func (l *level) change() {
	chosen := l.rng.IntN(len(l.threads))
	for i, th := range l.threads {
		if i == chosen || th.seq == 0 {
			l.set(th, l.on || l.rng.IntN(4) > 0, int64(l.rng.IntN(5)))
			l.now++
		}
	}
}

func (l *level) set(th *worker, on bool, n int64) {
	if len(th.truth) > 0 {
		th.truth[len(th.truth)-1].to = l.now
	}
	th.truth = append(th.truth, stretch{from: l.now, to: clocksync.MaxInstant, on: on, n: n})
	th.seq++
	th.reports = append(th.reports, wire.Report{
		Seq: th.seq, At: l.stampAt(l.now), Row: []scgs.Value{scgs.BoolValue(on), scgs.IntValue(n)},
	})
}

// evidence takes what the threads have to say, thread by thread, and one reading
// of the clock for all of them.
func (l *level) evidence() {
	for _, th := range l.threads {
		if len(th.reports) > 0 {
			l.step(synccore.Input{Kind: synccore.InBatch, From: th.name, Batch: &wire.Batch{Member: th.name, Incarnation: 1, Reports: th.reports}})
			th.reports = nil
		}
	}
	l.step(synccore.Input{Kind: synccore.InEvidence, At: l.stampAt(l.now)})
}

func (l *level) step(in synccore.Input) {
	l.core.Step(l.now, &in, &l.out)
	for _, r := range l.out.Rejected {
		l.t.Errorf("%s: the thread level rejects %+v", l.name, r)
	}
	for _, e := range l.out.Summary {
		step := func(in agentcore.Input) error {
			l.actor.core.Step(l.now, &in, &l.reply)
			return l.reply.Err
		}
		var err error
		switch e.Kind {
		case synccore.SummaryStart:
			err = step(agentcore.Input{Kind: agentcore.InState, At: e.At, Row: e.Row})
		case synccore.SummaryEnd:
			err = step(agentcore.Input{Kind: agentcore.InEnd, At: e.At})
		case synccore.SummaryAlive:
			err = step(agentcore.Input{Kind: agentcore.InAlive, At: e.At})
		}
		if err != nil {
			l.t.Errorf("%s: summary %+v: %v", l.name, e, err)
		}
	}
}

// holds reports whether the threads truly had that summary at an instant.
func (l *level) holds(at clocksync.Instant, row []scgs.Value) bool {
	on, n := true, int64(0)
	for _, th := range l.threads {
		s, ok := th.at(at)
		if !ok {
			return false
		}
		on, n = on && s.on, n+s.n
	}
	return row[0].Bool() == on && row[1].Int() == n
}

func (th *worker) at(t clocksync.Instant) (stretch, bool) {
	for _, s := range th.truth {
		if s.from <= t && t < s.to {
			return s, true
		}
	}
	return stretch{}, false
}

// judgeLevels looks for the instant that a decision claims: one at which every
// process had the summary of the witness. It is enough to look at the instants
// at which a thread changed or a state of the witness began.
func (w *world) judgeLevels(v *monitor.Verdict) {
	candidates := []clocksync.Instant{}
	from, to := clocksync.MinInstant, clocksync.MaxInstant
	for _, p := range v.Witness {
		if p.State.Unknown {
			continue
		}
		a := w.byName[p.Name]
		from = max(from, a.trueTime(p.State.Start))
		to = min(to, a.trueTime(p.State.End))
		for _, th := range a.level.threads {
			for _, s := range th.truth {
				candidates = append(candidates, s.from)
			}
		}
	}
	candidates = append(candidates, from)
	for _, at := range candidates {
		if from <= at && at < to && w.heldAt(v.Witness, at) {
			return
		}
	}
	w.t.Errorf("%s fired: at no instant from %v to %v had all processes the summaries of the witness %+v", v.Predicate, from, to, v.Witness)
}

func (w *world) heldAt(witness []monitor.Part, at clocksync.Instant) bool {
	for _, p := range witness {
		if !p.State.Unknown && !w.byName[p.Name].level.holds(at, p.Row) {
			return false
		}
	}
	return true
}
