package synchronizer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/roles"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// Options say how a synchronizer runs. The zero value is ready to use.
type Options struct {
	// Name is the synchronizer of the configuration to run. It may be empty if
	// the configuration has one alone that is not a thread-level one.
	Name string
	// Tenant separates runs that share a NATS server; members must use the same.
	// Empty means "default". Letters, digits, - and _, at most 64.
	Tenant string
	// Logger receives epochs, lost members and refusals. Nil: no logging.
	Logger *slog.Logger
	// Observe is called with every event, on the synchronizer's goroutine: it
	// must return soon and must not call Close.
	Observe func(monitor.Event)
	// Conn is an existing connection to use; the URL is then ignored. The synchronizer neither
	// closes nor alters it.
	Conn *nats.Conn
	// NATS are options of the connection, such as nats.UserCredentials. Settings of
	// reconnecting, pings, buffers and handlers among them have no effect. Nil means what the
	// environment gives (see the package connect), and an empty list none.
	NATS []nats.Option
	// Timeline is the reference time of the stamps: empty for the readings of this
	// process's clock, against which members on other hosts measure their own
	// clocks, or [clocksync.UTC] or [clocksync.SmearedUTC] where every member
	// has a clock that knows that. Members that stamp by another timeline are refused.
	Timeline clocksync.Timeline
	// SeparateClock makes this process a clock domain of its own, as if it were
	// alone on its host: to try on one host what happens between several.
	SeparateClock bool
	// Predicates are judged beside the predicates of the configuration.
	Predicates []Predicate
	// Reread reads the configuration again for "pegasus reload", which asks over NATS; the
	// synchronizer then goes over to it as Reload does, or answers why not. It is called on a
	// goroutine of the synchronizer, one call at a time, and must return soon. Nil refuses
	// such requests.
	Reread func() (*Config, error)
	// Journal takes the record of all inputs, JSON lines that [Replay] reads. It is
	// written to on a goroutine of its own, every second and at the end, and closed by
	// nobody. A writer that fails or falls behind by 16 MiB ends the journal and not
	// the run: that is logged, and Stats tell it. Nil records nothing.
	Journal io.Writer
	// JournalLimit ends the journal, but not the run, before it has more bytes.
	// 0 means [DefaultJournalLimit]; the least is [MinJournalLimit].
	JournalLimit int64
	// Drift is how many parts per million the clock of this machine may run fast or
	// slow, up to [clocksync.MaxDrift]. Members that measure theirs against it are
	// told, and widen their bounds by both. 0 stands for [source.DefaultDrift].
	Drift float64
	// MeterProvider is what the metrics go to, and TracerProvider what the spans of
	// decisions go to; docs/operations.md lists both. Nil means none: no global
	// provider is used.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider // see MeterProvider

	// State is a directory, made if need be, in which the synchronizer keeps its term: on
	// disk before it is used, so that the next life has a later one whatever the clock and
	// the members say. Several synchronizers and processes may share it. Empty means that
	// nothing is kept; the term is then learned from the members that answer within a
	// second, and is the wall clock's nanoseconds if none does. See docs/operations.md.
	State string

	// Standby has Start return at once, instead of failing with [ErrNameTaken], and wait for
	// the process that leads as this synchronizer. This process takes over when the leader says
	// that it ends, or was not heard for a second. Until then it receives the leader's state,
	// so that memory, edges, hold times, cooldowns, prev and signals under way continue. The
	// log says which predicates begin again, and why. A program continues, unless this process
	// never received its progress: then it ends with an error. docs/operations.md has the
	// details.
	Standby bool

	// Resume is the journal of the last life of the same synchronizer, which continues where
	// that life ended: memory, edges, hold times, cooldowns, prev and signals under way as far
	// as for a standby. A program's finished parts do not run again, and parts under way are
	// found again on the nodes. The journal is cut after its last whole line and extended;
	// Journal must be nil. A journal that ended before its run, or is not of the last known
	// life, is refused.
	Resume JournalFile

	spoil func() error             // of a journal that does not say how it has ended
	now   func() clocksync.Instant // tests in virtual time
	wall  func() int64             // tests that set the wall clock; ns since 1970
	bus   *bus.Bus                 // tests without a server
}

