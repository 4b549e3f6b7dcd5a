package agentcore

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Options of a member. Hello is what it introduces itself with: Member,
// Incarnation, Host, Domain and Quality, and the type of its state if it has one.
type Options struct {
	Hello wire.Hello
	// BatchSize is how many reports make a batch go out; BatchAge how long the
	// first of a smaller one waits for company, 0 not at all. BatchSize 0 means
	// 64.
	BatchSize int
	BatchAge  time.Duration
	// Salt is a random number: lives that learn at the same time of the same higher incarnation
	// go above it by different steps.
	Salt uint32
	// Local is set where the synchronizer is in the same process: its signals come once, by a
	// call, and it does not ask what became of them, so there are no answers.
	Local bool
}

// Errors of states.
var (
	ErrNotWelcome = errors.New("no synchronizer has said which fields a state has")
	ErrBackwards  = errors.New("the clock ran backwards")
	ErrNoState    = errors.New("there is no open state")
)

// Core is the machine of a member. It must not be used by two goroutines at once.
type Core struct {
	hello     wire.Hello
	batchSize uint64
	batchAge  time.Duration
	codec     *wire.BatchCodec // of the declared state, nil before the first welcome
	virtual   bool
	local     bool

	// What the stamps rest on: now, and as reported last.
	quality, tagged clocksync.Quality
	taggedAt        clocksync.Instant
	retag           bool // the quality has changed since the hello

	// The states.
	clock  clocksync.Monotone
	ring   ring
	seq    uint64    // of the last transition: the start of the open state, or an end
	same   wire.Same // a state that has begun again, or is to
	base   uint64    // the number of the last one of the incarnations before
	open   bool
	reopen bool              // a state holds, and begins as soon as there is a stamp for it
	begun  bool              // it began in an incarnation before, and takes the number again that it had
	row    []scgs.Value      // of a state to reopen
	was    scgs.Schema       // of row: its state holds and is not the state declared since; nil: there is none
	start  clocksync.Stamp   // of the last state
	alive  clocksync.Stamp   // virtual: a stamp at which it held, the newest
	read   clocksync.Instant // the newest reading

	gate    *control.Gate
	regions []wire.Region

	// The synchronizer that took us in, and how far it has been told.
	synchronizer string
	term         uint64
	led          clocksync.Instant // when something of it came
	claimed      clocksync.Instant // since when another one claims the member, and nothing of it came; MaxInstant: none does
	welcome      bool
	once         bool // this incarnation was welcomed before
	heartbeat    time.Duration
	helloAt      clocksync.Instant
	helloPause   time.Duration
	helloSent    clocksync.Instant // the last one
	greets       bool              // it is welcome, and says hello all the same until it is answered
	asks         bool              // it has, and was not answered yet
	sent         uint64            // ring position
	since        clocksync.Instant // the oldest unsent change; MaxInstant if there is none
	lastBatch    clocksync.Instant
	batchBy      clocksync.Instant // the next one is due, by the two above
	owed         bool              // a batch is due whatever its size
	crowded      uint64            // transitions that newer ones have pushed out of the ring, untold
	leaving      bool
	left         bool
	parting      parting
	probes       []wire.Probe
	probeAt      clocksync.Instant // when a reading may satisfy one
	resends      []wire.Resend     // by their numbers, apart from each other; at most maxResends
	answers      []wire.Answer
	answerAt     clocksync.Instant // when they go out; MaxInstant if there are none
	tellAt       clocksync.Instant // when unrecorded fates are repeated; MaxInstant: not before there is news
	tellPause    time.Duration
	stats        Stats

	life  uint64 // the incarnation that was taken in first; 0: none was
	works bool   // the synchronizer has a section work, whose members tell their life

	unsaid bool // who speaks for the member now, or that its state has begun again, has not been in a hello

	// Of the multiplexer that gives its evidence.
	listed bool // on the roster: it has no heartbeat of its own
	// place is where on it, counted from 1. It is guarded by what guards the Multiplexer and
	// not by what guards the Core: Drop of a member writes another's.
	place int

	step uint64 // by which it goes above an incarnation that it has learnt of

	lapses []wire.Answer // of regions that were cancelled for want of control, until they are recorded
	adrift bool          // control was lost, and is not back
}

// Stats are counts since the Core was made.
type Stats struct {
	Reports    uint64 // transitions that entered the ring
	Batches    uint64 // batches handed out
	Resent     uint64 // reports handed out again on demand
	Dropped    uint64 // transitions that left the ring before they were ever handed out
	Gone       uint64 // times a resend asked for what the ring no longer held
	Rejoins    uint64 // new incarnations after a synchronizer had dropped the member
	Backwards  uint64 // stamps refused because the clock ran backwards
	Strange    uint64 // messages of another incarnation, term or target, ignored
	Copies     uint64 // signals that had been offered before
	Signals    uint64 // signals offered for the first time
	Fates      [control.Unconfirmed + 1]uint64
	LostAnswer uint64 // fates that the synchronizer may never record: too many were kept for it
}

