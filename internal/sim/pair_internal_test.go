package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/journal"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
)

// pair is two processes of a synchronizer: one leads, and the other one stands by and receives
// the inputs of the first. What decides who leads is the part of the shell (package
// synchronizer: lead.go, standby.go, stream.go, follow.go) that is mirrored here: it is woven
// with connections and goroutines there. The machines, and the lines sent, are the production
// code's.
type pair struct {
	t     *trial
	rand  *rand.Rand
	seats []*seat
	begun bool
	lines bool // each input is sent as a line of a journal, and not as a copy

	beat, gone, learn, attach, pauseLimit time.Duration // as in production, or a fifth of it
	bend                                  pairBent

	loss   int    // of so many messages with inputs one is lost
	stored uint64 // the last term, in the state folder of both
}

// pairBent are ways in which those that stand by are made wrong.
type pairBent struct {
	told func(*synccore.Input) // what a process is retold
	hole bool                  // that something was lost is not noticed
	mute bool                  // a leader does not hear of another one
}

// withPair adds a process that stands by to every third trial, by the seed.
func withPair(t *trial) time.Duration {
	if t.seed%3 != 0 {
		return 0
	}
	return pairOf(t, pairBent{})
}

func pairOf(t *trial, bend pairBent) time.Duration {
	p := &pair{t: t, loss: 1000, rand: rand.New(rand.NewPCG(t.seed, 100)), bend: bend} //nolint:gosec // Chance of a test.
	scale := time.Duration(1 + 4*p.rand.IntN(2))
	p.lines = p.rand.IntN(8) == 0
	p.beat, p.gone, p.attach, p.pauseLimit = 250*time.Millisecond/scale, time.Second/scale, time.Second/scale, time.Second/scale
	p.learn = max(time.Second/scale, 500*time.Millisecond) // A member answers within that, if it can.
	on := t.leader.on
	if p.rand.IntN(4) == 0 {
		on = t.machines[p.rand.IntN(len(t.machines))]
	}
	t.several = append(t.several, newLeader(t, on))
	for _, l := range t.several {
		s := &seat{leader: l, p: p}
		l.shell, l.wakes = s, s.wakesAt
		p.seats = append(p.seats, s)
	}
	if bend.hole {
		p.loss = 20
	}
	p.trouble()
	return p.gone + 2*p.learn + 4*p.beat
}

// trouble has faults happen to the ways of the processes, and ends one in order.
func (p *pair) trouble() {
	t := p.t
	some := func(f Faults, n int, do func(s *seat, d time.Duration)) {
		if t.faults&f == 0 {
			return
		}
		for range p.rand.IntN(n) {
			s, d := p.seats[p.rand.IntN(2)], 10*time.Millisecond+time.Duration(p.rand.Int64N(int64(2*p.gone)))
			t.After(time.Duration(p.rand.Int64N(int64(t.time))), func() {
				if !t.well && s.alive {
					do(s, min(d, clocksync.Instant(t.time).Sub(t.now)))
				}
			})
		}
	}
	some(partitions, 3, func(s *seat, d time.Duration) { s.cut = max(s.cut, t.now.Add(d)); t.Partitions++ })
	some(partitions, 4, func(s *seat, d time.Duration) { s.hole = max(s.hole, t.now.Add(d)); t.Partitions++ })
	some(restarts, 3, func(s *seat, _ time.Duration) { s.crashLeader() })
	some(restarts, 2, func(s *seat, _ time.Duration) {
		if _, stopped := s.stoppedUntil(); !stopped {
			t.Restarts++
			s.sendBeat(true)
			s.ends()
		}
	})
}

// said is how a process says that it leads, or stands by.
type said struct {
	term, nonce, stream uint64
	ends, standby       bool
	follows             *followed
}

func (b *said) above(term, nonce uint64) bool {
	return b.term > term || b.term == term && b.nonce > nonce
}

// followed is what a process that stands by says of what it was told.
type followed struct {
	attach uint64
	warm   bool
	level  *plan.Level
}

