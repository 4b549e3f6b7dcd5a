package synccore_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/agentcore"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// onDemandRules are the rules that TestOnDemand draws from.
var onDemandRules = []string{
	`{when: "all(members, .on)"}`,
	`{when: "none(members, .on)"}`,
	`{when: "all(members, .on)", for: 3ms}`,
	`{when: "len(filter(members, .on)) >= 2", every: true}`,
	`{when: "count(members, .on) <= 1", for: 8ms}`,
	`{when: "one(members, .on)"}`,
	`{when: "sum(members, .n) >= 9"}`,
	`{when: "sum(members, .n) <= 2", every: true}`,
	`{when: "mean(map(filter(members, .on), .n)) > 2"}`,
	`{when: "all(members, .online) && any(members, .n == 3 && .on)"}`,
	`{when: "all(members, .on) && max(map(members, .n)) < 4", once: epoch}`,
	`{when: "find(members, .on).n == 2"}`,
	`{when: "all(members, not .on or .n > 1) && any(members, .on)", for: 1ms}`,
	`{when: "len(filter(members, .n == 0)) == 0 ? all(members, .on) : none(members, .on)"}`,
}

// otherRules are those with which the machine always asks.
var otherRules = []string{
	`{when: "all(members, .on)", cooldown: 10ms}`,
	`{when: "all(members, .on)", modality: definitely}`,
	`{when: "all(members, .on)", until: "none(members, .on)"}`,
	`{when: "count(members, .on) >= 2", for: 2ms}`,
	`{when: "sum(members, .n) > sum(prev, .n)"}`,
}

// demand is a system whose members change their states and whose messages take their time
// whatever the machine asks: two machines that are run on it receive the same.
type demand struct {
	t        *testing.T
	config   string
	members  []*supplier
	events   events
	count    int
	now      clocksync.Instant
	core     *synccore.Core
	codec    *wire.BatchCodec
	out      synccore.Output
	wake     clocksync.Instant
	began    clocksync.Instant // messages sent before are not counted
	stepped  func()            // after each step; may be nil
	probes   int
	batches  int
	verdicts []dated
}

// dated is a verdict and when it was reported.
type dated struct {
	predicate, text string
	fired           bool
	at              clocksync.Instant
}

// supplier is a member of it.
type supplier struct {
	*demand
	name    string
	domain  clocksync.Domain
	skew    time.Duration
	bound   time.Duration
	changes []change
	delay   [2]func(at clocksync.Instant) time.Duration
	arrived [2]clocksync.Instant // the last message, up and down
	core    *agentcore.Core
	reply   agentcore.Output
}

// change is a state that a member takes.
type change struct {
	at  clocksync.Instant
	row []scgs.Value
}

const (
	demandBegins = 200 * time.Millisecond
	demandEnds   = 700 * time.Millisecond
	demandOver   = 2 * time.Second // after some heartbeats
)

// newDemand draws a system. It returns the longest time that a question and its answer take.
func newDemand(t *testing.T, seed uint64, rules []string, onDemand bool) (*demand, time.Duration) {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 7))
	n := 2 + dice.IntN(4)
	var text strings.Builder
	fmt.Fprintf(&text, "synchronizers:\n  gsync:\n    members: {group: g, count: %d}\n    silence: {after: 1h, then: block}\n    state: {on: bool, n: int}\n    predicates:\n", n)
	for i := range 1 + dice.IntN(3) {
		fmt.Fprintf(&text, "      p%d: %s\n", i, rules[dice.IntN(len(rules))])
	}
	d := buildDemand(t, text.String(), onDemand)
	hosts := 1 + dice.IntN(3)
	slowest, bound := time.Duration(0), time.Duration(0)
	slow := []time.Duration{200 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond}[dice.IntN(3)]
	pace := []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond}[dice.IntN(3)]
	for i := range n {
		host := dice.IntN(hosts)
		m := d.add(fmt.Sprintf("m%d", i), host, time.Duration(host)*200*time.Microsecond)
		bound = max(bound, m.bound)
		base, salt := time.Duration(1+dice.Int64N(int64(slow))), dice.Uint64()
		for way := range m.delay {
			m.delay[way] = func(at clocksync.Instant) time.Duration {
				burst := rand.New(rand.NewPCG(salt, uint64(at/clocksync.Instant(7*time.Millisecond))*2+uint64(way)))
				return base + time.Duration(burst.Int64N(int64(base)))
			}
		}
		slowest = max(slowest, 2*base)
		likely, lazy := dice.IntN(10), 1+dice.IntN(4)
		for at := clocksync.Instant(demandBegins); len(m.changes) < 40 && at < clocksync.Instant(demandEnds); at += 1000 * (1 + clocksync.Instant(dice.Int64N(int64(pace)*int64(lazy)/500))) {
			m.changes = append(m.changes, change{at + clocksync.Instant(2*i), []scgs.Value{scgs.BoolValue(dice.IntN(10) < likely), scgs.IntValue(dice.Int64N(5))}})
		}
	}
	trip := 2*slowest + 4*bound
	if strings.Contains(text.String(), "for:") {
		trip *= 2 // The hold time is asked for when it is over, from when the condition was found.
	}
	return d, trip
}

