package synccore

import (
	"cmp"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/outbox"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/planner"
	"github.com/gopegasus/pegasus/internal/regions"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Options says what a machine runs in.
type Options struct {
	// Term is larger in every later life of the synchronizer.
	Term uint64 `json:"term"`
	// Program names the execution of the program, as no other one is named on any node. 0:
	// its Term does.
	Program uint64 `json:"program,omitempty"`
	// Runs is set for a restart: runs of the lives before, also those that their journal has
	// lost, have lower numbers.
	Runs uint64 `json:"runs,omitempty"`
	// Hold is set for a restart: how long nothing of the program is started.
	Hold plan.Hold `json:"hold,omitempty"`
	// Local is set where the members are threads of the hosting process: their
	// evidence comes by InEvidence, and none of them is probed, asked again or silent.
	Local bool `json:"-"`
	// Once is set where the signals of predicates reach their targets by a call: each is
	// handed out once, and its fate is counted by its target alone.
	Once bool `json:"-"`
	// Unread is set where nobody reads verdicts, witnesses or explanations: none are made.
	// No program runs on the members then.
	Unread bool `json:"-"`
	// Reference is the clock domain whose readings are the reference time: the
	// host's own at the root. Empty: there is none.
	Reference clocksync.Domain `json:"reference,omitempty"`
	// Timeline is the timeline of the members' stamps. Empty: named as the reference, if there
	// is one; otherwise the timeline is not looked at.
	Timeline clocksync.Timeline `json:"timeline,omitempty"`
	// Relative says that Timeline, too, is the readings of Reference.
	Relative bool `json:"relative,omitempty"`
	// OnDemand has the machine ask members for evidence only where it can change where a predicate
	// stands. Journals of older versions lack it: in them it always asks.
	OnDemand bool `json:"onDemand,omitempty"`
	// Follows is set if the inputs of another machine are retold, up to the first tick after
	// an InKept: until then nothing is judged, and until an InTerm there are no detectors of
	// rules and nothing is balanced. See [Core.Retell].
	Follows bool `json:"follows,omitempty"`
	// Began is the wall clock when the program was resumed, ns since 1970: for people
	// alone. 0: not known, as of the first life.
	Began int64 `json:"began,omitempty"`
}

// Resolved are the options with derived values filled in.
func (o Options) Resolved() Options {
	o.Relative = o.Reference != "" && (o.Timeline == "" || o.Relative)
	if o.Timeline == "" {
		o.Timeline = clocksync.Timeline(o.Reference)
	}
	return o
}

// The waits and limits of the machine, none of which decides a verdict.
const (
	resendWait  = 500 * time.Millisecond // for the answer of a ring, before a gap becomes unknown
	probeAgain  = 250 * time.Millisecond // a probe without an answer is repeated
	askPeriod   = time.Millisecond       // the least time between two questions to a threshold for the evidence it lacks
	tickPeriod  = 250 * time.Millisecond // how often silence is looked at
	awayLimit   = 2 * tickPeriod         // a longer time without a step means that the machine stood still, not its members
	stashLimit  = 1024                   // reports kept behind a gap of a member: as many as it can send again
	otherSilent = 5 * plan.Heartbeat     // a member of another group that says nothing for longer is forgotten
	probesOut   = 2                      // probes to one member without an answer
	goneKept    = time.Minute            // how long a gone member is remembered
	maxGone     = 512                    // that are remembered, beside as many as there may be members
	watchedFor  = 3 * time.Second        // in which people who look ask again
	heardWithin = 2 * time.Second        // beyond a heartbeat: a decision on states that ended longer ago says so
)

// Core is the machine of a synchronizer. It is owned by one goroutine.
type Core struct {
	plan *plan.Level
	opt  Options

	now     clocksync.Instant
	stepped bool
	failed  bool
	looked  clocksync.Instant // when silence and gaps were last looked at
	taken   uint64            // reports

	membership
	det  *scgs.Detector
	rows arena // of the detector's states
	judgement
	summary summary

	outbox   *outbox.Outbox
	others   map[string]*otherGroup // that signals go to
	exec     plan.Executor          // of the program that runs on the members, nil if there is none
	planner  *planner.Planner       // of the section balance, nil if there is none
	balanced [strategies]BalanceCounts

	scratch
}

// membership is the members and the epoch.
type membership struct {
	members   map[string]*member
	recent    [1024]*member // some of those looked up last, by nameSlot
	sorted    []*member     // every known member, by name
	absent    int           // of those: gone
	inEpoch   []*member     // the members of the epoch, in the order of the scope
	byIndex   []*member     // by number in the detector
	process   *member       // the process beside its threads, if the level declares it
	epoch     uint64
	begun     bool // the first epoch has been reached
	paused    bool // too few members
	changed   bool // members are ready, or gone: the epoch is to be looked at
	dropped   []monitor.Dropped
	removing  []*member
	strangers map[string]clocksync.Instant // when senders last received an answer
	domains   map[clocksync.Domain]*clockOrder
	lacking   lacking
	putOff    clocksync.Instant // when the next of those that wait to come back is let in
	reached   clocksync.Instant // the newest Input.Reached; 0: there was none

	handover
	peers        peers
	multiplexers multiplexers
	reports      reports
	between      uint64 // gaps between the reports of two incarnations
}

// reports is what members may report, and have reported.
type reports struct {
	kinds   []scgs.Type // of the fields of a member's state, by kindsOf
	regions regions.Set
}

// multiplexers are those that speak for members.
type multiplexers struct {
	byName   map[string]*multiplexer
	numbered []*multiplexer // by number, from 1
}

// lacking are the members with missing reports.
type lacking struct {
	list []*member
	look clocksync.Instant // when one of them is next to be looked at
}

// local has the rules judged beside the global state.
type local struct {
	partial *predicates.Scope // what a rule's own detector has found: the members of the runs
	scope   *predicates.Scope // one member, for local conditions
	member  [1]predicates.Member
}

// judgement is where the predicates stand.
type judgement struct {
	attention
	ondemand ondemand
	general  bool // for tests: no way is shorter than another

	ev        scgs.Event
	spanless  bool      // ev has no span
	tuple     bool      // there is a current global state, and it is in the scope
	judged    bool      // and it was judged
	heads     uint64    // a sum over its states, by which it is known again
	rejudge   bool      // something beside the members' states has changed
	opening   bool      // ev tells of the global state that is judged
	turn      uint64    // counts the steps and the global states: a predicate fires once in each
	floor     KeptFloor // of hold times that begin
	scope     *predicates.Scope
	local     local
	runs      []*runs     // the rules' own detectors, in order of the rules
	states    []ruleState // of the rules
	memory    []scgs.Value
	decisions uint64
	ordered   causes // of plans with moves
	ended     ended
	earlier   earlier
}

// scratch is space for a step.
type scratch struct {
	needs    []scgs.Need
	parts    []scgs.Part
	targets  []int
	values   []scgs.Value
	sets     []set
	occasion occasion
	over     []outbox.Settled
	planned  []planner.Member
	done     plan.ExecutorOutput
}

// New returns the machine of a level.
func New(level *plan.Level, opt Options) *Core {
	opt = opt.Resolved()
	c := &Core{
		plan: level, opt: opt, outbox: outbox.New(), others: map[string]*otherGroup{},
		det: scgs.NewDetector(scgs.Options{}), rows: arena{width: max(len(level.State), len(level.Process))},
		membership: membership{
			members: map[string]*member{}, strangers: map[string]clocksync.Instant{}, domains: map[clocksync.Domain]*clockOrder{},
			multiplexers: multiplexers{byName: map[string]*multiplexer{}}, reports: reports{kinds: kindsOf(level.State)}, lacking: lacking{look: clocksync.MaxInstant}, putOff: clocksync.MaxInstant,
			peers: peers{again: clocksync.MinInstant, hold: clocksync.MinInstant},
		},
		judgement: judgement{
			memory: make([]scgs.Value, len(level.Variables)),
			floor:  noFloor,
		},
	}
	if level.Program != nil && !opt.Local {
		c.exec = level.Program.Begin(level.Name, cmp.Or(opt.Program, opt.Term))
		if opt.Follows {
			c.exec, c.recalled = nil, c.exec
		}
	}
	c.retold = opt.Follows
	c.newScopes()
	c.balanceBy(level.Balance)
	c.listenToGroups()
	for i, v := range level.Variables {
		c.setMemory(i, v.InitialValue())
	}
	for i, r := range level.Rules {
		if r.Detector.Exists() && !opt.Follows {
			c.runs = append(c.runs, newRuns(i, r.Detector, len(level.State)))
		}
	}
	c.newStates()
	return c
}

// member is the member of a name, or nil. Mostly it was looked up before.
func (r *membership) member(name string) *member {
	slot := &r.recent[nameSlot(name)]
	if m := *slot; m != nil && m.name == name {
		return m
	}
	*slot = r.members[name]
	return *slot
}

// nameSlot spreads names by their ends, as of names that count: w000 to w999 differ.
func nameSlot(name string) int {
	slot, weight := 0, 1
	for i := len(name) - 1; i >= max(0, len(name)-3); i-- {
		slot += weight * int(name[i])
		weight *= 10
	}
	return slot % len(membership{}.recent)
}

// inForce is the number of the current epoch, 0 before the first and while there are too few
// members.
func (r *membership) inForce() uint64 {
	if r.paused {
		return 0
	}
	return r.epoch
}

// Step takes one input at the instant now of the host's monotonic clock, which
// never goes back, and fills out.
func (c *Core) Step(now clocksync.Instant, in *Input, out *Output) {
	out.reset()
	if in.Kind == InAsk {
		c.answerQuestion(now, in.Ask, &out.Answer)
		if !c.failed {
			out.Wake = c.nextWake()
		}
		return
	}
	if c.failed && in.Kind != InRestart {
		return
	}
	if in.Group != "" && !c.hasNews(now, in) {
		out.Ignored, out.Wake = true, c.nextWake()
		return
	}
	c.back(now)
	c.was, c.now = c.now, now
	c.turn++
	if in.Reached != 0 {
		c.reach(min(in.Reached, now))
	}
	if in.Group == "" {
		c.input(in, out)
	} else {
		c.hearOther(in, out)
	}
	if c.retold {
		c.takeRetold(in, out)
		return
	}
	c.settle(in, out)
	if c.exec != nil {
		c.programDone(out)
	}
	c.keepRemarks(out)
	c.route(out)
}

// route names by whom messages reach members that another one speaks for.
func (c *Core) route(out *Output) {
	if len(c.multiplexers.byName) > 0 {
		via(c, out.Welcomes)
		via(c, out.Peers)
		via(c, out.Resends)
		via(c, out.Probes)
		via(c, out.Signals)
	}
	for i := range out.Signals {
		if a := &out.Signals[i]; a.Group != "" {
			if k, known := c.others[a.Group].findMember(a.To); known {
				a.Via = c.others[a.Group].sorted[k].by
			}
		}
	}
}

// via is route for messages of a single kind.
func via[M any](c *Core, list []wire.Addressed[M]) {
	for i := range list {
		if a := &list[i]; a.Group == "" && a.Via == "" {
			if m := c.members[a.To]; m != nil && m.multiplexer != nil {
				a.Via = m.multiplexer.name
			}
		}
	}
}

func (c *Core) input(in *Input, out *Output) {
	if in.By != "" && !c.checkMultiplexer(in, out) {
		if len(out.Rejected) == 0 {
			out.Unproven++
		}
		return
	}
	switch in.Kind {
	case InTick:
		if in.Watched {
			c.ondemand.watched = c.now.Add(watchedFor)
		}
	case InHello:
		c.takeHello(in.From, in.Hello, out)
	case InBatch:
		c.takeBatch(in.From, in.Batch, out)
		if c.opt.Local && in.At.Domain != "" {
			c.evidenceOfAll(in.At)
		}
	case InGone:
		c.takeGone(in.From, in.Gone, out)
	case InAck:
		c.takeAck(in.From, in.Ack, out)
	case InAlive:
		c.takeAlive(in.From, in.Alive, out)
	case InShared:
		c.takeHeld(in.From, in.Shared, out)
	case InEvidence:
		c.evidenceOfAll(in.At)
	case InProcess:
		c.processState(in.At, in.Row, out)
	case InTimeline:
		c.changeTimeline(in.Timeline)
	case InParent:
		c.parentSignal(in.Signal)
	case InLevel:
		c.reloadPlan(in.Level, out)
	case InBody, InCancel:
		c.toProgram(in, out)
	case InRestart:
		c.restartTerm(in.Restart, out)
	case InTerm:
		c.raiseTerm(in.Term, out)
	case InKept:
		c.takeIntent(in.Kept, out)
	case InProgram:
		c.recallProgram(in.Record, out)
	default:
		panic("synccore: input without a kind")
	}
}

// back does not count the time in which the machine itself stood still: a stopped or
// suspended process must not take its members for silent.
func (c *Core) back(now clocksync.Instant) {
	if away := now.Sub(c.now); c.stepped && away > awayLimit {
		c.forgive(away, now)
	}
	c.stepped = true
}

// reach notes up to when what the server had is here. The time that the server took too
// long is not counted, but for a tick of it: its members have to find it again.
func (c *Core) reach(at clocksync.Instant) {
	if away := at.Sub(c.reached); c.reached != 0 && away > awayLimit {
		away -= tickPeriod
		c.forgive(away, c.now)
		for _, m := range c.lacking.list {
			for _, g := range m.gaps {
				g.since = min(g.since.Add(away), c.now)
			}
		}
	}
	c.reached = max(c.reached, at)
}

// heardUpTo is the instant up to which all messages that were sent have arrived.
func (c *Core) heardUpTo() clocksync.Instant {
	if c.reached == 0 {
		return c.now
	}
	return min(c.now, c.reached)
}

// forgive does not count a time in which nobody could be heard.
func (c *Core) forgive(away time.Duration, now clocksync.Instant) {
	later := func(t *clocksync.Instant) { *t = min(t.Add(away), now) }
	for _, m := range c.sorted {
		later(&m.heard)
	}
	for _, s := range c.multiplexers.byName {
		later(&s.heard)
	}
	for _, g := range c.others {
		for _, m := range g.sorted {
			later(&m.heard)
		}
	}
}

// settle brings everything up to date after the input was taken in.
func (c *Core) settle(in *Input, out *Output) {
	c.repairGaps(out)
	if !c.opt.Local && (in.Kind == InTick || c.now >= c.looked.Add(tickPeriod)) {
		c.looked = c.now
		c.forgetStamps()
		c.forgetOthers()
		c.dropSilent(out)
		c.giveUpLeft(out)
		c.earlier.forgetOld(c.now)
		c.programOverdue()
		for _, m := range c.sorted {
			c.callAgain(m, out)
		}
		if c.failed {
			return
		}
	}
	c.sweepDetector(out)
	c.sweepRuns(out)
	if c.nextEpoch(out) {
		c.sweepRuns(out)
	}
	c.judgeAgain(out)
	c.completeHolds(out)
	c.judgeAgain(out)
	c.programAdvance(out)
	c.moveLoads(out)
	if !in.More {
		from := len(out.Probes)
		c.sendProbes(out)
		joinProbes(c.members, len(c.inEpoch), out, from)
	}
	c.retrySignals(out)
	c.summarizeSweep(out)
	c.peers.tellRoster(c, out)
	c.recycle()
	out.Wake = c.nextWake()
}

// judgeAgain judges the open tuple if something beside the members' states has changed.
func (c *Core) judgeAgain(out *Output) {
	if !c.tuple || !c.rejudge {
		return
	}
	if span, ok := c.det.Current(); ok {
		c.judgeTuple(&span, true, out)
	}
}

// recycle hands the rows of popped states back to the arena.
func (c *Core) recycle() {
	c.rows.unused = c.det.Released(c.rows.unused)
}

// nextWake is when the machine next has something to do without an input.
func (c *Core) nextWake() clocksync.Instant {
	wake := clocksync.MaxInstant
	if c.tuple { // else there is nothing to fire on
		for i := range c.waiting.each {
			wake = min(wake, c.states[i].due)
		}
	}
	for _, w := range c.runs {
		wake = min(wake, w.due)
	}
	wake = min(wake, c.outbox.Due(), c.balanceWake(), c.lacking.look, c.putOff, c.ondemand.endsBy)
	if c.exec != nil {
		wake = min(wake, c.exec.Wake(c.now))
	}
	if !c.opt.Local && (len(c.sorted) > 0 || c.exec != nil || c.listening()) {
		wake = min(wake, c.now.Add(tickPeriod))
	}
	return wake
}

// decision numbers the next firing.
func (c *Core) decision() control.Decision {
	c.decisions++
	return control.Decision{Synchronizer: c.plan.Name, Term: c.opt.Term, Epoch: c.epoch, Number: c.decisions}
}
