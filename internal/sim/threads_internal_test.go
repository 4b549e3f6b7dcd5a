package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

const threadsConfig = trialConfig + `
  tsync:
    parent: gsync
    members: {threads: 2}
    state: {on: bool, n: int}
    summary:
      on: all(members, .on)
      n: sum(members, .n)
    predicates:
      threads-on:
        when: all(members, .on)
        signal: {kind: activate, region: w}
      some-off:
        when: count(members, not .on) >= 1
        modality: atleast
        signal: {kind: cancel, region: v, to: holders}
      even:
        when: sum(members, .n) % 2 == 0
        for: 10ms
        signal: {kind: activate, region: w}
`

// threaded is what has happened to threads in trials.
type threaded struct {
	Processes, States, Summaries, Ended int // ended: a summary became unknown
	Sent, Applied, Left, Fates          int
	Fired                               map[string]int
}

func (s *threaded) add(o *threaded) {
	s.Processes, s.States, s.Summaries, s.Ended = s.Processes+o.Processes, s.States+o.States, s.Summaries+o.Summaries, s.Ended+o.Ended
	s.Sent, s.Applied, s.Left, s.Fates = s.Sent+o.Sent, s.Applied+o.Applied, s.Left+o.Left, s.Fates+o.Fates
	for name, n := range o.Fired {
		s.Fired[name] += n
	}
}

// threads are the threads of a process in one of its lives, their synchronizer, and the truth
// about them.
type threads struct {
	*threaded
	a      *actor
	life   uint64
	level  *Level
	rules  map[string]*text
	dice   *rand.Rand
	truth  map[string][]stretch
	sent   map[signalKey]int
	done   map[signalKey]int
	alters func(*synccore.Output) // a mutant; may be nil
}

func newThreads(a *actor, plan *plan.Level, sum *threaded, alters func(*synccore.Output)) *threads {
	p := &threads{
		threaded: sum, a: a, life: a.life, level: NewLevel(a.on.Host, plan), rules: newTexts(plan, nil), alters: alters,
		dice:  rand.New(rand.NewPCG(a.t.seed, 77+a.life)), //nolint:gosec // Chance is all that is asked for.
		truth: map[string][]stretch{}, sent: map[signalKey]int{}, done: map[signalKey]int{},
	}
	sum.Processes++
	p.level.read = func() clocksync.Stamp { return a.clock.makeStamp(a.t.bent) }
	p.level.Observe = p.observe
	a.step(agentcore.Input{Kind: agentcore.InSummary})
	for _, name := range []string{"t0", "t1", "t2"}[:2+p.dice.IntN(2)] {
		m := p.level.Join(name)
		m.Obeyed = func(s *control.Signal) { p.obeyed(m, s) }
		m.Enter("w", "threads-on", "even")
		m.Enter("v")
	}
	p.level.turn()
	return p
}

// change has a thread begin a state, or all that have none yet.
func (p *threads) change() {
	chosen := p.level.Threads[p.dice.IntN(len(p.level.Threads))]
	for _, m := range p.level.Threads {
		if m.core.Codec() == nil || m != chosen && p.truth[m.name] != nil {
			continue
		}
		row := []scgs.Value{scgs.BoolValue(p.dice.IntN(4) > 0), scgs.IntValue(50 + p.dice.Int64N(3))}
		m.Set(row)
		if _, open := m.entries["v"]; !open && p.dice.IntN(4) == 0 {
			m.Enter("v")
		}
		p.States++
		list := p.truth[m.name]
		if n := len(list); n > 0 {
			list[n-1].to = p.a.t.now
		}
		p.truth[m.name] = append(list, stretch{from: p.a.t.now, to: clocksync.MaxInstant, row: row})
		p.hold()
	}
}

// hold notes what the process has been from now on.
func (p *threads) hold() {
	on, n := true, int64(0)
	for _, m := range p.level.Threads {
		list := p.truth[m.name]
		if list == nil {
			return
		}
		row := list[len(list)-1].row
		on, n = on && row[0].Bool(), n+row[1].Int()
	}
	a, row := p.a, []scgs.Value{scgs.BoolValue(on), scgs.IntValue(n)}
	if k := len(a.truth); k == 0 || a.truth[k-1].to < clocksync.MaxInstant || !slices.Equal(a.truth[k-1].row, row) {
		a.ends(a.t.now)
		a.truth = append(a.truth, stretch{from: a.t.now, to: clocksync.MaxInstant, row: row})
	}
}

