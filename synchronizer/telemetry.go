package synchronizer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
)

// scope names what the metrics and spans come from.
const scope = "github.com/gopegasus/pegasus/synchronizer"

// predicatesNamed is how many predicates have series of their own; the others
// share one.
const (
	predicatesNamed = 50
	otherPredicates = "(other)" // no predicate can have that name
)

// figuresPeriod is how old the figures of the machine may be; all members are
// looked at for them.
const figuresPeriod = 250 * time.Millisecond

// tally holds the counts for metrics and readiness beside [Stats]. It is guarded by the lock of
// the synchronizer.
type tally struct {
	frames    [synccore.InAck + 1]uint64
	verdicts  [predicates.True + 1]uint64
	predicate map[string]int // the place of a predicate in decisions
	decisions []uint64       // the last one is of all other predicates
	signals   [control.Cancel + 1][control.Unconfirmed + 1]uint64
	rejected  [len(monitor.RejectReasons)]uint64
	bodies    [wire.BodyFailure + 1][bodyRepeated + 1]uint64
	bytes     [wire.BodyFailure + 1]uint64
	counts    synccore.Counts
	figures   synccore.Figures
	figured   clocksync.Instant
	stepped   clocksync.Instant
}

// bodyFate is what became of a body.
type bodyFate uint8

const (
	bodyTaken bodyFate = iota
	bodyRefused
	bodyRepeated
)

var (
	bodyKinds = [wire.BodyFailure + 1]string{wire.BodyInput: "input", wire.BodyResult: "result", wire.BodyFailure: "failure"}
	bodyFates = [bodyRepeated + 1]string{"taken", "refused", "repeated"}
	runEvents = []string{"started", "done", "failed", "canceled", "lost", "perhaps_twice"}
)

// countBody counts a body that was handed over, or was not.
func (l *loop) countBody(kind wire.BodyKind, fate bodyFate, size uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.bodies[kind][fate]++
	if fate == bodyTaken {
		l.tally.bytes[kind] += size
	}
}

func newTally(level *plan.Level, core *synccore.Core) tally {
	names := level.Predicates()
	var out synccore.Output
	core.Step(clocksync.MinInstant, &synccore.Input{Kind: synccore.InAsk, Ask: &synccore.Question{Figures: true}}, &out)
	names = names[:min(len(names), predicatesNamed)]
	t := tally{
		predicate: map[string]int{}, decisions: make([]uint64, len(names)+1),
		figures: out.Answer.Figures, figured: clocksync.MinInstant,
	}
	for i, name := range names {
		t.predicate[name] = i
	}
	return t
}

// noteFigures takes over the figures of the core after a step. The lock is held.
func (l *loop) noteFigures() {
	t := &l.tally
	figures := len(l.output.Epochs) > 0 || l.now >= t.figured.Add(figuresPeriod)
	l.question = synccore.Question{Counts: true, Figures: figures}
	a := l.askCore(l.now, &l.question)
	t.counts, t.stepped = a.Counts, l.now
	if figures {
		t.figures, t.figured = a.Figures, l.now
	}
}

// meters are the instruments of a synchronizer. Counters are kept in the tally and only read
// when metrics are collected.
type meters struct {
	meter         metric.Meter
	source        []attribute.KeyValue
	registration  metric.Registration
	step, latency func(time.Duration)
}

// meterSteps makes the instruments of steps. A nil provider measures nothing.
func (s *Synchronizer) meterSteps() error {
	if s.opt.MeterProvider == nil {
		return nil
	}
	m := &meters{meter: s.opt.MeterProvider.Meter(scope), source: []attribute.KeyValue{
		attribute.String("synchronizer", s.level.Name), attribute.String("tenant", s.opt.Tenant),
	}}
	var err error
	if m.step, err = telemetry.Distribution(m.meter, telemetry.StepDuration, m.source); err != nil {
		return err
	}
	if m.latency, err = telemetry.Distribution(m.meter, telemetry.VerdictLatency, m.source); err != nil {
		return err
	}
	s.meters = m
	return nil
}

// observeCounters shows the existing counters, from now on.
func (s *Synchronizer) observeCounters() (err error) {
	m := s.meters
	if m == nil {
		return nil
	}
	list := telemetry.Synchronizer
	if s.level.Program != nil {
		list = slices.Concat(list, telemetry.Program)
	}
	m.registration, err = telemetry.Observe(m.meter, list, m.source, s.collect)
	return err
}

// endMetering ends what observe has begun.
func (s *Synchronizer) endMetering() error {
	if s.meters == nil {
		return nil
	}
	return s.meters.registration.Unregister()
}

