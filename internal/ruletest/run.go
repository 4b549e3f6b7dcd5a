package ruletest

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/sim"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/scgs"
)

// Result is what a test came to.
type Result struct {
	Test     *Test
	Seed     uint64 // of the run that is reported: the first that failed, else the last
	Failures []Failure
	Log      []string // what happened in that run
}

// OK reports whether everything was as expected.
func (r *Result) OK() bool { return len(r.Failures) == 0 }

// Failure is an expectation that was not met.
type Failure struct {
	Place

	Want []string `json:"expected"` // a line each
	Got  []string `json:"got"`      // in place of them
	Log  []string `json:"-"`        // what happened to the subject of the expectation

	// Drawn is the file with the picture; empty: there is none.
	Drawn string `json:"picture,omitempty"`

	run     *log // of the test
	test    *Test
	subject string // that the expectation is about
	when    []span // the times that the expectation names
}

// Run runs the test with each of its seeds, up to the first that fails.
func (t *Test) Run() *Result {
	result := &Result{Test: t}
	for seed := uint64(1); seed <= uint64(t.seeds); seed++ {
		l := newStage(t, seed).run()
		result.Seed, result.Log = seed, l.told(func(*line) bool { return true })
		for i := range t.expect {
			e := &t.expect[i]
			if d := e.check(l); !d.none() {
				result.Failures = append(result.Failures, Failure{
					Place: e.Place, Want: d.want, Got: d.got, Log: l.told(func(x *line) bool { return x.subject == "" || x.subject == e.subject }),
					run: l, test: t, subject: e.subject, when: e.when,
				})
			}
		}
		if len(result.Failures) > 0 {
			break
		}
	}
	return result
}

// stage is the world of a run. The test begins at zero of its time, which is when members that
// have said hello before set their first states.
type stage struct {
	test  *Test
	world *sim.World
	zero  clocksync.Instant
	root  *sim.Host
	group *sim.Group // nil: a thread-level synchronizer
	level *sim.Level
	core  *synccore.Core
	asked synccore.Output
	hosts map[string]*sim.Host
	log   *log
	cast  []*actor

	process []scgs.Value // the state of the process beside its threads
}

// actor plays a participant.
type actor struct {
	*participant

	stage    *stage
	member   *sim.Member // nil: not there
	up, down *sim.Link
	cut      bool
	taken    bool // it was taken in
	began    bool // it has had a state since
	row      []scgs.Value
}

func newStage(t *Test, seed uint64) *stage {
	w := sim.New(seed)
	s := &stage{
		test: t, world: w, root: w.NewHost("host", sim.HostSpec{}),
		hosts: map[string]*sim.Host{}, log: newLog(t.plan),
		process: defaults(t.plan.Process),
	}
	if t.plan.Members.Threads {
		s.level = sim.NewLevel(s.root, t.plan)
		s.level.Observe, s.core = s.observe, s.level.Core()
	} else {
		s.group = sim.NewGroup(s.root, t.plan, "")
		s.group.Observe, s.core = s.observe, s.group.Core()
	}
	slowest := t.delay
	for _, p := range t.members {
		slowest = max(slowest, p.delay)
		s.cast = append(s.cast, &actor{participant: p, stage: s})
	}
	s.zero = clocksync.Instant(time.Second + 4*slowest) // A hello and its answer, and one more try.
	return s
}

func (s *stage) observe(o *synccore.Output) {
	at := s.now()
	s.log.output(at, s.test.plan, o)
	s.core.Step(s.world.Now(), &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Memory: true}}, &s.asked)
	s.log.remember(at, s.test.plan.Memory(), s.asked.Answer.Memory)
}

// now is the time of the test, below 0 before it begins.
func (s *stage) now() time.Duration { return s.world.Now().Sub(s.zero) }

// at lets something happen at a time of the test.
func (s *stage) at(d time.Duration, do func()) {
	s.world.After(s.zero.Add(d).Sub(s.world.Now()), do)
}

func (s *stage) run() *log {
	if s.group != nil {
		s.network()
	}
	for _, e := range s.test.process {
		s.at(e.at, func() { s.processState(e.steps) })
	}
	for i := range s.test.parent {
		p := &s.test.parent[i]
		s.at(p.at, func() { s.fromParent(uint64(i+1), p) })
	}
	for _, a := range s.cast {
		for i, e := range a.entries {
			if i == 0 && e.at == 0 {
				a.join() // It is taken in before the test begins.
			}
			s.at(e.at, func() { a.play(e.steps) })
		}
	}
	s.world.Run(s.zero.Add(s.test.lasts))
	for _, a := range s.cast {
		if why := s.log.refused[a.name]; why != "" && !a.taken {
			s.log.add(s.test.lasts, "", "%s was not taken in: %s", a.name, why)
		}
	}
	if len(s.log.epochs) == 1 {
		s.log.add(s.test.lasts, "", "there was no epoch: %s awaits %d members", s.test.plan.Name, s.test.plan.Members.Count)
	}
	return s.log
}