// Synchronizer is a running synchronizer. Its methods may be called from any
// goroutine.
type Synchronizer struct {
	opt      Options
	name     string
	clock    *source.Reference
	relative bool // the timeline, too, is the readings of the clock
	bus      *bus.Bus
	subjects wire.Subjects
	core     *synccore.Core
	level    *plan.Level // that it was started with
	in       *inbox
	codec    *wire.BatchCodec
	journal  *recorder
	calls    chan func(*loop)   // for the owner of the core to make
	first    []synccore.Input   // of a core that continues
	timeline clocksync.Timeline // that the core begins with
	leading
	config string // the hash of the active one; the owner of the core has it

	questions chan *question   // for the owner of the core
	asked     chan bus.Message // by other processes
	rereads   rereads
	feed      eventFeed

	listening sync.Mutex
	groups    []string // the other groups that are listened to

	meters *meters // nil if nobody measures

	cancel context.CancelFunc
	done   chan struct{}
	beside sync.WaitGroup // what runs beside the owner of the core

	mu     sync.Mutex
	err    error
	stats  Stats
	panics []string // predicates whose Judge has panicked
	tally  tally
	denied map[bus.Denial]clocksync.Instant // what the server refuses, and when it was last refused
}

// startTimeout bounds what Start waits for beside the connection itself.
const startTimeout = 5 * time.Second

// Start connects to the NATS server and runs a synchronizer of the
// configuration until Close or until its silence policy makes it fail. The context bounds
// the start only. It fails within about five seconds if the server cannot be reached
// ([ErrNotConnected]), if a synchronizer of that name runs there already
// ([ErrNameTaken]), if another one controls the group ([ErrGroupTaken]), or with all the faults of the options ([*OptionsError]).
func Start(ctx context.Context, url string, cfg *Config, opt Options) (*Synchronizer, error) {
	s := &Synchronizer{
		denied:    map[bus.Denial]clocksync.Instant{},
		opt:       opt,
		config:    cfg.hash,
		in:        newInbox(inboxBytes),
		calls:     make(chan func(*loop)),
		questions: make(chan *question, maxQuestions),
		asked:     make(chan bus.Message, maxQuestions),
		feed:      eventFeed{waiting: make(chan timedEvent, maxEvents)},
		done:      make(chan struct{}),
		stats:     Stats{Fates: map[control.Fate]uint64{}, ByName: map[string]map[control.Fate]uint64{}},
	}
	plan, err := s.opt.complete(cfg, s.countPanic)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, url, plan); err != nil {
		return nil, fmt.Errorf("synchronizer %q: %w", plan.Name, err)
	}
	return s, nil
}

// complete fills in defaults, and finds what to run, or all faults.
func (o *Options) complete(cfg *Config, panicked func(name string, cause any)) (*plan.Level, error) {
	o.Tenant = cmp.Or(o.Tenant, "default")
	o.JournalLimit = cmp.Or(o.JournalLimit, DefaultJournalLimit)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = telemetry.Sampled(o.Logger)
	if o.now == nil {
		o.now = source.Monotonic
	}
	if o.wall == nil {
		o.wall = source.WallNano
	}
	plan, err := o.validate(cfg, panicked)
	if o.Drift == 0 {
		o.Drift = source.DefaultDrift()
	}
	return plan, err
}

// validate finds all that is wrong with the options, and the plan that they choose.
func (o *Options) validate(cfg *Config, panicked func(name string, cause any)) (*plan.Level, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("synchronizer: "+format, args...))
	}
	plan, err := cfg.planOf(o.Name)
	if err != nil {
		fault("%w", err)
	} else if plan, err = plan.With(compilePredicates(o.Predicates, panicked)); err != nil {
		faults = append(faults, fmt.Errorf("synchronizer %q: Options.Predicates: %w", cfg.name, err))
	}
	if err := wire.CheckToken("tenant", o.Tenant); err != nil {
		fault("%w", err)
	}
	if o.Resume != nil && o.Journal != nil {
		fault("a resumed program extends the journal of Options.Resume: leave Options.Journal nil")
	}
	if o.Resume != nil && o.Standby {
		fault("a process that stands by does not know how far the journal of Options.Resume will have come: leave one of the two out")
	}
	if o.JournalLimit < MinJournalLimit {
		fault("a journal of at most %d bytes is too short: use at least %d", o.JournalLimit, MinJournalLimit)
	}
	if !(o.Drift >= 0 && o.Drift <= clocksync.MaxDrift) { // Also NaN.
		fault("Options.Drift is %v: it is in parts per million, from 0 to %v", o.Drift, clocksync.MaxDrift)
	}
	if len(faults) > 0 {
		return nil, &OptionsError{faults}
	}
	return plan, nil
}