// seat is a process of the synchronizer.
type seat struct {
	*leader
	p     *pair
	nonce uint64

	cut, hole clocksync.Instant // until then nothing passes, or all comes later
	arrives   clocksync.Instant // the last of what another process has sent it

	goesBy    *plan.Level // that its machine follows
	over      *said       // the greatest beat of another leading process
	heard     said        // the last one
	heardAt   clocksync.Instant
	standby   said // of the other one
	standbyAt clocksync.Instant

	since, last clocksync.Instant
	learns      bool
	told        uint64
	f           *follower

	turned, asks clocksync.Instant // the last turn, and when the server has answered
	away         bool
	fence        uint64
	raiseAt      clocksync.Instant

	tells    bool // its inputs are sent
	number   uint64
	item     item
	now      clocksync.Instant // of the last step
	attached uint64
	attachTo uint64
	attachAt clocksync.Instant
	sumAt    clocksync.Instant
}

// item is an input that is sent.
type item struct {
	now  clocksync.Instant
	in   synccore.Input
	line []byte // of it, instead
}

// told are inputs on their way.
type told struct {
	nonce, number, sum uint64
	items              []item
	all                bool
	step               uint64 // of the tenure, after them
	term               uint64
	of                 tenure
	on                 *machine
}

func (s *seat) begins() {
	t := s.t
	*s = seat{leader: s.leader, p: s.p, nonce: s.p.rand.Uint64(), cut: s.cut, hole: s.hole, arrives: s.arrives, raiseAt: clocksync.MaxInstant}
	s.since, s.last, s.turned, s.term = t.now, t.now, t.now, 0
	s.f = newFollower(s)
	if !s.p.begun {
		s.p.begun = true
		s.begin()
		return
	}
	s.scheduleCall(s.p.beat, s.standBy)
}

// standBy is a beat of a process that stands by.
func (s *seat) standBy() {
	if s.leads {
		return
	}
	now := s.t.now
	if s.cut > now || now.Sub(s.last) >= s.p.pauseLimit {
		s.since = now // Until now nobody could be heard.
	}
	s.last = now
	s.sendBeat(false)
	if s.learns || !s.vacant() || s.cut > now {
		s.scheduleCall(s.p.beat, s.standBy)
		return
	}
	// It is handed what the server has for it, which may take as long as a beat is waited for.
	s.scheduleCall(min(s.hole.Sub(min(now, s.hole)), s.p.gone)+600*time.Microsecond, func() {
		if s.scheduleCall(s.p.beat, s.standBy); !s.vacant() {
			return
		}
		if s.heard.term > 0 && s.t.now.Sub(s.heardAt) <= 3*s.p.gone { // There is no later one.
			s.begin()
			return
		}
		began := s.t.now
		s.learns = true
		hello := makeAnnouncement(s.t.level.Name, 0)
		for _, n := range s.t.all {
			s.send(n, "", mustEncode(wire.AppendWelcome(s.t.takeBuffer(), &hello)))
		}
		s.scheduleCall(s.p.learn, func() {
			if s.learns = false; s.heard.term > 0 && s.heardAt > began && !s.heard.ends {
				s.since = s.t.now
				return
			}
			s.begin()
		})
	})
}

// vacant reports whether nobody leads.
func (s *seat) vacant() bool {
	now, p, grace := s.t.now, s.p, time.Duration(0)
	warm := s.standby.follows != nil && s.standby.follows.warm
	first := s.standby.nonce > s.nonce
	if warm != s.f.warm {
		first = warm
	}
	if s.standbyAt > 0 && first && now.Sub(s.standbyAt) <= p.gone {
		grace = p.learn + 2*p.beat
	}
	quiet := now.Sub(s.since)
	if s.heard.term > 0 {
		quiet = min(quiet, now.Sub(s.heardAt))
		if s.heard.ends {
			return quiet >= grace
		}
	}
	return quiet >= p.gone+grace
}

