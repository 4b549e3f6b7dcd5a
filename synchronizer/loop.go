package synchronizer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// loop is what the goroutine that owns the core keeps between steps.
type loop struct {
	*Synchronizer
	input    synccore.Input
	output   synccore.Output
	asked    synccore.Output   // of questions
	question synccore.Question // of the loop itself
	query    synccore.Input
	level    *plan.Level // that is followed
	batch    wire.Batch
	bundle   wire.Bundle
	down     []carried // the signals of a step by multiplexer
	// What another group's batch says of its member.
	outline wire.Batch
	frame   []byte
	part    []byte // that goes into a frame
	wake    clocksync.Instant
	more    bool // the next message waits already
	waited  bool // so it was at the last step
	waits   bool // there is more in the inbox than this turn takes
	watched bool // people have asked, and the core is to be told
	// When it is to be told again at the earliest.
	watchAgain clocksync.Instant
	rested     clocksync.Instant // the last step after which no message waited, or which did as if
	lags       time.Duration     // how long the oldest message of this turn has waited
	oldest     clocksync.Instant // when that came, or it could be taken in, while it or others wait; MaxInstant: none does
	// What had been shed of its sender when a member's reports were last taken.
	shedOf  map[string]uint64
	shedAt  clocksync.Instant // when the log last had a line about shed messages
	told    shed              // by then
	spans   *telemetry.DecisionSpans
	now     clocksync.Instant // of the step
	reached clocksync.Instant // the newest round trip before which everything was taken in
	knows   clocksync.Instant // that the core knows of
	// When the message came that the step is about.
	arrived clocksync.Instant
	framed  bool // a frame that the step is about is not counted yet
	inside  bool // it is part of a bundle, which is one message
	// Messages that the counters lack.
	messages uint64
	// What the counters lack that others read: frames by kind, also of kinds without a
	// metric, and the results of the steps since.
	frames [synccore.InAck + 1]uint64
	behind bool

	timeline clocksync.Timeline // of the reference clock, as the core knows it
	// Whether it was looked at since the loop has last taken messages: messages that were
	// stamped after the clock stood still are not among them.
	looked bool

	bodies map[string]*gathered // by processor: a body that comes in pieces

	addresses map[string]address // of members that were sent something
	leader
	stream stream
}

// address is where a member of the own group is sent messages.
type address struct{ probe, signal string }

// maxAddresses bounds the remembered addresses, since members come and go.
const maxAddresses = 16_384

// maxNames bounds how many signals are counted by name, beside those that this term has sent.
const maxNames = 1024

// address is where a member is sent messages. The subjects are made once: they are
// longer than what most messages hold.
func (l *loop) address(member string) address {
	a, known := l.addresses[member]
	if !known {
		if l.addresses == nil || len(l.addresses) >= maxAddresses {
			l.addresses = map[string]address{}
		}
		a = address{probe: l.subjects.Probe(member), signal: l.subjects.Signal(member)}
		l.addresses[member] = a
	}
	return a
}

func newLoop(s *Synchronizer) *loop {
	return &loop{
		Synchronizer: s, level: s.level, wake: clocksync.MaxInstant, timeline: s.timeline, spans: telemetry.NewDecisionSpans(s.opt.TracerProvider, scope),
		bodies: map[string]*gathered{}, leader: s.newLeader(), oldest: clocksync.MaxInstant,
	}
}

// runCore owns the core until the context ends, the core fails or another process leads.
func (s *Synchronizer) runCore(ctx context.Context) {
	defer close(s.done)
	defer s.in.closeInbox()
	defer s.journal.closeJournal()
	if s.opt.Standby && !s.standBy(ctx) {
		return
	}
	l := newLoop(s)
	l.ctx = ctx
	l.sendBeat(false)
	for _, l.input = range s.first {
		l.stepCore(s.opt.now())
	}
	l.announceLeader()
	timer, armed := time.NewTimer(0), clocksync.MinInstant
	defer timer.Stop()
	var items []item
	for !l.failed() {
		l.looked = false
		var taken []item
		var reached clocksync.Instant
		var call func(*loop)
		l.waits = false
		select {
		case <-ctx.Done():
			l.sendBeat(true)
			return
		case <-s.in.ready:
			items, reached, l.waits = s.in.takeTurn(s.opt.now(), items)
			taken = items
		case call = <-s.calls:
		case q := <-s.questions:
			l.answerQuestion(q)
		case <-s.heard:
			l.answerBeat()
		case <-timer.C:
			armed = clocksync.MaxInstant
		}
		l.turn(l.noticeSleep(), taken, reached, call)  //nolint:contextcheck // It has the context from its begin.
		if due := min(l.wake, l.beatAt); due < armed { // An early timer does no harm, and a step seldom brings it forward.
			armed = due
			timer.Reset(l.wait(due))
		}
	}
	if l.rivalBeat() == nil {
		l.sendBeat(true)
	}
}