// start runs a plan.
func (s *Synchronizer) start(ctx context.Context, url string, plan *plan.Level) error {
	s.name, s.level, s.codec = plan.Name, plan, wire.NewBatchCodec(plan.State)
	s.subjects = wire.Subjects{Tenant: s.opt.Tenant, Group: plan.Members.Group}
	s.leading = newLeading()
	var err error
	if s.store, err = openStore(s.opt.State, s.subjects, s.name); err != nil {
		return err
	}
	if live := s.store.liveParameters(); len(live) > 0 && s.opt.Resume == nil {
		if plan, err = s.carryValues(plan, live); err != nil {
			return err
		}
		if plan, err = s.addPredicates(plan); err != nil {
			return err
		}
		s.level = plan
		given := plan.Source.Overrides
		for _, o := range live {
			i := slices.IndexFunc(given, func(g Override) bool { return g.Param == o.Param && !g.Live && g.Value != o.Value })
			if i < 0 {
				s.opt.Logger.Info("a parameter has the value that was set", "param", o.Param, "value", o.Value)
				continue
			}
			s.opt.Logger.Warn("a stored value overrides the one given now", "param", o.Param, "value", o.Value, "given", given[i].Value, "undo", "pegasus set --reset "+o.Param)
		}
	}
	s.reference()
	s.opt.spoil = s.spoilJournal
	var from *resumed
	if s.opt.Resume != nil {
		if from, err = s.resumeJournal(s.opt.Resume, plan); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}
	if err := s.meterSteps(); err != nil { //nolint:contextcheck // Measurements belong to no request.
		return err
	}
	if err := s.connect(ctx, url); err != nil {
		return err
	}
	if err = s.bus.Subscribe(s.subjects.Beat(s.name), bus.Limits{}, s.hearBeat); err == nil {
		if s.opt.Standby {
			s.follow = s.newFollower()
			err = s.bus.Subscribe(s.subjects.Stream(s.name, "*"), streamLimits, s.follow.hearStream)
		} else {
			err = s.beginLeading(ctx, from)
		}
	}
	if err != nil {
		return errors.Join(err, s.bus.Close())
	}
	if err := s.observeCounters(); err != nil {
		s.journal.closeJournal()
		return errors.Join(err, s.bus.Close())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.runCore(run)
	s.beside.Go(func() { s.answerAll(run) })
	s.beside.Go(func() { s.roundTrips(run) })
	s.beside.Go(func() { s.tellAll(run) })
	return nil
}

// addPredicates is a level with the predicates of Options.Predicates.
func (s *Synchronizer) addPredicates(level *plan.Level) (*plan.Level, error) {
	return level.With(compilePredicates(s.opt.Predicates, s.countPanic))
}

// reference makes the clock that members are compared by.
func (s *Synchronizer) reference() {
	clock := source.System()
	if s.opt.SeparateClock {
		clock = source.OwnDomain(clock)
	}
	s.clock = source.NewReference(clock.Domain())
	if s.relative = s.opt.Timeline == ""; s.relative {
		s.opt.Timeline = s.clock.Timeline()
	}
}

// makeCore makes the core of a term, or has the core of a journal continue in it.
func (s *Synchronizer) makeCore(term uint64, from *resumed) (err error) {
	if s.timeline = s.opt.Timeline; s.follow != nil {
		if s.first, err = s.follow.endFollowing(term); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow != nil {
		s.core, s.level, s.config = s.follow.core, s.follow.level, shortHash(s.follow.level)
		if err := s.store.keepParameters(s.level.Source.Live()); err != nil {
			s.opt.Logger.Warn("the parameters that were set are not kept for the next start", "cause", err)
		}
		s.tally = newTally(s.level, s.core)
		return nil
	}
	options := synccore.Options{Term: term, Reference: s.clock.Domain(), OnDemand: true, Timeline: s.opt.Timeline, Relative: s.relative}
	if from == nil {
		if s.level.Program != nil {
			options.Program = newProgram()
		}
		s.core = synccore.New(s.level, options)
	} else {
		s.core, s.level = from.core, from.level
		s.first = s.goOn(from, term, &options)
	}
	s.tally = newTally(s.level, s.core)
	s.journal = newRecorder(s.level, options, &s.opt, from, s.opt.now())
	return nil
}

func (s *Synchronizer) connect(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	var server connect.Server // Empty if the connection was given.
	options := bus.Options{
		Name: "pegasus synchronizer " + s.level.Name,
		OnDisconnect: func(cause error) {
			s.cutOff.Add(1)
			s.opt.Logger.Warn("the NATS server is away; nothing is decided until it is back", "cause", cause)
		},
		OnReconnect: func() { s.opt.Logger.Info("the NATS server is back") },
		OnError:     s.complained,
	}
	switch {
	case s.opt.bus != nil:
		s.bus = s.opt.bus
	case s.opt.Conn != nil:
		s.bus, err = bus.Wrap(s.opt.Conn, options)
	default:
		if server, options.Extra, err = connect.To(url, s.opt.NATS); err == nil {
			options.Explain = server.Explain
			s.bus, err = bus.Dial(ctx, server.URL, options)
			err = server.Explain(err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	if s.bus.Open() {
		s.opt.Logger.Warn("the NATS server asks for no credentials: any program that reaches it can send signals and states in this group; docs/security.md says how to make keys")
	}
	if err := s.checkPermissions(ctx, server.Identity()); err != nil {
		return errors.Join(err, s.bus.Close())
	}
	return nil
}

// checkPermissions fails if the server refuses subjects that a synchronizer needs: it could not
// say so later, since it would not be heard. Who are the credentials; empty: none are known. It
// publishes nothing to subjects that other clients hear.
func (s *Synchronizer) checkPermissions(ctx context.Context, who string) error {
	name := s.level.Name
	user := roles.User{Role: roles.Synchronizer, Name: name, Tenant: s.opt.Tenant, Group: s.subjects.Group, Others: s.level.Groups()}
	p, err := user.Permissions()
	if err != nil {
		return err
	}
	hears := slices.DeleteFunc(p.Subscribe, func(subject string) bool {
		return strings.HasPrefix(subject, nats.InboxPrefix) || s.level.Program == nil && subject == s.subjects.DataAll()
	})
	says := []string{s.subjects.Control(name)}
	for _, subject := range p.Publish {
		if parent, wild := strings.CutSuffix(strings.ReplaceAll(subject, "*", ">"), ">"); wild {
			says = append(says, parent+"permission-check")
		}
	}
	if err = s.bus.Permitted(ctx, hears, says); !errors.Is(err, bus.ErrPermission) {
		return err
	}
	if who != "" {
		who = ", and not " + who
	}
	return fmt.Errorf("%w: give it the credentials of a synchronizer%s, or permit what pegasus keys permissions synchronizer %s --tenant %s --group %s prints",
		err, who, name, s.opt.Tenant, s.subjects.Group)
}

// complained logs what the connection says outside any call, and notes what the server refuses.
func (s *Synchronizer) complained(err error) {
	if d, ok := bus.Denied(err); ok {
		s.mu.Lock()
		if _, known := s.denied[d]; known || len(s.denied) < maxDenied {
			s.denied[d] = s.opt.now()
		}
		s.mu.Unlock()
	}
	s.opt.Logger.Error("NATS", telemetry.ClassKey, bus.Class(err), "error", err)
}

// openUnlessThere subscribes, unless the same synchronizer is there already.
func (s *Synchronizer) openUnlessThere(ctx context.Context) error {
	name := s.level.Name
	control := s.subjects.Control(name)
	err := bus.ErrNoResponders
	if !s.opt.Standby || !s.beats.knowsLeader() { // Else it has fallen silent.
		err = s.anybody(ctx, control)
	}
	if err == nil {
		return fmt.Errorf("%w: it runs already on this server for tenant %q and group %q: stop it, wait for its end with --standby (Options.Standby), or use another tenant", ErrNameTaken, s.opt.Tenant, s.subjects.Group)
	} else if !errors.Is(err, bus.ErrNoResponders) {
		return err
	}
	if !s.opt.Standby || !s.beats.knowsLeader() {
		if err := s.checkUncontrolled(ctx); err != nil {
			return err
		}
	}
	if err := s.subscribeGroups(ctx, s.level.Groups()); err != nil {
		return err
	}
	if s.subscribed { // Before, and then something failed.
		return s.bus.Flush(ctx)
	}
	s.subscribed = true
	named := func(m bus.Message) { s.noteUnsentReply(m, s.bus.Reply(m, []byte(name))) }
	questions := bus.Limits{Messages: maxQuestions}
	faults := []error{
		s.bus.Subscribe(control, bus.Limits{}, named),
		s.bus.Subscribe(s.subjects.GroupControl(), bus.Limits{}, named),
		s.bus.Subscribe(s.subjects.Beat("*"), bus.Limits{}, s.hearClaim),
		s.hear(s.subjects),
		s.bus.Subscribe(s.subjects.PingAll(), bus.Limits{}, s.answerPing),
		s.bus.Subscribe(s.subjects.Who(), questions, s.answerPresence),
		s.bus.Subscribe(s.subjects.AskAll(name), questions, s.passQuestion),
		s.bus.Subscribe(s.subjects.AskBy(name, wire.VerbSet, "*"), questions, s.passQuestion),
		s.bus.Subscribe(s.subjects.AskBy(name, wire.VerbReload, "*"), questions, s.passQuestion),
	}
	if s.level.Program != nil {
		faults = append(faults, s.bus.Subscribe(s.subjects.DataAll(), bus.Limits{}, func(m bus.Message) {
			if member, ok := s.subjects.ParseData(m.Subject); ok && s.leads.Load() {
				s.in.putMessage(item{member: member, body: &m, at: s.opt.now()})
			}
		}))
	}
	if err := cmp.Or(faults...); err != nil {
		return err
	}
	return s.bus.Flush(ctx)
}

// anybody asks whether a synchronizer answers on a subject. A synchronizer that has just
// ended may still be subscribed for a moment, and never answers: then anybody asks again.
func (s *Synchronizer) anybody(ctx context.Context, subject string) error {
	for {
		once, cancel := context.WithTimeout(ctx, startTimeout/10)
		_, err := s.bus.Request(once, subject, nil)
		cancel()
		switch {
		case err == nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: something takes the questions to a synchronizer of this name and does not answer: end it, or use another tenant: %w", ErrNameTaken, err)
		}
	}
}

// subscribeGroups subscribes to what the members of other groups tell their synchronizers,
// and to their answers to this one. A member tells synchronizers apart by their
// names, so one of the same name must not be there.
func (s *Synchronizer) subscribeGroups(ctx context.Context, groups []string) error {
	s.listening.Lock()
	defer s.listening.Unlock()
	for _, group := range groups {
		if slices.Contains(s.groups, group) {
			continue
		}
		subjects := wire.Subjects{Tenant: s.opt.Tenant, Group: group}
		switch err := s.anybody(ctx, subjects.Control(s.name)); {
		case err == nil:
			return fmt.Errorf("%w: signals go to group %q, whose own synchronizer has the name %q as well: its members could not tell the two apart; give one of them another name", ErrNameTaken, group, s.name)
		case !errors.Is(err, bus.ErrNoResponders):
			return err
		}
		if err := s.hear(subjects); err != nil {
			return err
		}
		s.groups = append(s.groups, group)
	}
	return nil
}

// hear hands what the members of a group tell to the owner of the core, under the
// names that the subjects prove.
func (s *Synchronizer) hear(subjects wire.Subjects) error {
	group := ""
	if subjects != s.subjects {
		group = subjects.Group
	}
	put := func(m bus.Message, member string, ack bool) {
		if !s.leads.Load() { // They are asked for all of it again.
			if group == "" && !ack {
				s.overhearTerm(m.Data)
			}
			return
		}
		s.in.putMessage(item{ack: ack, group: group, member: member, frame: m.Data, at: s.opt.now()})
	}
	return cmp.Or(s.bus.Subscribe(subjects.StateAll(), bus.Limits{}, func(m bus.Message) {
		if member, ok := subjects.ParseState(m.Subject); ok {
			put(m, member, false)
		}
	}), s.bus.Subscribe(subjects.AckAll(s.name), bus.Limits{}, func(m bus.Message) {
		if _, member, ok := subjects.ParseAck(m.Subject); ok {
			put(m, member, true)
		}
	}))
}

// Done is closed when the synchronizer has ended.
func (s *Synchronizer) Done() <-chan struct{} { return s.done }

// Err returns why a synchronizer ended without Close; nil while it runs and after Close.
func (s *Synchronizer) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stats returns the counters so far.
func (s *Synchronizer) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Fates = maps.Clone(stats.Fates)
	stats.ByName = make(map[string]map[control.Fate]uint64, len(s.stats.ByName))
	for name, fates := range s.stats.ByName {
		stats.ByName[name] = maps.Clone(fates)
	}
	counts := s.tally.counts
	stats.Reports, stats.Gaps, stats.Collapsed = counts.Reports, counts.Gaps, counts.Collapsed
	stats.Dropped = s.bus.Dropped()
	sheds := s.in.shedCounts()
	stats.Shed = sheds.total()
	stats.Untold = s.feed.untold.Load()
	stats.Journal = s.journal.journalStats()
	return stats
}

// Close stops deciding, ends the connection and waits for everything. It may be
// called more than once.
func (s *Synchronizer) Close() error {
	s.cancel()
	<-s.done
	s.beside.Wait()
	return errors.Join(s.endMetering(), s.bus.Close())
}