// begin leads, in a term above all that are known.
func (s *seat) begin() {
	t := s.t
	floor := max(s.p.stored, s.told)
	if s.over != nil {
		floor = max(floor, s.over.term)
	}
	if floor == 0 && t.now > 0 {
		floor = uint64(t.now) //nolint:gosec // Not negative.
	}
	s.p.stored = floor + 1
	s.term, s.turned, s.asks = floor+1, t.now, 0
	first, on := s.f.succeed(s.term)
	s.core, s.leads = s.f.core, true
	s.termBegun()
	s.goesBy = s.f.level
	if s.level = s.goesBy; s.level == t.other {
		s.rules = t.others
	} else {
		s.rules = t.trialSpec.rules
	}
	s.texts = t.texts[s.level]
	if on {
		s.inherit(first[0].Kind == synccore.InTerm)
	}
	if t.level, t.rules = s.level, s.rules; !t.leader.leads || t.leader.term <= s.term {
		t.leader = s.leader
	}
	s.f = nil
	s.sendBeat(false)
	for _, in := range first {
		if s.leads {
			s.stepCore(in)
		}
	}
	if s.leads {
		s.announce()
		s.scheduleCall(0, s.tick)
		s.scheduleCall(s.p.beat, s.pulse)
	}
}

// inherit has the judges hold the process to the inputs it received: each signal without a fate
// has one.
func (s *seat) inherit(goesOn bool) {
	f := s.f
	for key, m := range f.of.sent {
		switch {
		case m.at <= f.sure && (m.fates == 0 || m.done > f.step):
			s.sent[key] = &mailed{letter: m.letter, maybe: m.maybe}
		case m.at > f.sure || m.done > f.sure:
			s.sent[key] = &mailed{letter: m.letter, maybe: true}
		}
	}
	if !goesOn {
		return // The members tell all again.
	}
	for _, m := range s.askQuestion(synccore.Question{Status: true}).Status.Members {
		if m.Standing != monitor.Gone {
			s.here[m.Name] = m.Incarnation
		}
	}
	if s.known = maps.Clone(f.of.known); s.known == nil {
		s.known = map[lifeKey]uint64{}
	}
	for key, r := range f.of.reported {
		if r.since == 0 || r.since > f.step {
			continue // What came before the member was taken in is of no use, and the rest was lost with the leader.
		}
		for i, step := range r.steps {
			if step > 0 && step <= f.step {
				s.known[key] = max(s.known[key], min(r.last, r.first+uint64(i))) //nolint:gosec // Not below 0.
			}
		}
	}
	s.gaps = s.askQuestion(synccore.Question{Counts: true}).Counts.Gaps
}

// pulse says that the process leads.
func (s *seat) pulse() {
	if !s.leads || s.ended() {
		return
	}
	s.scheduleCall(s.p.beat, s.pulse)
	now := s.t.now
	if now >= s.raiseAt {
		s.raiseAt = clocksync.MaxInstant
		if s.fence > s.term {
			s.t.Raised++
			before := origin{s.term, s.core.Decisions()}
			s.term = max(s.p.stored, s.fence) + 1
			s.p.stored, s.t.origins[s.term] = s.term, before
			if s.term > s.t.leader.term {
				s.t.leader = s.leader
			}
			s.stepCore(synccore.Input{Kind: synccore.InTerm, Term: s.term})
			if !s.leads {
				return
			}
			s.announce()
		}
	}
	s.serve()
	s.sendBeat(false)
}

// ended reports whether another process leads: then this one ends, and is started again.
func (s *seat) ended() bool {
	if s.over == nil || s.over.term == 0 || !s.over.above(s.term, s.nonce) || s.p.bend.mute {
		return false
	}
	s.t.Superseded++
	s.ends()
	return true
}

func (s *seat) sendBeat(ends bool) {
	b := said{term: s.term, nonce: s.nonce, ends: ends, standby: !s.leads, stream: s.number}
	if !s.leads {
		b.follows = s.f.beat()
	}
	s.tell(func(o *seat) { o.hearBeat(b) })
}