// Late counts the signals that came after the region entry they were decided on,
// or after their time.
func (s *Stats) Late() uint64 { return s.Fates[control.NoSuchEntry] + s.Fates[control.Expired] }

// DefaultBatchSize is the default of Options.
const DefaultBatchSize = 64

const (
	defaultHeartbeat = time.Second
	minHeartbeat     = 10 * time.Millisecond
	maxHeartbeat     = time.Minute
	firstHelloPause  = 100 * time.Millisecond
	maxHelloPause    = 2 * time.Second
	maxProbes        = 16
	firstTellPause   = 500 * time.Millisecond
	maxTellPause     = time.Minute
	maxResends       = 8
	maxAnswers       = 4096
	maxLapses        = 64
	leastStep        = 1 << 16 // more than an incarnation is raised one by one
)

// New returns a member that has no state and has not introduced itself. Its first tick is
// due at once.
func New(o Options) *Core {
	if o.BatchSize <= 0 {
		o.BatchSize = DefaultBatchSize
	}
	gate := control.NewGate()
	if o.Local {
		gate.Once()
	}
	o.Hello.Causes, o.Hello.Over, o.Hello.Common = !o.Local, !o.Local, !o.Local
	return &Core{
		hello:      o.Hello,
		quality:    o.Hello.Quality,
		batchSize:  uint64(min(o.BatchSize, RingTransitions)),
		batchAge:   max(o.BatchAge, 0),
		virtual:    o.Hello.Threads,
		local:      o.Local,
		gate:       gate,
		heartbeat:  defaultHeartbeat,
		helloAt:    clocksync.MinInstant,
		helloPause: firstHelloPause,
		helloSent:  clocksync.MinInstant,
		led:        clocksync.MinInstant,
		claimed:    clocksync.MaxInstant,
		since:      clocksync.MaxInstant,
		answerAt:   clocksync.MaxInstant,
		tellAt:     clocksync.MaxInstant,
		read:       clocksync.MinInstant,
		probeAt:    clocksync.MaxInstant,
		step:       leastStep + uint64(o.Salt),
	}
}

// Codec is the codec of batches of the state that the last welcome declared, nil
// before the first.
func (c *Core) Codec() *wire.BatchCodec { return c.codec }

// Wake is [Due.Wake].
func (c *Core) Wake() clocksync.Instant { return c.wakeAt() }

// Synchronizer names the synchronizer that took the member in last.
func (c *Core) Synchronizer() string { return c.synchronizer }

// Incarnation is the one of the next hello.
func (c *Core) Incarnation() uint64 { return c.hello.Incarnation }

// Life is the first incarnation that was taken in; after another process has had the name, of those
// since then. 0: none was yet.
func (c *Core) Life() uint64 { return c.life }

// Works reports whether the synchronizer that has taken the member in last has a section work.
func (c *Core) Works() bool { return c.works }

// Stats returns the counters.
func (c *Core) Stats() Stats {
	s := c.stats
	s.LostAnswer += c.gate.Lost()
	return s
}

// Crowded is how many of the transitions that were dropped, by [Stats], newer ones have pushed
// out of the ring.
func (c *Core) Crowded() uint64 { return c.crowded }

// Start is the stamp of the open state. A tick needs a reading above it to
// give evidence.
func (c *Core) Start() (clocksync.Stamp, bool) { return c.start, c.open }

// Sequence is the number of the newest transition: it is another one once a state has begun or ended.
func (c *Core) Sequence() uint64 { return c.seq }

// Newest returns the state that holds, with the memory of row, and how it is declared; false: none holds.
func (c *Core) Newest(row []scgs.Value) (declared scgs.Schema, _ []scgs.Value, ok bool) {
	if !c.open || c.ring.next == c.ring.first {
		return nil, row, false
	}
	return c.ring.schema, c.ring.newest(row), true
}

// beginState begins a state with a row, or with that row as words.
func (c *Core) beginState(now clocksync.Instant, at *clocksync.Stamp, row []scgs.Value, words []uint64) error {
	if c.codec == nil {
		return ErrNotWelcome
	}
	if words == nil {
		words = c.ring.pack(row)
	}
	if words == nil {
		if err := c.codec.CheckRow(row); err != nil {
			return err
		}
	}
	if c.virtual && !c.open && at.Mono < c.read {
		c.skipState()
		c.reopen, c.alive = true, clocksync.Stamp{}
		if c.row = append(c.row[:0], row...); row == nil {
			c.row = resizeSlice(c.row, len(words))
			c.ring.unpack(c.row, words)
		}
		return nil
	}
	if err := c.orderStamp(at); err != nil {
		return err
	}
	c.skipState()
	c.begin(at, row, words)
	c.noteChange(now)
	if c.was != nil { // This one fits.
		if c.was, c.hello.Typed, c.hello.Schema = nil, false, nil; !c.welcome {
			c.helloAgain(now)
		}
	}
	return nil
}

