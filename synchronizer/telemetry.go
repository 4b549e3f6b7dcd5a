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

// tally is what is counted for metrics and readiness beside [Stats]. It is
// guarded by the lock of the synchronizer.
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
	runEvents = []string{"started", "done", "failed", "canceled", "lost"}
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

// add counts one step.
func (t *tally) add(out *synccore.Output) {
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		t.verdicts[v.Truth]++
		if !v.Fired {
			continue
		}
		place, named := t.predicate[v.Predicate]
		if !named {
			place = len(t.decisions) - 1
		}
		t.decisions[place]++
	}
	for i := range out.Fates {
		t.signals[out.Fates[i].Signal.Kind][out.Fates[i].Fate]++
	}
	for i := range out.Rejected {
		t.rejected[out.Rejected[i].Reason]++
	}
}

// count counts one step.
func (l *loop) count(out *synccore.Output) {
	t := &l.tally
	t.add(out)
	figures := len(out.Epochs) > 0 || l.now >= t.figured.Add(figuresPeriod)
	l.question = synccore.Question{Counts: true, Figures: figures}
	a := l.ask(l.now, &l.question)
	t.counts, t.stepped = a.Counts, l.now
	if figures {
		t.figures, t.figured = a.Figures, l.now
	}
}

// meters are the instruments of a synchronizer. Counters are kept in the tally
// and only read when somebody collects.
type meters struct {
	meter         metric.Meter
	watched       *watched
	registration  metric.Registration
	step, latency func(time.Duration)
}

// watched are the attributes of the observations, made once.
type watched struct {
	base                        metric.MeasurementOption
	hello, batch, gone          metric.MeasurementOption
	ack, ping, complete, partly metric.MeasurementOption
	truths                      [predicates.True + 1]metric.MeasurementOption
	decisions                   []metric.MeasurementOption
	signals                     [control.Cancel + 1][control.Unconfirmed + 1]metric.MeasurementOption
	rejected                    [len(monitor.RejectReasons)]metric.MeasurementOption
	exact                       metric.MeasurementOption
	clocks                      [clocksync.Untrusted + 1]metric.MeasurementOption
	strategies                  []metric.MeasurementOption
	program                     bool // one runs, and has the following
	runs                        []metric.MeasurementOption
	bodies                      [wire.BodyFailure + 1][bodyRepeated + 1]metric.MeasurementOption
	bytes                       [wire.BodyFailure + 1]metric.MeasurementOption
}

func (s *Synchronizer) watched() *watched {
	base := []attribute.KeyValue{
		attribute.String("synchronizer", s.level.Name), attribute.String("tenant", s.opt.Tenant),
	}
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return telemetry.With(append(slices.Clip(base), more...)...)
	}
	word := func(key, value string) metric.MeasurementOption { return with(attribute.String(key, value)) }
	w := &watched{
		base: with(), exact: word("status", "exact"),
		hello: word("kind", "hello"), batch: word("kind", "batch"), gone: word("kind", "gone"),
		ack: word("kind", "ack"), ping: word("kind", "ping"),
		complete: with(attribute.Bool("partial", false)), partly: with(attribute.Bool("partial", true)),
		decisions: make([]metric.MeasurementOption, len(s.tally.decisions)),
	}
	for t := range w.truths {
		w.truths[t] = word("truth", predicates.Truth(t).String())
	}
	for name, i := range s.tally.predicate {
		w.decisions[i] = word("predicate", name)
	}
	w.decisions[len(w.decisions)-1] = word("predicate", otherPredicates)
	for _, kind := range signalKinds {
		for _, fate := range control.Fates {
			w.signals[kind][fate] = with(attribute.String("kind", kind.String()), attribute.String("fate", fate.String()))
		}
	}
	for _, reason := range monitor.RejectReasons {
		w.rejected[reason] = word("reason", reason.String())
	}
	for status := range w.clocks {
		w.clocks[status] = word("status", clocksync.Status(status).String())
	}
	for _, strategy := range balance.Names {
		w.strategies = append(w.strategies, word("strategy", strategy))
	}
	if w.program = s.level.Program != nil; w.program {
		for _, event := range runEvents {
			w.runs = append(w.runs, word("event", event))
		}
		for kind := wire.BodyInput; kind <= wire.BodyFailure; kind++ {
			w.bytes[kind] = word("kind", bodyKinds[kind])
			for fate, text := range bodyFates {
				w.bodies[kind][fate] = with(attribute.String("kind", bodyKinds[kind]), attribute.String("fate", text))
			}
		}
	}
	return w
}

