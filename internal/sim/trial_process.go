package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// node is a process with members: a single one, or several, which share a multiplexer or
// speak each for itself.
type node struct {
	holder
	name     string
	clock    clock
	actors   []*actor
	shares   bool
	mux      *agentcore.Multiplexer // if it shares one
	bundle   wire.Bundle
	up, down path
	alarm    alarm
	leaving  bool
	batch    time.Duration // the age at which a batch goes out
	size     int
}

// actor is a member: its machine in this life of its process, and what it truly did in
// all of them.
type actor struct {
	*node
	name    string
	core    *agentcore.Core
	in      agentcore.Input // of the step, here to be used again
	out     agentcore.Output
	truth   []stretch // in order, of all lives
	open    []entry
	inside  inside            // nil: it has no threads
	obeying int               // handlers that have begun and not ended
	told    map[uint64]uint64 // the newest number sent, by incarnation
	lives   map[uint64]uint64 // whose incarnations they are
	sets    uint64            // states in this life
}

// inside is what a process consists of whose state is the summary of its threads.
type inside interface {
	change() // a thread begins a state
	look()   // the process hears what the threads have come to
}

// entry is an open region.
type entry struct {
	region *regionSpec
	number uint64
}

// stretch is a state as it truly was.
type stretch struct {
	from, to clocksync.Instant
	began    clocksync.Instant // of a state that a judge has found and looks at from a later instant on: its from
	row      []scgs.Value
}

func newNode(t *trial, i int, on *machine, most int) *node {
	p := &node{holder: holder{t: t, on: on}, name: fmt.Sprintf("p%d", i), clock: clock{on: on}, size: 1}
	switch t.Rand.IntN(5) {
	case 0, 1:
	case 2:
		p.size = 2 + t.Rand.IntN(2)
	default:
		p.size, p.shares = 2+t.Rand.IntN(4), true
	}
	if most > 0 {
		p.size = min(p.size, most)
	}
	if t.Rand.IntN(2) == 0 {
		p.batch = t.Between(time.Millisecond, 20*time.Millisecond)
	}
	p.clock.measureNow(t.Rand, t.Between(200*time.Microsecond, 3*time.Millisecond))
	if p.shares {
		t.names[p.name] = p
	}
	for i := range p.size {
		a := &actor{node: p, name: fmt.Sprintf("%s-%d", p.name, i), told: map[uint64]uint64{}, lives: map[uint64]uint64{}}
		if len(t.named) > 0 {
			a.name, t.named = t.named[0], t.named[1:]
		}
		p.actors = append(p.actors, a)
		t.names[a.name] = p
	}
	return p
}

// beginLife begins a life of the process.
func (p *node) beginLife() {
	if p.alive {
		return
	}
	p.life++
	p.alive, p.leaving, p.paused, p.held = true, false, 0, 0
	if p.alarm.at = clocksync.MinInstant; p.shares {
		p.mux = agentcore.NewMultiplexer(p.life * 1000)
	}
	for _, a := range p.actors {
		hello := wire.Hello{Member: a.name, Incarnation: p.firstIncarnation(), Host: string(p.on.Domain), Domain: p.on.Domain, Quality: p.clock.readQuality()}
		if p.shares {
			hello.Multiplexer = p.name
		}
		a.core = agentcore.New(agentcore.Options{Hello: hello, BatchAge: p.batch, BatchSize: 16, Salt: uint32(p.life * 1009)}) //nolint:gosec // Its lives are few.
		a.open, a.obeying, a.sets = a.open[:0], 0, 0
		if p.t.threads != nil && !p.shares {
			a.inside = p.t.threads(a)
		}
		for i := range p.t.regions {
			a.enter(&p.t.regions[i])
		}
		p.scheduleCall(p.t.Between(0, 30*time.Millisecond), a.change)
		p.scheduleCall(p.t.Between(50*time.Millisecond, 200*time.Millisecond), a.wander)
	}
	p.scheduleCall(0, p.pass)
}