// collect tells every counter, also those that are 0: a series that appears with
// its first event hides that event from whoever looks at rates.
func (s *Synchronizer) collect(o *telemetry.Observation) {
	s.mu.Lock()
	t, stats, journal := s.tally, s.stats, s.journal
	decisions := slices.Clone(t.decisions)
	s.mu.Unlock()

	for kind, word := range map[synccore.Kind]string{synccore.InHello: "hello", synccore.InBatch: "batch", synccore.InGone: "gone", synccore.InAck: "ack"} {
		o.Count(telemetry.Frames, t.frames[kind], attribute.String("kind", word))
	}
	o.Count(telemetry.Frames, stats.Pings, attribute.String("kind", "ping"))
	o.Count(telemetry.Reports, t.counts.Reports)
	o.Count(telemetry.Gaps, t.counts.Gaps)
	o.Count(telemetry.Collapsed, t.counts.Collapsed)
	o.Count(telemetry.GlobalStates, t.counts.Global, attribute.Bool("partial", false))
	o.Count(telemetry.GlobalStates, t.counts.Partial, attribute.Bool("partial", true))
	for truth, n := range t.verdicts {
		o.Count(telemetry.Verdicts, n, attribute.String("truth", predicates.Truth(truth).String()))
	}
	for name, i := range t.predicate {
		o.Count(telemetry.Decisions, decisions[i], attribute.String("predicate", name))
	}
	o.Count(telemetry.Decisions, decisions[len(decisions)-1], attribute.String("predicate", otherPredicates))
	for _, kind := range []control.Kind{control.Activate, control.Cancel} {
		for _, fate := range control.Fates {
			if fate.Final() && fate != control.Duplicate { // A duplicate was applied.
				o.Count(telemetry.Signals, t.signals[kind][fate], attribute.String("kind", kind.String()), attribute.String("fate", fate.String()))
			}
		}
	}
	for i, n := range t.counts.Balance {
		strategy := attribute.String("strategy", balance.Names[i])
		o.Count(telemetry.BalancePlans, n.Plans, strategy)
		o.Count(telemetry.BalanceMoves, n.Moves, strategy)
		o.Count(telemetry.BalanceRefused, n.Refused, strategy)
	}
	o.Count(telemetry.Probes, stats.Probes)
	o.Count(telemetry.Resends, stats.Resends)
	for _, reason := range monitor.RejectReasons {
		o.Count(telemetry.Rejected, t.rejected[reason], attribute.String("reason", reason.String()))
	}
	o.Count(telemetry.InboxDepth, uint64(s.in.depth())) //nolint:gosec // A length.
	o.Count(telemetry.InboxDropped, s.bus.Dropped())
	for why, n := range s.in.shedCounts() {
		o.Count(telemetry.InboxShed, n, attribute.String("reason", shedWords[why]))
	}
	recorded := journal.journalStats()
	o.Count(telemetry.JournalInputs, recorded.Inputs)
	o.Count(telemetry.JournalLost, recorded.Lost)
	o.Count(telemetry.Connected, whether(s.bus.State() == bus.Connected))
	o.Count(telemetry.Leads, whether(s.leads.Load()))
	collectFigures(o, &t.figures)
	if s.level.Program != nil {
		collectProgram(o, &t)
	}
}

func collectProgram(o *telemetry.Observation, t *tally) {
	runs := &t.counts.Runs
	for i, n := range []uint64{runs.Starts, runs.Done, runs.Failed, runs.Canceled, runs.Lost, runs.Twice} {
		o.Count(telemetry.ProgramRuns, n, attribute.String("event", runEvents[i]))
	}
	o.Count(telemetry.ProgramRunning, uint64(t.figures.Running)) //nolint:gosec // A length.
	o.Count(telemetry.ProgramWaiting, uint64(t.figures.Queued))  //nolint:gosec // A number of blocks.
	for i, word := range bodyKinds[wire.BodyInput:] {
		kind := attribute.String("kind", word)
		for fate, n := range t.bodies[int(wire.BodyInput)+i] {
			o.Count(telemetry.Bodies, n, kind, attribute.String("fate", bodyFates[fate]))
		}
		o.Count(telemetry.BodyBytes, t.bytes[int(wire.BodyInput)+i], kind)
	}
}

func collectFigures(o *telemetry.Observation, f *synccore.Figures) {
	count := func(m *telemetry.Metric, n int, more ...attribute.KeyValue) { o.Count(m, uint64(n), more...) } //nolint:gosec // Lengths.
	o.Count(telemetry.Epoch, f.Epoch)
	count(telemetry.SignalsWaiting, f.Waiting)
	count(telemetry.MembersOnline, f.Online)
	count(telemetry.MembersAwaited, f.Awaited)
	count(telemetry.MembersClock, f.Exact, attribute.String("status", "exact"))
	for status, n := range f.Clocks {
		count(telemetry.MembersClock, n, attribute.String("status", clocksync.Status(status).String()))
	}
	if f.Bounded {
		o.Seconds(telemetry.MembersBound, f.Bound)
	}
	for truth, n := range f.Truths {
		count(telemetry.Predicates, n, attribute.String("truth", predicates.Truth(truth).String()))
	}
}