// turn takes the waiting messages, up to a round trip to the server, and does the due work.
func (l *loop) turn(now clocksync.Instant, taken []item, reached clocksync.Instant, call func(*loop)) {
	if _, leads := l.checkAwake(now); leads {
		l.behindBy(now, taken)
		for i := range taken {
			l.more = i < len(taken)-1 || l.waits && l.now.Sub(l.rested) < restEvery
			if l.receiveFrame(&taken[i]); l.now >= l.beatAt {
				l.keepLeading(l.now)
			}
		}
		if l.reached = max(l.reached, reached); l.in.depth() == 0 {
			l.oldest = clocksync.MaxInstant
		}
	}
	if call != nil && l.rivalBeat() == nil {
		l.more = false
		call(l)
	}
	l.tick()
	l.catchUp()
	l.flushStream(l.now)
	if l.rivalBeat() == nil {
		l.keepLeading(max(now, l.now))
	}
}

const (
	// restEvery is how often members are probed while messages wait without end.
	restEvery = 10 * time.Millisecond
	// repairLag is how long messages may wait before reports that lack are not asked for any more:
	// the answers, up to a whole ring for each gap, would be the next overload. Whoever is asked
	// too late has lost them, and they count as a gap.
	repairLag = 100 * time.Millisecond
	// shedEvery is the time between two lines of the log about shed frames.
	shedEvery = time.Second
)

// behindBy notes how long messages have waited, and logs the shed messages.
func (l *loop) behindBy(now clocksync.Instant, taken []item) {
	if len(taken) > 0 || l.in.depth() == 0 {
		l.lags, l.oldest = 0, clocksync.MaxInstant
	}
	stood := l.in.stoodUntil()
	for i := range taken {
		if at := taken[i].at; at > clocksync.MinInstant {
			l.lags, l.oldest = max(l.lags, now.Sub(at)), min(l.oldest, max(at, stood))
		}
	}
	if now.Sub(l.shedAt) < shedEvery {
		return
	}
	sheds := l.in.shedCounts()
	if sheds == l.told {
		return
	}
	l.opt.Logger.Warn("the synchronizer falls behind, so messages are shed unread: their reports are unknown until the senders repeat them", telemetry.ClassKey, "shed",
		"full", sheds[shedFull]-l.told[shedFull], "old", sheds[shedOld]-l.told[shedOld], "most", l.in.shedBy()[0].From, "seconds", l.lags.Round(time.Millisecond).Seconds())
	l.shedAt, l.told = now, sheds
}

// askCore puts a question to the core. The answer holds until the next one.
func (l *loop) askCore(now clocksync.Instant, q *synccore.Question) *synccore.Answer {
	l.query = synccore.Input{Kind: synccore.InAsk, Ask: q}
	l.core.Step(now, &l.query, &l.asked)
	return &l.asked.Answer
}

// answerQuestion answers a question of people. They may ask again: from the next step on the core has the
// states of by now, for a while.
func (l *loop) answerQuestion(q *question) {
	if now := l.opt.now(); now >= l.watchAgain {
		l.watched, l.watchAgain = true, now.Add(time.Second)
	}
	q.answer, q.known, q.config = *l.askCore(l.opt.now(), &q.Question), l.level.Predicates(), l.config
	close(q.done)
}

