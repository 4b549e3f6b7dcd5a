package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/gostate"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/reading"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Member is this process in its group.
type Member struct {
	participant
	lock        sync.Mutex // participant.mu
	clock       clocksync.Clock
	quality     clocksync.Quality // of the newest stamp; guarded by the lock
	cfg         Config
	bus         *bus.Bus
	subjects    wire.Subjects
	reports     string // the subject of the member's own
	acks        string // the subject of its answers to its own synchronizer, which is acksTo; both guarded by the lock
	acksTo      string
	log         *slog.Logger
	multiplexer *multiplexer // sends for it. Set by Join, constant afterwards.
	dropped     bool         // it no longer does; guarded by the lock
	byItself    bool         // the holder of the lock sends the due messages after it; guarded by the lock
	nearer      bool         // something is; guarded by the lock
	level       *level       // of the threads; nil if there is none. Set by Join, constant afterwards but for a processor, which has one while a block has threads.
	section     uint64       // hash of the level's section, of the first answer; a processor's is the newest
	blocks      []byte       // for a processor, that section: what threads the program's blocks have; guarded by the lock
	gone        SignalStats  // into threads of levels that are over; guarded by the lock

	accepted  func()            // is called with the lock when a later hello was taken; nil: nobody is
	welcomes  chan welcomed     // capacity 1: the first answer to the hello
	refusals  chan error        // capacity 1: the first refusal of the server without which there is no answer
	answered  bool              // it has come; guarded by the lock
	away      bool              // it was dropped or refused, or the server was away, since the last welcome; guarded by the lock
	replaced  error             // another process has its name: ErrReplaced; nil: none has. Guarded by the lock
	refused   string            // why it was refused last; guarded by the lock, as are:
	leader    string            // the synchronizer that admitted it last
	term      uint64            // of that
	lost      uint64            // states of which the log has told that they are
	lostAgain clocksync.Instant // when it tells of more
	stop      chan struct{}
	running   sync.WaitGroup
	leave     func() error // of Close, once
	release   func() error // the multiplexer
	listens   atomic.Bool  // it hears what comes for itself
	body      []byte       // a frame for the multiplexer to take along; guarded by the lock

	publishErrors, badFrames atomic.Uint64
	held, lapsed             atomic.Uint64 // regions of the process and its threads

	counters, clockShown metric.Registration // nil where nobody measures; each is set once

	link   linked
	joined joining // of Join, and the url, for further connections; constant
	url    string

	reading reading.Reading // guarded by the lock
	unwatch func()          // of Config.Observe
}

// welcomed is the answer that Join waits for.
type welcomed struct {
	wire.Welcome
	refused bool
}

// closeTimeout bounds how long Close waits for the server to take the last
// message.
const closeTimeout = time.Second

// Join makes this process a member of a group. It dials a connection to the NATS server at url,
// such as "nats://127.0.0.1:4222", with the credentials of [WithNATS] or of the environment
// (see the package connect), or uses the connection of another member of the group in this
// process (see [OwnConn]). It then waits until the group's synchronizer has admitted the
// member. ctx bounds Join, not the member.
//
// Join fails and names the cause:
//
//   - no server can be reached within 4 s ([ErrNotConnected]);
//   - no synchronizer answers within Config.JoinTimeout ([ErrNoSynchronizer]);
//   - a synchronizer refuses the member ([*RefusedError]);
//   - Config.State does not match the declared state ([*StateError]);
//   - cfg has faults; the error lists all of them.
func Join(ctx context.Context, url string, cfg Config, opts ...Option) (*Member, error) {
	j := joining{dial: bus.Dial}
	if err := errors.Join(cfg.fillDefaults(), j.applyOptions(ctx, opts)); err != nil {
		return nil, err
	}
	m, err := j.connectMember(ctx, url, &cfg)
	if err != nil {
		return nil, fmt.Errorf("agent: join group %q as %q: %w: %w", cfg.Group, cfg.Name, ErrNotConnected, err)
	}
	m.joined, m.url = j, url
	m.unwatch = m.watchObserve()
	if err := m.join(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: join group %q as %q: %w", cfg.Group, cfg.Name, err), m.Close())
	}
	if err := m.observeCounters(); err != nil {
		return nil, errors.Join(fmt.Errorf("agent: join group %q as %q: %w", cfg.Group, cfg.Name, err), m.Close())
	}
	return m, nil
}

