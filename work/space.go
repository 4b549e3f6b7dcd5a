package work

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/pieces"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/predicates"
)

// Space is the part that this member has in the space of its group.
type Space struct {
	link      link.Link
	log       *slog.Logger
	functions map[string]*function
	conn      link.Conn
	sender    *sender
	stopWatch func()
	stop      context.CancelFunc // of what runs beside
	running   sync.WaitGroup     // loop, sender, await, functions
	mail      mail
	kick      chan struct{} // capacity 1: the loop has to look
	row       row
	ids       *ids
	strategy  local.Local // of the program's own; nil: that of the section
	slots     int         // of the program's own; -1: those of the section
	logs      *logs       // nil: the tasks that are put here lie in this process alone

	mu        sync.Mutex // guards all below
	section   config.Work
	order     func(weight, put float64) float64 // the key of a task; nil: 0
	machine   *workcore.Member
	out       workcore.Output
	runs      []*run // by slot; nil: free
	pulled    []*run // that wait for Next
	reuse     bool   // the goroutine that has the lock can run a task next
	handed    *run   // which one
	results   map[string]*results
	foreign   map[foreign]*results // of tasks that other members have put
	waiters   []*waiter
	busy      int           // loops over Results whose body runs
	serving   int           // calls of Serve
	puts      bool          // the program has put a task outside of functions
	putting   workcore.Task // memory of Put: the machine copies it
	settled   bool          // as the machine knows it
	phase     uint64
	ends      int                // phases that were over
	entered   uint64             // the phase whose region was entered
	skip      context.CancelFunc // ends the wait for the end of the phase
	lost      *LostError         // in this phase
	err       error              // why the space is over; nil: it is not
	stuck     int                // functions that do not return
	bad       uint64             // frames that could not be read
	wake      clocksync.Instant  // when the next step is due
	told      workcore.Told      // what the group was told last
	toldCalls string             // with the key record
	awaits    bool               // as told
	estimate  clocksync.Instant  // when estimates were told last
	roster    map[workcore.Peer]bool
	reported  clocksync.Instant // when somebody was told last how the space stands
	early     [][]byte          // frames of lives that were not in the roster yet
	reader    workcore.Reader
	fetches   map[string]*pieces.Receiver // frames in pieces, by the member that sends them
	saveEvery time.Duration               // of a busy object; it does not change
	begun     clocksync.Instant
	now       clocksync.Instant             // of the last step
	loops     map[string]*ElasticLoop       // of this phase, by name
	speeds    map[string]map[string]float64 // by the name of a loop that is over and that of a member: rows a second
	loopWake  clocksync.Instant             // when loops have something to send
	drains    bool                          // Drain was called
	rule      withdrawRule
	calls     calls
	data      *spaceData
	trace     *tracer // nil: none
}

const (
	// estimatePause is the least time between two states that differ in estimates alone.
	estimatePause = 100 * time.Millisecond
	// turnPause is the least time before a state in which tasks begin or cease to wait.
	turnPause = 5 * time.Millisecond
	// savePause is how often the bag of another member is saved at Yield.
	savePause = time.Second
	// maxEarly is how many frames of members that are not in the roster are kept for the next one.
	maxEarly = 64
	// maxRosters is how many rosters wait. Beyond it two of them are taken as one.
	maxRosters = 64
)

// mail is what the link tells. It has a lock of its own, since the link may call while it has its own.
type mail struct {
	mu      sync.Mutex
	rosters []link.Roster // new ones, in their order; maxRosters at most
	section *config.Work  // nil: no new one
	state   bool          // the state of the member has changed
	gone    bool          // there is no section any more
	closed  bool          // the member is
}

// Open opens the space of a member's group, with the functions that this program can run. It waits until the
// first epoch has begun, or ctx ends. It fails, with all faults, if a function is not as it has to be, if
// the synchronizer of the group has no section work, or if there is no connection. A member has one
// open space at a time.
func Open(ctx context.Context, m *agent.Member, options ...Option) (*Space, error) {
	l, err := m.Link()
	if err != nil {
		return nil, fmt.Errorf("work: open: %w", err)
	}
	return open(ctx, l, options)
}

