package synccore_test

import (
	"cmp"
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

var seed = flag.Uint64("seed", 0, "one seed of the simulation to repeat")

// worlds is how many seeds of the simulation are tried.
func worlds(t *testing.T) int {
	t.Helper()
	return testcount.Of(t, "WORLDS", 30)
}

const worldConfig = `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1s, then: drop}
    state: {on: bool, n: int}
    predicates:
      all-on:
        when: all(members, .on)
        signal: {kind: activate, region: r}
      two-on:
        when: count(members, .on) >= 2
        signal: {kind: activate, region: r, expires: 2s}
      steady:
        when: any(members, .on)
        for: 20ms
      far:
        when: sum(members, .n) >= 150
        every: true
      two-steady:
        when: count(members, .on) >= 2
        for: 30ms
        cooldown: 100ms
        signal: {kind: activate, region: r, name: two-on, to: holders}
      throughout:
        when: all(members, .on)
        modality: definitely
        for: 5ms
        until: any(members, not .on)
        signal: {kind: activate, region: r, name: all-on}
      perhaps:
        when: all(members, .on)
        modality: possibly
        cooldown: 20ms
        signal: {kind: activate, region: r, name: all-on}
`

// holdTimes are those of the predicates whose own detectors find runs.
var holdTimes = map[string]time.Duration{"two-steady": 30 * time.Millisecond, "throughout": 5 * time.Millisecond}

// TestWorld runs real members and a real synchronizer over a network that
// loses, doubles, delays and reorders, on clocks that differ by up to their
// bounds. A checker that knows true time judges every decision: its states must
// have held together. No signal is applied twice, each has a fate, and after
// the network is well again true predicates are found.
func TestWorld(t *testing.T) {
	if *seed != 0 {
		newWorld(t, *seed).run()
		return
	}
	ever := map[string]int{}
	for s := range uint64(worlds(t)) {
		w := newWorld(t, s+1)
		w.run()
		for name, n := range w.ever {
			ever[name] += n
		}
		if t.Failed() {
			t.Fatalf("repeat with: go test ./internal/synccore -run TestWorld -seed %d", s+1)
		}
	}
	for _, name := range newWorld(t, 1).core.Level().Predicates() {
		if ever[name] == 0 {
			t.Errorf("predicate %s fired in none of %d worlds", name, worlds(t))
		}
	}
}

type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     clocksync.Instant
	events  events
	count   int
	members []*actor
	byName  map[string]*actor
	core    *synccore.Core
	codec   *wire.BatchCodec
	out     synccore.Output
	wake    clocksync.Instant
	bad     bool // the network is
	loss    float64
	fired   map[string]int
	ever    map[string]int
	check   func(*monitor.Verdict) // the checker of a decision
	sent    map[string]bool
	fates   int
	record  recorder
	stepped func(*synccore.Input) // after each step; may be nil
	nobody  bool                  // leads: what is sent to the synchronizer is lost

	multiplexers []*multiplexer // that speak for the members, if they do not themselves
}

// actor is a member: its machine and what it truly did.
type actor struct {
	*world
	name        string
	domain      clocksync.Domain
	skew        time.Duration // of its host's clock against true time
	bound       time.Duration
	core        *agentcore.Core
	reply       agentcore.Output // of the last step
	entry       uint64
	truth       []stretch // in order
	on          bool
	applied     map[string]bool
	causes      map[string]uint64 // the terms of those that were applied, in an entry
	level       *level            // of a process with threads
	multiplexer *multiplexer
}

// stretch is a state as it truly was.
type stretch struct {
	from, to clocksync.Instant
	on       bool
	n        int64
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := emptyWorld(t, seed, worldConfig)
	w.check = w.judge
	return w
}

func emptyWorld(t *testing.T, seed uint64, config string) *world {
	t.Helper()
	plans, err := configfile.Parse("world.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), byName: map[string]*actor{},
		core: synccore.New(plans[0], synccore.Options{Term: 1}), codec: wire.NewBatchCodec(plans[0].State),
		bad: true, fired: map[string]int{}, ever: map[string]int{}, sent: map[string]bool{},
	}
	w.loss = []float64{0, 0.1, 0.3}[w.rng.IntN(3)]
	hosts := 1 + w.rng.IntN(3)
	for i := range 2 + w.rng.IntN(3) {
		host := w.rng.IntN(hosts)
		bound := time.Duration(host) * 2 * time.Millisecond
		a := &actor{
			world: w, name: fmt.Sprintf("m%d", i), domain: clocksync.Domain(fmt.Sprintf("h%d", host)),
			bound: bound, applied: map[string]bool{}, causes: map[string]uint64{},
		}
		a.skew = time.Duration(host%2) * bound * 9 / 10
		a.core = agentcore.New(agentcore.Options{Hello: wire.Hello{Member: a.name, Incarnation: 1, Host: "h", Domain: a.domain}})
		w.members = append(w.members, a)
		w.byName[a.name] = a
	}
	return w
}