func (s *seat) hearBeat(b said) {
	if b.standby {
		if s.standby, s.standbyAt = b, s.t.now; b.ends {
			s.standbyAt = 0
		}
		return
	}
	if s.heard.nonce == b.nonce || s.t.now.Sub(s.heardAt) > s.p.gone || b.above(s.heard.term, s.heard.nonce) {
		s.heard, s.heardAt = b, s.t.now
	}
	if b.above(s.term, s.nonce) && (s.over == nil || b.above(s.over.term, s.over.nonce)) {
		s.over = &b
	}
	if s.leads && !b.ends && s.asks <= s.t.now && !s.ended() {
		s.sendBeat(false)
	}
}

// tell has the other process do something, over the server.
func (s *seat) tell(do func(*seat)) {
	for _, o := range s.p.seats {
		if o == s {
			continue
		}
		s.way(nil, func([]byte) {
			o.arrives = max(o.arrives+1, s.t.now.Add(50*time.Microsecond+time.Duration(s.p.rand.Int64N(int64(200*time.Microsecond)))))
			s.t.After(o.arrives.Sub(s.t.now), func() { o.way(nil, func([]byte) { o.soon(o.life, do) }) })
		})
	}
}

// soon does something as soon as the process runs, though it may wait for the server.
func (s *seat) soon(life uint64, do func(*seat)) {
	if !s.alive || s.life != life {
		return
	}
	if until := max(s.paused, s.on.awake); until > s.t.now {
		s.t.After(until.Sub(s.t.now), func() { s.soon(life, do) })
		return
	}
	do(s)
}

func (s *seat) way(frame []byte, do func([]byte)) {
	switch now := s.t.now; {
	case s.cut > now:
		s.t.Cut++
	case s.hole > now:
		kept := slices.Clone(frame)
		s.t.After(s.hole.Sub(now), func() { s.way(kept, do) })
	default:
		do(frame)
	}
}

// wakesAt is when a process continues that leads: a process that stood still asks the server
// first.
func (s *seat) wakesAt() clocksync.Instant {
	now := s.t.now
	switch {
	case !s.leads:
		return clocksync.MinInstant
	case s.asks > now:
		return s.asks
	case s.cut > now:
		s.away = true
		return s.cut
	case now.Sub(s.turned) >= s.p.pauseLimit:
		s.asks = max(now, s.hole).Add(600 * time.Microsecond)
		if s.away {
			s.asks = s.asks.Add(s.p.beat + s.p.beat/2)
		}
		s.turned, s.away = s.asks, false
		return s.asks
	}
	s.turned, s.away = now, false
	return clocksync.MinInstant
}

// may notes the terms that members tell, before a step.
func (s *seat) may(in *synccore.Input) bool {
	if s.ended() {
		return false
	}
	if in.Kind == synccore.InHello && in.Hello.Leader == s.level.Name && in.Hello.Term > s.term {
		if s.fence = max(s.fence, in.Hello.Term); s.raiseAt == clocksync.MaxInstant {
			s.raiseAt = s.t.now.Add(2 * s.p.beat)
		}
	}
	return true
}

// overhears notes the term that a member knows.
func (s *seat) overhears(frame []byte) {
	if kind, _ := wire.KindOf(frame); kind == wire.KindHello && s.learns {
		if h, err := wire.DecodeHello(frame); err == nil && h.Leader == s.t.level.Name {
			s.told = max(s.told, h.Term)
		}
	}
}