// open opens the space of a link.
func open(ctx context.Context, l link.Link, options []Option) (*Space, error) {
	s := &Space{
		link: l, log: l.Log().With("member", l.Self().Name), functions: map[string]*function{}, kick: make(chan struct{}, 1),
		results: map[string]*results{}, foreign: map[foreign]*results{}, fetches: map[string]*pieces.Receiver{}, ids: newIDs(), slots: -1, wake: clocksync.MaxInstant, loopWake: clocksync.MaxInstant, begun: l.Now(), estimate: clocksync.MinInstant, reported: clocksync.MinInstant,
	}
	var faults []error
	for _, o := range options {
		switch {
		case o.err != nil:
			faults = append(faults, o.err)
		case o.set != nil:
			o.set(s)
		case o.server != nil:
			faults = append(faults, s.addServer(o.server))
		case s.functions[o.f.name] != nil:
			faults = append(faults, fmt.Errorf("work: function %q is declared twice: keep one", o.f.name))
		default:
			s.functions[o.f.name] = o.f
			s.results[o.f.name] = newResults(o.f)
		}
	}
	faults = append(faults, checkObjects(s.functions)...)
	if n := len(funcsHere(s.functions)); n > workcore.MaxFuncs {
		faults = append(faults, fmt.Errorf("work: %d functions are declared, and at most %d are allowed: have one function do several jobs, by its argument", n, workcore.MaxFuncs))
	}
	section := l.Section()
	if section == nil {
		faults = append(faults, errors.New("work: the synchronizer of the group has no section work: add one to its configuration, such as work: {store: memory}"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	s.section, s.saveEvery = *section, section.Objects.Save.Every
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// begin connects, waits for a roster with this member, and starts what runs beside.
func (s *Space) begin(ctx context.Context) (err error) { //nolint:contextcheck // What runs beside ends with Close.
	self := s.link.Self()
	if s.conn == nil {
		if s.conn, err = s.link.Connect(ctx); err != nil {
			return fmt.Errorf("work: open the space as %q: %w", self.Name, err)
		}
	}
	s.sender = newSender(s.conn, s.link.Subject, s.begun)
	beside, stop := context.WithCancel(context.Background())
	s.stop, s.stopWatch = stop, func() {}
	fail := func(err error) error {
		stop()
		s.stopWatch()
		if s.logs != nil {
			s.logs.closeLogs(nil)
		}
		return errors.Join(fmt.Errorf("work: open the space as %q: %w", self.Name, err), s.conn.Close())
	}
	if s.stopWatch, err = s.link.Watch(link.Watcher{Roster: s.hearRoster, Section: s.hearSection, State: s.hearState, Closed: s.hearClosed}); err != nil {
		s.stopWatch = func() {}
		return fail(err)
	}
	if err := s.link.Tell(s.row.fill); err != nil { // A member without a state takes no part.
		return fail(err)
	}
	roster, err := s.firstRoster(ctx)
	if err != nil {
		return fail(err)
	}
	strategy := s.strategy
	if strategy == nil {
		if strategy, err = local.New(s.section.Strategy); err != nil {
			return fail(err)
		}
	}
	if s.section.Order != "" {
		order, err := predicates.CompileOrder(s.section.Order)
		if err != nil {
			return fail(err)
		}
		s.order = order.Key
	}
	s.phase, s.roster = max(1, roster.Phase), lives(&roster)
	var own *workcore.Store
	if s.section.Store == config.JetStream {
		var logged uint64
		if s.logs, own, logged, err = openLogs(ctx, s); err != nil {
			return fail(err)
		}
		s.phase = max(s.phase, logged)
	}
	slots := s.slots
	if slots < 0 {
		slots = cmp.Or(s.section.Slots, runtime.GOMAXPROCS(0))
	}
	s.runs = make([]*run, slots)
	s.rule.compileRule()
	s.data = newSpaceData(s)
	s.machine = workcore.NewMember(workcore.Options{
		Funcs: funcsHere(s.functions), Ready: s.data.machine.Ready, Missing: s.data.missingCounter(), Self: workcore.Peer(self), Phase: s.phase, Slots: slots, Strategy: strategy, Topology: local.Topology(s.section.Topology),
		Limits: workcore.Limits{Retry: s.section.Retry, Losses: s.section.Losses, Open: s.section.Open, Batch: s.section.Objects.Save.Tasks}, Account: own, Stay: s.section.Objects.Stay, Central: s.section.Strategy.Central(),
	})
	s.openCalls()
	s.mu.Lock()
	s.takeRoster(roster)
	s.mu.Unlock()
	if err := s.conn.Subscribe(s.link.Own(), s.receive); err != nil {
		return fail(err)
	}
	if err := s.offerCalls(); err != nil { //nolint:contextcheck // What it begins ends with Close.
		return fail(err)
	}
	asked, _ := s.link.Status()
	if err := s.conn.Subscribe(asked, s.answerStatus); err != nil {
		return fail(err)
	}
	if err := s.conn.Flush(ctx); err != nil {
		return fail(err)
	}
	loops := []func(context.Context){s.loop, s.sender.publishLoop, s.awaitEnds}
	if s.logs != nil {
		loops = append(loops, s.logs.closePhases, s.logs.adoptOrphans, s.data.stream.answerLoop)
	}
	if s.section.Strategy.Central() {
		loops = append(loops, s.obeyOrders)
	}
	for _, f := range loops {
		s.running.Go(func() { f(beside) })
	}
	return nil
}

// firstRoster waits for the first roster that this member is in.
func (s *Space) firstRoster(ctx context.Context) (link.Roster, error) {
	for {
		if list := s.mail.takeRosters(); len(list) > 0 {
			if r := list[len(list)-1]; has(&r, s.link.Self()) {
				return r, nil
			}
		}
		select {
		case <-s.kick:
		case <-ctx.Done():
			return link.Roster{}, fmt.Errorf("the group has no epoch with this member yet: it begins once as many members are there as the configuration says: %w", context.Cause(ctx))
		}
	}
}

// lives are those of a roster.
func lives(r *link.Roster) map[workcore.Peer]bool {
	m := make(map[workcore.Peer]bool, len(r.Peers))
	for _, p := range r.Peers {
		m[workcore.Peer(p)] = true
	}
	return m
}

// hasName reports whether a member of that name is in a roster.
func hasName(roster map[workcore.Peer]bool, member string) bool {
	for p := range roster {
		if p.Name == member {
			return true
		}
	}
	return false
}

func has(r *link.Roster, self link.Peer) bool {
	return slices.Contains(r.Peers, self)
}

func (m *mail) takeRosters() []link.Roster {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.rosters
	m.rosters = nil
	return list
}

// add adds a roster. None is skipped: whoever is missing on one has lost what it held, although the next one may
// list it again.
func (m *mail) add(r link.Roster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.rosters) - 1; last+1 == maxRosters {
		before := m.rosters[last]
		r.Peers = slices.DeleteFunc(slices.Clone(r.Peers), func(p link.Peer) bool { return !has(&before, p) })
		m.rosters = m.rosters[:last]
	}
	m.rosters = append(m.rosters, r)
}

func (s *Space) hearRoster(r link.Roster) {
	s.mail.add(r)
	s.wakeLoop()
}

func (s *Space) hearSection(w *config.Work) {
	s.mail.mu.Lock()
	s.mail.section, s.mail.gone = w, w == nil
	s.mail.mu.Unlock()
	s.wakeLoop()
}

func (s *Space) hearState() {
	s.mail.mu.Lock()
	s.mail.state = true
	s.mail.mu.Unlock()
	s.wakeLoop()
}

func (s *Space) hearClosed() {
	s.mail.mu.Lock()
	s.mail.closed = true
	s.mail.mu.Unlock()
	s.wakeLoop()
}

// wakeLoop has the loop look at new messages, and at the time.
func (s *Space) wakeLoop() {
	select {
	case s.kick <- struct{}{}:
	default: // It will.
	}
}

// loop makes the steps that time and the link bring.
func (s *Space) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	saved := s.link.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-timer.C:
		}
		s.mu.Lock()
		if s.takeMail(); s.err != nil {
			s.mu.Unlock()
			return
		}
		now := s.link.Now()
		if now >= s.wake {
			_ = s.step(&workcore.Input{Kind: workcore.InTick}) // A tick is never refused.
		}
		s.tickData(now)
		s.judgeWithdraw(now)
		s.tickCalls(now)
		s.askAgain(now)
		if now >= s.loopWake {
			s.sendLoops()
		}
		if now.Sub(saved) >= savePause {
			saved = now
			s.saveBags()
		}
		s.tell(now)
		next := min(s.wake, s.loopWake, s.calls.wake, s.data.machine.Wake(), s.rule.wake, s.nextEstimate(), now.Add(time.Hour))
		for _, f := range s.fetches {
			next = min(next, f.Wake())
		}
		if s.runsForeignBag() {
			next = min(next, saved.Add(savePause))
		}
		s.mu.Unlock()
		timer.Reset(next.Sub(s.link.Now()))
	}
}