// buildDemand is a system without members.
func buildDemand(t *testing.T, config string, onDemand bool) *demand {
	t.Helper()
	plans, err := configfile.Parse("demand.yaml", []byte(config))
	if err != nil {
		t.Fatalf("%v\n%s", err, config)
	}
	return &demand{
		t: t, config: config, codec: wire.NewBatchCodec(plans[0].State),
		core: synccore.New(plans[0], synccore.Options{Term: 1, OnDemand: onDemand}),
	}
}

func (d *demand) add(name string, host int, bound time.Duration) *supplier {
	m := &supplier{demand: d, name: name, domain: clocksync.Domain(fmt.Sprint("h", host)), bound: bound, skew: bound * 9 / 10}
	if host%2 == 0 {
		m.skew = -m.skew
	}
	m.core = agentcore.New(agentcore.Options{Hello: wire.Hello{Member: name, Incarnation: 1, Host: string(m.domain), Domain: m.domain}})
	d.members = append(d.members, m)
	return m
}

func (d *demand) after(wait time.Duration, do func()) {
	d.count++
	heap.Push(&d.events, event{d.now.Add(wait), d.count, do})
}

func (d *demand) run(until time.Duration) {
	for _, m := range d.members {
		d.after(0, m.flush)
		for i := range m.changes {
			ch := &m.changes[i]
			d.after(ch.at.Sub(0), func() {
				m.input(agentcore.Input{Kind: agentcore.InState, At: m.stamp(0), Row: ch.row})
				m.flush()
			})
		}
	}
	d.tick()
	for len(d.events) > 0 {
		e := heap.Pop(&d.events).(event)
		if e.at > clocksync.Instant(until) {
			return
		}
		d.now = e.at
		e.do()
	}
}

func (d *demand) tick() {
	if d.now >= d.wake {
		d.step(synccore.Input{Kind: synccore.InTick})
	}
}

func (d *demand) step(in synccore.Input) {
	d.core.Step(d.now, &in, &d.out)
	if d.wake = d.out.Wake; d.wake != clocksync.MaxInstant {
		d.after(max(d.wake.Sub(d.now), 1), d.tick)
	}
	if d.stepped != nil {
		d.stepped()
	}
	for _, w := range d.out.Welcomes {
		frame, err := wire.AppendWelcome(nil, &w.Msg)
		d.down(w.To, frame, err)
	}
	for _, p := range d.out.Probes {
		if d.now >= d.began {
			d.probes++
		}
		frame, err := wire.AppendProbe(nil, &p.Msg)
		d.down(p.To, frame, err)
	}
	if len(d.out.Resends) > 0 || len(d.out.Rejected) > 0 {
		d.t.Fatalf("of a network that loses nothing: %+v %+v", d.out.Resends, d.out.Rejected)
	}
	for _, v := range d.out.Verdicts {
		text := fmt.Appendf(nil, "%s %v fired=%t epoch=%d index=%d", v.Predicate, v.Truth, v.Fired, v.Epoch, v.Index)
		for _, p := range v.Witness {
			text = fmt.Appendf(text, " %s:%d", p.Name, p.State.Seq)
		}
		d.verdicts = append(d.verdicts, dated{v.Predicate, string(text), v.Fired, d.now})
	}
}

