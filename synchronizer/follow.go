package synchronizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
)

// How long a standby waits before it asks again to be told all: twice as long each time,
// until it has followed for longer than the last.
const (
	attachFirst = time.Second
	attachLast  = time.Minute
)

// streamAll is where the stream goes to all that stand by.
const streamAll = "all"

// streamLimits bound the messages that wait for a slow standby: the stream drops further
// messages, and the standby attaches again.
var streamLimits = bus.Limits{Messages: 16_384, Bytes: 32 << 20}

func nonceToken(nonce uint64) string { return strconv.FormatUint(nonce, 16) }

// follows is what a standby says of itself in its beat.
type follows struct {
	Attach uint64 `json:"attach"`           // how often it has asked to be told all
	Config string `json:"config"`           // the hash of its configuration
	Warm   bool   `json:"warm,omitempty"`   // it continues with the leader's state
	Behind uint64 `json:"behind,omitempty"` // messages of the leader's inputs
	Why    string `json:"why,omitempty"`    // it is not warm
}

// String is such as "warm, 2 messages behind".
func (f *follows) String() string {
	switch {
	case f == nil:
		return "cold"
	case !f.Warm:
		return "cold: " + f.Why
	case f.Why != "":
		return "warm, " + f.Why
	}
	return fmt.Sprintf("warm, %d messages behind", f.Behind)
}

// follower steps a core on the inputs of the leading process, and sends none of the outputs.
// The handler of the stream does so; standBy takes the core.
type follower struct {
	*Synchronizer

	mu   sync.Mutex
	over bool // the core is taken
	// options are the options of a core without any input.
	options synccore.Options
	core    *synccore.Core
	level   *plan.Level
	config  string // its key
	lines   *journal.Reader
	rec     journal.Record
	out     synccore.Output

	reference clocksync.Domain // of the leader
	timeline  clocksync.Timeline
	now       clocksync.Instant // of the last input

	leader  uint64 // its nonce
	number  uint64 // of the last message
	rest    []byte // of a line that is not whole
	retold  []byte // of an attachment that comes
	parts   uint64
	warm    bool   // it was retold all
	agreed  bool   // and has come to the same since; false: the same is not to be had, or it differs
	sure    uint64 // the last decision of which it knows that it is the leader's
	broken  string // why it does not step any more
	unfit   string // the hash of the leader's configuration, if the own one cannot go over to it
	stepped clocksync.Instant

	cuts uint64 // when it attached

	attach uint64 // times asked
	askAt  clocksync.Instant
	pause  time.Duration
	began  clocksync.Instant // attached
	told   uint64            // number of the last message that the leader has sent, a beat ago
	next   uint64            // and by now
}

// newFollower makes the core of a process that stands by, and its journal.
func (s *Synchronizer) newFollower() *follower {
	options := synccore.Options{Reference: s.clock.Domain(), OnDemand: true, Timeline: s.opt.Timeline, Relative: s.relative, Follows: true}
	f := &follower{Synchronizer: s, options: options, level: s.level, config: configKey(s.level), pause: attachFirst, broken: "the leader's state has not arrived yet"}
	f.begin()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.core = f.core
	s.tally = newTally(s.level, s.core)
	s.journal = newRecorder(s.level, options, &s.opt, nil, s.opt.now())
	return f
}

// begin makes a core, and a reader of its lines.
func (f *follower) begin() {
	f.core, f.lines, f.warm, f.agreed = synccore.New(f.level, f.options), journal.Follow(f.level), false, false
}

// hearStream takes a message of the stream.
func (f *follower) hearStream(m bus.Message) {
	var h streamHead
	text, err := h.read(m.Data)
	if err != nil {
		f.Synchronizer.mu.Lock()
		defer f.Synchronizer.mu.Unlock()
		f.stats.Malformed++
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	switch to := m.Subject[len(f.subjects.Stream(f.name, "")):]; {
	case h.kind == streamLines && to == streamAll:
		f.take(&h, text)
	case h.kind != streamLines && to == nonceToken(f.nonce):
		f.takePart(&h, text)
	}
}

// take steps the core on lines.
func (f *follower) take(h *streamHead, text []byte) {
	if f.broken != "" || h.nonce != f.leader || h.number <= f.number {
		return
	}
	if h.number != f.number+1 {
		f.breaks("messages of the leader's inputs were lost")
		return
	}
	f.number, f.stepped = h.number, f.opt.now()
	if f.rest = append(f.rest, text...); len(f.rest) > journal.MaxLine+streamPiece {
		f.breaks("an input takes a longer line than there may be")
		return
	}
	n, err := f.stepAll(f.rest)
	f.rest = append(f.rest[:0], f.rest[n:]...)
	switch {
	case err != nil:
		f.breaks("an input cannot be read: " + err.Error())
	case h.sum != 0 && len(f.rest) == 0 && f.agreed && h.sum != f.core.Sum():
		f.agreed = false
		f.breaks("its core has come to something else than the leader's")
	case h.sum != 0 && len(f.rest) == 0 && f.agreed:
		f.sure = f.core.Decisions()
	}
}

// stepAll steps the core on the whole lines of a text, and returns their length. A line on which
// it fails is not the leader's, or a fault of this version.
func (f *follower) stepAll(text []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f.begin()
			err = fmt.Errorf("the core fails on %.100q with %.200q", text[n:], fmt.Sprint(cause))
		}
	}()
	for {
		end := bytes.IndexByte(text[n:], '\n')
		if end < 0 {
			return n, nil
		}
		if err := f.step(text[n : n+end]); err != nil {
			return n, err
		}
		n += end + 1
	}
}