// takeMail takes what the link has told. The lock is held.
func (s *Space) takeMail() {
	m := &s.mail
	m.mu.Lock()
	rosters, section, gone, closed := m.rosters, m.section, m.gone, m.closed
	s.rule.due = s.rule.due || m.state
	m.rosters, m.section, m.state = nil, nil, false
	m.mu.Unlock()
	if closed {
		s.finishSpace(ErrClosed)
	}
	if gone {
		s.finishSpace(errors.New("work: the synchronizer of the group has no section work any more"))
	}
	if s.err != nil {
		return
	}
	if section != nil {
		s.takeSection(section)
	}
	for _, r := range rosters {
		if s.err == nil {
			s.takeRoster(r)
		}
	}
}

// takeSection follows a new section, as far as it can be changed while tasks run.
func (s *Space) takeSection(w *config.Work) {
	before := s.section
	s.section.Lost, s.section.Stuck = w.Lost, w.Stuck
	if s.section.Withdraw = w.Withdraw; before.Withdraw != w.Withdraw {
		s.rule.compileRule()
	}
	if before.Store != w.Store || before.Log != w.Log || before.Objects != w.Objects || before.Data != w.Data || before.Slots != w.Slots || before.Strategy != w.Strategy || before.Topology != w.Topology || before.Retry != w.Retry || before.Losses != w.Losses || before.Open != w.Open || before.Order != w.Order || !reflect.DeepEqual(before.Calls, w.Calls) {
		s.log.Warn("the section work has changed: store, log, objects, data, slots, strategy, topology, retry, losses, open, order and calls count from the next Open on")
	}
}