// Unfit is the row of the state that holds, and how that was declared, if a welcome has
// declared another one since: to continue, it has to be set again. Nil if there is none.
func (c *Core) Unfit() (row []scgs.Value, of scgs.Schema) { return c.row, c.was }

// tellUnfitType has the synchronizer told the type of the program's state, which it can only refuse.
func (c *Core) tellUnfitType(now clocksync.Instant, schema scgs.Schema) {
	if !c.hello.Typed {
		c.helloAgain(now)
	}
	c.hello.Typed, c.hello.Schema = true, schema
}

func (c *Core) endState(now clocksync.Instant, at clocksync.Stamp) error {
	if c.reopen {
		c.skipState()
		return nil
	}
	if !c.open {
		return ErrNoState
	}
	if err := c.orderStamp(&at); err != nil {
		return err
	}
	c.open = false
	c.seq++
	c.ring.end(&at, c.toldBelow())
	c.pushed()
	c.noteChange(now)
	return nil
}

func (c *Core) noteHeld(now clocksync.Instant, at clocksync.Stamp) error {
	switch {
	case c.reopen && at.Mono < c.read:
		return nil
	case !c.open && !c.reopen:
		return ErrNoState
	}
	if err := c.orderStamp(&at); err != nil {
		return err
	}
	c.alive = at
	if c.reopen {
		c.noteChange(now)
	}
	c.restartState(now, &at)
	if c.takeSatisfied(now, c.evidence(at)) {
		c.owed = true
	}
	return nil
}

// orderStamp makes a stamp no older than the stamps before it.
func (c *Core) orderStamp(at *clocksync.Stamp) error {
	told := at.Within
	boundStamp(at)
	if at.Mono < c.read || !c.clock.Raise(at) {
		c.stats.Backwards++
		at.Within = told
		return fmt.Errorf("%w: %v", ErrBackwards, *at)
	}
	c.read = at.Mono
	return nil
}

// resumeState begins the state in row at a stamp.
func (c *Core) resumeState(at *clocksync.Stamp) {
	c.begun = false
	c.begin(at, c.row, c.ring.pack(c.row))
}

// skipState gives up a state that was to begin as soon as there was a stamp for it: it is over.
// Its number, if it has one, is not used again, so that a synchronizer that has not heard of it
// misses it.
func (c *Core) skipState() {
	if c.reopen && c.begun {
		c.seq++
		c.base = c.seq
	}
	c.reopen, c.begun = false, false
}

func (c *Core) begin(at *clocksync.Stamp, row []scgs.Value, words []uint64) {
	c.open, c.reopen = true, false
	// Not as a whole: that would wait until its parts, which are new, are in the cache.
	c.start.Domain, c.start.Mono, c.start.Within.Earliest, c.start.Within.Latest = at.Domain, at.Mono, at.Within.Earliest, at.Within.Latest
	if c.virtual {
		c.alive = *at
	}
	c.seq++
	c.ring.push(at, row, words, c.toldBelow())
	c.pushed()
}

// toldBelow is the position below which transitions have been told.
func (c *Core) toldBelow() uint64 {
	if !c.welcome {
		return c.ring.first // The last message may not have arrived.
	}
	return c.sent
}

// pushed counts a transition that has entered the ring.
func (c *Core) pushed() {
	c.stats.Reports++
	if c.sent < c.ring.first {
		c.stats.Dropped += c.ring.first - c.sent
		c.crowded += c.ring.first - c.sent
		c.sent = c.ring.first
	}
}

// countUntold counts the transitions in the ring that were never handed out, or were asked for
// again.
func (c *Core) countUntold() uint64 {
	n := c.ring.next - c.sent
	for _, r := range c.resends { // They lie apart from each other.
		if from, to := c.ring.find(r.From, c.seq), min(c.sent, c.ring.find(r.To+1, c.seq)); from < to {
			n += to - from
		}
	}
	return n
}

// noteChange notes that there is news. A probe of the old state is answered by it.
func (c *Core) noteChange(now clocksync.Instant) {
	c.noteNews(now)
	if len(c.probes) > 0 {
		c.owed = true
		c.probes, c.probeAt = c.probes[:0], clocksync.MaxInstant
	}
}

// noteNews notes that something waits to be told.
func (c *Core) noteNews(now clocksync.Instant) {
	if now < c.since {
		c.since = now
		c.scheduleBatch()
	}
}

// scheduleBatch follows what the time of the next batch goes by.
func (c *Core) scheduleBatch() {
	c.batchBy = c.since.Add(c.batchAge)
	if !c.listed {
		c.batchBy = min(c.batchBy, c.lastBatch.Add(c.heartbeat))
	}
}
