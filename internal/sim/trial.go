package sim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Faults are kinds of faults that a trial may have.
type Faults uint16

// The kinds. Whatever a kind draws comes from a source of chance of its own, so that a
// trial without it has the other faults where they were, as far as they do not follow
// from it.
const (
	drops      Faults = 1 << iota // frames are lost
	doubles                       // frames come twice
	reorders                      // frames overtake each other, within a window
	delays                        // the way takes as long as 200 ms
	partitions                    // nothing passes for a while
	oneways                       // nothing passes in one direction for a while
	pauses                        // a process is stopped, and continues
	suspends                      // a machine sleeps: its clock stops
	crashes                       // a process of members is killed and starts again
	restarts                      // so is the synchronizer, in a later term
	clocks                        // clocks drift, are corrected, and lose their bound
	closings                      // a process leaves in order and comes back
	reloads                       // the synchronizer goes over to another configuration
	AllFaults  = 1<<iota - 1
)

var faultNames = []string{"drop", "double", "reorder", "delay", "partition", "oneway", "pause", "suspend", "crash", "restart", "clock", "close", "reload"}

// FaultNames are the kinds, in the order in which a report lists them.
func FaultNames() []string { return slices.Clone(faultNames) }

func (f Faults) String() string {
	var names []string
	for i, name := range faultNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, ","), "none")
}

// ParseFaults reads kinds of faults: names joined by a comma, or "all" or "none" alone.
func ParseFaults(text string) (f Faults, err error) {
	switch text {
	case "all":
		return AllFaults, nil
	case "none":
		return 0, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(faultNames, name)
		switch {
		case name == "all" || name == "none":
			return 0, fmt.Errorf("%q: %s stands alone: leave out the others, or it", text, name)
		case i < 0:
			return 0, fmt.Errorf("there is no kind of fault %q: the kinds are %s; all and none stand alone", name, strings.Join(faultNames, ", "))
		}
		f |= 1 << i
	}
	return f, nil
}

// point is a place in the code of a shell at which its process may be killed.
type point int

// The points.
const (
	agentSet        point = iota // a state has begun, and is not reported yet
	agentBeforeSend              // a step has left frames
	agentBetween                 // some of them are sent
	agentSent                    // all of them are
	agentEffect                  // a handler has begun, and the machine does not know that it has ended
	agentFinished                // it knows, and has not acknowledged it
	syncBeforeSend               // a step has decided, and nothing is sent
	syncBetween                  // some of it is
	syncSent                     // all of it is
	syncFate                     // a fate has come
	points
)

var pointNames = [points]string{
	"agent/set", "agent/before-send", "agent/between-frames", "agent/sent", "agent/effect", "agent/finished",
	"synchronizer/before-send", "synchronizer/between-frames", "synchronizer/sent", "synchronizer/fate",
}

// trialSpec is what a trial follows from.
type trialSpec struct {
	level     *plan.Level
	rules     map[string]reference // by predicate; one without is judged by time alone
	byText    bool                 // the predicates are judged by their texts, and states are drawn for them
	other     *plan.Level          // that it goes over to and back from; nil: the same once more
	others    map[string]reference // its predicates
	narrow    bool                 // no values are drawn around parameters, nor around until of a single member
	tried     []*Tried             // what has become of them, to be added to; nil: nobody asks
	onDemand  bool                 // members are asked for evidence on demand
	seed      uint64
	faults    Faults
	time      time.Duration              // in which there are faults
	processes int                        // at most
	members   int                        // in all; 0: as many as the processes have
	threads   func(*actor) inside        // of a member that has its process for itself; nil: none
	bend      func() *bent               // for one trial; nil: nothing is bent
	pair      func(*trial) time.Duration // adds processes that stand by, and returns the time that it takes until one leads; nil: there are none
}

// The times of a trial behind its faults.
const (
	calm    = 200 * time.Millisecond // states continue to change, on a well network
	settled = time.Second            // the bound of judge C beside the silence
	putOff  = 4 * time.Second        // members that came and went too often wait for as long at most, or for twice the longest hold time
	asking  = 2 * time.Second        // after so long at most a member says hello again that was not answered
	toDrain = 10 * time.Second       // then every signal has its fate, by an answer, within a second after 5 s in which they expire, or since its target is gone; or as it is repeated, up to 8 s after it was in vain
)

