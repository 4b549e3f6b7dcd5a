package agent

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// sender is what the goroutine that publishes works with.
type sender struct {
	out   agentcore.Output
	codec *wire.BatchCodec
	frame []byte
	// publish sends a frame, or puts it with others.
	publish func(subject string, frame []byte) error
}

// flushDue takes the due messages, or all, under the lock, which is held and then given up,
// publishes it without, and returns when it is to be called again, and whether it is to be
// called then. A multiplexer notes the reports.
func (m *Member) flushDue(s *sender, multiplexer *agentcore.Multiplexer, all bool) (wake clocksync.Instant, waits bool) {
	m.pace.until = clocksync.MinInstant // A goroutine that is here need not be woken.
	at, now := readAbove(m.mu, m.stampClock, m.newestReading), m.now()
	m.stepMachine(now, &agentcore.Input{Kind: agentcore.InTick, At: at, All: all}, &s.out)
	s.codec = m.core.Codec()
	if multiplexer != nil {
		multiplexer.Told(m.core)
		m.due.Wake = m.core.Wake()
	}
	wake = m.due.Wake
	waits = wake != clocksync.MaxInstant
	m.pace.begun = waits
	m.pace.until = wake
	lost := m.core.Crowded() - m.lost
	if lost > 0 && now >= m.lostAgain {
		m.lost, m.lostAgain = m.lost+lost, now.Add(lostPause)
	} else {
		lost = 0
	}
	m.mu.Unlock()
	if lost > 0 {
		m.log.Warn("states are lost before they are sent, so they are unknown to the synchronizer; set a state when a value changes that a predicate reads, not in a loop", "member", m.cfg.Name, "states", lost)
	}
	m.publish(s)
	return wake, waits
}

// lostPause is between two lines of the log on states that are lost.
const lostPause = time.Minute

func (m *Member) publish(s *sender) {
	state := m.reports
	for i := range s.out.Hellos {
		frame, err := wire.AppendHello(s.frame[:0], &s.out.Hellos[i])
		m.send(s, state, frame, err)
	}
	for i := range s.out.Batches {
		end := m.spans.Report(&s.out.Batches[i])
		m.publishBatch(s, state, s.out.Batches[i])
		end()
	}
	for i := range s.out.Gones {
		frame, err := wire.AppendGone(s.frame[:0], &s.out.Gones[i])
		m.send(s, state, frame, err)
	}
	for i := range s.out.Acks {
		to, ack := m.subjects.Ack(s.out.Acks[i].To, m.cfg.Name), s.out.Acks[i].Ack
		for len(ack.Answers) > 0 {
			frame, n, err := wire.AppendAck(s.frame[:0], &ack)
			m.send(s, to, frame, err)
			if err != nil {
				break
			}
			ack.Answers = ack.Answers[n:]
		}
	}
}

// publishBatch sends a batch in as many frames as it needs, none of them with more
// reports than Config.BatchSize.
func (m *Member) publishBatch(s *sender, subject string, b wire.Batch) {
	for {
		frame, n, err := s.codec.AppendUpTo(s.frame[:0], &b, m.cfg.BatchSize)
		m.send(s, subject, frame, err)
		if err != nil || n == len(b.Reports) {
			return
		}
		b.Reports = b.Reports[n:]
	}
}

// send publishes one frame. A lost frame shows as a gap later, and its reports
// are sent again from the ring.
func (m *Member) send(s *sender, subject string, frame []byte, err error) {
	if err != nil {
		m.log.Error("a message could not be encoded", "subject", subject, "error", err)
		return
	}
	s.frame = frame
	if err := s.publish(subject, frame); err != nil {
		m.publishErrors.Add(1)
	}
}

// receiveMessage takes one message of the synchronizer.
func (m *Member) receiveMessage(msg bus.Message) {
	m.noteHeard()
	if err := m.decode(msg.Data); err != nil {
		m.badFrames.Add(1)
		m.log.Debug("a message was refused", telemetry.ClassKey, "frame", "subject", msg.Subject, "error", err)
	}
}