// serve tells the other process all, if it asks.
func (s *seat) serve() {
	now, b := s.t.now, &s.standby
	if s.standbyAt == 0 || now.Sub(s.standbyAt) > s.p.gone || b.follows.attach == 0 {
		if s.tells {
			s.tells, s.attached = false, 0
			s.number++
		}
		return
	}
	if b.nonce == s.attachTo && b.follows.attach == s.attached || now < s.attachAt {
		return
	}
	s.attachAt = now.Add(s.p.attach)
	s.tells, s.attached, s.attachTo = true, b.follows.attach, b.nonce
	all := s.message()
	all.all, all.number = true, s.number
	tell := func(in *synccore.Input) {
		if s.p.bend.told != nil {
			s.p.bend.told(in)
		}
		all.items = append(all.items, s.line(s.now, in))
	}
	if b.follows.level != s.goesBy {
		all.items = append(all.items, item{now: s.now, in: synccore.Input{Kind: synccore.InLevel, Level: s.goesBy}})
	}
	s.core.Retell(tell)
	all.sum = s.core.Sum()
	s.t.Retold++
	s.tell(func(o *seat) { o.hears(all) })
}

func (s *seat) clockNow() clocksync.Instant { return s.on.Mono() }

func (s *seat) message() told {
	return told{nonce: s.nonce, step: s.steps, term: s.term, of: s.tenure, on: s.on}
}

func (s *seat) line(now clocksync.Instant, in *synccore.Input) item {
	line, err := journal.AppendInput(nil, s.goesBy.State, now, in)
	if err != nil {
		panic(fmt.Sprintf("sim: an input that is told: %v", err))
	}
	return item{now: now, line: append(line, '}')}
}

func (s *seat) before(in *synccore.Input) {
	if s.now = s.clockNow(); !s.tells {
		return
	}
	if s.p.lines && in.Kind != synccore.InLevel {
		s.item = s.line(s.clockNow(), in)
		return
	}
	s.item = item{now: s.clockNow(), in: copied(in)}
}

func (s *seat) after(out *synccore.Output) {
	if len(out.Reloads) > 0 {
		s.goesBy = s.in.Level
	}
	if !s.tells || out.Ignored {
		return
	}
	m := s.message()
	m.items = []item{s.item}
	if len(out.Verdicts) > 0 {
		s.sumAt = s.t.now
	}
	if made := s.core.MadeAlone(out); made != nil {
		m.items = append(m.items, s.line(s.item.now, &synccore.Input{Kind: synccore.InKept, Kept: made}))
	}
	s.number++
	if m.number = s.number; s.t.now >= s.sumAt {
		m.sum, s.sumAt = s.core.Sum(), s.t.now.Add(s.p.beat)
	}
	if s.t.faults&drops != 0 && !s.t.well && s.p.rand.IntN(s.p.loss) == 0 {
		return
	}
	s.tell(func(o *seat) { o.hears(m) })
}

func (s *seat) hears(m told) {
	if !s.leads && s.f != nil {
		s.f.hear(&m)
	}
}

// copied is an input that shares no reused memory.
func copied(in *synccore.Input) synccore.Input {
	c := *in
	switch in.Kind { // The others are made for each input.
	case synccore.InBatch:
		b := *in.Batch
		b.Reports, b.Regions = slices.Clone(b.Reports), slices.Clone(b.Regions)
		for i := range b.Reports {
			b.Reports[i].Row = slices.Clone(b.Reports[i].Row)
		}
		c.Batch = &b
	case synccore.InShared:
		b := wire.Bundle{Roster: in.Shared.Roster, Held: in.Shared.Held}
		b.Listed = slices.Clone(b.Listed)
		for i := range b.Listed {
			b.Listed[i].Regions = slices.Clone(b.Listed[i].Regions)
		}
		c.Shared = &b
	}
	return c
}

// follower steps a machine on what the leader tells.
type follower struct {
	s     *seat
	core  *synccore.Core
	level *plan.Level // of the machine
	lines *journal.Reader
	rec   journal.Record
	out   synccore.Output

	leader, number, next uint64
	warm, agreed         bool
	last                 uint64 // decision of which it knows that it is the leader's
	broken               bool
	stepped              clocksync.Instant
	on                   *machine // of the leader
	of                   tenure
	term, step           uint64
	sure                 uint64 // the step up to which it was known to have come to the same

	attach uint64
	askAt  clocksync.Instant
	pause  time.Duration
}