func newMember(cfg Config) *Member {
	m := &Member{
		cfg: cfg, subjects: wire.Subjects{Tenant: cfg.Tenant, Group: cfg.Group}, log: cfg.Logger,
		lostAgain: clocksync.MinInstant, welcomes: make(chan welcomed, 1), refusals: make(chan error, 1), stop: make(chan struct{}), unwatch: func() {},
	}
	m.leave, m.reports = sync.OnceValue(m.end), m.subjects.State(cfg.Name)
	m.link.ready, m.link.work.last = make(chan struct{}), map[string]scgs.Value{}
	m.clock = cfg.Clock
	hello := cfg.makeHello()
	m.quality = hello.Quality
	m.participant = participant{
		mu: &m.lock, owner: m, readStamp: m.readStamp, now: source.Monotonic, last: clocksync.MinInstant, regions: map[string]*Region{},
		spans: telemetry.NewMemberSpans(cfg.TracerProvider, scope, cfg.Group, cfg.Name),
		pace: &pace{until: clocksync.MaxInstant, nearer: m.come, begin: func() {
			if !m.dropped {
				m.multiplexer.listMember(m)
			}
		}},
		core: agentcore.New(agentcore.Options{Hello: hello, BatchSize: cfg.BatchSize, BatchAge: cfg.BatchAge, Salt: salt()}),
	}
	m.state.Providers = append(m.state.Providers, &m.link.work)
	if cfg.Observe != nil {
		m.state.Providers = append(m.state.Providers, gostate.Observed{Reading: &m.reading})
		m.link.work.reading = &m.reading
	}
	return m
}

// salt is what no other process has.
func salt() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return binary.LittleEndian.Uint32(b[:])
}

// subscribeMember hears what comes for the member itself. Where a multiplexer speaks for it that hears
// everything.
func (m *Member) subscribeMember(ctx context.Context) error {
	if m.listens.Swap(true) {
		return nil
	}
	for _, subject := range []string{m.subjects.Probe(m.cfg.Name), m.subjects.Signal(m.cfg.Name), m.subjects.Announce()} {
		if err := m.bus.Subscribe(subject, bus.Limits{}, m.receiveMessage); err != nil {
			return err
		}
	}
	return m.bus.Flush(ctx)
}

// join says hello and waits for the answer.
func (m *Member) join(ctx context.Context) error {
	if err := m.multiplexer.addMember(ctx, m); errors.Is(err, bus.ErrDisconnected) {
		return fmt.Errorf("%w: the shared connection of the members in this process is interrupted: %w", ErrNotConnected, err)
	} else if err != nil {
		return err
	}
	timeout := time.NewTimer(m.cfg.JoinTimeout)
	defer timeout.Stop()
	select {
	case w := <-m.welcomes:
		if w.refused {
			return &RefusedError{w.Synchronizer, m.cfg.Name, w.Reason}
		}
		if m.compareStamps(&w.Welcome) { //nolint:contextcheck // ctx bounds Join, and the clock is measured until Close.
			m.observeClock()
		}
		if err := m.awaitBound(ctx); err != nil {
			return err
		}
		if err := undeclaredSignals(m.cfg.Regions, w.Aims); err != nil {
			return fmt.Errorf("synchronizer %q: %w", w.Synchronizer, err)
		}
		return m.admitted(&w.Welcome)
	case err := <-m.refusals:
		return m.notPermitted(err)
	case <-timeout.C:
		return m.unanswered()
	case <-ctx.Done():
		return fmt.Errorf("%w for group %q so far: %w", ErrNoSynchronizer, m.cfg.Group, context.Cause(ctx))
	}
}

// unanswered says what may be the cause if nobody has answered the hello.
func (m *Member) unanswered() error {
	if m.bus.State() != bus.Connected {
		return fmt.Errorf("%w: it was interrupted, and not back within %v", ErrNotConnected, m.cfg.JoinTimeout)
	}
	if refused := m.bus.Refused(m.subjects.Prefix()); refused != nil {
		return m.notPermitted(refused)
	}
	return fmt.Errorf("%w for group %q of tenant %q within %v: start one with `pegasus run CONFIG`", ErrNoSynchronizer, m.cfg.Group, m.cfg.Tenant, m.cfg.JoinTimeout)
}

// notPermitted says what the server has refused to the credentials of the member.
func (m *Member) notPermitted(refused error) error {
	server := connect.Server{} // The state of a node is not known here.
	if m.joined.node == nil {
		server, _, _ = m.joined.findServer(m.url) // It was found before.
	}
	return notPermitted(&server, &m.subjects, refused, "member", m.cfg.Name)
}