func (f *follower) step(line []byte) error {
	rec := &f.rec
	if err := f.lines.Take(line, rec); err != nil {
		return err
	}
	term := uint64(0)
	switch in := &rec.Input; in.Kind { //nolint:exhaustive // Nothing is noted of the others.
	case synccore.InLevel:
		level, err := f.addPredicates(in.Level)
		if err != nil {
			return err
		}
		in.Level = level
	case synccore.InRestart:
		if !in.Restart.Follows {
			return errors.New("another life of a program is none to follow")
		}
		f.reference, f.timeline, term = in.Restart.Reference, in.Restart.Timeline, in.Restart.Term
	case synccore.InTerm:
		term = in.Term
	case synccore.InTimeline:
		f.timeline = in.Timeline
	}
	if term > 0 && !f.isTermPossible(term, "the leader's inputs", clocksApart) {
		return fmt.Errorf("the message has term %d, which no synchronizer can have reached", term)
	}
	f.noteTerm(term)
	if rec.Input.Kind == synccore.InTerm { // A core that is stepped on it continues without help.
		return errors.New("the leader continues in a later term, and has to send its state again")
	}
	f.now = rec.Now
	f.stepOn(rec.Now, &rec.Input)
	if f.level.Program != nil && !f.core.Recalls() {
		f.warm = false
		return errors.New("records of the program are missing")
	}
	if rec.Input.Kind == synccore.InLevel && len(f.out.Reloads) == 0 {
		f.unfit = shortHash(rec.Input.Level)
		return fmt.Errorf("the leader has another configuration (%s, here %s), which takes a restart: start this process again with it", f.unfit, shortHash(f.level))
	}
	return refusedKept(&rec.Input, &f.out)
}

// stepOn steps the core, and records it.
func (f *follower) stepOn(now clocksync.Instant, in *synccore.Input) {
	f.journal.beginInput(f.level, now, in)
	f.core.Step(now, in, &f.out)
	for _, r := range f.out.Reloads {
		f.opt.Logger.Info("stands by with another configuration than the leader's, which is followed until it is reloaded here after a takeover",
			"configuration", shortHash(f.level), "leader", shortHash(in.Level), "changes", r.Changes)
		f.level, f.config = in.Level, configKey(in.Level)
	}
	f.journal.endInput(&f.out)
}

// takePart takes a part of the leader's state, and attaches when all parts have come. Until
// then the core stays as it was: it can continue from there as well.
func (f *follower) takePart(h *streamHead, text []byte) {
	if h.index == 1 {
		f.retold, f.parts = f.retold[:0], 0
	}
	if h.index != f.parts+1 || len(f.retold)+len(text) > maxRetold {
		return
	}
	f.parts, f.retold = h.index, append(f.retold, text...)
	if h.kind != streamLast {
		return
	}
	retold := f.retold
	f.retold, f.parts, f.rest = nil, 0, f.rest[:0]
	f.lines = journal.Follow(f.level) // The clock may be another one.
	f.warm, f.agreed, f.broken, f.unfit = false, false, "", ""
	if _, err := f.stepAll(retold); err != nil {
		f.breaks("the leader's state cannot be read: " + err.Error())
		return
	}
	ready, same := f.core.Follows()
	if !ready {
		f.breaks("the leader has another configuration: start it again with that")
		return
	}
	f.warm, f.leader, f.number, f.sure = true, h.nonce, h.number, f.core.Decisions()
	f.began, f.stepped = f.opt.now(), f.opt.now()
	f.cuts = f.cut()
	if f.agreed = (same || f.level.Program != nil) && h.sum == f.core.Sum(); !f.agreed {
		f.askAt = f.began.Add(f.again())
	}
}