func (p *threads) look() { p.level.turn() }

// observe takes what a step of the threads' synchronizer has come to.
func (p *threads) observe(out *synccore.Output) {
	t, a := p.a.t, p.a
	if !a.alive || a.life != p.life {
		return // The process is gone, and they with it.
	}
	if p.alters != nil {
		p.alters(out)
	}
	for _, r := range out.Rejected {
		t.addBreach('S', "the threads of %s: rejected: %+v", a.name, r)
	}
	for i := range out.Summary {
		in := agentcore.Input{Kind: agentcore.InAlive, At: out.Summary[i].At, Row: out.Summary[i].Row}
		switch out.Summary[i].Kind {
		case synccore.SummaryStart:
			in.Kind = agentcore.InState
			p.Summaries++
			t.States++
		case synccore.SummaryEnd:
			in.Kind = agentcore.InEnd
			p.Ended++
		case synccore.SummaryAlive:
		}
		switch err := a.step(in).Err; {
		case in.Kind != agentcore.InState:
		case err == nil:
			a.sets++
		default:
			t.addBreach('S', "the summary of %s: %v", a.name, err)
		}
	}
	for i := range out.Verdicts {
		if v := &out.Verdicts[i]; v.Fired {
			p.Fired[v.Predicate]++
			p.judge(v)
		}
	}
	for i := range out.Signals {
		for k := range out.Signals[i].Msg.Signals {
			if key := keyOf(&out.Signals[i].Msg.Signals[k]); p.sent[key] == 0 {
				p.sent[key] = 1
				p.Sent++
			}
		}
	}
	for i := range out.Fates {
		f := &out.Fates[i]
		p.Fates++
		key := keyOf(f.Signal)
		if p.sent[key]++; p.sent[key] > 2 || f.Fate == control.Applied && p.done[key] == 0 || f.Fate != control.Applied && p.done[key] > 0 {
			t.addBreach('F', "in %s: %v has the fate %v, and was applied %d times", a.name, f.Signal, f.Fate, p.done[key])
		}
	}
}

// judge is judge S among threads, which share a clock.
func (p *threads) judge(v *monitor.Verdict) {
	x := p.rules[v.Predicate]
	from, to := clocksync.MinInstant, clocksync.MaxInstant
	var members []predicates.Member
	var rows [][]scgs.Value
	for i := range v.Witness {
		w := &v.Witness[i]
		k := slices.IndexFunc(p.truth[w.Name], func(s stretch) bool {
			at, _ := p.a.t.domains[w.State.Start.Domain].trueTime(w.State.Start.Mono)
			return s.from <= at && at < s.to
		})
		if k < 0 {
			p.a.t.addBreach('S', "%s fired in %s on a state that %s never had: %v", v.Predicate, p.a.name, w.Name, w.Row)
			return
		}
		s := p.truth[w.Name][k]
		if v.Modality != "" {
			for k++; k < len(p.truth[w.Name]) && !p.truth[w.Name][k].row[0].Bool() && !s.row[0].Bool(); k++ {
				s.to = p.truth[w.Name][k].to // A run continues.
			}
		}
		from, to = max(from, s.from), min(to, s.to)
		members, rows = append(members, predicates.Member{Name: w.Name, Host: string(p.a.on.Domain)}), append(rows, s.row)
	}
	x.all.Reset(members)
	for i, row := range rows {
		x.all.Set(i, row)
	}
	if from >= to || x.When.Eval(x.all).Truth != predicates.True {
		p.a.t.addBreach('S', "%s fired in %s, and its threads were never so: from %v to %v: %+v", v.Predicate, p.a.name, from, to, v.Witness)
	}
}

// obeyed is judge A among threads.
func (p *threads) obeyed(m *Member, s *control.Signal) {
	key := keyOf(s)
	if p.done[key]++; p.done[key] > 1 || s.Target != m.name {
		p.a.t.addBreach('A', "in %s: %v has taken effect %d times, the last time in %s", p.a.name, s, p.done[key], m.name)
	}
	if s.Kind == control.Cancel {
		p.Left++
	}
	p.Applied++
}