// failed notes that a silent member's policy was to fail, or that a program runs
// without the journal that it should be resumed from.
func (l *loop) failed() bool {
	if b := l.rivalBeat(); b != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = b.supersededError(l.name, l.subjects.Beat(l.name), l.term.Load())
		return true
	}
	if l.gives != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = fmt.Errorf("synchronizer %q: %w (%v)", l.name, l.findController(l.gives.name), &l.gives.beat)
		return true
	}
	if l.lag > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = fmt.Errorf("synchronizer %q: %w: a message that came %v ago is not processed yet, and a standby is ready to lead: start this process again as the standby", l.name, ErrFellBehind, l.lag.Round(time.Millisecond))
		return true
	}
	why := l.output.Failed
	if l.level.Program != nil {
		if stopped := l.journal.journalStats().Err; stopped != nil {
			why = "the journal of its program has ended: " + stopped.Error() + ": make room and take it up with --resume, or run it without a journal"
		}
	}
	if why == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.New("synchronizer " + l.name + ": " + why)
	return true
}

// announceLeader asks members that are already there to introduce themselves.
func (l *loop) announceLeader() {
	l.sendFrame(l.subjects.Announce(), func(dst []byte) ([]byte, error) {
		return wire.AppendWelcome(dst, &wire.Welcome{Synchronizer: l.name, Term: l.term.Load()})
	})
}

// tick steps the core when its time has come, or when the last step left its requests to
// a step that did not come. While the server is away nobody can be heard, so
// nobody is silent: the core notices that it was away.
func (l *loop) tick() {
	now := l.opt.now()
	if !l.watched && now < l.wake && (!l.waited || l.waits) || l.output.Failed != "" {
		return
	}
	if l.bus.State() != bus.Connected {
		l.away, l.wake = true, now.Add(100*time.Millisecond)
		return
	}
	now, leads := l.checkAwake(now)
	if !leads {
		return
	}
	l.more, l.arrived, l.reached = false, now, max(l.reached, l.in.heardUpTo())
	l.input = synccore.Input{Kind: synccore.InTick, Watched: l.watched}
	l.watched = false
	l.stepCore(now)
}

func (l *loop) wait(due clocksync.Instant) time.Duration {
	return max(0, min(due.Sub(l.opt.now()), time.Hour))
}

// receiveFrame decodes one frame and steps the core with it.
func (l *loop) receiveFrame(it *item) {
	if l.output.Failed != "" {
		return
	}
	if it.body != nil {
		l.answerBody(it)
		return
	}
	if kind, err := wire.KindOf(it.frame); err == nil && kind == wire.KindBundle {
		l.stepBundle(it)
		return
	}
	err := l.decode(it)
	if l.framed = err == nil; err != nil {
		from := it.member
		if it.group != "" {
			from = it.group + "/" + it.member
		}
		l.rejectMalformed(from, err)
		return
	}
	now, leads := l.checkAwake(l.opt.now())
	if !leads {
		return
	}
	l.arrived = it.at
	if it.shed > 0 && l.input.Kind == synccore.InBatch && it.group == "" {
		l.skip(now, it)
	}
	l.stepCore(now)
	if l.input.Kind == synccore.InHello && it.group == "" {
		l.noteFenced(l.input.Hello)
	}
}

// skip has the core neither wait nor ask for the reports before a batch whose sender has lost
// some unread: the answers would be the next overload. The core knows no state of the member
// from the last report before the lost ones on.
func (l *loop) skip(now clocksync.Instant, it *item) {
	b := l.input.Batch
	if l.shedOf[it.member] == it.shed || len(b.Reports) == 0 || b.Again {
		return
	}
	if l.shedOf == nil || len(l.shedOf) >= maxAddresses {
		l.shedOf = map[string]uint64{}
	}
	l.shedOf[it.member] = it.shed
	in, more, framed := l.input, l.more, l.framed
	l.input = synccore.Input{Kind: synccore.InGone, From: it.member, By: it.by, Gone: &wire.Gone{Member: b.Member, Incarnation: b.Incarnation, First: b.Reports[0].Seq}}
	l.more, l.framed = true, false
	l.stepCore(now)
	l.input, l.more, l.framed = in, more, framed
}

