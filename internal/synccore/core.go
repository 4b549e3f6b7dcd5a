package synccore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Options says how a machine is hosted.
type Options struct {
	// Term is larger in every later life of the synchronizer.
	Term uint64
	// Local is set where the members are threads of the hosting process: their
	// evidence comes by InEvidence, nobody is probed, asked again or silent.
	Local bool
	// Reference is the clock domain whose readings are the reference time: the
	// host's own at the root. Empty: there is none.
	Reference clocksync.Domain
	// Timeline is that of the members' stamps. Empty: named as the reference, if
	// there is one; otherwise that is not looked at.
	Timeline clocksync.Timeline
	// Relative says that Timeline, too, is the readings of Reference.
	Relative bool
}

// The waits of the machine, none of which decides a verdict.
const (
	resendWait  = 500 * time.Millisecond // for a ring's answer, before a gap is unknown
	probeAgain  = 250 * time.Millisecond // a probe without an answer is repeated
	askPeriod   = time.Millisecond       // a threshold is asked at most that often what evidence it lacks
	tickPeriod  = 250 * time.Millisecond // how often silence is looked at
	awayLimit   = 2 * tickPeriod         // longer without a step: the machine was away, not its members
	stashLimit  = 1024                   // reports kept behind a gap of one member: as many as it can send again
	outboxLimit = 65_536                 // signals without a final fate
	otherSilent = 5 * plan.Heartbeat     // a member of another group that says nothing for longer is forgotten
	probesOut   = 2                      // probes to one member without an answer
	goneKept    = time.Minute            // how long a member that is gone is remembered
)

// Core is the machine of one synchronizer. It is owned by one goroutine.
type Core struct {
	plan     *plan.Level
	opt      Options
	relative bool // the readings of the reference clock are the time stamps are compared by
	det      *scgs.Detector
	scope    *predicates.Scope
	rows     arena
	runs     []*runs           // the rules' own detectors, in order of the rules
	partial  *predicates.Scope // what one of them has found: the members of the runs
	alone    *predicates.Scope // one member, for local conditions
	single   [1]predicates.Member

	now      clocksync.Instant
	stepped  bool
	heard    clocksync.Instant // when the newest report of the global state that is being opened was taken in
	taken    uint64            // reports
	failed   bool
	looked   clocksync.Instant // when silence and gaps were last looked at
	members  map[string]*member
	latest   *member   // that was looked up
	sorted   []*member // every known member, by name
	inEpoch  []*member // the members of the epoch, in the order of the scope
	byIndex  []*member // by number in the detector
	process  *member   // the process beside its threads, if the plan declares it
	epoch    uint64
	begun    bool // the first epoch has been reached
	paused   bool // too few members
	changed  bool // members are ready, or gone: the epoch is to be looked at
	dropped  []monitor.Dropped
	removing []*member

	ev        scgs.Event
	tuple     bool // a tuple is open and in the scope
	rejudge   bool // something beside the members' states has changed
	judgeAll  bool // also predicates that nothing affects, for tests
	states    []ruleState
	past      map[string]*past // of each predicate that was judged
	memory    []scgs.Value
	decisions uint64

	others   map[string]*otherGroup // that signals go to
	planner  *planner               // of the section balance, nil if there is none
	balanced [strategies]BalanceCounts
	exec     *execution // of the program that the machine runs, nil if there is none

	outbox    []*pending
	again     clocksync.Instant // when the next of them is due; MinInstant: something has changed
	summary   summary
	strangers map[string]clocksync.Instant
	domains   map[clocksync.Domain]*domain

	// Scratch space of one step.
	needs    []scgs.Need
	parts    []scgs.Part
	released []scgs.Ref
	targets  []int
	values   []scgs.Value
	sets     []set
	occasion occasion
}

// New returns the machine of a plan.
func New(plan *plan.Level, opt Options) *Core {
	relative := opt.Reference != "" && (opt.Timeline == "" || opt.Relative)
	if opt.Timeline == "" {
		opt.Timeline = clocksync.Timeline(opt.Reference)
	}
	c := &Core{
		plan: plan, opt: opt, relative: relative, heard: clocksync.MinInstant, again: clocksync.MinInstant,
		det:       scgs.NewDetector(scgs.Options{}),
		scope:     predicates.NewScope(plan.Env),
		partial:   predicates.NewScope(plan.Env),
		alone:     predicates.NewScope(plan.Env),
		members:   map[string]*member{},
		strangers: map[string]clocksync.Instant{},
		domains:   map[clocksync.Domain]*domain{},
		others:    map[string]*otherGroup{},
		states:    newStates(len(plan.Rules)),
		past:      make(map[string]*past, len(plan.Rules)),
		memory:    make([]scgs.Value, len(plan.Variables)),
	}
	if plan.Program != nil && !opt.Local {
		c.exec = newExecution(plan.Program, opt.Term)
	}
	if plan.Prev {
		c.scope.KeepPrev()
	}
	c.keepPlanner()
	c.listen()
	for i, v := range plan.Variables {
		c.setMemory(i, v.InitialValue())
	}
	for i, r := range plan.Rules {
		if r.Detector.Exists() {
			c.runs = append(c.runs, newRuns(i, r.Detector))
		}
	}
	c.rearm()
	return c
}

// Plan is the plan that the machine follows.
func (c *Core) Plan() *plan.Level { return c.plan }

// Term is the term the machine runs in.
func (c *Core) Term() uint64 { return c.opt.Term }

// Domain is the clock domain of a member, empty if it is not known.
func (c *Core) Domain(name string) clocksync.Domain {
	if m := c.member(name); m != nil {
		return m.domain
	}
	return ""
}