// trial is one run of a group: processes of members on some hosts, one synchronizer, a
// network between them, and the faults of a seed. The judges outside know true time,
// all true states and all effects.
type trial struct {
	*World
	trialSpec
	dice     [16]*rand.Rand // one for each kind of fault
	machines []*machine
	domains  map[clocksync.Domain]*machine
	all      []*node
	names    map[string]*node // by the names of members and multiplexers
	leader   *leader          // or the process that led last
	several  []*leader        // the synchronizer's processes
	well     bool             // the faults are over
	quiet    bool             // states do not change any more
	hash     uint64
	takeover time.Duration // within which a process leads
	frames
	regions []regionSpec
	level   *plan.Level          // that the synchronizer follows
	rules   map[string]reference // its predicates
	bent    *bent
	texts   map[*plan.Level]map[string]*text // the predicates that are judged by their texts
	drawn   *drawn                           // how states are drawn for them
	named   []string                         // members that have names in the configuration
	judges
	figures
}

// regionSpec is a region that signals go to, and the names of those that activate.
type regionSpec struct {
	name     string
	handlers []control.Handler
}

// figures are what has happened in one or many trials.
type figures struct {
	Trials, Steps, Frames                                     int
	Dropped, Doubled, Overtaken, Cut, Overflown               int
	Partitions, Pauses, Suspends, Crashes, Restarts, Closings int
	Corrections, LostBounds                                   int
	Passed, Killed                                            [points]int
	States, Firings, Sent, Applied, Cancelled, Fates          int
	Unconfirmed, Repeated                                     int
	FatesLate, FatesAgain, FatesLost                          int // recorded by a later term; by a second one; by none, as both ends were killed
	Gaps, Resends, Probes, Rejoins, Epochs, Partial, Rejected int
	Global                                                    uint64
	Bundles, Evidence                                         int
	Latest                                                    time.Duration  // until judge C was content
	Fired, Ended                                              map[string]int // by predicate, and by fate
	Delays, Oneways, Reloads                                  int
	Warm, Other, Cold, Superseded, Raised, Retold, Torn       int // processes that stood by: they continued, with another clock, or began; two led; a term rose in place; they received all, and lost something
}

func (f *figures) addFigures(o *figures) {
	latest := f.Latest
	to, from := reflect.ValueOf(f).Elem(), reflect.ValueOf(o).Elem()
	for i := range to.NumField() {
		switch a, b := to.Field(i), from.Field(i); a.Kind() { //nolint:exhaustive // There are no others.
		case reflect.Int:
			a.SetInt(a.Int() + b.Int())
		case reflect.Array:
			for k := range a.Len() {
				a.Index(k).SetInt(a.Index(k).Int() + b.Index(k).Int())
			}
		case reflect.Map:
			if a.IsNil() {
				a.Set(reflect.MakeMap(a.Type()))
			}
			for _, key := range b.MapKeys() {
				n := int(b.MapIndex(key).Int())
				if old := a.MapIndex(key); old.IsValid() {
					n += int(old.Int())
				}
				a.SetMapIndex(key, reflect.ValueOf(n))
			}
		}
	}
	f.Global += o.Global
	f.Latest = max(latest, o.Latest)
}