// breaks has the core stay as it is until it attaches again.
func (f *follower) breaks(why string) {
	f.opt.Logger.Info("the standby does not follow the leader, and will request its state again", "cause", why)
	now := f.opt.now()
	if f.warm && now.Sub(f.began) > attachLast {
		f.pause = attachFirst
	}
	f.broken, f.rest, f.askAt = why, f.rest[:0], now.Add(f.again())
}

// again is the pause before it asks again, which becomes longer.
func (f *follower) again() time.Duration {
	pause := f.pause
	f.pause = min(2*f.pause, attachLast)
	return pause
}

// isCaughtUp reports whether it has been told what the leader knows.
func (f *follower) isCaughtUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.warm
}

// makeBeat is what it says of itself, and asks for.
func (f *follower) makeBeat(now clocksync.Instant) *follows {
	number, leader := f.beats.lastStreamed()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.next = f.next, number
	switch {
	case leader == 0:
	case f.attach == 0:
		f.attach = 1
		f.askAt = now.Add(f.again())
	case f.broken == "" && leader != f.leader:
		f.pause = attachFirst
		f.breaks("another process leads")
		f.askAt = now
	case f.broken == "" && f.told > f.number && now.Sub(f.stepped) > beatsGone:
		f.breaks("messages of the leader's inputs were lost")
	case (f.broken != "" || !f.agreed) && now >= f.askAt:
		f.attach++
		f.askAt = now.Add(f.again())
	}
	is := &follows{Attach: f.attach, Config: f.config, Warm: f.warm, Why: f.broken}
	switch {
	case f.broken != "":
	case !f.agreed:
		is.Why = "and has not come to the same global state"
	case f.told > f.number:
		is.Behind = f.told - f.number
	}
	return is
}

// cut counts the occasions on which messages may have been lost without a later message that
// shows it.
func (f *follower) cut() uint64 { return f.cutOff.Load() + f.bus.Dropped() }

// hold is for how long nothing of the program is started: what the leader did last may be unknown.
func (f *follower) hold() plan.Hold {
	if f.broken == "" && f.cuts == f.cut() {
		return plan.HoldKnown
	}
	f.opt.Logger.Warn("the program's last results may be unknown here: nothing is started before the time of silence is over", "cause", cmp.Or(f.broken, "the process was cut off from the server"))
	return plan.HoldSilence
}

// endFollowing ends the following, and takes the core. The returned inputs are its first: they say
// how it continues.
func (f *follower) endFollowing(term uint64) (first []synccore.Input, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if is := f.core.Term(); is >= term {
		return nil, fmt.Errorf("the process that led was heard in term %d since", is)
	}
	f.over = true
	log := f.opt.Logger
	restart := &synccore.Options{Term: term, Reference: f.clock.Domain(), OnDemand: true, Timeline: f.opt.Timeline, Relative: f.relative, Began: f.opt.wall()}
	cause := "its core had come to something else than the leader's"
	switch {
	case !f.warm:
		restart.Program = newProgram() // If there is one, and nobody led before.
		log.Warn("no other process leads; this one does now: memory, hold times, cooldowns and prev begin again", "term", term, "cause", f.broken)
		if f.unfit != "" {
			log.Warn("the process leads with another configuration, to which the present members cannot change: restart it with the former configuration, or restart the members for the new one",
				"configuration", shortHash(f.level), "before", f.unfit)
		}
		return []synccore.Input{{Kind: synccore.InRestart, Restart: restart}}, nil
	case f.level.Program != nil:
		restart.Runs, restart.Hold, cause = runsOf(term), f.hold(), "a program runs, which continues"
	case f.reference == f.clock.Domain() && f.agreed && f.core.Decisions() == f.sure:
		log.Warn("the former leader is gone; this process leads now and continues where the leader stopped", "term", term)
		f.tellRules(func(r *plan.Rule) string { return f.core.Goes(r) })
		f.Synchronizer.timeline = f.timeline
		return []synccore.Input{{Kind: synccore.InTerm, Term: term}}, nil
	case f.reference != f.clock.Domain():
		cause = "the leader had another clock"
	}
	log.Warn("the former leader is gone; this process leads now: memory and cooldowns continue; hold times, edges and prev begin again", "term", term, "cause", cause)
	return []synccore.Input{{Kind: synccore.InRestart, Restart: restart}, {Kind: synccore.InKept, Kept: f.core.KeptUpTo(f.sure)}}, nil
}

// tellRules logs for each rule whether it continues or begins again.
func (f *follower) tellRules(again func(*plan.Rule) string) {
	for _, r := range f.level.Rules {
		if why := again(r); why != "" {
			f.opt.Logger.Warn("a predicate begins again", "predicate", r.Name, "cause", why)
		} else {
			f.opt.Logger.Info("a predicate continues", "predicate", r.Name)
		}
	}
	if f.level.Balance != nil {
		f.opt.Logger.Warn("the section balance begins again")
	}
}