func (m *Member) decode(frame []byte) error {
	kind, err := wire.KindOf(frame)
	if err != nil {
		return err
	}
	switch kind {
	case wire.KindWelcome:
		w, err := wire.DecodeWelcome(frame)
		if err != nil {
			return err
		}
		m.onWelcome(&w)
	case wire.KindPeers:
		p, err := wire.DecodePeers(frame)
		if err != nil {
			return err
		}
		return m.onPeers(&p)
	case wire.KindProbe:
		p, err := wire.DecodeProbe(frame)
		if err != nil {
			return err
		}
		m.onProbe(&p)
	case wire.KindResend:
		r, err := wire.DecodeResend(frame)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.stepInput(&agentcore.Input{Kind: agentcore.InResend, Resend: &r})
		m.multiplexer.contact.noteLeader()
	case wire.KindSignals:
		s, err := wire.DecodeSignals(frame)
		if err != nil {
			return err
		}
		m.onSignals(&s)
	default:
		return &wire.FrameError{Kind: kind, Field: "kind", Reason: "no member is sent this"}
	}
	return nil
}

func (m *Member) onWelcome(w *wire.Welcome) {
	m.mu.Lock()
	out := m.stepInput(&agentcore.Input{Kind: agentcore.InWelcome, Welcome: w})
	reception, why := out.Reception, out.Why
	answer := reception == agentcore.Accepted || reception == agentcore.Refused
	first := answer && !m.answered
	m.answered = m.answered || answer
	processor := reception == agentcore.Accepted && wire.IsProcessor(w.Schema)
	if processor {
		m.blocks = slices.Clone(w.Section)
	}
	if first || processor {
		m.section = w.SectionHash
	}
	var unfit error
	if !first && reception == agentcore.Accepted {
		if m.accepted != nil {
			m.accepted()
		}
		unfit = m.refit()
	}
	m.linkWelcomed(w, reception)
	moved := m.isClockMoved(w)
	var news welcomeNews
	switch reception { //nolint:exhaustive // The others change nothing.
	case agentcore.Accepted:
		news.back, news.term = m.away, w.Synchronizer != m.leader || w.Term != m.term
		m.away, m.refused, m.leader, m.term, m.replaced = false, "", w.Synchronizer, w.Term, nil
	case agentcore.Refused:
		news.refused = w.Reason != m.refused
		m.away, m.refused = true, w.Reason
	case agentcore.Dropped:
		m.away = true
	}
	if w.Replaced && reception != agentcore.Ignored {
		news.replaced = m.replaced == nil
		m.replacedBy(w.Reason)
	}
	m.mu.Unlock()
	if reception == agentcore.Accepted {
		m.multiplexer.contact.noteAccepted(w)
	}
	if unfit != nil {
		m.log.Error("the synchronizer declares another state than the program sets, so no state is sent until the two agree", "member", m.cfg.Name, "synchronizer", w.Synchronizer, "error", unfit)
	}
	switch {
	case w.Replaced && reception != agentcore.Ignored && !first:
		if news.replaced {
			m.log.Error("another process has joined under the name of this member; this member continues without control", "member", m.cfg.Name, "synchronizer", w.Synchronizer, "reason", w.Reason)
		}
	case reception == agentcore.Ignored:
		m.welcomeIgnored(m.cfg.Name, w, why)
	case first:
		m.welcomes <- welcomed{*w, reception == agentcore.Refused}
	case reception == agentcore.Dropped && moved:
		m.log.Info("the synchronizer has another clock now; the member comes back as soon as its own is measured against that", "member", m.cfg.Name, "synchronizer", w.Synchronizer)
	case w.Refused && reception == agentcore.Recalled:
		m.log.Info("an incarnation above the one of this process is known; it goes above that", "member", m.cfg.Name, "known", w.NextSeq)
	case reception == agentcore.Dropped:
		m.log.Warn("the synchronizer had dropped this member; it comes back", "member", m.cfg.Name, "reason", w.Reason)
	case answer && !moved:
		m.welcomedAgain(w, reception, news)
	}
}

// refit continues from now with the state that holds where another one is declared since, or
// says why that does not fit. The lock is held.
func (m *Member) refit() error {
	row, before := m.core.Unfit()
	if before == nil || m.closed || m.state.Type() == nil || m.level != nil && m.level.summary {
		return nil
	}
	row, told, err := m.state.Refit(row, before, m.core.Codec().Schema())
	switch {
	case err == nil:
		err = m.setRow(row)
	case told != nil:
		m.stepInput(&agentcore.Input{Kind: agentcore.InUnfit, Schema: told})
	}
	return err
}

// welcomeIgnored logs why a welcome changes nothing. Copies and answers to earlier hellos are
// nothing special; an intended welcome is.
func (m *Member) welcomeIgnored(member string, w *wire.Welcome, why string) {
	log := m.log.Warn
	if why == agentcore.WhyKnown || why == agentcore.WhyEarlier {
		log = m.log.Debug
	}
	log("a welcome was ignored", telemetry.ClassKey, "welcome", "member", member, "synchronizer", w.Synchronizer, "term", w.Term, "reason", why)
}