// newTrial draws who takes part.
func newTrial(spec trialSpec) *trial {
	t := &trial{World: New(spec.seed), trialSpec: spec, domains: map[clocksync.Domain]*machine{}, names: map[string]*node{}, hash: 0xcbf29ce484222325}
	t.Fired, t.Ended, t.Trials = map[string]int{}, map[string]int{}, 1
	t.beginTrial()
	if t.bent = (&bent{}); spec.bend != nil {
		t.bent = spec.bend()
	}
	for i := range t.dice {
		t.dice[i] = rand.New(rand.NewPCG(spec.seed, uint64(i)+1)) //nolint:gosec // Few.
	}
	t.level, t.rules = spec.level, spec.rules
	sends := t.level.Sends()
	if spec.other != nil {
		sends = append(sends, spec.other.Sends()...)
	}
	for _, s := range sends {
		i := slices.IndexFunc(t.regions, func(r regionSpec) bool { return r.name == s.Region })
		if i < 0 {
			i, t.regions = len(t.regions), append(t.regions, regionSpec{name: s.Region})
		}
		h := control.Handler{Name: s.Name}
		if s.Kind == control.Activate && !slices.Contains(t.regions[i].handlers, h) {
			t.regions[i].handlers = append(t.regions[i].handlers, h)
		}
	}
	hosts := 1 + t.Rand.IntN(3)
	for i := range hosts {
		rate := int64(0)
		if t.faults&clocks != 0 {
			rate = t.sourceOf(clocks).Int64N(400_001) - 200_000 // parts per billion
		}
		spec := HostSpec{Mono: clocksync.Instant(t.Rand.Int64N(1e15)) + 1, Rate: rate}
		m := &machine{Host: t.NewHost(clocksync.Domain(fmt.Sprintf("h%d", i)), spec), shared: hosts == 1}
		t.machines = append(t.machines, m)
		t.domains[m.Domain] = m
	}
	if t.byText {
		t.texts, t.drawn, t.named = map[*plan.Level]map[string]*text{t.level: newTexts(t.level, t.tried)}, newDrawn(t), namedMembers(t.level)
		if t.other != nil {
			t.texts[t.other] = newTexts(t.other, nil)
		}
		t.drawn.drawAgain(t)
	}
	number := 2 + t.Rand.IntN(max(spec.processes-1, 1))
	for i, left := 0, spec.members; i < number && spec.members == 0 || left > 0; i++ {
		p := newNode(t, i, t.machines[t.Rand.IntN(hosts)], left)
		t.all, left = append(t.all, p), left-len(p.actors)
	}
	t.leader = newLeader(t, t.machines[t.Rand.IntN(hosts)])
	t.several = []*leader{t.leader}
	if t.pair != nil {
		t.takeover = t.pair(t)
	}
	return t
}

// sourceOf is the source of chance of a kind of fault.
func (t *trial) sourceOf(f Faults) *rand.Rand {
	for i := range faultNames {
		if f == 1<<i {
			return t.dice[i]
		}
	}
	panic("sim: dice are drawn for one kind of fault")
}

// draw is true with a probability, if there are faults of the kind now.
func (t *trial) draw(f Faults, p float64) bool {
	return t.faults&f != 0 && !t.well && t.sourceOf(f).Float64() < p
}

// drawBetween draws from [a, b) for a kind of fault.
func (t *trial) drawBetween(f Faults, a, b time.Duration) time.Duration {
	return a + time.Duration(t.sourceOf(f).Int64N(int64(b-a)))
}

// drawKill is true if a process is to be killed at a point.
func (t *trial) drawKill(f Faults, at point) bool {
	t.Passed[at]++
	// What happens seldom is killed at as often as the rest.
	rare := 0.002
	if at == agentEffect || at == agentFinished || at == syncFate {
		rare = 0.004
	}
	if at == syncBetween || at == syncSent || at == syncBeforeSend || at == agentSent || at == agentBeforeSend {
		rare = 0.0008
	}
	if !t.draw(f, rare) {
		return false
	}
	t.Killed[at]++
	return true
}

// runTrial is the whole trial. What it leaves is in the judges and figures.
func (t *trial) runTrial() {
	for _, l := range t.several {
		l.startLeader()
	}
	for _, p := range t.all {
		t.After(t.Between(0, 20*time.Millisecond), p.beginLife)
		t.trouble(p)
	}
	t.hostTrouble()
	t.until(t.time)
	slow := max(t.level.Silence.After, t.unanswered())
	t.heal()
	t.until(t.time + calm)
	t.quiet = true
	end := t.time + calm + slow + settled + t.takeover
	most := max(putOff, min(2*longestBelow(t.level, math.MaxInt64), time.Minute))
	letIn := time.Duration(0) // when those are that are put off at the end, as is said then
	for at := t.time + calm; ; at += 50 * time.Millisecond {
		t.until(at)
		if len(t.breaches) > 0 {
			return
		}
		differs, wait := t.judgeSame()
		if letIn == 0 && at >= end {
			letIn = at + wait + settled
		}
		switch {
		case differs == "":
			t.content, t.Latest = true, at-t.time
		case at < end, at < letIn && 0 < wait && wait <= most:
			continue
		default:
			since := "the last fault"
			if t.faults == 0 {
				since = "the end of the trial time"
			}
			t.addBreach('C', "%v after %s: %s", at-t.time, since, differs)
		}
		break
	}
	end = max(end, time.Duration(t.now))
	drained := end + toDrain
	for _, x := range t.texts[t.trialSpec.level] {
		for i := range x.Signals {
			drained = max(drained, end+x.Signals[i].Expires+time.Second)
		}
	}
	for at := end; at < drained && (at <= end || t.isUnsettled()); at += 250 * time.Millisecond {
		t.until(max(at, time.Duration(t.now)))
	}
	if len(t.breaches) == 0 {
		t.judgeEnd()
	}
}