// member is the member of a name, or nil. Most often the same one is asked for
// again.
func (c *Core) member(name string) *member {
	if m := c.latest; m != nil && m.name == name {
		return m
	}
	c.latest = c.members[name]
	return c.latest
}

// Carrier is who speaks for a member, empty if it does itself or is not known.
func (c *Core) Carrier(name string) string {
	if m := c.members[name]; m != nil {
		return m.carrier
	}
	return ""
}

// Incarnation is that of a member, 0 if it is not known.
func (c *Core) Incarnation(name string) uint64 {
	if m := c.members[name]; m != nil {
		return m.incarnation
	}
	return 0
}

// Epoch is the number of the epoch in force, 0 before the first and while there
// are too few members.
func (c *Core) Epoch() uint64 {
	if c.paused {
		return 0
	}
	return c.epoch
}

// Step takes one input at the instant now of the host's monotonic clock, which
// never goes back, and fills out.
func (c *Core) Step(now clocksync.Instant, in *Input, out *Output) {
	out.reset()
	if c.failed {
		return
	}
	c.back(now)
	c.now = now
	if in.Group == "" {
		c.input(in, out)
	} else {
		c.hear(in, out)
	}
	c.settle(in, out)
	c.remark(out)
}

func (c *Core) input(in *Input, out *Output) {
	switch in.Kind {
	case InTick:
	case InHello:
		c.hello(in.From, in.Hello, out)
	case InBatch:
		c.batch(in.From, in.Batch, out)
		if c.opt.Local && in.At.Domain != "" {
			c.evidenceOfAll(in.At)
		}
	case InGone:
		c.gone(in.From, in.Gone, out)
	case InAck:
		c.ack(in.From, in.Ack, out)
	case InAlive:
		c.alive(in.From, in.Alive, out)
	case InEvidence:
		c.evidenceOfAll(in.At)
	case InProcess:
		c.processState(in.At, in.Row, out)
	case InTimeline:
		c.anew(in.Timeline)
	case InParent:
		c.parentSignal(in.Signal)
	case InPlan:
		c.reload(in.Plan, out)
	case InBody:
		c.bodyOf(in.From, in.Body, out)
	case InCancel:
		c.cancelProgram(in.Reason, out)
	case InRestart:
		c.restart(in.Restart, out)
	default:
		panic("synccore: input without a kind")
	}
}

// back forgives every member the time in which the machine itself was away: a
// stopped or suspended process must not take its members for silent.
func (c *Core) back(now clocksync.Instant) {
	if away := now.Sub(c.now); c.stepped && away > awayLimit {
		for _, m := range c.sorted {
			m.heard = m.heard.Add(away)
		}
		for _, g := range c.others {
			for _, m := range g.sorted {
				m.heard = m.heard.Add(away)
			}
		}
	}
	c.stepped = true
}

// settle brings everything up to date after the input was taken in.
func (c *Core) settle(in *Input, out *Output) {
	if !c.opt.Local && (in.Kind == InTick || c.now >= c.looked.Add(tickPeriod)) {
		c.looked = c.now
		c.gapsOver(out)
		c.forgetStamps()
		c.forgetOthers()
		c.silence(out)
		c.awaitOver(out)
		if c.failed {
			return
		}
	}
	c.sweep(out)
	c.sweepRuns(out)
	if c.nextEpoch(out) {
		c.sweepRuns(out)
	}
	if c.tuple && c.rejudge {
		if span, ok := c.det.Current(); ok {
			c.judge(&span, true, out)
		}
	}
	c.holds(out)
	c.carryOn(out)
	c.balance(out)
	if !in.More {
		c.probe(out)
	}
	c.retry(out)
	c.summarize(out)
	c.recycle()
	out.Wake = c.wake()
}

// recycle hands the rows of popped states back to the arena.
func (c *Core) recycle() {
	c.released = c.det.Released(c.released[:0])
	for _, ref := range c.released {
		c.rows.free(ref)
	}
}

// wake is when the machine next has something to do by itself.
func (c *Core) wake() clocksync.Instant {
	wake := clocksync.MaxInstant
	for i := range c.states {
		if c.tuple { // else there is nothing to fire on
			wake = min(wake, c.states[i].due)
		}
	}
	for _, w := range c.runs {
		wake = min(wake, w.due)
	}
	wake = min(wake, c.again, c.execWake(), c.balanceWake())
	if !c.opt.Local && (len(c.sorted) > 0 || c.exec != nil || c.listening()) {
		wake = min(wake, c.now.Add(tickPeriod))
	}
	return wake
}

// arena keeps the rows of states by reference, without an allocation once it
// has grown to its working size. Reference 0 is no row.
type arena struct {
	rows   [][]scgs.Value
	unused []scgs.Ref
}

func (a *arena) put(row []scgs.Value) scgs.Ref {
	if len(a.rows) == 0 {
		a.rows = append(a.rows, nil)
	}
	if n := len(a.unused); n > 0 {
		ref := a.unused[n-1]
		a.unused = a.unused[:n-1]
		a.rows[ref] = append(a.rows[ref][:0], row...)
		return ref
	}
	a.rows = append(a.rows, slices.Clone(row))
	return scgs.Ref(len(a.rows) - 1)
}

func (a *arena) get(ref scgs.Ref) []scgs.Value {
	if ref == 0 {
		return nil
	}
	return a.rows[ref]
}

func (a *arena) free(ref scgs.Ref) {
	if ref != 0 {
		a.unused = append(a.unused, ref)
	}
}

// decision numbers the next firing.
func (c *Core) decision() control.Decision {
	c.decisions++
	return control.Decision{Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch, Number: c.decisions}
}