func (d *demand) down(to string, frame []byte, err error) {
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range d.members {
		if m.name == to || to == "" {
			m.carry(1, func() { m.receive(frame) })
		}
	}
}

// carry delivers a message after the earlier messages in its direction.
func (m *supplier) carry(way int, deliver func()) {
	m.arrived[way] = max(m.arrived[way]+1, m.now.Add(m.delay[way](m.now)))
	m.after(m.arrived[way].Sub(m.now), deliver)
}

// stamp is the present stamp, and some nanoseconds.
func (m *supplier) stamp(more clocksync.Instant) clocksync.Stamp {
	reading := (m.now + more).Add(m.skew)
	return clocksync.Stamp{Domain: m.domain, Mono: reading + booted, Within: clocksync.Around(reading, m.bound)}
}

func (m *supplier) input(in agentcore.Input) {
	if m.core.Step(m.now, &in, &m.reply); m.reply.Err != nil {
		m.t.Fatal(m.reply.Err)
	}
}

func (m *supplier) flush() {
	m.input(agentcore.Input{Kind: agentcore.InTick, At: m.stamp(1)})
	for i := range m.reply.Hellos {
		hello := m.reply.Hellos[i]
		m.carry(0, func() { m.step(synccore.Input{Kind: synccore.InHello, From: m.name, Hello: &hello}) })
	}
	for i := range m.reply.Batches {
		frame, _, err := m.codec.Append(nil, &m.reply.Batches[i])
		if err != nil {
			m.t.Fatal(err)
		}
		if m.now >= m.began {
			m.batches++
		}
		m.carry(0, func() {
			var b wire.Batch
			if err := m.codec.Decode(frame, m.domain, &b); err != nil {
				m.t.Fatal(err)
			}
			m.step(synccore.Input{Kind: synccore.InBatch, From: m.name, Batch: &b})
		})
	}
	if wake := m.core.Wake(); wake != clocksync.MaxInstant {
		m.after(max(wake.Sub(m.now), time.Millisecond), func() {
			if m.now >= m.core.Wake() {
				m.flush()
			}
		})
	}
}

func (m *supplier) receive(frame []byte) {
	kind, err := wire.KindOf(frame)
	if err != nil {
		m.t.Fatal(err)
	}
	switch kind {
	case wire.KindWelcome:
		w, _ := wire.DecodeWelcome(frame)
		m.input(agentcore.Input{Kind: agentcore.InWelcome, Welcome: &w})
	case wire.KindProbe:
		p, _ := wire.DecodeProbe(frame)
		m.input(agentcore.Input{Kind: agentcore.InProbe, Probe: &p})
	}
	m.flush()
}

// TestOnDemand runs random systems twice. With evidence on demand the same predicates fire on the same
// global states and have the same verdicts, none later by more than a question and its answer.
func TestOnDemand(t *testing.T) {
	systems := testcount.Of(t, "ONDEMAND", 2000)
	from := uint64(0)
	if *seed != 0 {
		systems, from = 1, *seed-1
	}
	var fired, asked, saved int
	for s := range uint64(systems) {
		always, trip := newDemand(t, from+s+1, onDemandRules, false)
		always.run(demandOver)
		some, _ := newDemand(t, from+s+1, onDemandRules, true)
		some.run(demandOver)
		sameVerdicts(t, always, some, trip)
		if t.Failed() {
			t.Fatalf("repeat with: go test ./internal/synccore -run TestOnDemand$ -seed %d\n%s", from+s+1, always.config)
		}
		for _, v := range always.verdicts {
			if v.fired {
				fired++
			}
		}
		asked, saved = asked+always.probes, saved+always.probes-some.probes
	}
	t.Logf("%d systems, %d firings; of %d probes %d were saved", systems, fired, asked, saved)
	if *seed == 0 && (fired < systems || saved <= 0) {
		t.Errorf("%d firings, and %d of %d probes saved: this shows too little", fired, saved, asked)
	}
}