// firstIncarnation is what this life goes by until it learns of a higher one: the wall clock, which is set
// back before every third life.
func (p *node) firstIncarnation() uint64 {
	if p.life%3 == 0 {
		return p.life*1000 - 2500
	}
	return p.life * 1000
}

// crashProcess ends the process without a word.
func (p *node) crashProcess() {
	if !p.alive || p.t.well {
		return
	}
	p.t.Crashes++
	p.over()
	p.t.After(p.t.drawBetween(crashes, 10*time.Millisecond, 800*time.Millisecond), p.beginLife)
}

// over ends a life. The states still held in this instant: a stamp of it may say so.
func (p *node) over() {
	p.alive = false
	for _, a := range p.actors {
		a.ends(p.t.now + 1)
	}
}

// ends notes that the member's state is over at an instant.
func (a *actor) ends(at clocksync.Instant) {
	if n := len(a.truth); n > 0 && a.truth[n-1].to == clocksync.MaxInstant {
		a.truth[n-1].to = at
	}
}

// leaveAndReturn has the process leave in order, and come back.
func (p *node) leaveAndReturn() {
	if _, stopped := p.stoppedUntil(); !p.alive || p.t.well || p.leaving || stopped {
		return
	}
	p.t.Closings++
	p.leaving = true
	for _, a := range p.actors {
		a.step(agentcore.Input{Kind: agentcore.InLeave})
	}
	p.pass()
	if p.alive {
		p.over()
	}
	p.t.After(p.t.drawBetween(closings, 10*time.Millisecond, 500*time.Millisecond), p.beginLife)
}

// correctClock has the process measure its clock, or lose what it knew.
func (p *node) correctClock() {
	if _, stopped := p.stoppedUntil(); !p.alive || p.clock.on.shared || stopped {
		return
	}
	switch r := p.t.sourceOf(clocks); r.IntN(16) {
	case 0, 1:
		p.clock.status = clocksync.Unknown
		p.t.LostBounds++
	case 2:
		p.clock.status = clocksync.Untrusted
		p.t.LostBounds++
	default:
		p.clock.measureNow(r, p.t.drawBetween(clocks, 50*time.Microsecond, 4*time.Millisecond))
		p.t.Corrections++
	}
	p.clockNews()
}

// clockNews has the members know what their stamps rest on.
func (p *node) clockNews() {
	if !p.alive {
		return
	}
	quality := p.clock.readQuality()
	for _, a := range p.actors {
		if a.step(agentcore.Input{Kind: agentcore.InClock, Quality: &quality}).Clock == agentcore.ClockVoid && a.core.Codec() != nil {
			p.t.Rejoins++
		}
	}
	p.scheduleCall(0, p.pass)
}

// step steps the member's machine.
func (a *actor) step(input agentcore.Input) *agentcore.Output {
	a.in = input
	in := &a.in
	a.t.Steps++
	if in.Kind == agentcore.InSignals && a.t.bent.signals != nil {
		a.t.bent.signals(a, in)
	}
	if a.t.bent.agentIn != nil && !a.t.bent.agentIn(a, in) {
		return &agentcore.Output{Due: agentcore.Due{Wake: clocksync.MaxInstant, Probe: clocksync.MaxInstant}}
	}
	a.core.Step(a.on.Mono(), in, &a.out)
	a.t.noteTaken(a, a.out.Fresh)
	if a.t.bent.agentOut != nil {
		a.t.bent.agentOut(a, in, &a.out)
	}
	return &a.out
}

// pause is the time until a member does something again, beside others of that time. In every
// eighth trial those that have begun do so little, as long as there are faults, that the same
// states are judged in several terms.
func (a *actor) pause(of time.Duration) time.Duration {
	t := a.t
	left := clocksync.Instant(t.time).Sub(t.now)
	if t.seed%8 != 0 || t.drawn != nil || a.sets == 0 || left <= 0 {
		return of
	}
	return min(50*of, left+of)
}