// takeRoster hands a roster to the machine. A phase that is over is over here too.
func (s *Space) takeRoster(r link.Roster) {
	peers := make([]workcore.Peer, len(r.Peers))
	for i, p := range r.Peers {
		peers[i] = workcore.Peer(p)
	}
	_ = s.step(&workcore.Input{Kind: workcore.InRoster, Roster: peers}) // A roster is never refused.
	s.roster = lives(&r)
	s.takeDataRoster(&r)
	s.sender.keepMembers(s.roster)
	s.takeCallRoster(peers)
	maps.DeleteFunc(s.fetches, func(from string, _ *pieces.Receiver) bool { return !hasName(s.roster, from) })
	s.takeLoopRoster()
	early := s.early
	s.early = nil
	for _, f := range early {
		if f, err := s.reader.Read(f); err == nil && s.err == nil && s.roster[f.From] {
			s.takeFrame(f)
		}
	}
	if s.logs != nil {
		s.logs.dropWriters()
		wake(s.logs.orphans)
		wake(s.logs.ends)
		return
	}
	if s.err == nil && s.phase < r.Phase && s.out.Told.Open > 0 {
		s.finishSpace(ErrDropped) // A phase ended without it: it was out meanwhile, and its tasks are lost.
	}
	for s.err == nil && s.phase < r.Phase {
		s.endPhase(false)
	}
}