// network makes the paths of the members lose what they are to lose.
func (s *stage) network() {
	for _, a := range s.cast {
		a.up = s.world.NewLink(sim.LinkSpec{Delay: a.delay})
		a.down = s.world.NewLink(sim.LinkSpec{Delay: a.delay})
	}
	changes := []time.Duration{0}
	for _, w := range s.test.windows {
		changes = append(changes, w.From, w.To)
	}
	slices.Sort(changes)
	for _, at := range slices.Compact(changes) {
		s.at(at, func() {
			for _, a := range s.cast {
				a.lose()
			}
		})
	}
}

// lose sets what the paths of a member lose now.
func (a *actor) lose() {
	now := a.stage.now()
	part := a.stage.test.loss
	for _, w := range a.stage.test.windows {
		if w.From <= now && now < w.To && (len(w.names) == 0 || slices.Contains(w.names, a.name)) {
			part = max(part, *w.Loss)
		}
	}
	if a.cut {
		part = 1
	}
	a.up.SetLoss(part)
	a.down.SetLoss(part)
}

// where is the host of a member, and its clock: nil is the host's.
func (a *actor) where() (*sim.Host, sim.Clock) {
	s := a.stage
	if a.host == "" {
		return s.root, nil
	}
	h := s.hosts[a.host]
	if h == nil {
		h = s.world.NewHost(clocksync.Domain("host "+a.host), sim.HostSpec{Mono: clocksync.Instant(s.world.Between(0, time.Hour))})
		s.hosts[a.host] = h
	}
	return h, sim.Bounded(h, s.root, a.off, a.skew)
}

// join starts the program of a member.
func (a *actor) join() {
	a.taken, a.began, a.row = false, false, slices.Clone(a.initial)
	if a.stage.level != nil {
		a.member = a.stage.level.Join(a.name)
	} else {
		h, clock := a.where()
		a.member = a.stage.group.Join(a.name, h, clock, a.up, a.down)
	}
	m := a.member
	m.Welcomed = func() {
		if m == a.member {
			a.taken = true
			a.begin()
		}
	}
	m.Obeyed = func(sig *control.Signal) {
		a.stage.log.add(a.stage.now(), sig.Name, "%s obeys %s", a.name, sig.Name)
	}
}

// begin gives a program that was taken in its first state, in its regions, but
// none before the test begins.
func (a *actor) begin() {
	if a.began || !a.taken || a.stage.now() < 0 {
		return
	}
	a.began = true
	if !a.manual {
		for _, s := range a.stage.test.plan.Sends() {
			a.enter(s.Region)
		}
	}
	a.setState()
}

// setState sets the state of the program, and notes it.
func (a *actor) setState() {
	a.noteState(slices.Clone(a.row))
	a.member.Set(a.row)
}

// noteState notes a state, or that the program has gone.
func (a *actor) noteState(row []scgs.Value) {
	l := a.stage.log
	l.states[a.name] = append(l.states[a.name], held[[]scgs.Value]{a.stage.now(), row})
}

// enter opens a region with a handler for every signal that goes there; an open region is left
// before.
func (a *actor) enter(region string) {
	var handlers []string
	for _, s := range a.stage.test.plan.Sends() {
		if s.Region == region && !slices.Contains(handlers, s.Name) {
			handlers = append(handlers, s.Name)
		}
	}
	a.member.Exit(region)
	a.member.Enter(region, handlers...)
}

// play does what an entry of the timeline says.
func (a *actor) play(steps []step) {
	if a.member == nil && (len(steps) == 0 || steps[0].verb != verbJoin) {
		a.join()
	}
	for _, s := range steps {
		switch s.verb {
		case verbJoin:
			if a.member == nil {
				a.join()
			}
		case verbSet:
			for _, v := range s.values {
				a.row[v.field] = v.value
			}
			if a.began {
				a.setState()
			}
		case verbLeave:
			a.member.Leave()
			a.member = nil
			a.noteState(nil)
		case verbCrash:
			a.member.Crash()
			a.member = nil
			a.noteState(nil)
		case verbCut, verbHeal:
			a.cut = s.verb == verbCut
			a.lose()
		case verbEnter:
			a.enter(s.region)
		case verbExit:
			a.member.Exit(s.region)
		}
	}
	if a.member != nil {
		a.begin()
	}
}

// processState makes the next states of the process, each the one before with
// other values.
func (s *stage) processState(steps []step) {
	for _, x := range steps {
		for _, v := range x.values {
			s.process[v.field] = v.value
		}
	}
	s.level.SetProcess(slices.Clone(s.process))
}

func (s *stage) fromParent(number uint64, p *parentSignal) {
	s.level.FromParent(&control.Signal{
		Decision: control.Decision{Synchronizer: s.test.plan.Parent, Term: 1, Epoch: 1, Number: number},
		Name:     p.name, Kind: control.Activate, Data: p.data,
	})
}