// change sets a new state, again and again.
func (a *actor) change() {
	pace := 60 * time.Millisecond
	if a.t.drawn != nil && a.sets > 0 { // It begins its first state soon, or takes no part for that long.
		pace = a.t.drawn.pace
	}
	a.scheduleCall(a.pause(a.t.Between(time.Millisecond, pace)), a.change)
	if a.core.Codec() == nil || a.leaving || a.t.quiet && a.sets > 0 {
		return
	}
	a.set()
	if a.t.drawKill(crashes, agentSet) {
		a.crashProcess()
		return
	}
	a.scheduleCall(a.t.Between(0, 2*time.Millisecond), a.pass) // The process gets to it late.
}

// set begins a state.
func (a *actor) set() {
	if a.inside != nil {
		a.inside.change()
		return
	}
	row := make([]scgs.Value, len(a.t.level.State))
	for i := range row {
		if a.t.drawn != nil {
			row[i] = a.t.drawn.drawField(a.t, i)
		} else {
			row[i] = a.t.value(&a.t.level.State[i])
		}
	}
	at := a.clock.makeStamp(a.t.bent)
	if a.t.bent.set != nil {
		a.t.bent.set(a, row)
	}
	if a.step(agentcore.Input{Kind: agentcore.InState, At: at, Row: row}).Err != nil {
		return
	}
	a.ends(a.t.now)
	a.truth = append(a.truth, stretch{from: a.t.now, to: clocksync.MaxInstant, row: row})
	a.t.States++
	a.sets++
}

// value draws what a field may be.
func (t *trial) value(f *scgs.Field) scgs.Value {
	switch f.Type {
	case scgs.Bool:
		return scgs.BoolValue(t.Rand.IntN(3) > 0)
	case scgs.Int:
		return scgs.IntValue(100 + t.Rand.Int64N(5))
	case scgs.Float:
		return scgs.FloatValue(float64(t.Rand.IntN(11)) / 10)
	case scgs.Duration:
		return scgs.DurationValue(time.Duration(t.Rand.IntN(10)) * time.Second)
	case scgs.Enum:
		return scgs.EnumValue(f.Words[t.Rand.IntN(len(f.Words))])
	case scgs.String:
		return scgs.StringValue(string(rune('a' + t.Rand.IntN(5))))
	default:
		panic(fmt.Sprintf("sim: no value is drawn for fields of type %v", f.Type))
	}
}

// wander leaves regions and enters them again.
func (a *actor) wander() {
	a.scheduleCall(a.pause(a.t.Between(40*time.Millisecond, 400*time.Millisecond)), a.wander)
	if a.leaving || a.t.quiet && len(a.open) == len(a.t.regions) {
		return
	}
	if n := len(a.t.regions); n > 0 && !a.t.quiet {
		a.exit(&a.t.regions[a.t.Rand.IntN(n)])
	}
	for i := range a.t.regions {
		if r := &a.t.regions[i]; a.t.quiet || a.t.Rand.IntN(2) == 0 {
			a.enter(r)
		}
	}
	a.pass()
}

func (a *actor) enter(r *regionSpec) {
	if slices.ContainsFunc(a.open, func(e entry) bool { return e.region == r }) {
		return
	}
	out := a.step(agentcore.Input{Kind: agentcore.InEnter, Region: r.name, Handlers: r.handlers})
	if out.Err == nil {
		a.open = append(a.open, entry{r, out.Entry})
	}
}

func (a *actor) exit(r *regionSpec) {
	i := slices.IndexFunc(a.open, func(e entry) bool { return e.region == r })
	if i < 0 {
		return
	}
	number := a.open[i].number
	a.open = slices.Delete(a.open, i, i+1)
	if s := a.step(agentcore.Input{Kind: agentcore.InExit, Entry: number}).Signal; s != nil {
		a.t.Cancelled++
		a.t.judgeEffect(a, s)
		a.finish(s)
	}
}