// welcomeNews is what a welcome changes, as the log tells it.
type welcomeNews struct {
	replaced bool // another process has its name, which it was not told before
	back     bool // the member was dropped or refused, or the server was away
	term     bool // another life of the synchronizer, or another one, has taken the member in
	refused  bool // for another reason than before
}

// welcomedAgain reports what a later synchronizer says, or the same one when the
// member has introduced itself again: it was away, or the clock has changed.
func (m *Member) welcomedAgain(w *wire.Welcome, reception agentcore.Reception, news welcomeNews) {
	if reception == agentcore.Accepted && m.compareStamps(w) {
		m.observeClock()
		m.log.Info("the clock is measured against another synchronizer's clock now", "member", m.cfg.Name, "synchronizer", w.Synchronizer)
	}
	switch {
	case reception == agentcore.Refused && !news.refused:
	case reception == agentcore.Refused:
		m.log.Error("the synchronizer refuses this member; it tries again", "member", m.cfg.Name, "reason", w.Reason)
	case w.SectionHash != m.section:
		m.log.Error("the synchronizer declares another level of threads; restart the process to follow it", "member", m.cfg.Name)
	case news.back:
		m.log.Info("back in the group", "member", m.cfg.Name, "synchronizer", w.Synchronizer)
	case news.term:
		m.log.Info("the synchronizer leads in a new term", "member", m.cfg.Name, "synchronizer", w.Synchronizer, "term", w.Term)
	}
}

func (m *Member) onProbe(p *wire.Probe) {
	m.mu.Lock()
	m.byItself = true
	m.stepInput(&agentcore.Input{Kind: agentcore.InProbe, Probe: p})
	m.multiplexer.contact.noteLeader()
	l := m.level
	if l != nil {
		l.turns.bringForward(m.due.Probe)
	}
	hurry := m.takeHurry()
	m.mu.Unlock()
	l.runDue()
	hurry.sendDue()
}

// onSignals lets signals into the regions of the process, and shows them to its
// threads' synchronizer: each once, and none that is fenced off or comes from
// another group.
func (m *Member) onSignals(s *wire.Signals) {
	m.mu.Lock()
	fresh := m.stepInput(&agentcore.Input{Kind: agentcore.InSignals, Signals: s}).Fresh
	for _, r := range m.deliverSignals(fresh, nil) {
		r.attendSignals()
	}
	l := m.level
	if s.Synchronizer == m.core.Synchronizer() {
		m.multiplexer.contact.noteLeader()
		if l != nil {
			l.fromParent(fresh)
		}
	}
	m.mu.Unlock()
	l.runDue()
}

func (m *Member) busOptions() bus.Options {
	return bus.Options{
		Name: "pegasus agent " + m.cfg.Group + "/" + m.cfg.Name,
		OnDisconnect: func(cause error) {
			m.log.Warn("the server is away; states are kept", "member", m.cfg.Name, "cause", cause)
			m.recall() // So that nothing is taken for told.
		},
		OnReconnect: func() {
			m.log.Info("the server is back", "member", m.cfg.Name)
			m.recall()
		},
		OnError: func(err error) {
			if !m.lacksPermission(err) {
				m.log.Warn("the connection complains", telemetry.ClassKey, bus.Class(err), "member", m.cfg.Name, "error", err)
			}
		},
	}
}

// lacksPermission reports whether a complaint of the server is that the member may not use a subject
// of its own, and tells of it.
func (m *Member) lacksPermission(err error) bool {
	refuses := func(subject string) bool { return strings.Contains(err.Error(), strconv.Quote(subject)) }
	if errors.Is(err, bus.ErrPermission) && (refuses(m.reports) || refuses(m.subjects.Signal(m.cfg.Name))) {
		select {
		case m.refusals <- err:
		default: // Join has one already, or has returned.
		}
	}
	own := errors.Is(err, bus.ErrPermission) && slices.ContainsFunc(
		[]string{strconv.Quote(m.reports), strconv.Quote(m.subjects.Probe(m.cfg.Name)), strconv.Quote(m.subjects.Signal(m.cfg.Name)), m.subjects.Beat("")},
		func(subject string) bool { return strings.Contains(err.Error(), subject) },
	)
	if own {
		m.log.Error("the server does not permit a subject that the member needs", "member", m.cfg.Name, "error", err)
	}
	return own
}

// recall makes the member introduce itself again.
func (m *Member) recall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = true
	m.stepInput(&agentcore.Input{Kind: agentcore.InRecall})
	notifyChannel(m.multiplexer.contact.wake)
}