type event struct {
	at  clocksync.Instant
	num int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].num < e[j].num
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now.Add(d), w.count, do})
}

func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)))
}

// send carries a frame over the network.
func (w *world) send(frame []byte, deliver func([]byte)) {
	frame = append([]byte(nil), frame...)
	copies := 1
	if w.bad && w.rng.Float64() < w.loss {
		copies = 0
	} else if w.bad && w.rng.Float64() < w.loss/2 {
		copies = 2
	}
	for range copies {
		delay := w.between(50*time.Microsecond, time.Millisecond)
		if w.bad && w.rng.IntN(10) == 0 {
			delay = w.between(time.Millisecond, 40*time.Millisecond)
		}
		w.after(delay, func() { deliver(frame) })
	}
}

const (
	wellAfter = 4 * time.Second
	worldEnds = 12 * time.Second
)

func (w *world) run() {
	for _, a := range w.members {
		a.start()
	}
	w.after(wellAfter, func() {
		w.bad = false
		for _, a := range w.members {
			a.on = true // from now on every state is on
		}
	})
	w.after(worldEnds-3*time.Second, func() { clear(w.fired) })
	w.tick()
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		if e.at > clocksync.Instant(worldEnds) {
			break
		}
		w.now = max(w.now, e.at)
		e.do()
	}
	if w.fired["far"] == 0 {
		w.t.Errorf("a predicate that is true at all times was not found true in the last 3 s, with the network well")
	}
	if w.core.Epoch() == 0 {
		w.t.Errorf("there is no epoch in the end")
	}
	if pending := len(w.sent) - w.fates; pending < 0 || pending > 3*len(w.members) {
		w.t.Errorf("%d signals were sent and %d have a fate", len(w.sent), w.fates)
	}
}

func (w *world) tick() {
	w.after(5*time.Millisecond, w.tick)
	if w.now >= w.wake {
		trip := time.Duration(w.count%7) * 100 * time.Millisecond // how long ago it began
		w.step(synccore.Input{Kind: synccore.InTick, Reached: max(0, w.now.Add(-trip))})
	}
}

func (w *world) step(in synccore.Input) {
	if w.nobody {
		return
	}
	w.record.step(w.t, w.core, w.now, &in, &w.out)
	w.wake = w.out.Wake
	if w.stepped != nil {
		w.stepped(&in)
	}
	for _, m := range w.out.Welcomes {
		frame, err := wire.AppendWelcome(nil, &m.Msg)
		w.down(m.To, frame, err)
	}
	for _, m := range w.out.Probes {
		frame, err := wire.AppendProbe(nil, &m.Msg)
		w.down(m.To, frame, err)
	}
	for _, m := range w.out.Resends {
		frame, err := wire.AppendResend(nil, &m.Msg)
		w.down(m.To, frame, err)
	}
	for _, m := range w.out.Signals {
		for _, sig := range m.Msg.Signals {
			w.sent[sig.Decision.String()+sig.Name+m.To] = true
		}
		frame, _, err := wire.AppendSignals(nil, &m.Msg)
		w.down(m.To, frame, err)
	}
	for _, v := range w.out.Verdicts {
		if v.Fired {
			w.fired[v.Predicate]++
			w.ever[v.Predicate]++
			w.check(&v)
		}
	}
	for _, f := range w.out.Fates {
		if w.sent[f.Signal.Decision.String()+f.Signal.Name+f.Signal.Target] { // Else it had it at once.
			w.fates++
		}
	}
}