func newFollower(s *seat) *follower {
	opt := s.options()
	opt.Follows = true
	level := s.t.trialSpec.level
	return &follower{s: s, level: level, core: synccore.New(level, opt), lines: journal.Follow(level), broken: true, pause: s.p.attach}
}

func (f *follower) hear(m *told) {
	switch {
	case m.all:
		f.warm, f.agreed, f.broken = false, false, false
		f.stepAll(m)
		ready, same := f.core.Follows()
		if !ready {
			panic("sim: a machine that was retold all does not follow")
		}
		f.warm, f.leader, f.sure, f.last = true, m.nonce, m.step, f.core.Decisions()
		if f.agreed = same && m.sum == f.core.Sum(); !f.agreed {
			f.askAt = f.s.t.now.Add(f.again())
		}
	case f.broken || m.nonce != f.leader || m.number <= f.number:
		return
	case m.number != f.number+1 && !f.s.p.bend.hole:
		f.breaks()
		return
	default:
		if f.stepAll(m); f.broken {
			return
		}
		if m.sum != 0 && f.agreed && m.sum != f.core.Sum() && !f.s.p.bend.hole {
			f.agreed = false
			f.breaks()
		} else if m.sum != 0 && f.agreed {
			f.sure, f.last = m.step, f.core.Decisions()
		}
	}
	f.number, f.stepped = m.number, f.s.t.now
	f.of, f.term, f.step, f.on = m.of, m.term, m.step, m.on
}

func (f *follower) stepAll(m *told) {
	for i := range m.items {
		x := &m.items[i]
		in := x.in
		if x.line != nil {
			if err := f.lines.Take(x.line, &f.rec); err != nil {
				panic(fmt.Sprintf("sim: a line that was told: %v: %s", err, x.line))
			}
			in = f.rec.Input
		}
		if in.Kind == synccore.InTerm {
			f.breaks()
			return
		}
		f.s.t.Steps++
		f.core.Step(x.now, &in, &f.out)
		if len(f.out.Reloads) > 0 {
			f.level = in.Level
		}
	}
}

func (f *follower) breaks() {
	f.s.t.Torn++
	f.broken, f.askAt = true, f.s.t.now.Add(f.again())
}

func (f *follower) again() time.Duration {
	pause := f.pause
	f.pause = min(2*f.pause, 60*f.s.p.attach)
	return pause
}

// beat is what it says of itself, and asks for.
func (f *follower) beat() *followed {
	now, told := f.s.t.now, f.next
	f.next = f.s.heard.stream
	switch leader := f.s.heard.nonce; {
	case f.s.heard.term == 0:
	case f.attach == 0:
		f.attach, f.askAt = 1, now.Add(f.again())
	case !f.broken && leader != f.leader:
		f.pause = f.s.p.attach
		f.breaks()
		f.askAt = now
	case !f.broken && told > f.number && now.Sub(f.stepped) > f.s.p.gone:
		f.breaks()
	case (f.broken || !f.agreed) && now >= f.askAt:
		f.attach++
		f.askAt = now.Add(f.again())
	}
	return &followed{attach: f.attach, warm: f.warm, level: f.level}
}

// succeed is what its machine is stepped on first, and whether it continues with another term.
func (f *follower) succeed(term uint64) (first []synccore.Input, on bool) {
	t := f.s.t
	opt := f.s.options()
	opt.Term = term
	restart := synccore.Input{Kind: synccore.InRestart, Restart: &opt}
	switch {
	case !f.warm:
		if term > 1 {
			t.Cold++
		}
		return []synccore.Input{restart}, false
	case f.on == f.s.on && f.agreed && f.core.Decisions() == f.last && f.core.Term() < term:
		t.Warm++
		t.origins[term] = origin{f.term, f.last}
		return []synccore.Input{{Kind: synccore.InTerm, Term: term}}, true
	}
	t.Other++
	return []synccore.Input{restart, {Kind: synccore.InKept, Kept: f.core.KeptUpTo(f.last)}}, true
}