func (l *loop) decode(it *item) error {
	kind, err := wire.KindOf(it.frame)
	if err != nil {
		return err
	}
	if l.input.Kind != synccore.InBatch || kind != wire.KindBatch { // Else what a batch sets is all there is.
		l.input = synccore.Input{}
	}
	l.input.From, l.input.Group, l.input.By = it.member, it.group, it.by
	if it.ack != (kind == wire.KindAck) {
		return errors.New("a frame of kind " + kind.String() + " does not belong on this subject")
	}
	switch kind { //nolint:exhaustive // The others travel the other way.
	case wire.KindHello:
		hello, err := wire.DecodeHello(it.frame)
		l.input.Kind, l.input.Hello = synccore.InHello, &hello
		return err
	case wire.KindBatch:
		if it.group != "" {
			l.input.Kind, l.input.Batch = synccore.InBatch, &l.outline
			return wire.DecodeOutline(it.frame, &l.outline)
		}
		l.input.Kind, l.input.Batch = synccore.InBatch, &l.batch
		l.batch.Member = it.member // Likely the same text as in the frame.
		err := l.codec.Decode(it.frame, "", &l.batch)
		if err == nil {
			l.spans.Batch(&l.batch)
		}
		return err
	case wire.KindGone:
		l.input.Kind, l.input.Gone = synccore.InGone, &wire.Gone{}
		if it.group == "" { // Else it is about reports that are not heard.
			*l.input.Gone, err = wire.DecodeGone(it.frame)
		}
		return err
	case wire.KindAck:
		ack, err := wire.DecodeAck(it.frame)
		l.input.Kind, l.input.Ack = synccore.InAck, &ack
		return err
	}
	return errors.New("a frame of kind " + kind.String() + " does not come from a member")
}

// rejectMalformed counts and rejects a frame that cannot be read.
func (l *loop) rejectMalformed(from string, err error) {
	l.mu.Lock()
	l.stats.Frames++
	l.stats.Malformed++
	l.mu.Unlock()
	l.reject(rejectReason(err), from, err)
}

// reject reports an input that the core does not see.
func (l *loop) reject(reason monitor.RejectReason, from string, err error) {
	l.mu.Lock()
	l.tally.rejected[reason]++
	l.mu.Unlock()
	r := monitor.Rejection{From: from, Reason: reason, Detail: err.Error()}
	l.logRejected(r)
	l.tell(r)
}

func (s *Synchronizer) logRejected(r monitor.Rejection) {
	s.opt.Logger.Warn("refused", telemetry.ClassKey, r.Reason.String(), "from", r.From, "reason", r.Detail)
}

func (l *loop) stepCore(now clocksync.Instant) {
	l.now = now
	if !l.looked {
		l.looked = true
		l.follow(now)
	}
	l.input.More, l.input.Reached = l.more, 0
	if l.reached > l.knows {
		l.input.Reached = l.reached
	}
	l.advance(now, &l.input)
	l.wake = l.output.Wake
	if l.output.Ignored { // What the step before has left waits still.
		l.countFrame()
		return
	}
	l.knows = max(l.knows, l.input.Reached)
	if l.waited = l.more; !l.more {
		l.rested = now
	}
	l.report()
	l.measureStep(now)
}

// follow has the core know the timeline of the reference clock.
func (l *loop) follow(now clocksync.Instant) {
	if t := l.clock.Timeline(); t != l.timeline {
		framed := l.framed
		l.timeline, l.framed = t, false
		l.advance(now, &synccore.Input{Kind: synccore.InTimeline, Timeline: t, More: true})
		l.report()
		l.framed = framed
	}
}

// advance steps the core: nothing else does. What it wants sent goes out at once. Only a
// program has to find it in its journal first, and spans alter the signals that a line of
// the journal is about.
func (l *loop) advance(now clocksync.Instant, in *synccore.Input) {
	l.journal.beginInput(l.level, now, in)
	l.streamBegin(now, in)
	l.core.Step(now, in, &l.output)
	l.streamEnd(now, &l.output)
	if len(l.output.Reloads) > 0 {
		l.level = in.Level
	}
	if l.level.Program != nil || l.spans != nil {
		l.journal.endInput(&l.output)
	}
	if l.level.Program != nil {
		l.journal.writeAhead(in, &l.output)
		if in.Kind == synccore.InBody || len(l.output.Signals) > 0 { // Whoever continues has to know it.
			l.flushStream(now)
		}
	}
	l.deliver()
	l.journal.endInput(&l.output) // Unless it has.
}