// inThreads has the members of a trial that have their process for themselves be made of threads.
func inThreads(t *testing.T, spec trialSpec, sum *threaded, alters func(*synccore.Output)) trialSpec {
	t.Helper()
	parse := func(text string) plan.Levels {
		plans, err := configfile.Parse("threads.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return plans
	}
	plans := parse(threadsConfig)
	spec.level, spec.other = plans.Get("gsync"), nil // What threads see of another one cannot be reloaded.
	spec.threads = func(a *actor) inside { return newThreads(a, plans.Get("tsync"), sum, alters) }
	return spec
}

// TestThreads: processes whose states are summaries of their threads, under all faults.
func TestThreads(t *testing.T) {
	sum := threaded{Fired: map[string]int{}}
	fired := map[string]int{}
	for seed := range uint64(testcount.Of(t, "THREADS", 50)) { //nolint:gosec // Above 0.
		one := threaded{Fired: map[string]int{}}
		spec := inThreads(t, trialOf(t, AllFaults, time.Second), &one, nil)
		spec.seed = seed + 1
		trial := newTrial(spec)
		trial.runTrial()
		for _, b := range trial.breaches {
			t.Fatalf("trial %d: %c %s", spec.seed, b.judge, b.text)
		}
		sum.add(&one)
		for name, n := range trial.Fired {
			fired[name] += n
		}
	}
	t.Logf("%+v, above them %v", sum, fired)
	if sum.Summaries < 500 || sum.Ended == 0 || sum.Left == 0 || sum.Applied <= sum.Left || sum.Fates == 0 || len(sum.Fired) != 3 {
		t.Errorf("something has not happened: %+v", sum)
	}
	for _, name := range slices.Sorted(maps.Keys(trialRules)) {
		if fired[name] == 0 {
			t.Errorf("%s has not fired", name)
		}
	}
}

// TestThreadMutants: what a thread-level synchronizer does wrong is noticed.
func TestThreadMutants(t *testing.T) {
	for name, m := range map[string]struct {
		judges string
		alters func() func(*synccore.Output)
	}{
		"a summary has other values": {"SC", func() func(*synccore.Output) {
			return func(out *synccore.Output) {
				for i := range out.Summary {
					if e := &out.Summary[i]; e.Kind == synccore.SummaryStart && e.Row[1].Int()%5 == 0 {
						e.Row = []scgs.Value{scgs.BoolValue(true), e.Row[1]}
					}
				}
			}
		}},
		"a summary is left out": {"SC", func() func(*synccore.Output) {
			n := 0
			return func(out *synccore.Output) {
				out.Summary = slices.DeleteFunc(out.Summary, func(e synccore.SummaryEvent) bool {
					if e.Kind == synccore.SummaryStart {
						n++
					}
					return e.Kind == synccore.SummaryStart && n%7 == 0
				})
			}
		}},
		"a state of threads is told as the one before": {"S", func() func(*synccore.Output) {
			return func(out *synccore.Output) {
				for i := range out.Verdicts {
					if v := &out.Verdicts[i]; v.Fired && len(v.Witness) > 1 {
						v.Witness[0].State.Start = later(v.Witness[0].State.Start, -5*time.Millisecond)
					}
				}
			}
		}},
		"a fate of a thread's signal is told twice": {"F", func() func(*synccore.Output) {
			return func(out *synccore.Output) { out.Fates = append(out.Fates, out.Fates...) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			others := map[byte]int{}
			for seed := range uint64(128) {
				one := threaded{Fired: map[string]int{}}
				spec := inThreads(t, trialOf(t, AllFaults, time.Second), &one, m.alters())
				spec.seed = seed + 1
				trial := newTrial(spec)
				trial.runTrial()
				for _, b := range trial.breaches {
					if strings.ContainsRune(m.judges, rune(b.judge)) {
						t.Logf("trial %d: %c %.150s", spec.seed, b.judge, b.text)
						return
					}
					others[b.judge]++
				}
			}
			t.Errorf("it outlives 128 trials: others noticed it, %v", others)
		})
	}
}
