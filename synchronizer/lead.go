package synchronizer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/telemetry"
	"github.com/gopegasus/pegasus/internal/wire"
)

// learnTime is how long a start listens for the terms that members know. Tests that start
// again and again shorten it.
var learnTime = time.Second

const (
	// beatEvery is how often the process that leads says so.
	beatEvery = 250 * time.Millisecond
	// raiseAfter is how long the beat of a later leader, which would explain the later term
	// of a member, is waited for.
	raiseAfter = 2 * beatEvery
	// pauseLimit is the time without a turn, or without the server, after which the process
	// asks what has happened before it decides anything.
	pauseLimit = time.Second
	// roundTrip bounds one attempt to ask.
	roundTrip = 2 * time.Second
)

// Reports of terms are believed within these bounds, so that enough terms remain for all later
// lives, whatever a process claims. The first term of all is the wall clock in ns, and each
// other term is 1 above another: terms stay below a wall clock that is ahead.
const (
	// thisYear is for machines whose wall clock begins in 1970 until it is set.
	thisYear = 1_767_225_600 * int64(time.Second) // 2026
	// termsAhead is how far above the wall clock a term may be that a member tells a process that leads.
	termsAhead = 20 * 365 * 24 * int64(time.Hour)
	// clocksApart is for all else that is told: by another process, or to one that does not lead yet. What
	// a leader has believed is believed of it where the wall clock is so far behind the leader's.
	clocksApart = 365 * 24 * int64(time.Hour)
	// termsAbove is how far above a term that is known another one may be, whatever the clock says.
	termsAbove = 1 << 20
)

// leading is what tells this process from others that are the same synchronizer.
type leading struct {
	store *store        // of the term; nil: it is kept nowhere
	term  atomic.Uint64 // 0 before it leads; the loop alone raises it
	nonce uint64        // of this process
	leads atomic.Bool   // what members say counts
	told  atomic.Uint64 // the latest term that is stored, or was heard before it leads, or from a process that has ended

	over  atomic.Pointer[beat] // the greatest beat that is above the own one
	heard chan struct{}        // capacity 1: another process has said that it leads
	beats beats
	claim atomic.Pointer[claim] // the last claim that was heard
	// cutOff counts how often the server was away.
	cutOff atomic.Uint64

	subscribed bool // of whoever leads
	follow     *follower
}

func newLeading() leading { return leading{nonce: randomNonce(), heard: make(chan struct{}, 1)} }

// randomNonce is a number that no other process has.
func randomNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return binary.LittleEndian.Uint64(b[:])
}

// beat is how a process says that it leads.
type beat struct {
	wire.Beat

	Nonce   uint64 `json:"nonce"`   // random; of two in one term the larger one leads
	Host    string `json:"host"`    // for people
	Process int    `json:"process"` // likewise
	// Stream is the number of the last message with inputs that it has sent.
	Stream uint64 `json:"stream,omitempty"`
	// Steady is for how long it leads, since it was last cut off or stood still.
	Steady  time.Duration `json:"steady,omitempty"`
	Follows *follows      `json:"follows,omitempty"` // of a standby
}

func (b *beat) String() string { return fmt.Sprintf("process %d on %q", b.Process, b.Host) }

// outranks reports whether the one who sent it leads, and not the one of this term and nonce.
func (b *beat) outranks(term, nonce uint64) bool {
	return b.Term > term || b.Term == term && b.Nonce > nonce
}

// isTermPossible reports whether a reported term is possible.
func (s *Synchronizer) isTermPossible(term uint64, from string, apart int64) bool {
	bound := max(uint64(max(s.opt.wall(), thisYear)+termsAhead+apart), max(s.term.Load(), s.told.Load())+termsAbove) //nolint:gosec // After 1970.
	if term <= bound && term < control.MaxTerm-1 {
		return true
	}
	s.opt.Logger.Warn("a term that no synchronizer can have come to is ignored", telemetry.ClassKey, "term", "from", from, "term", term)
	return false
}

// noteTerm notes a reported term.
func (s *Synchronizer) noteTerm(term uint64) {
	for told := s.told.Load(); term > told && !s.told.CompareAndSwap(told, term); told = s.told.Load() {
	}
}