// notPermitted says that no synchronizer can answer, since the server refuses a subject to these credentials.
func notPermitted(server *connect.Server, subjects *wire.Subjects, refused error, what, name string) error {
	remedy := fmt.Sprintf("give the credentials of %s %q of this group", what, name)
	if who := server.Identity(); who != "" {
		remedy += ", and not " + who
	}
	return fmt.Errorf("%w for group %q of tenant %q, and the server does not permit a subject that this takes: %w; %s", ErrNoSynchronizer, subjects.Group, subjects.Tenant, refused, remedy)
}

// admitted sets up what the first welcome declares.
func (m *Member) admitted(w *wire.Welcome) error {
	if len(w.Section) > 0 && !wire.IsProcessor(w.Schema) {
		plan, err := plan.FromSection(w.Section)
		if err != nil {
			return fmt.Errorf("synchronizer %q: %w", w.Synchronizer, err)
		}
		if m.cfg.Regions != nil {
			if err := undeclaredSignals(m.cfg.Regions, plan.Aims()); err != nil {
				return fmt.Errorf("synchronizer %q: %w", plan.Name, err)
			}
		}
		level := newLevel(m, plan, m.stop)
		m.mu.Lock()
		m.level = level
		m.mu.Unlock()
		m.running.Go(level.runTurns)
	}
	if err := m.checkState(w.Schema); err != nil {
		return err
	}
	if len(w.Schema) == 0 && len(w.Section) == 0 {
		return m.Set(struct{}{}) // Where no field is declared, being there is the state.
	}
	return nil
}

// checkState checks the prototype.
func (m *Member) checkState(declared scgs.Schema) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.State == nil || m.besideThreads(m.cfg.State) {
		return nil
	}
	return gostate.Match(m.cfg.State, declared, m.state.Providers)
}

// besideThreads reports whether a state is the state of the process beside its threads. After
// the first thread every state is. Before, only a state of a type that fits nowhere else is;
// once it is set, this is a process with threads. The lock is held.
func (m *Member) besideThreads(state any) bool {
	switch {
	case m.level == nil:
		return false
	case m.level.summary:
		return true
	case m.state.Type() == reflect.TypeOf(state):
		return false
	}
	match := func(s scgs.Schema) bool { return gostate.Match(state, s, m.state.Providers) == nil }
	return !match(m.core.Codec().Schema()) && match(m.level.plan.Process) && m.level.told == nil && m.level.plan.Summary()
}

// Set begins a new state of the process now and ends the state before it. Set waits for
// nothing. If nothing else is being sent, Set publishes on the caller's goroutine. In a process
// with threads it may take a turn of their synchronizer, as [Thread.Set] does.
//
// The state is a struct with the fields of the declared state. In a process with threads it has
// the fields that the configuration declares for the process beside the threads. A process has
// threads from the first [Member.Thread] on, or from the first state of that type.
//
// An error is a fault of the state, or [ErrClosed]; then the state before it remains.
// [ErrReplaced] means that another process has the member's name; Set has kept the state.
func (m *Member) Set(state any) error {
	hurry, err := m.setAny(state)
	m.level.runDue()
	hurry.sendDue()
	return err
}

// setAny is Set without the part that needs no lock.
func (m *Member) setAny(state any) (hurry *multiplexer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.besideThreads(state) {
		return nil, cmp.Or(m.level.setProcess(state), m.replaced)
	}
	m.byItself = true
	err = m.beginState(state)
	return m.takeHurry(), cmp.Or(err, m.replaced)
}

// replacedBy notes that another process has joined under the member's name. The next check of each open region
// returns it, also in threads. The lock is held.
func (m *Member) replacedBy(reason string) {
	if m.replaced != nil {
		return
	}
	m.replaced = fmt.Errorf("%w: %s", ErrReplaced, reason)
	learn := func(p *participant) {
		for _, r := range p.regions {
			r.replaced = m.replaced
			r.attendSignals()
		}
	}
	learn(&m.participant)
	if m.level != nil {
		for _, t := range m.level.threads {
			learn(&t.participant)
		}
	}
}

// come takes note that something is due sooner. The lock is held.
func (m *Member) come() {
	switch {
	case m.byItself && m.pace.until <= m.last:
		m.nearer = true
	case !m.dropped && int64(m.pace.until) < m.multiplexer.armed.Load():
		notifyChannel(m.multiplexer.wake)
	}
}

// takeHurry returns the multiplexer if there is something for it to send now, once the lock
// is given up; else nil, as for a thread. The lock is held.
func (m *Member) takeHurry() *multiplexer {
	if m == nil {
		return nil
	}
	came := m.nearer
	m.byItself, m.nearer = false, false
	if !came {
		return nil
	}
	return m.multiplexer
}