var signalKinds = []control.Kind{control.Activate, control.Cancel}

// meter makes what is measured while it happens. A nil provider means that
// nothing is.
func (s *Synchronizer) meter() error {
	if s.opt.MeterProvider == nil {
		return nil
	}
	meter, w := s.opt.MeterProvider.Meter(scope), s.watched()
	step, err := telemetry.Distribution(meter, telemetry.StepDuration, w.base)
	if err != nil {
		return err
	}
	latency, err := telemetry.Distribution(meter, telemetry.VerdictLatency, w.base)
	if err != nil {
		return err
	}
	s.meters = &meters{meter: meter, watched: w, step: step, latency: latency}
	return nil
}

// observe shows what is counted anyway, from now on.
func (s *Synchronizer) observe() (err error) {
	m := s.meters
	if m == nil {
		return nil
	}
	list := telemetry.Synchronizer
	if m.watched.program {
		list = slices.Concat(list, telemetry.Program)
	}
	m.registration, err = telemetry.Observe(m.meter, list, func(o *telemetry.Observation) { s.collect(o, m.watched) })
	return err
}

// unmeter ends what observe has begun.
func (s *Synchronizer) unmeter() error {
	if s.meters == nil {
		return nil
	}
	return s.meters.registration.Unregister()
}

// collect tells every counter, also those that are 0: a series that appears with
// its first event hides that event from whoever looks at rates.
func (s *Synchronizer) collect(o *telemetry.Observation, w *watched) {
	s.mu.Lock()
	t, stats := s.tally, s.stats
	decisions := append([]uint64(nil), t.decisions...)
	s.mu.Unlock()

	o.Count(telemetry.Frames, t.frames[synccore.InHello], w.hello)
	o.Count(telemetry.Frames, t.frames[synccore.InBatch], w.batch)
	o.Count(telemetry.Frames, t.frames[synccore.InGone], w.gone)
	o.Count(telemetry.Frames, t.frames[synccore.InAck], w.ack)
	o.Count(telemetry.Frames, stats.Pings, w.ping)
	o.Count(telemetry.Reports, t.counts.Reports, w.base)
	o.Count(telemetry.Gaps, t.counts.Gaps, w.base)
	o.Count(telemetry.Collapsed, t.counts.Collapsed, w.base)
	o.Count(telemetry.GlobalStates, t.counts.Global, w.complete)
	o.Count(telemetry.GlobalStates, t.counts.Partial, w.partly)
	for truth, n := range t.verdicts {
		o.Count(telemetry.Verdicts, n, w.truths[truth])
	}
	for i, n := range decisions {
		o.Count(telemetry.Decisions, n, w.decisions[i])
	}
	for _, kind := range signalKinds {
		for _, fate := range control.Fates {
			if fate.Final() && fate != control.Duplicate { // A duplicate was applied.
				o.Count(telemetry.Signals, t.signals[kind][fate], w.signals[kind][fate])
			}
		}
	}
	for i, n := range t.counts.Balance {
		o.Count(telemetry.BalancePlans, n.Plans, w.strategies[i])
		o.Count(telemetry.BalanceMoves, n.Moves, w.strategies[i])
		o.Count(telemetry.BalanceRefused, n.Refused, w.strategies[i])
	}
	o.Count(telemetry.Probes, stats.Probes, w.base)
	o.Count(telemetry.Resends, stats.Resends, w.base)
	for class, n := range t.rejected {
		o.Count(telemetry.Rejected, n, w.rejected[class])
	}
	o.Count(telemetry.InboxDepth, uint64(s.in.depth()), w.base) //nolint:gosec // A length.
	o.Count(telemetry.InboxDropped, s.bus.Dropped(), w.base)
	journal := s.journal.recorded()
	o.Count(telemetry.JournalInputs, journal.Inputs, w.base)
	o.Count(telemetry.JournalLost, journal.Lost, w.base)
	o.Count(telemetry.Connected, whether(s.bus.State() == bus.Connected), w.base)
	collectFigures(o, w, &t.figures)
	if w.program {
		collectProgram(o, w, &t)
	}
}