// beginLeading subscribes, finds a term above all that are known, and makes the core of it.
func (s *Synchronizer) beginLeading(ctx context.Context, from *resumed) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	began := s.opt.now()
	s.noteTerm(s.store.term())
	if err := s.openUnlessThere(ctx); err != nil {
		return err
	}
	if s.follow == nil || !s.beats.heardLately(began) { // Else the last term is known.
		if err := s.learn(ctx); err != nil {
			return err
		}
	}
	if s.beats.leaderSince(began) {
		return fmt.Errorf("%w: another process has begun at the same time: stop one of them", ErrNameTaken)
	}
	if c := s.claim.Load(); c != nil && c.at > began {
		return s.findController(c.name)
	}
	floor := s.told.Load()
	if b := s.over.Load(); b != nil {
		floor = max(floor, b.Term)
	}
	if from != nil {
		if from.level.Program == nil && floor > from.journal.Term() {
			return fmt.Errorf("resume: this synchronizer was in term %d since, and the journal ends in term %d: what it has in mind is out of date; resume the journal of the last life, or start without one", floor, from.journal.Term())
		}
		floor = max(floor, from.journal.Term())
	}
	if floor == 0 {
		// No earlier life is known. There may have been an earlier life all the same, which
		// only absent members, members of other groups and observers know.
		floor = uint64(max(s.opt.wall(), 0)) //nolint:gosec // It is not negative.
	}
	term, err := s.store.advanceTerm(floor)
	if err != nil {
		return err
	}
	if err := s.makeCore(term, from); err != nil {
		return err
	}
	s.term.Store(term)
	s.leads.Store(true)
	s.opt.Logger.Info("leads", "term", term, "known", s.told.Load(), "state", s.opt.State)
	return nil
}