// noteHeard takes note that the synchronizer has sent something.
func (m *Member) noteHeard() {
	m.multiplexer.heard.Store(int64(m.multiplexer.now()))
}

// Region runs work inside a region of the process and returns its error. After a
// cancellation it returns the error of the cancel handler, or [*Canceled] if none
// is declared for the signal; a cancellation that arrived before the work
// returned counts even if the work did not notice. It fails without running the
// work if the region is entered already, or an option is wrong. A panic of the
// work or a handler leaves the region.
//
// Regions of different names may be nested and may run on several goroutines.
func (m *Member) Region(ctx context.Context, name string, work Work, opts ...RegionOption) error {
	if name == config.WorkName {
		m.mu.Lock()
		reserved := m.hasWork()
		m.mu.Unlock()
		if reserved {
			return fmt.Errorf("agent: region %q: the section work of group %q uses this name: give the region another name", name, m.cfg.Group)
		}
	}
	return m.runRegion(ctx, name, work, opts)
}

// queueFrame has a frame taken along with the next that the multiplexer sends for the member.
func (m *Member) queueFrame(frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.body = frame
}

// Stats returns the counters of the process; Threads sums up its threads, also
// those that are closed.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := statsOf(m.core)
	s.PublishErrors, s.BadFrames = m.publishErrors.Load(), m.badFrames.Load()
	s.HeldRegions, s.CanceledRegions = m.held.Load(), m.lapsed.Load()
	s.Threads = m.gone
	if m.level != nil {
		s.Threads = s.Threads.add(m.level.signalStats())
	}
	return s
}

// Close leaves the group. It cancels open regions of the member and of its threads with
// [ErrClosed], and tells the synchronizer. The member's own goroutines have ended when Close
// returns; code in regions, which runs on goroutines of the program, may still run. Close waits
// for the server at most about two seconds. A handler must not call it. Closing again does
// nothing and returns the same error.
func (m *Member) Close() error { return m.leave() }

// partPause is how often Leave looks whether the member may leave.
const partPause = 5 * time.Millisecond

// Leave waits, and then closes the member as [Member.Close] does. It waits until the synchronizer
// has acknowledged the last state. It also waits for each decision of which this member has got a
// signal, until the signals to the other members have arrived or expired: leaving ends the epoch, and
// signals that arrive later have no effect.
//
// If ctx ends first, or another process has the member's name, Leave closes the member and returns an
// error that says what it was waiting for. Without a synchronizer it waits until ctx ends, so give ctx a
// limit. The program must not set states meanwhile, and a handler must not call Leave.
func (m *Member) Leave(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("agent: leave: %w", errNilContext)
	}
	return errors.Join(m.part(ctx), m.Close())
}

// part waits until the member may leave.
func (m *Member) part(ctx context.Context) error {
	tick := time.NewTicker(partPause)
	defer tick.Stop()
	for {
		m.mu.Lock()
		closed, replaced, lacks := m.closed, m.replaced, ""
		if !closed && replaced == nil {
			lacks = m.stepInput(&agentcore.Input{Kind: agentcore.InPart}).Lacks
		}
		m.mu.Unlock()
		switch {
		case replaced != nil:
			return replaced
		case lacks == "":
			return nil
		}
		select {
		case <-tick.C:
		case <-m.stop:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("agent: member %q leaves early: %s: %w", m.cfg.Name, lacks, context.Cause(ctx))
		}
	}
}

// end stops everything and takes leave of the group.
func (m *Member) end() error {
	m.unwatch()
	m.mu.Lock()
	m.cancelRegions()
	m.link.watcher.addCall(linkNews{closed: true})
	if m.level != nil {
		m.level.shutThreads()
	}
	m.stepInput(&agentcore.Input{Kind: agentcore.InLeave})
	m.mu.Unlock()
	close(m.stop)
	m.running.Wait()
	m.multiplexer.dropMember(m)
	return errors.Join(m.goodbye(), m.release(), m.endObserving())
}

// goodbye sends the last batch.
func (m *Member) goodbye() error {
	s := sender{publish: m.bus.Publish}
	m.mu.Lock()
	m.flushDue(&s, nil, true)
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := m.bus.Flush(ctx); err != nil && !errors.Is(err, bus.ErrDisconnected) {
		m.log.Warn("the group may not know that the member has left", "member", m.cfg.Name, "error", err)
	}
	if err := m.bus.Close(); err != nil {
		return fmt.Errorf("agent: close member %q: %w", m.cfg.Name, err)
	}
	return nil
}