// sameVerdicts compares what two machines have told. The second may be later by a round trip.
func sameVerdicts(t *testing.T, always, some *demand, trip time.Duration) {
	t.Helper()
	for _, d := range []*demand{always, some} { // Which of two hold times ends first depends on when they are looked at.
		slices.SortStableFunc(d.verdicts, func(a, b dated) int { return strings.Compare(a.predicate, b.predicate) })
	}
	for i := range max(len(always.verdicts), len(some.verdicts)) {
		switch {
		case i >= len(some.verdicts):
			t.Errorf("missing: %s at %v", always.verdicts[i].text, always.verdicts[i].at)
			return
		case i >= len(always.verdicts):
			t.Errorf("one too many: %s at %v", some.verdicts[i].text, some.verdicts[i].at)
			return
		}
		a, b := always.verdicts[i], some.verdicts[i]
		if a.text != b.text {
			t.Errorf("verdict %d:\n always asked: %s at %v\n on demand:    %s at %v", i, a.text, a.at, b.text, b.at)
			return
		}
		late := trip
		if !a.fired && trip > 0 {
			late += 100 * time.Millisecond // The end of a predicate is waited for.
		}
		if b.at.Sub(a.at) > late {
			t.Errorf("verdict %d, %s: at %v, on demand at %v: more than %v later", i, a.text, a.at, b.at, late)
		}
	}
}

// TestAlwaysAsks: with a rule that decides by more than the global states in their order the machine
// does what one does that always asks.
func TestAlwaysAsks(t *testing.T) {
	for _, rule := range otherRules {
		for s := range uint64(10) {
			always, _ := newDemand(t, s+1, []string{rule}, false)
			always.run(demandOver)
			some, _ := newDemand(t, s+1, []string{rule}, true)
			some.run(demandOver)
			if sameVerdicts(t, always, some, 0); always.probes != some.probes || always.probes == 0 {
				t.Errorf("%s: %d probes, on demand %d", rule, always.probes, some.probes)
			}
		}
	}
}

// TestOnDemandKeepsFew: however often a member changes while the machine asks nobody, few of its states wait.
func TestOnDemandKeepsFew(t *testing.T) {
	d := buildDemand(t, "synchronizers:\n  gsync:\n    members: {group: g, count: 2}\n    silence: {after: 1h, then: block}\n    state: {on: bool}\n    predicates:\n      all-on: {when: \"all(members, .on)\"}\n", true)
	for i := range 2 {
		m := d.add(fmt.Sprint("m", i), 0, 0)
		for way := range m.delay {
			m.delay[way] = func(clocksync.Instant) time.Duration { return 100 * time.Microsecond }
		}
		m.changes = append(m.changes, change{clocksync.Instant(demandBegins), []scgs.Value{scgs.BoolValue(false)}})
	}
	busy := d.members[0]
	for at := clocksync.Instant(demandBegins); at < clocksync.Instant(demandEnds); at += 20_000 {
		busy.changes = append(busy.changes, change{at + 10_000, []scgs.Value{scgs.BoolValue(at%40_000 == 0)}})
	}
	d.began = clocksync.Instant(demandBegins)
	most := 0
	d.stepped = func() {
		for _, m := range d.core.Status(d.now).Members {
			most = max(most, m.Pending)
		}
	}
	d.run(demandEnds)
	if most < 50 || most > 100 || d.probes == 0 || d.probes > len(busy.changes)/20 {
		t.Errorf("%d states waited, and %d probes were sent at %d changes", most, d.probes, len(busy.changes))
	}
}