// judge is the checker: it looks at what truly was.
func (w *world) judge(v *monitor.Verdict) {
	from, to := clocksync.MinInstant, clocksync.MaxInstant
	on, n := 0, int64(0)
	for _, p := range v.Witness {
		if p.State.Unknown {
			continue
		}
		a := w.byName[p.Name]
		s, ok := a.find(p.State.Start)
		if v.Modality != "" {
			s = a.run(s)
		}
		if !ok {
			w.t.Errorf("%s: the witness has state %d of %s, which never was", v.Predicate, p.State.Seq, p.Name)
			return
		}
		from, to = max(from, s.from), min(to, s.to)
		if s.on {
			on++
		}
		n += s.n
	}
	if v.Modality != "possibly" && (from >= to || to.Sub(from) < holdTimes[v.Predicate]) {
		w.t.Errorf("%s: the states of the witness never held together: latest start %v, earliest end %v: %+v", v.Predicate, from, to, v.Witness)
	}
	holds := map[string]bool{"all-on": on == len(v.Witness), "two-on": on >= 2, "steady": on >= 1, "far": n >= 150}
	holds["two-steady"], holds["throughout"], holds["perhaps"] = holds["two-on"], holds["all-on"], holds["all-on"]
	if !holds[v.Predicate] {
		w.t.Errorf("%s fired and is false on its witness %+v", v.Predicate, v.Witness)
	}
	if v.Truth != predicates.True {
		w.t.Errorf("%s fired with verdict %v", v.Predicate, v.Truth)
	}
}

// find looks up the state that truly began at a stamp.
func (a *actor) find(at clocksync.Stamp) (stretch, bool) {
	i, ok := slices.BinarySearchFunc(a.truth, a.trueTime(at), func(s stretch, at clocksync.Instant) int {
		return cmp.Compare(s.from, at)
	})
	if !ok {
		return stretch{}, false
	}
	return a.truth[i], true
}

// run is the time in which the member was on without a break, beginning with a state.
func (a *actor) run(first stretch) stretch {
	for _, s := range a.truth {
		if s.from == first.to && s.on && first.on {
			first.to = s.to
		}
	}
	return first
}

func (w *world) down(to string, frame []byte, err error) {
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range w.members {
		if a.name == to || to == "" {
			w.send(frame, a.receive)
		}
	}
	for _, c := range w.multiplexers {
		if c.name == to {
			w.send(frame, c.receive)
		}
	}
}

func (a *actor) stampAt(at clocksync.Instant) clocksync.Stamp {
	reading := at.Add(a.skew)
	return clocksync.Stamp{Domain: a.domain, Mono: reading + booted, Within: clocksync.Around(reading, a.bound)}
}

func (a *actor) trueTime(at clocksync.Stamp) clocksync.Instant {
	return (at.Mono - booted).Add(-a.skew)
}

// booted is what a host's monotonic clock shows beside its other clock.
const booted = 1_000_000

// input steps the actor's machine, which must not refuse the input.
func (a *actor) input(in agentcore.Input) *agentcore.Output {
	if a.core.Step(a.now, &in, &a.reply); a.reply.Err != nil {
		a.t.Fatal(a.reply.Err)
	}
	return &a.reply
}

func (a *actor) start() {
	a.entry = a.input(agentcore.Input{Kind: agentcore.InEnter, Region: "r", Handlers: []control.Handler{{Name: "all-on"}, {Name: "two-on"}}}).Entry
	a.flush()
	a.change()
}

// change sets a new state at random times.
func (a *actor) change() {
	a.after(a.between(time.Millisecond, 60*time.Millisecond), a.change)
	if a.core.Codec() == nil {
		return
	}
	a.now++ // no two states start at the same reading
	if a.level != nil {
		a.level.change()
		a.after(a.between(1, 20*time.Millisecond), a.flush) // its goroutine gets to it late
		return
	}
	a.begin()
	a.flush()
}

// begin sets a new state.
func (a *actor) begin() {
	n := int64(100 + a.rng.IntN(5))
	on := a.on || a.rng.IntN(3) > 0
	row := []scgs.Value{scgs.BoolValue(on), scgs.IntValue(n)}
	a.now++
	a.input(agentcore.Input{Kind: agentcore.InState, At: a.stampAt(a.now), Row: row})
	a.note(on, n)
}

// note keeps what truly happened.
func (a *actor) note(on bool, n int64) {
	if len(a.truth) > 0 {
		a.truth[len(a.truth)-1].to = a.now
	}
	a.truth = append(a.truth, stretch{from: a.now, to: clocksync.MaxInstant, on: on, n: n})
}