// deliver publishes what the core wants sent. What cannot be sent now is lost:
// the core repeats what matters.
func (l *loop) deliver() {
	out := &l.output
	l.spans.Begin(out.Epochs, out.Verdicts)
	defer l.spans.End()
	for i := range out.Peers {
		l.sendPeers(&out.Peers[i])
	}
	for i := range out.Welcomes {
		l.post(out.Welcomes[i].To, out.Welcomes[i].Via, func(dst []byte) ([]byte, error) {
			return wire.AppendWelcome(dst, &out.Welcomes[i].Msg)
		})
	}
	for i := range out.Resends {
		if l.lags > repairLag { // The answers would come on top.
			break
		}
		l.post(out.Resends[i].To, out.Resends[i].Via, func(dst []byte) ([]byte, error) {
			return wire.AppendResend(dst, &out.Resends[i].Msg)
		})
	}
	l.sendAll(out.Signals)
	for i := range out.Probes {
		encode := func(dst []byte) ([]byte, error) { return wire.AppendProbe(dst, &out.Probes[i].Msg) }
		if p := &out.Probes[i]; p.To == "" {
			l.sendFrame(l.subjects.Announce(), encode)
		} else {
			l.post(p.To, p.Via, encode)
		}
	}
}

func (l *loop) signalSubject(group, member string) string {
	if group != "" {
		return wire.Subjects{Tenant: l.subjects.Tenant, Group: group}.Signal(member)
	}
	return l.address(member).signal
}

// post sends a member a frame, or has a multiplexer hand it on, to which it is sent alone
// if it is too long for a bundle.
func (l *loop) post(member, multiplexer string, encode func([]byte) ([]byte, error)) {
	if multiplexer == "" {
		l.sendFrame(l.address(member).probe, encode)
		return
	}
	l.sendFrame(l.address(multiplexer).probe, func(dst []byte) ([]byte, error) {
		part, err := encode(l.part[:0])
		if err != nil {
			return dst, err
		}
		if l.part = part; len(part) > wire.MaxPart {
			return append(dst, part...), nil
		}
		frame, _, err := wire.AppendBundle(dst, &wire.Bundle{Parts: []wire.Part{{Member: member, Frame: part}}})
		return frame, err
	})
}

// sendPeers sends one member or all the roster, in as many frames as it takes.
func (l *loop) sendPeers(a *wire.Addressed[wire.Peers]) {
	for rest, sent := a.Msg, 0; ; {
		encode := func(dst []byte) (frame []byte, err error) {
			frame, sent, err = wire.AppendPeers(dst, &rest)
			return frame, err
		}
		if a.To == "" {
			l.sendFrame(l.subjects.Announce(), encode)
		} else {
			l.post(a.To, a.Via, encode)
		}
		rest.Peers, rest.First, rest.Section = rest.Peers[sent:], rest.First+uint64(sent), nil //nolint:gosec // It is not below 0.
		if sent == 0 || len(rest.Peers) == 0 {
			return
		}
	}
}

// sendSignals sends a member's signals, or has a multiplexer take them along, in as many
// frames as they take.
func (l *loop) sendSignals(a *wire.Addressed[wire.Signals], to *carried) {
	rest, subject := a.Msg, ""
	if to != nil {
		subject = to.subject
	} else {
		subject = l.signalSubject(a.Group, a.To)
	}
	l.spans.Mark(rest.Signals)
	for len(rest.Signals)+len(rest.Recorded) > 0 {
		sent := 0
		encode := func(dst []byte) (frame []byte, err error) {
			frame, sent, err = wire.AppendSignals(dst, &rest)
			return frame, err
		}
		if to == nil || !l.encloseFrame(to, a.To, encode) {
			l.sendFrame(subject, encode)
		}
		if sent == 0 {
			return // It has receipts alone, or an error.
		}
		rest.Signals = rest.Signals[sent:]
	}
}

func (l *loop) sendFrame(subject string, encode func([]byte) ([]byte, error)) {
	frame, err := encode(l.frame[:0])
	if err != nil {
		l.reject(monitor.RejectSend, subject, err)
		return
	}
	l.frame = frame
	if err := l.bus.Publish(subject, frame); err != nil {
		l.opt.Logger.Debug("not sent", telemetry.ClassKey, "send", "subject", subject, "error", err)
	}
}