// unanswered is how long it takes until all have said hello again that nobody has answered.
func (t *trial) unanswered() time.Duration {
	for _, p := range t.all {
		for _, a := range p.actors {
			if p.alive && a.core.Codec() == nil {
				return asking
			}
		}
	}
	return 0
}

// until lets everything happen up to a time since the beginning.
func (t *trial) until(at time.Duration) {
	for len(t.queue) > 0 && t.queue[0].at <= clocksync.Instant(at) && len(t.breaches) == 0 {
		e := t.queue.popEvent()
		t.now = max(t.now, e.at)
		e.do()
	}
	t.now = max(t.now, clocksync.Instant(at))
}

// heal ends all faults.
func (t *trial) heal() {
	t.well = true
	for _, p := range t.all {
		p.up.heal()
		p.down.heal()
		if t.faults&clocks != 0 && p.clock.status != clocksync.Synchronized {
			p.clock.measureNow(t.sourceOf(clocks), time.Millisecond)
			p.clockNews()
		}
		if !p.alive {
			p.beginLife()
		}
	}
	for _, l := range t.several {
		l.startLeader()
	}
}

// trouble has faults happen to a process.
func (t *trial) trouble(p *node) {
	again := func(f Faults, mean time.Duration, do func()) {
		if t.faults&f == 0 {
			return
		}
		if t.drawn != nil {
			mean *= t.drawn.rarer
		}
		var next func()
		next = func() {
			if !t.well {
				do()
				t.After(t.drawBetween(f, mean/2, 3*mean/2), next)
			}
		}
		t.After(t.drawBetween(f, 0, 2*mean), next)
	}
	again(delays, 400*time.Millisecond, func() {
		t.Delays++
		p.up.latency, p.down.latency = t.drawBetween(delays, 0, 200*time.Millisecond), t.drawBetween(delays, 0, 200*time.Millisecond)
		if t.sourceOf(delays).IntN(2) == 0 {
			p.up.latency, p.down.latency = 0, 0
		}
	})
	again(partitions, 1500*time.Millisecond, func() {
		t.Partitions++
		until := t.now.Add(t.drawBetween(partitions, 10*time.Millisecond, 1200*time.Millisecond))
		p.up.cut, p.down.cut = until, until
	})
	again(oneways, 1500*time.Millisecond, func() {
		t.Oneways++
		until := t.now.Add(t.drawBetween(oneways, 10*time.Millisecond, 1200*time.Millisecond))
		if t.sourceOf(oneways).IntN(2) == 0 {
			p.up.cut = until
		} else {
			p.down.cut = until
		}
	})
	again(pauses, 2*time.Second, func() { p.pause(t.drawBetween(pauses, 5*time.Millisecond, 1200*time.Millisecond)) })
	again(crashes, 2500*time.Millisecond, p.crashProcess)
	again(closings, 3*time.Second, p.leaveAndReturn)
	again(clocks, 300*time.Millisecond, p.correctClock)
	if t.faults&drops != 0 {
		p.up.loss, p.down.loss = []float64{0, 0.05, 0.2}[t.sourceOf(drops).IntN(3)], []float64{0, 0.05, 0.2}[t.sourceOf(drops).IntN(3)]
	}
}

// hostTrouble has faults happen to hosts and to the synchronizer.
func (t *trial) hostTrouble() {
	if t.faults&suspends != 0 {
		for range t.sourceOf(suspends).IntN(3) {
			m := t.machines[t.sourceOf(suspends).IntN(len(t.machines))]
			t.After(t.drawBetween(suspends, 0, t.time+1), func() {
				if !t.well && !m.Suspended() {
					t.Suspends++
					// It wakes before the faults are over.
					m.Suspend(min(t.drawBetween(suspends, 10*time.Millisecond, 1500*time.Millisecond), clocksync.Instant(t.time).Sub(t.now)))
				}
			})
		}
	}
	if t.faults&pauses != 0 {
		for range t.sourceOf(pauses).IntN(3) {
			t.After(t.drawBetween(pauses, 0, t.time+1), func() { t.leader.pause(t.drawBetween(pauses, 5*time.Millisecond, 1500*time.Millisecond)) })
		}
	}
	if t.faults&reloads != 0 {
		for range t.sourceOf(reloads).IntN(4) {
			t.After(t.drawBetween(reloads, 0, t.time+1), t.reload)
		}
	}
	if t.faults&restarts != 0 {
		for range t.sourceOf(restarts).IntN(3) {
			t.After(t.drawBetween(restarts, 0, t.time+1), func() { t.leader.crashLeader() })
		}
	}
}