// learn asks all members to introduce themselves, and listens for the terms that they know.
// Where there is none the server says so, and nothing is waited for.
func (s *Synchronizer) learn(ctx context.Context) error {
	frame, err := wire.AppendWelcome(nil, &wire.Welcome{Synchronizer: s.name})
	if err != nil {
		return err
	}
	listen, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	err = s.bus.Gather(listen, s.subjects.Announce(), frame, func([]byte) bool { return true })
	switch {
	case errors.Is(err, bus.ErrNoResponders), ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// overhearTerm notes the term that a member knows, which it tells before this process leads.
func (s *Synchronizer) overhearTerm(frame []byte) {
	kind, err := wire.KindOf(frame)
	if err != nil {
		return
	}
	switch kind { //nolint:exhaustive // The others tell no term.
	case wire.KindHello:
		if h, err := wire.DecodeHello(frame); err == nil && h.Leader == s.name && s.isTermPossible(h.Term, h.Member, clocksApart) {
			s.noteTerm(h.Term)
		}
	case wire.KindBundle:
		var b wire.Bundle
		if wire.DecodeBundle(frame, &b) != nil {
			return
		}
		for _, p := range b.Parts {
			if kind, err := wire.KindOf(p.Frame); err == nil && kind == wire.KindHello {
				s.overhearTerm(p.Frame)
			}
		}
	}
}

// hearBeat notes that another process leads, beside the owner of the core.
func (s *Synchronizer) hearBeat(m bus.Message) {
	b := &beat{}
	if wire.DecodeBeat(m.Data, b) != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.Malformed++
		return
	}
	if b.Nonce == s.nonce || !s.isTermPossible(b.Term, "a beat", clocksApart) { // The own ones come back on a connection with echo.
		return
	}
	if out := s.beats.noteBeat(b, s.opt.now()); out != nil && s.leads.Load() {
		s.opt.Logger.Warn("a process that stands by is left out: there are too many", telemetry.ClassKey, "standbys", "process", out, "most", maxStandbys)
	}
	if b.Standby {
		return
	}
	if b.Ends { // It leads no more; members may obey its term.
		s.noteTerm(b.Term)
	}
	for old := s.over.Load(); !b.Ends && b.outranks(s.term.Load(), s.nonce) && (old == nil || b.outranks(old.Term, old.Nonce)); old = s.over.Load() {
		if s.over.CompareAndSwap(old, b) {
			break
		}
	}
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// leader is the loop's part in who leads.
type leader struct {
	ctx    context.Context   //nolint:containedctx // Of the run, from its begin to its end.
	beatAt clocksync.Instant // when the next one is due
	lag    time.Duration     // for which it resigns; 0: it does not
	steady clocksync.Instant // since when it leads, and was neither cut off nor stood still
	gives  *claim            // to whom it leaves the group

	turned clocksync.Instant // the last turn at which the server was there
	walled clocksync.Instant // the last turn
	wall   int64             // the wall clock then
	away   bool              // the server was away since

	fence   uint64            // the latest term that a member is fenced by, or may be
	raiseAt clocksync.Instant // when the term is raised above it; MaxInstant: never
}

func (s *Synchronizer) newLeader() leader {
	now := s.opt.now()
	return leader{ctx: context.Background(), beatAt: now, steady: now, turned: now, walled: now, wall: s.opt.wall(), raiseAt: clocksync.MaxInstant}
}

// rivalBeat is the beat of another process that leads instead of this one, or nil.
func (l *loop) rivalBeat() *beat {
	if b := l.over.Load(); b != nil && b.outranks(l.term.Load(), l.nonce) {
		return b
	}
	return nil
}

// supersededError says who leads. A beat that names this process may be of a second synchronizer in it.
func (b *beat) supersededError(name, subject string, term uint64) error {
	who, unless := b.String(), "no such process runs"
	if host, _ := os.Hostname(); b.Host == host && b.Process == os.Getpid() {
		who, unless = who+", which is this process", "the process has started it only once"
	}
	return fmt.Errorf("synchronizer %q: %w: %s, in term %d, and this one was in term %d: run one of the two only, or the second with --standby (Options.Standby); "+
		"if %s, another client has published on %s: permit only synchronizers to do so", name, ErrSuperseded, who, b.Term, term, unless, subject)
}

// keepLeading says that this process leads, and raises the term if it has to.
func (l *loop) keepLeading(now clocksync.Instant) {
	if now >= l.raiseAt {
		l.raise(now)
	}
	if now >= l.beatAt {
		l.beatAt = now.Add(beatEvery)
		l.serveStandbys(now)
		l.resignIfLate(now)
		l.findRivalGroup(now)
		l.sendBeat(false)
	}
}

// sendBeat sends a beat, which is the last one if this process ends.
func (l *loop) sendBeat(ends bool) {
	b := l.ownBeat(ends)
	b.Stream, b.Steady = l.stream.number, l.opt.now().Sub(l.steady)
	l.publishBeat(b.text())
}

// ownBeat is what this process says of itself.
func (s *Synchronizer) ownBeat(ends bool) *beat {
	host, _ := os.Hostname() // For people.
	return &beat{Beat: wire.Beat{Term: s.term.Load(), Ends: ends, Standby: !s.leads.Load()}, Nonce: s.nonce, Host: host, Process: os.Getpid()}
}

func (b *beat) text() []byte {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // It has nothing that could not be marshalled.
	}
	if len(text) > wire.MaxBeatBytes && b.Follows != nil && b.Follows.Why != "" { // Nobody would read it.
		b.Follows.Why = b.Follows.Why[:len(b.Follows.Why)/2]
		return b.text()
	}
	return text
}

func (s *Synchronizer) publishBeat(text []byte) {
	if s.bus.State() != bus.Connected {
		return
	}
	if err := s.bus.Publish(s.subjects.Beat(s.name), text); err != nil {
		s.opt.Logger.Debug("not sent", telemetry.ClassKey, "beat", "error", err)
	}
}

// noteFenced notes that a member that was taken in obeys a later term than this one.
func (l *loop) noteFenced(h *wire.Hello) {
	taken := func(w wire.Addressed[wire.Welcome]) bool { return w.Msg.Accepted && w.To == h.Member }
	if h.Leader == l.name && h.Term > l.term.Load() && slices.ContainsFunc(l.output.Welcomes, taken) && l.isTermPossible(h.Term, h.Member, 0) {
		l.fencedBy(h.Term)
	}
}

// fencedBy notes that members obey a later term than this one. Either another process
// leads, whose beat comes within raiseAfter, or there was one of which nothing is left.
func (l *loop) fencedBy(term uint64) {
	l.fence = max(l.fence, term)
	if l.raiseAt == clocksync.MaxInstant {
		l.raiseAt = l.opt.now().Add(raiseAfter)
	}
}

// answerBeat answers the beat of another process, which has to hear who leads, or whose term was
// later and is over.
func (l *loop) answerBeat() {
	l.beatAt = clocksync.MinInstant
	if told := l.Synchronizer.told.Load(); told >= l.term.Load() {
		l.fencedBy(told)
	}
}

// raise continues in a term above the term that members are fenced by, in place: the core keeps
// its state.
func (l *loop) raise(now clocksync.Instant) {
	if l.bus.State() != bus.Connected { // Nor would the beat of another one come.
		l.raiseAt = now.Add(raiseAfter)
		return
	}
	l.raiseAt = clocksync.MaxInstant
	before := l.term.Load()
	if l.fence < before || l.rivalBeat() != nil {
		return
	}
	term, err := l.store.advanceTerm(l.fence)
	if err != nil {
		l.opt.Logger.Error("the term cannot be raised, and members obey a later one; tried again", "term", before, "told", l.fence, "cause", err)
		l.raiseAt = now.Add(pauseLimit)
		return
	}
	l.opt.Logger.Warn("members obey a later term than the synchronizer's; it continues above that term", "term", term, "before", before, "told", l.fence)
	l.term.Store(term)
	l.beatAt = now
	l.input = synccore.Input{Kind: synccore.InTerm, Term: term}
	l.more, l.arrived = false, now
	l.stepCore(now)
	l.announceLeader()
}

// noticeSleep looks, once a turn, whether the machine slept: the clock of instants stands
// still then, and the wall clock does not. It returns the instant.
func (l *loop) noticeSleep() clocksync.Instant {
	now, wall := l.opt.now(), l.opt.wall()
	if slept := time.Duration(wall-l.wall) - now.Sub(l.walled); slept >= pauseLimit {
		l.turned = l.turned.Add(-slept)
	}
	l.walled, l.wall = now, wall
	return now
}

// checkAwake is to be asked before anything is taken or decided. After a pause it asks the server
// first: another process may lead by now, and much may have come. It reports whether this
// one still leads, and the instant by then.
func (l *loop) checkAwake(now clocksync.Instant) (then clocksync.Instant, leads bool) {
	switch {
	case l.bus.State() != bus.Connected:
		l.away, l.steady = true, now // Nothing can be sent. The server is asked when it is back.
	case now.Sub(l.turned) < pauseLimit:
		l.turned, l.away = now, false
	default:
		l.askServer(now)
		now = l.opt.now()
		l.steady = now
	}
	return now, l.rivalBeat() == nil
}

// askServer has the server hand over what came while this process, or the way to the server,
// stood still. Beats are heard at once, and all else is taken after it in its order.
func (l *loop) askServer(now clocksync.Instant) {
	if !l.away {
		l.opt.Logger.Warn("the process stood still; it reads the messages that came meanwhile before it decides anything", "seconds", math.Round(now.Sub(l.turned).Seconds()))
	}
	for l.ctx.Err() == nil && l.rivalBeat() == nil {
		err := l.await(roundTrip, l.bus.CatchUp)
		switch {
		case err == nil && l.away: // What came while it was away went to nobody: the next beat of another one has to be waited for.
			_ = l.await(beatEvery+beatEvery/2, func(ctx context.Context) error { <-ctx.Done(); return nil })
			l.away = l.bus.State() != bus.Connected
		case err == nil, errors.Is(err, bus.ErrDrainTimeout): // A handler of a connection that is shared hangs: that is not ours.
			l.turned = l.opt.now()
			return
		case !errors.Is(err, context.DeadlineExceeded): // The server is away.
			l.away = true
			return
		}
	}
}

// await waits for something, and answers questions meanwhile. What comes stays in the inbox.
func (l *loop) await(limit time.Duration, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(l.ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	l.beside.Go(func() { done <- what(ctx) })
	for {
		select {
		case err := <-done:
			return err
		case q := <-l.questions:
			l.answerQuestion(q)
		}
	}
}