// isFirst reports whether this member is the first of the roster. The lock is held.
func (s *Space) isFirst() bool {
	self := workcore.Peer(s.link.Self())
	for p := range s.roster {
		if p.Name < self.Name {
			return false
		}
	}
	return s.roster[self]
}

// step makes one step of the machine and carries out what it asks for. The lock is held. It must not be
// called where s.err is not nil.
func (s *Space) step(in *workcore.Input) error {
	if in.Kind == workcore.InTick || in.Kind == workcore.InFrame {
		s.tellItems()
	}
	s.advanceMachine(in)
	err := s.out.Err
	s.carryOut()
	return err
}

// advanceMachine makes one step of the machine, now.
func (s *Space) advanceMachine(in *workcore.Input) {
	s.now = s.link.Now()
	s.machine.Step(s.now, in, &s.out)
}

// tellItems tells the machine how much the bags have that run here.
func (s *Space) tellItems() {
	for i, r := range s.runs {
		if r == nil {
			continue
		}
		if n := r.items.Load(); n != r.told {
			r.told = n
			s.advanceMachine(&workcore.Input{Kind: workcore.InItems, Slot: i, Items: int(n)})
			s.carryOut()
		}
	}
}

// carryOut carries out what a step asks for, and what earlier steps ask for that waited for a log.
func (s *Space) carryOut() {
	if s.logs == nil {
		s.carryOne()
		return
	}
	s.logs.writeEntries(s.out.Log)
	s.carryOne()
	for s.err == nil && s.machine.Release(&s.out) {
		s.carryOne()
	}
}

func (s *Space) carryOne() {
	out := &s.out
	for i := range out.Frames {
		s.sender.add(s.now, &out.Frames[i])
	}
	for _, i := range out.Stops {
		s.stopRun(s.runs[i])
	}
	for _, p := range out.Yields {
		if r := s.runs[p.Slot]; r != nil {
			r.askBag(p.Items)
		}
	}
	for _, i := range out.Recorded {
		s.runs[i].recorded <- struct{}{}
	}
	for i := range out.Results {
		s.deliverResult(&out.Results[i])
	}
	if s.logs == nil {
		for _, l := range out.Lost {
			s.lose(l)
		}
	}
	over := out.Over
	if out.Wake < s.wake {
		s.wakeLoop()
	}
	s.wake = out.Wake
	for _, r := range out.Runs {
		s.startRun(r)
	}
	s.planData()
	failUndeclared(s)
	if over && s.err == nil {
		s.finishSpace(ErrDropped)
	}
	s.releaseCallers()
}

// lose notes tasks that died with another member.
func (s *Space) lose(l workcore.Lost) {
	if l.Open+l.Objects == 0 || l.Peer == workcore.Peer(s.link.Self()) {
		return
	}
	if s.lost == nil {
		s.lost = &LostError{}
	}
	s.lost.Tasks += l.Open
	s.lost.Objects += l.Objects
	s.lost.Members = append(s.lost.Members, l.Peer.Name)
	s.log.Warn("a member is gone with tasks that it had put", "of", l.Peer.Name, "tasks", l.Open, "objects", l.Objects)
}

// end ends a phase by the word of the synchronizer, or of a member that is ahead.
func (s *Space) end(phase uint64, signalled bool) {
	switch {
	case phase != s.phase || s.err != nil:
	case s.logs != nil:
		s.logs.notePhaseOver(phase, signalled)
	default:
		s.endPhase(false)
	}
}