// reload has the synchronizer change to the other configuration, or back. A synchronizer that
// starts follows the configuration in use last.
func (t *trial) reload() {
	if _, stopped := t.leader.stoppedUntil(); !t.leader.leads || stopped || t.well {
		return
	}
	t.Reloads++
	switch {
	case t.other == nil:
	case t.level == t.other:
		t.level, t.rules = t.trialSpec.level, t.trialSpec.rules
	default:
		t.level, t.rules = t.other, t.others
	}
	t.leader.level, t.leader.rules, t.leader.texts = t.level, t.rules, t.texts[t.level]
	t.leader.forgetFirings()
	t.leader.stepCore(synccore.Input{Kind: synccore.InLevel, Level: t.level})
}

// noteTrace adds to the trace.
func (t *trial) noteTrace(what byte, of uint64, frame []byte) {
	h := t.hash
	const prime = 0x100000001b3 // of FNV-1a, here of words instead of bytes
	h = (h ^ uint64(what)) * prime
	h = (h ^ uint64(t.now)) * prime //nolint:gosec // Its bits.
	h = (h ^ of) * prime
	for ; len(frame) >= 8; frame = frame[8:] {
		h = (h ^ binary.LittleEndian.Uint64(frame)) * prime
		h ^= h >> 32
	}
	for _, b := range frame {
		h = (h ^ uint64(b)) * prime
	}
	t.hash = h ^ h>>29
}

// path is one direction of the way between a process and the synchronizer.
type path struct {
	last    clocksync.Instant // the arrival of the frame sent last
	latency time.Duration
	loss    float64
	cut     clocksync.Instant // until then nothing passes
}

func (p *path) heal() { p.latency, p.loss, p.cut = 0, 0, 0 }

// window is by how much a frame that is overtaken is late at most.
const window = 40 * time.Millisecond

// carryFrame sends a frame, which it takes over.
func (t *trial) carryFrame(p *path, frame []byte, deliver func([]byte)) {
	t.Frames++
	t.noteTrace('s', uint64(len(frame)), frame)
	if p.cut > t.now {
		t.Cut++
		t.freeBuffer(frame)
		return
	}
	if t.faults&drops != 0 && !t.well && t.sourceOf(drops).Float64() < p.loss {
		t.Dropped++
		t.freeBuffer(frame)
		return
	}
	if t.draw(doubles, 0.05) {
		t.Doubled++
		other := append(t.takeBuffer(), frame...)
		t.After(p.latency+t.drawBetween(doubles, 50*time.Microsecond, window), func() { deliver(other); t.freeBuffer(other) })
	}
	arrives := t.now.Add(p.latency + t.Between(50*time.Microsecond, 300*time.Microsecond))
	if t.draw(reorders, 0.08) {
		t.Overtaken++
		arrives = arrives.Add(t.drawBetween(reorders, time.Millisecond, window))
	} else {
		arrives = max(arrives, p.last+1)
		p.last = arrives
	}
	t.After(arrives.Sub(t.now), func() { deliver(frame); t.freeBuffer(frame) })
}

// carryUp carries a frame of a process to the synchronizer: whoever leads hears it.
func (t *trial) carryUp(from *node, frame []byte, take func(*leader, []byte)) {
	t.carryFrame(&from.up, frame, func(frame []byte) {
		for _, l := range t.several {
			l.hearFrame(frame, func(frame []byte) { take(l, frame) })
		}
	})
}

// holder is a process as the system sees it: it runs, is stopped, or is not there.
type holder struct {
	t      *trial
	on     *machine
	alive  bool
	life   uint64
	paused clocksync.Instant        // until then it is stopped
	held   int                      // frames that wait for it meanwhile
	wakes  func() clocksync.Instant // when it continues though it runs; nil: now
}

// inboxLimit is how many frames wait for a process that is stopped; more are lost.
const inboxLimit = 64

// stoppedUntil is when the process continues, if it does not run now.
func (h *holder) stoppedUntil() (clocksync.Instant, bool) {
	until := max(h.paused, h.on.awake)
	if until <= h.t.now && h.wakes != nil {
		until = h.wakes()
	}
	return until, until > h.t.now
}