func whether(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// measureStep tells how long the step took that has just ended, and how old the
// reports were that its verdicts rest on.
func (l *loop) measureStep(began clocksync.Instant) {
	if l.meters == nil {
		return
	}
	ended := l.opt.now()
	l.meters.step(ended.Sub(began))
	for i := range l.output.Verdicts {
		switch heard := l.output.Verdicts[i].Heard; heard {
		case clocksync.MinInstant:
		case began:
			l.meters.latency(ended.Sub(l.arrived))
		default:
			l.meters.latency(ended.Sub(heard))
		}
	}
}

// rejectReason is the reject reason of a frame that cannot be read.
func rejectReason(err error) monitor.RejectReason {
	switch {
	case errors.Is(err, wire.ErrVersion):
		return monitor.RejectVersion
	case errors.Is(err, wire.ErrSchema):
		return monitor.RejectSchema
	}
	return monitor.RejectFrame
}

// stuckAfter is how long messages may wait for a step before the synchronizer is
// taken for stuck.
const stuckAfter = 10 * time.Second

// Readiness is one part of whether a synchronizer can decide.
type Readiness struct {
	Part   string // see [Synchronizer.Readiness]
	Ready  bool   // it is as it has to be
	Detail string // how it stands, for people
}

// Readiness reports for each part whether the synchronizer can decide, at most a quarter of a
// second old:
//
//   - loop: it runs and gets to its messages. If not, it has ended, or hangs, and
//     only a new start helps. The other parts recover without action.
//   - nats: the server can be reached.
//   - leads: only while this process stands by, and never ready: another process leads. There
//     are no further parts then.
//   - members: enough are present for an epoch.
//   - epoch: there is an active epoch.
//   - predicates: each has a verdict in this epoch. It may be unknown.
//   - clocks: each member's clock is usable between hosts.
//   - journal: where one is kept. It is always ready, since the run continues without it; the
//     detail says why it has ended.
func (s *Synchronizer) Readiness() []Readiness {
	s.mu.Lock()
	f, stepped, journal := s.tally.figures, s.tally.stepped, s.journal
	s.mu.Unlock()
	loop := Readiness{"loop", true, "running"}
	waiting, quiet := s.in.depth(), s.opt.now().Sub(stepped)
	select {
	case <-s.done:
		loop.Ready, loop.Detail = false, "ended"
		if err := s.Err(); err != nil {
			loop.Detail = "ended: " + err.Error()
		}
	default:
		if waiting > 0 && quiet > stuckAfter {
			loop.Ready, loop.Detail = false, fmt.Sprintf("stuck for %v, messages that wait: %d; start it again", quiet.Round(time.Second), waiting)
		}
	}
	nats := Readiness{"nats", s.bus.State() == bus.Connected, s.bus.State().String()}
	if loop.Ready && !s.leads.Load() {
		return []Readiness{loop, nats, {"leads", false, s.beats.standsBy(s.name).Error()}}
	}
	members := Readiness{"members", f.Online >= f.Awaited, fmt.Sprintf("%d online, %d needed", f.Online, f.Awaited)}
	epoch := Readiness{"epoch", f.Epoch > 0, fmt.Sprintf("%d active", f.Epoch)}
	if !epoch.Ready {
		epoch.Detail = "none, nothing is decided"
	}
	all := f.Truths[predicates.True] + f.Truths[predicates.False] + f.Truths[predicates.Unknown]
	judged := Readiness{"predicates", f.Told == all, fmt.Sprintf(
		"%d true, %d false, %d unknown", f.Truths[predicates.True], f.Truths[predicates.False], f.Truths[predicates.Unknown],
	)}
	if !judged.Ready {
		judged.Detail += fmt.Sprintf("; %d without a global state to judge", all-f.Told)
	}
	bad := f.Clocks[clocksync.Unknown] + f.Clocks[clocksync.Untrusted]
	clocks := Readiness{"clocks", bad == 0, fmt.Sprintf("%d usable", f.Online-bad)}
	if f.Bounded {
		clocks.Detail += fmt.Sprintf(", widest bound ±%v", f.Bound)
	}
	if bad > 0 {
		clocks.Detail += fmt.Sprintf(", %d without a bound: nothing is certain between these and other hosts", bad)
	}
	parts := []Readiness{loop, nats, members, epoch, judged, clocks}
	if s.opt.Journal != nil {
		parts = append(parts, journal.readiness())
	}
	return parts
}