func collectProgram(o *telemetry.Observation, w *watched, t *tally) {
	runs := &t.counts.Runs
	for i, n := range []uint64{runs.Starts, runs.Done, runs.Failed, runs.Canceled, runs.Lost} {
		o.Count(telemetry.ProgramRuns, n, w.runs[i])
	}
	o.Count(telemetry.ProgramRunning, uint64(t.figures.Running), w.base) //nolint:gosec // A length.
	o.Count(telemetry.ProgramWaiting, uint64(t.figures.Queued), w.base)  //nolint:gosec // A number of blocks.
	for kind := wire.BodyInput; kind <= wire.BodyFailure; kind++ {
		for fate, n := range t.bodies[kind] {
			o.Count(telemetry.Bodies, n, w.bodies[kind][fate])
		}
		o.Count(telemetry.BodyBytes, t.bytes[kind], w.bytes[kind])
	}
}

func collectFigures(o *telemetry.Observation, w *watched, f *synccore.Figures) {
	count := func(m *telemetry.Metric, n int, with metric.MeasurementOption) { o.Count(m, uint64(n), with) } //nolint:gosec // Lengths.
	o.Count(telemetry.Epoch, f.Epoch, w.base)
	count(telemetry.SignalsWaiting, f.Waiting, w.base)
	count(telemetry.MembersOnline, f.Online, w.base)
	count(telemetry.MembersAwaited, f.Awaited, w.base)
	count(telemetry.MembersClock, f.Exact, w.exact)
	for status, n := range f.Clocks {
		count(telemetry.MembersClock, n, w.clocks[status])
	}
	if f.Bounded {
		o.Seconds(telemetry.MembersBound, f.Bound, w.base)
	}
	for truth, n := range f.Truths {
		count(telemetry.Predicates, n, w.truths[truth])
	}
}

func whether(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// arrival is when a message came, for those who measure.
func (s *Synchronizer) arrival() clocksync.Instant {
	if s.meters == nil {
		return clocksync.MinInstant
	}
	return s.opt.now()
}

// measure tells how long the step took that has just ended, and how old the
// reports were that its verdicts rest on.
func (l *loop) measure(began clocksync.Instant) {
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

// unreadable is the reject reason of a frame that cannot be read.
func unreadable(err error) monitor.RejectReason {
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

// Readiness tells part by part whether the synchronizer can decide, at most a
// quarter of a second old:
//
//   - loop: it runs and gets to its messages. If not, it has ended, or hangs, and
//     only a new start helps. The other parts come right by themselves.
//   - nats: the server can be reached.
//   - members: as many are there as an epoch needs.
//   - epoch: one is in force.
//   - predicates: each has a verdict in this epoch. It may be unknown.
//   - clocks: each member's is usable between hosts.
//   - journal: where one is kept. It is always ready, since the run goes on without
//     it; the detail tells why it has ended.
func (s *Synchronizer) Readiness() []Readiness {
	s.mu.Lock()
	f, stepped := s.tally.figures, s.tally.stepped
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
	members := Readiness{"members", f.Online >= f.Awaited, fmt.Sprintf("%d online, %d needed", f.Online, f.Awaited)}
	epoch := Readiness{"epoch", f.Epoch > 0, fmt.Sprintf("%d in force", f.Epoch)}
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
		parts = append(parts, s.journal.readiness())
	}
	return parts
}