// report counts what happened and tells the observer.
func (l *loop) report() {
	out := &l.output
	l.countStep()
	for _, e := range out.Epochs {
		class := "left"
		if len(e.Joined) > 0 {
			class = "joined"
		}
		l.opt.Logger.Info("epoch", telemetry.ClassKey, class, "number", e.Epoch, "members", e.Members, "joined", e.Joined, "dropped", e.Dropped)
	}
	for _, c := range out.Clocks {
		l.opt.Logger.Info("clock", telemetry.ClassKey, c.Quality.Status.String(), "member", c.Name, "source", c.Quality.Source)
	}
	for _, r := range out.Rejected {
		l.logRejected(r)
	}
	for _, r := range out.Reloads {
		l.opt.Logger.Info("reloaded", "configuration", r.Config, "changes", r.Changes)
	}
	if l.opt.Observe != nil || l.feed.until.Load() != 0 { // Else nothing is made for nobody.
		eventsOf(out, l.tell)
	}
}

// eventsOf tells what an output holds for an observer.
func eventsOf(out *synccore.Output, tell func(monitor.Event)) {
	tellAll(out.Reloads, tell)
	tellAll(out.Epochs, tell)
	tellAll(out.Verdicts, tell)
	tellAll(out.Fates, tell)
	tellAll(out.Program, tell)
	tellAll(out.Plans, tell)
	tellAll(out.Clocks, tell)
	tellAll(out.Rejected, tell)
}

func tellAll[E monitor.Event](list []E, tell func(monitor.Event)) {
	for i := range list {
		tell(list[i])
	}
}

func (l *loop) tell(e monitor.Event) {
	if l.opt.Observe != nil {
		l.opt.Observe(e)
	}
	l.feed.putEvent(e, l.opt.now)
}

// countFrame counts the current frame.
func (l *loop) countFrame() {
	l.framed, l.behind = false, true
	if !l.inside {
		l.messages++
	}
	if k := int(l.input.Kind); k < len(l.frames) {
		l.frames[k]++
	} else {
		l.frames[0]++ // Bodies are not among the metrics of frames.
	}
}

// catchUp brings the counters up to date after a step, or after many.
func (l *loop) catchUp() {
	if l.behind {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.account()
	}
}

// account adds what the counters lack. The lock is held.
func (l *loop) account() {
	for k, n := range l.frames {
		l.tally.frames[k] += n
	}
	l.stats.Frames += l.messages
	l.frames, l.messages, l.behind = [len(l.frames)]uint64{}, 0, false
	l.noteFigures()
}

// countStep counts what a step has come to. Most have come to nothing but what the core
// counts, which is read when the messages that wait have been taken.
func (l *loop) countStep() {
	if l.framed {
		l.countFrame()
	}
	l.behind = true
	out, s, t := &l.output, &l.stats, &l.tally
	if len(out.Probes)+len(out.Resends)+len(out.Rejected)+len(out.Verdicts)+len(out.Plans)+len(out.Fates)+len(out.Epochs) == 0 && out.Suppressed == 0 && out.Unproven == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account()
	s.Probes += uint64(len(out.Probes))
	if l.lags > repairLag {
		s.Withheld += uint64(len(out.Resends))
	} else {
		s.Resends += uint64(len(out.Resends))
	}
	s.Rejected += uint64(len(out.Rejected)) + out.Unproven
	t.rejected[monitor.RejectSender] += out.Unproven
	s.Suppressed += out.Suppressed
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		t.verdicts[v.Truth]++
		if !v.Fired {
			continue
		}
		s.Decisions++
		place, named := t.predicate[v.Predicate]
		if !named {
			place = len(t.decisions) - 1
		}
		t.decisions[place]++
	}
	for i := range out.Rejected {
		t.rejected[out.Rejected[i].Reason]++
	}
	for i := range out.Plans {
		if p := &out.Plans[i]; p.Decision.Number > 0 {
			s.Decisions++
			s.Moves += uint64(len(p.Plan.Moves))
		}
	}
	for _, f := range out.Fates {
		t.signals[f.Signal.Kind][f.Fate]++
		s.Signals++
		s.Fates[f.Fate]++
		byFate := s.ByName[f.Signal.Name]
		if byFate == nil {
			if f.Earlier && len(s.ByName) >= maxNames {
				continue // Its name is what the target says.
			}
			byFate = map[control.Fate]uint64{}
			s.ByName[f.Signal.Name] = byFate
		}
		byFate[f.Fate]++
	}
}