// obey runs the handlers of the signals that wait, and leaves the regions that were cancelled.
func (a *actor) obey() {
	for i := 0; i < len(a.open) && a.alive; i++ {
		e := a.open[i]
		if a.core.Canceled(e.number) != nil {
			a.exit(e.region)
			i--
			continue
		}
		if s := a.step(agentcore.Input{Kind: agentcore.InNext, Entry: e.number, Delivery: control.AtCheck}).Signal; s != nil {
			a.t.judgeEffect(a, s)
			a.obeying++
			i-- // There may be more.
			if a.t.drawKill(crashes, agentEffect) {
				a.crashProcess()
				return
			}
			if a.t.Rand.IntN(4) > 0 {
				a.obeying--
				a.finish(s)
				continue
			}
			a.scheduleCall(a.t.Between(time.Millisecond, 40*time.Millisecond), func() {
				a.obeying--
				a.finish(s)
				a.pass()
			})
		}
	}
}

// finish tells the machine that a handler has returned.
func (a *actor) finish(s *control.Signal) {
	a.step(agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
	if a.t.drawKill(crashes, agentFinished) {
		a.crashProcess()
	}
}

// pass sends all that is due.
func (p *node) pass() {
	if !p.alive {
		return
	}
	if _, stopped := p.stoppedUntil(); stopped {
		return // The fault that stopped it lets it continue with the alarm that was set.
	}
	wake := clocksync.MaxInstant
	if p.shares {
		wake = p.passShared()
	} else {
		for _, a := range p.actors {
			if a.inside != nil {
				a.inside.look()
			}
			if p.alive && (a.core.Wake() <= p.on.Mono() || p.leaving) {
				at := p.clock.makeStamp(p.t.bent)
				a.tick(agentcore.Input{Kind: agentcore.InTick, At: at}, p.send)
			}
			wake = min(wake, a.core.Wake())
		}
	}
	if p.alive && wake < clocksync.MaxInstant {
		p.alarm.setAlarm(p.on.Host, max(wake, p.on.Mono().Add(50*time.Microsecond)), func() { p.scheduleCall(0, p.pass) })
	}
}

// passShared is pass with the evidence of all: the stamp is read first, and another
// member may begin a state before it is its turn.
func (p *node) passShared() clocksync.Instant {
	due := p.leaving || p.mux.Due(p.on.Mono())
	for _, a := range p.actors {
		due = due || a.core.Wake() <= p.on.Mono()
	}
	wake := min(p.mux.Wake(), clocksync.MaxInstant)
	if !due {
		for _, a := range p.actors {
			wake = min(wake, a.core.Wake())
		}
		return wake
	}
	stampLate := p.t.bent.stampLast
	var at clocksync.Stamp
	if !stampLate {
		at = p.clock.makeStamp(p.t.bent)
	}
	b := &p.bundle
	*b = wire.Bundle{}
	put := func(a *actor, frame []byte) {
		if kind, _ := wire.KindOf(frame); kind == wire.KindHello {
			p.send(a, frame)
			return
		}
		b.Parts = append(b.Parts, wire.Part{Member: a.name, Frame: frame})
	}
	for i := range p.actors {
		if a := p.actors[p.t.Rand.IntN(len(p.actors))]; i == 0 && a.core.Codec() != nil && !p.t.quiet && p.t.Rand.IntN(30) == 0 {
			a.set()
		}
	}
	list := p.actors
	if stampLate { // bent: a member that begins a state meanwhile is reported later
		list = slices.DeleteFunc(slices.Clone(list), func(a *actor) bool { return a.core.Wake() > p.on.Mono() && !a.out.News })
		for _, a := range p.actors {
			if a.core.Codec() != nil && !p.t.quiet && p.t.Rand.IntN(10) == 0 {
				a.set()
			}
		}
		at = p.clock.makeStamp(p.t.bent)
	}
	for _, a := range list {
		if !p.alive {
			return clocksync.MaxInstant
		}
		now := p.on.Mono()
		if a.core.Wake() > now && !a.out.News && !p.leaving {
			continue
		}
		a.tick(agentcore.Input{Kind: agentcore.InTick, At: p.clock.makeStamp(p.t.bent), All: true}, put)
		p.mux.Told(a.core)
	}
	if !p.alive {
		return clocksync.MaxInstant
	}
	p.t.Steps++
	now := p.on.Mono()
	wait := p.mux.Evidence(now, at, b)
	if b.Of > 0 {
		p.t.Evidence++
	}
	if p.t.bent.bundle != nil {
		p.t.bent.bundle(p, b)
	}
	wake = p.mux.Wake()
	if wait >= 0 {
		wake = min(wake, now.Add(wait+1))
	}
	for _, a := range p.actors {
		wake = min(wake, a.core.Wake())
	}
	parts := b.Parts
	for rest := *b; !rest.Empty() && p.alive; {
		frame, left, err := wire.AppendBundle(p.t.takeBuffer(), &rest)
		if err != nil {
			panic(fmt.Sprintf("sim: a bundle of %s: %v", p.name, err))
		}
		rest = left
		p.t.Bundles++
		p.t.carryUp(p, frame, func(l *leader, frame []byte) { l.receiveBundle(p, frame) })
		if p.t.drawKill(crashes, agentBetween) {
			p.crashProcess()
		}
	}
	for i := range parts {
		p.t.freeBuffer(parts[i].Frame)
	}
	return wake
}

func (p *node) send(a *actor, frame []byte) {
	p.t.carryUp(p, frame, func(l *leader, frame []byte) { l.receiveFrame(a.name, "", frame) })
}

// tick takes what a member has to say.
func (a *actor) tick(in agentcore.Input, put func(*actor, []byte)) {
	out := a.step(in)
	t := a.t
	if len(out.Hellos)+len(out.Batches)+len(out.Gones)+len(out.Acks) == 0 {
		return
	}
	if t.drawKill(crashes, agentBeforeSend) {
		a.crashProcess()
		return
	}
	for i := range out.Hellos {
		a.lives[out.Hellos[i].Incarnation] = a.life
	}
	for i := range out.Batches {
		t.toldOf(a, &out.Batches[i])
	}
	t.ofMember(a.core, out, func(frame []byte) {
		if !a.alive {
			t.freeBuffer(frame)
			return
		}
		put(a, frame)
		if !a.shares && t.drawKill(crashes, agentBetween) {
			a.crashProcess()
		}
	})
	if a.alive && t.drawKill(crashes, agentSent) {
		a.crashProcess()
	}
}

// receiveFrame takes a frame for a member of the process, or for its multiplexer.
func (p *node) receiveFrame(to string, frame []byte) {
	if kind, _ := wire.KindOf(frame); p.shares && to == p.name && kind == wire.KindProbe {
		probe, _ := wire.DecodeProbe(frame)
		if p.t.bent.ask == nil || p.t.bent.ask(p, &probe) {
			p.mux.Ask(&probe)
		}
		p.pass()
		return
	}
	for _, a := range p.actors {
		if p.alive && (to == "" || to == a.name) {
			a.receive(toMember(frame))
		}
	}
	p.pass()
}

func (a *actor) receive(in agentcore.Input) {
	if a.step(in).Reception == agentcore.Dropped {
		a.t.Rejoins++
	}
	switch {
	case in.Kind != agentcore.InSignals:
	case a.t.Rand.IntN(4) > 0:
		a.obey()
	default:
		a.scheduleCall(a.t.Between(time.Millisecond, 40*time.Millisecond), func() { // the next check of its work
			a.obey()
			a.pass()
		})
	}
	if held := a.core.Held(); held > agentcore.RingTransitions {
		a.t.addBreach('L', "the ring of %s has %d transitions", a.name, held)
	}
	stats := a.core.Stats()
	settled := uint64(0)
	for _, n := range stats.Fates {
		settled += n
	}
	if most := (control.MaxWaiting + 1) * (len(a.open) + a.obeying); stats.Signals-settled > uint64(most) && stats.Signals-settled < math.MaxInt64 { //nolint:gosec // Few.
		a.t.addBreach('L', "%d signals wait in %d regions of %s", stats.Signals-settled, len(a.open), a.name)
	}
}