// TestWatched: while a user looks at the states, all are asked though no predicate can change.
func TestWatched(t *testing.T) {
	d := buildDemand(t, "synchronizers:\n  gsync:\n    members: {group: g, count: 2}\n    silence: {after: 1h, then: block}\n    state: {on: bool}\n    predicates:\n      all-on: {when: \"all(members, .on)\"}\n", true)
	for i := range 2 {
		m := d.add(fmt.Sprint("m", i), 0, 0)
		for way := range m.delay {
			m.delay[way] = func(clocksync.Instant) time.Duration { return 100 * time.Microsecond }
		}
		m.changes = append(m.changes, change{clocksync.Instant(demandBegins), []scgs.Value{scgs.BoolValue(false)}})
	}
	const looked = demandEnds + 20*time.Second
	busy := d.members[0]
	for at := clocksync.Instant(demandBegins); at < clocksync.Instant(looked+10*time.Second); at += clocksync.Instant(100 * time.Millisecond) {
		busy.changes = append(busy.changes, change{at + 10_000, []scgs.Value{scgs.BoolValue(at%200_000_000 == 0)}})
	}
	d.now = 0
	d.after(looked, func() { d.step(synccore.Input{Kind: synccore.InTick, Watched: true}) })
	var probes [40]int // of each second
	d.stepped = func() { probes[d.now/clocksync.Instant(time.Second)] += len(d.out.Probes) }
	d.run(looked + 10*time.Second)
	at := int(looked / time.Second)
	if before, while, after := probes[at-2], probes[at+1], probes[at+5]; before > 2 || while < 8 || after > 2 {
		t.Errorf("%d probes a second before, %d while somebody looks, %d after: %v", before, while, after, probes)
	}
}

// TestWorldOnDemand is TestWorld with evidence on demand: of a network that loses, too, no decision is
// wrong, and the final truth is found.
func TestWorldOnDemand(t *testing.T) {
	ever := map[string]int{}
	for s := range uint64(worlds(t)) {
		w := emptyWorld(t, s+1, `
synchronizers:
  gsync:
    members: {group: g, count: 2}
    silence: {after: 1s, then: drop}
    state: {on: bool, n: int}
    predicates:
      all-on:
        when: all(members, .on)
        signal: {kind: activate, region: r}
      steady:
        when: all(members, .on) and any(members, .n > 100)
        for: 20ms
      far:
        when: all(members, .on) and sum(members, .n) >= 150
        every: true
`)
		w.check = w.judge
		w.core = synccore.New(w.core.Level(), synccore.Options{Term: 1, OnDemand: true})
		w.record.on = s%8 == 0
		w.run()
		if w.record.on {
			if again, _ := replay(t, w.record.text); string(again.text) != string(w.record.text) {
				t.Errorf("the journal of the replay is another one")
			}
		}
		for name, n := range w.ever {
			ever[name] += n
		}
		if t.Failed() {
			t.Fatalf("seed %d", s+1)
		}
	}
	if len(ever) != 3 {
		t.Errorf("fired: %v", ever)
	}
}

// TestOnDemandSaves counts messages on ten workers that toggle, with a rule that is hardly ever true.
func TestOnDemandSaves(t *testing.T) {
	const workers = 10
	var probes, batches [2]float64
	var verdicts [2]*demand
	for way := range 2 {
		d := buildDemand(t, "synchronizers:\n  gsync:\n    members: {group: g, count: 10}\n    silence: {after: 1h, then: block}\n    state: {idle: bool}\n    predicates:\n      all-idle: {when: \"all(members, .idle)\"}\n", way == 1)
		dice, changes := rand.New(rand.NewPCG(1, 2)), 0
		for i := range workers {
			m := d.add(fmt.Sprintf("m%d", i), 0, 0)
			for way := range m.delay {
				m.delay[way] = func(clocksync.Instant) time.Duration { return 250 * time.Microsecond }
			}
			idle := false
			for at := clocksync.Instant(demandBegins); at < clocksync.Instant(10*time.Second); at += clocksync.Instant(1 + dice.Int64N(int64(20*time.Millisecond))) {
				m.changes = append(m.changes, change{at, []scgs.Value{scgs.BoolValue(idle)}})
				idle = !idle
				changes++
			}
		}
		d.began = clocksync.Instant(demandBegins)
		d.run(11 * time.Second)
		probes[way], batches[way] = float64(d.probes)/float64(changes), float64(d.batches)/float64(changes)
		verdicts[way] = d
	}
	if sameVerdicts(t, verdicts[0], verdicts[1], time.Millisecond); 4*(probes[1]+batches[1]) > probes[0]+batches[0] {
		t.Errorf("messages for each change: %v, on demand %v", probes[0]+batches[0], probes[1]+batches[1])
	}
	t.Logf("messages for each change: %.2f probes and %.2f batches, on demand %.2f and %.2f", probes[0], batches[0], probes[1], batches[1])
}