// scheduleCall has the process do something, unless that is over by then.
func (h *holder) scheduleCall(d time.Duration, do func()) {
	life := h.life
	var try func()
	try = func() {
		if h.life != life || !h.alive {
			return
		}
		if until, stopped := h.stoppedUntil(); stopped {
			h.t.After(until.Sub(h.t.now), try)
			return
		}
		do()
	}
	h.t.After(d, try)
}

// deliverFrame hands a frame to the process as soon as it runs.
func (h *holder) deliverFrame(frame []byte, take func([]byte)) {
	if !h.alive {
		return
	}
	until, stopped := h.stoppedUntil()
	if !stopped {
		h.t.noteTrace('r', h.life, frame)
		take(frame)
		return
	}
	if h.held >= inboxLimit {
		h.t.Overflown++
		return
	}
	h.held++
	kept := append(h.t.takeBuffer(), frame...)
	life := h.life
	h.t.After(until.Sub(h.t.now), func() {
		h.held--
		if h.life == life {
			h.deliverFrame(kept, take)
		}
		h.t.freeBuffer(kept)
	})
}

func (h *holder) pause(d time.Duration) {
	if h.alive && !h.t.well {
		h.t.Pauses++
		// It continues before the faults are over.
		h.paused = max(h.paused, min(h.t.now.Add(d), clocksync.Instant(h.t.time)))
	}
}

// machine is a host, and all readings of its clock that a stamp was made of.
type machine struct {
	*Host
	shared   bool // it is the only one, and its clock has no bound
	readings []reading
}

type reading struct{ mono, at clocksync.Instant }

// read reads the clock. No two readings are the same, so that each has its true time.
func (m *machine) read() clocksync.Instant {
	mono := m.Mono()
	for n := len(m.readings); n > 0 && mono <= m.readings[n-1].mono; mono = m.Mono() {
		m.world.now++
	}
	m.readings = append(m.readings, reading{mono, m.world.now})
	return mono
}

// trueTime is when the clock was read.
func (m *machine) trueTime(mono clocksync.Instant) (clocksync.Instant, bool) {
	i, ok := slices.BinarySearchFunc(m.readings, mono, func(r reading, mono clocksync.Instant) int { return cmp.Compare(r.mono, mono) })
	if !ok {
		return 0, false
	}
	return m.readings[i].at, true
}

// clock is what a process knows of true time: its reading is off by off, and by drift
// more each second, and never by more than its bound.
type clock struct {
	on     *machine
	at     clocksync.Instant // true time of the last correction
	off    time.Duration
	bound  time.Duration
	drift  int64 // parts per billion, at most wander
	status clocksync.Status
}

// wander is by how much a bound grows.
const wander = 100_000 // parts per billion

func (c *clock) readQuality() clocksync.Quality {
	if c.on.shared {
		return clocksync.Quality{Source: "system"}
	}
	return clocksync.Quality{Source: "trial", Timeline: "true", Status: c.status, Expires: clocksync.MaxInstant}
}

func (c *clock) makeStamp(b *bent) clocksync.Stamp {
	s := clocksync.Stamp{Domain: c.on.Domain, Mono: c.on.read(), Within: clocksync.Unbounded}
	if !c.on.shared && c.status != clocksync.Unknown && c.status != clocksync.Untrusted {
		now, passed := c.on.world.now, int64(c.on.world.now.Sub(c.at))
		off := c.off + time.Duration(passed*c.drift/billion)
		s.Within = clocksync.Around(now.Add(off), c.bound+time.Duration(passed*wander/billion)+1)
	}
	if b.stamp != nil {
		b.stamp(&s)
	}
	return s
}

// measureNow makes the clock a clock that was measured now. A third of the clocks are wrong by
// all that their bounds allow.
func (c *clock) measureNow(r *rand.Rand, bound time.Duration) {
	c.at, c.bound, c.status = c.on.world.now, bound, clocksync.Synchronized
	c.off = time.Duration(r.Int64N(int64(2*bound)+1)) - bound
	switch r.IntN(6) {
	case 0:
		c.off = bound
	case 1:
		c.off = -bound
	}
	c.drift = r.Int64N(2*wander+1) - wander
	if r.IntN(3) == 0 {
		c.status = clocksync.Degraded
	}
}

// makeAnnouncement makes the hello of a synchronizer that has begun, for all.
func makeAnnouncement(name string, term uint64) wire.Welcome {
	return wire.Welcome{Synchronizer: name, Term: term}
}