// endPhase ends the present phase; void: with tasks that are open and go on in the next one.
func (s *Space) endPhase(void bool) {
	late := s.logs != nil && !void && s.out.Told.Late() // It has put tasks while the others ended the phase.
	s.advanceMachine(&workcore.Input{Kind: workcore.InEnd, Phase: s.phase, Void: void || late})
	if err := s.out.Err; err != nil {
		s.finishSpace(fmt.Errorf("work: %w: the condition that ends a phase must ask for .work.idle of all members", err))
		return
	}
	s.phase++
	s.endData(void)
	if !void {
		s.forgetLoops()
		s.ends++
		for _, r := range s.results {
			r.ended = true
		}
		for _, r := range s.foreign {
			r.ended = true
		}
	}
	s.carryOut()
	s.lost = nil
	if s.skip != nil {
		s.skip()
	}
}

// awaitEnds waits for the end of one phase after the other.
func (s *Space) awaitEnds(ctx context.Context) {
	for ctx.Err() == nil {
		one, skip := context.WithCancel(ctx)
		s.mu.Lock()
		phase := s.phase
		s.skip = skip
		s.mu.Unlock()
		err := s.link.Await(one, func() {
			s.mu.Lock()
			s.entered = phase
			s.tell(s.link.Now())
			s.mu.Unlock()
		})
		skip()
		s.mu.Lock()
		switch {
		case err == nil:
			s.end(phase, true)
		case one.Err() == nil && s.err == nil:
			s.finishSpace(fmt.Errorf("work: wait for the end of phase %d: %w", phase, err))
		}
		over := s.err != nil
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// finishSpace ends the space: no step follows. The lock is held.
func (s *Space) finishSpace(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	for _, r := range s.runs {
		s.stopRun(r)
	}
	for _, l := range s.loops {
		l.due.Store(true)
	}
	s.finishCalls()
	s.releaseCallers()
	if s.skip != nil {
		s.skip()
	}
}

// Drain has this member give up all work: it takes no more tasks, bags that run here are saved and
// their rests go to other members, and tasks that cannot be split run to their end. While all of its
// neighbours drain too, or are withdrawn, it works on. It
// returns once nothing is here and no task is open that this member has put. Nothing is done twice. The
// space stays open, and runs nothing any more. A program calls it at SIGTERM, before [Space.Close].
func (s *Space) Drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if err := s.step(&workcore.Input{Kind: workcore.InDrain}); err != nil {
		return err
	}
	s.drains = true
	s.withdrawLoops()
	s.withdrawCalls()
	if err := s.wait(ctx, &waiter{settles: true, ready: func() bool { return s.out.Told.Drained && !s.inLoop() && !s.servesCalls() }}); err != nil {
		t := s.out.Told
		return fmt.Errorf("work: drain: %d tasks run here and %d that were put here are open, %d of them wait for others: %w", t.Running, t.Open, t.Blocked, err)
	}
	return nil
}

// Close ends this member's part in the space. What runs is stopped, and tasks that it has put and that
// are open are lost: call Wait or [Space.Drain] before. It waits for the functions to return, for as
// long as the key stuck says, and names those that do not. Close the member after it.
func (s *Space) Close() error {
	s.mu.Lock()
	s.leaveCalls()
	s.finishSpace(ErrClosed)
	patience := s.section.Stuck
	s.mu.Unlock()
	s.stopWatch()
	s.stop()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case <-done:
	case <-timer.C:
		err = s.stillRunning()
	}
	if s.logs != nil {
		s.mu.Lock()
		last := s.machine.GiveUp()
		s.mu.Unlock()
		s.logs.closeLogs(last)
	}
	if s.calls.stopOffer != nil {
		err = errors.Join(err, s.calls.stopOffer())
	}
	s.row.end()
	_ = s.link.Tell(s.row.fill) // The member may be closed already.
	return errors.Join(err, s.trace.close(), s.conn.Close())
}