// flush sends what is due, and comes back when more will be.
func (a *actor) flush() {
	if a.multiplexer != nil {
		a.multiplexer.pass()
		return
	}
	a.now++ // evidence is read after the change
	if a.level != nil {
		a.level.evidence()
	}
	for _, frame := range a.frames(a.input(agentcore.Input{Kind: agentcore.InTick, At: a.stampAt(a.now)})) {
		a.send(frame, func(frame []byte) { a.arrive(frame, "") })
	}
	a.again()
}

// frames are those of what a machine has to say.
func (a *actor) frames(out *agentcore.Output) (frames [][]byte) {
	put := func(frame []byte, err error) {
		if err != nil {
			a.t.Fatal(err)
		}
		frames = append(frames, frame)
	}
	for i := range out.Hellos {
		put(wire.AppendHello(nil, &out.Hellos[i]))
	}
	for i := range out.Batches {
		frame, n, err := a.codec.Append(nil, &out.Batches[i])
		if n < len(out.Batches[i].Reports) {
			a.t.Fatalf("a batch of %d reports does not fit", len(out.Batches[i].Reports))
		}
		put(frame, err)
	}
	for i := range out.Gones {
		put(wire.AppendGone(nil, &out.Gones[i]))
	}
	for i := range out.Acks {
		frame, _, err := wire.AppendAck(nil, &out.Acks[i].Ack)
		put(frame, err)
	}
	return frames
}

// again has the member flushed when it is due.
func (a *actor) again() {
	if wake := a.core.Wake(); wake != clocksync.MaxInstant {
		a.after(max(wake.Sub(a.now), time.Millisecond), func() {
			if a.now >= a.core.Wake() {
				a.flush()
			}
		})
	}
}

// arrive is the synchronizer's shell.
func (a *actor) arrive(frame []byte, by string) {
	kind, err := wire.KindOf(frame)
	if err != nil {
		a.t.Fatal(err)
	}
	in := synccore.Input{From: a.name, By: by}
	switch kind {
	case wire.KindHello:
		m, e := wire.DecodeHello(frame)
		in.Kind, in.Hello, err = synccore.InHello, &m, e
	case wire.KindBatch:
		var b wire.Batch
		err = a.codec.Decode(frame, a.world.core.Domain(a.name), &b)
		in.Kind, in.Batch = synccore.InBatch, &b
	case wire.KindGone:
		m, e := wire.DecodeGone(frame)
		in.Kind, in.Gone, err = synccore.InGone, &m, e
	case wire.KindAck:
		m, e := wire.DecodeAck(frame)
		in.Kind, in.Ack, err = synccore.InAck, &m, e
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.step(in)
}

// receive is the agent's shell.
func (a *actor) receive(frame []byte) {
	kind, err := wire.KindOf(frame)
	if err != nil {
		a.t.Fatal(err)
	}
	switch kind {
	case wire.KindWelcome:
		m, _ := wire.DecodeWelcome(frame)
		a.input(agentcore.Input{Kind: agentcore.InWelcome, Welcome: &m})
	case wire.KindProbe:
		m, _ := wire.DecodeProbe(frame)
		a.input(agentcore.Input{Kind: agentcore.InProbe, Probe: &m})
	case wire.KindResend:
		m, _ := wire.DecodeResend(frame)
		a.input(agentcore.Input{Kind: agentcore.InResend, Resend: &m})
	case wire.KindSignals:
		m, _ := wire.DecodeSignals(frame)
		a.input(agentcore.Input{Kind: agentcore.InSignals, Signals: &m})
		a.handle()
	}
	a.flush()
}

// handle runs what waits for the region.
func (a *actor) handle() {
	for {
		s := a.input(agentcore.Input{Kind: agentcore.InNext, Entry: a.entry, Delivery: control.AtCheck}).Signal
		if s == nil {
			return
		}
		key := s.Decision.String() + s.Name
		cause := fmt.Sprint(s.Cause.Plain(), s.Name, s.Entry)
		if term := a.causes[cause]; a.applied[key] || s.Cause.Source != 0 && term != 0 && term != s.Decision.Term {
			a.t.Errorf("%s: %s, %s was applied twice", a.name, key, cause)
		}
		a.applied[key], a.causes[cause] = true, s.Decision.Term
		a.input(agentcore.Input{Kind: agentcore.InFinish, Signal: s, Fate: control.Applied})
	}
}