func (s *Space) stillRunning() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, r := range s.runs {
		if r != nil {
			ids = append(ids, r.id)
		}
	}
	for _, r := range s.calls.running {
		ids = append(ids, "call of "+r.name)
	}
	return fmt.Errorf("work: the functions of tasks %q have not returned %v after their contexts ended: have them look at ctx", ids, s.section.Stuck)
}

// receive takes a message of another member. Its subject names the sender, as whom alone its frames may speak.
func (s *Space) receive(subject string, data []byte) {
	from := subject[strings.LastIndexByte(subject, '.')+1:]
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(data) > 0 && s.err == nil {
		frame, rest, err := firstFrame(data)
		if err == nil {
			err = s.readFrame(from, frame)
		}
		if err != nil {
			if s.bad++; s.bad == 1 {
				s.log.Warn("a message of another member of the space cannot be read; the others are counted", "error", err)
			}
			return
		}
		data = rest
	}
	s.tell(s.link.Now())
}

// readFrame takes an encoded frame. That of a member which is not in the roster may be ahead of the roster.
func (s *Space) readFrame(from string, data []byte) error {
	if len(data) > 0 && data[0] == piecesForm {
		return s.readPieces(from, data[1:])
	}
	if len(data) > 0 && data[0] == callsForm {
		return s.takeCall(from, data[1:])
	}
	if len(data) > 0 && data[0] == dataForm {
		return s.takeData(from, data[1:])
	}
	f, err := s.reader.Read(data)
	switch {
	case err != nil:
		return err
	case f.From.Name != from:
		return fmt.Errorf("a frame of %q on the subject of %q", f.From.Name, from)
	case s.roster[f.From]:
		s.takeFrame(f)
	case len(s.early) < maxEarly:
		s.early = append(s.early, bytes.Clone(data))
	}
	return nil
}

// readPieces takes a message about a frame that travels in pieces.
func (s *Space) readPieces(from string, data []byte) error {
	if !hasName(s.roster, from) {
		return nil // It offers again what matters.
	}
	m, err := pieces.Read(data)
	if err != nil {
		return err
	}
	now := s.link.Now()
	if m.Kind == pieces.Want {
		s.sender.answerPieces(now, from, &m)
		return s.step(&workcore.Input{Kind: workcore.InUnderway, To: from})
	}
	f := s.fetches[from]
	if f == nil {
		f = &pieces.Receiver{}
		s.fetches[from] = f
	}
	whole, out := f.Take(now, &m)
	if len(out) > 0 {
		s.sender.sendPieces(from, out)
		for _, demand := range f.Notes() {
			if s.err == nil && demand > 0 {
				_ = s.step(&workcore.Input{Kind: workcore.InUnderway, Ticket: demand}) // It is never refused.
			}
		}
		s.wakeLoop() // The loop asks again if nothing comes.
	}
	if whole != nil && s.err == nil {
		err = s.readFrame(from, whole)
	}
	return err
}

// askAgain asks for pieces that have not come in time. The lock is held.
func (s *Space) askAgain(now clocksync.Instant) {
	for from, f := range s.fetches {
		if out := f.Tick(now); len(out) > 0 {
			s.sender.sendPieces(from, out)
		}
	}
}

func (s *Space) takeFrame(f *workcore.Frame) {
	for f.Phase > s.phase && s.out.Told.Idle && !s.inLoop() && s.err == nil { // Its phases are over: it was told so first.
		if s.end(s.phase, false); s.logs != nil {
			break // It looks into the log.
		}
	}
	if s.err != nil {
		return
	}
	if f.Loop != nil {
		s.takeLoopFrame(f)
		return
	}
	if err := s.step(&workcore.Input{Kind: workcore.InFrame, Frame: f}); err != nil {
		s.log.Warn("a message of another member of the space was refused", "error", err)
	}
}
