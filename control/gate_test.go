package control_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/scgs"
)

// TestGateScenarios plays the commands of testdata/gate against a gate:
//
//	enter region=R [at-check=(names)] [at-once=(names)]
//	leave entry=N
//	offer id=NAME region=R entry=N [kind=cancel] [number=N] [epoch=N] [term=N] [ttl=MS] [data=BYTES] [now=MS]
//	next entry=N [once] [now=MS]
//	finish id=NAME fate=F
//	fence term=N epoch=N
func TestGateScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/gate", func(t *testing.T, path string) {
		w := &gateWorld{gate: control.NewGate(), signals: map[string]*control.Signal{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.out.Reset()
			w.run(t, d)
			for _, o := range w.gate.Settled() {
				fmt.Fprintf(&w.out, "settled %s: %s\n", o.Signal.Predicate, outcome(o))
			}
			return w.out.String()
		})
	})
}

type gateWorld struct {
	gate    *control.Gate
	signals map[string]*control.Signal
	out     strings.Builder
}

func (w *gateWorld) run(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	switch d.Cmd {
	case "enter":
		w.enter(t, d)
	case "leave":
		if s := w.gate.Leave(number(t, d, "entry", 0)); s != nil {
			fmt.Fprintf(&w.out, "cancelled by %s\n", s.Predicate)
		}
	case "offer":
		fmt.Fprintln(&w.out, outcome(w.gate.Offer(at(t, d), w.signal(t, d))))
	case "next":
		how := control.AtCheck
		if d.HasArg("once") {
			how = control.AtOnce
		}
		s := w.gate.Next(at(t, d), number(t, d, "entry", 0), how)
		if s == nil {
			fmt.Fprintln(&w.out, "none")
			return
		}
		fmt.Fprintln(&w.out, s.Predicate)
	case "finish":
		var id, fate string
		d.ScanArgs(t, "id", &id)
		d.ScanArgs(t, "fate", &fate)
		for _, f := range control.Fates {
			if f.String() == fate {
				w.gate.Finish(w.signals[id], f, "")
			}
		}
	case "fence":
		if err := w.gate.Fence("s", number(t, d, "term", 1), number(t, d, "epoch", 1)); err != nil {
			fmt.Fprintln(&w.out, err)
		}
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
}

func (w *gateWorld) enter(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	var region string
	d.ScanArgs(t, "region", &region)
	var handlers []control.Handler
	for _, arg := range d.CmdArgs {
		for _, name := range arg.Vals {
			switch arg.Key {
			case "at-check":
				handlers = append(handlers, control.Handler{Name: name})
			case "at-once":
				handlers = append(handlers, control.Handler{Name: name, At: control.AtOnce})
			}
		}
	}
	entry, err := w.gate.Enter(region, handlers)
	if err != nil {
		fmt.Fprintln(&w.out, err)
		return
	}
	fmt.Fprintf(&w.out, "entry %d\n", entry)
}

// signal makes the signal of a name, or gives the one made before: the id before
// a dash is the name, so that a-1 and a-2 are two signals for handler a.
func (w *gateWorld) signal(t *testing.T, d *datadriven.TestData) *control.Signal {
	t.Helper()
	var id, region string
	d.ScanArgs(t, "id", &id)
	if s, ok := w.signals[id]; ok {
		again := *s
		return &again
	}
	d.ScanArgs(t, "region", &region)
	name, _, _ := strings.Cut(id, "-")
	s := &control.Signal{
		Decision: control.Decision{
			Synchronizer: "s",
			Term:         number(t, d, "term", 1),
			Epoch:        number(t, d, "epoch", 1),
			Number:       number(t, d, "number", uint64(len(w.signals)+1)),
		},
		Name: name, Predicate: id, Kind: control.Activate, Target: "w", Region: region,
		Entry: number(t, d, "entry", 0),
		TTL:   time.Duration(number(t, d, "ttl", 0)) * time.Millisecond,
	}
	if d.HasArg("kind") {
		s.Kind = control.Cancel
	}
	if size := number(t, d, "data", 0); size > 0 {
		s.Data = []control.Datum{{Name: "x", Value: scgs.StringValue(strings.Repeat("x", int(size)))}}
	}
	w.signals[id] = s
	return s
}

func number(t *testing.T, d *datadriven.TestData, arg string, otherwise uint64) uint64 {
	t.Helper()
	if d.HasArg(arg) {
		d.ScanArgs(t, arg, &otherwise)
	}
	return otherwise
}

func at(t *testing.T, d *datadriven.TestData) clocksync.Instant {
	t.Helper()
	return clocksync.Instant(0).Add(time.Duration(number(t, d, "now", 0)) * time.Millisecond)
}

func outcome(o control.Outcome) string {
	s := o.Fate.String()
	if o.Again {
		s += " again"
	}
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	return s
}

func TestGateFinishRefusesWhatDoesNotWait(t *testing.T) {
	g := control.NewGate()
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "the signal does not wait") {
			t.Fatalf("Finish of an unknown signal: %v", r)
		}
	}()
	g.Finish(&control.Signal{Name: "a"}, control.Applied, "")
}

// TestGateForgetsButNeverAppliesTwice offers more signals than a gate remembers
// to one entry, and then copies of all of them.
func TestGateForgetsButNeverAppliesTwice(t *testing.T) {
	g := control.NewGate()
	entry, err := g.Enter("r", []control.Handler{{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	signal := func(n uint64) *control.Signal {
		return &control.Signal{
			Decision: control.Decision{Synchronizer: "s", Term: 1, Epoch: 1, Number: n},
			Name:     "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry,
		}
	}
	const total = control.MaxFates + 100
	for n := uint64(1); n <= total; n++ {
		if o := g.Offer(0, signal(n)); o.Fate != control.Waiting {
			t.Fatalf("signal %d: %v", n, o)
		}
		g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
		g.Settled()
	}
	for n := uint64(1); n <= total; n++ {
		want := control.Applied
		if n <= 100 {
			want = control.Unconfirmed
		}
		if o := g.Offer(0, signal(n)); o.Fate != want {
			t.Fatalf("copy of signal %d: %v (%s), want %v", n, o.Fate, o.Detail, want)
		}
	}
	if s := g.Next(0, entry, control.AtCheck); s != nil {
		t.Fatalf("a copy is applied: %v", s)
	}
}

// TestGateEndsEverySignalOnce drives a gate at random beside a naive model that
// keeps everything it ever saw.
func TestGateEndsEverySignalOnce(t *testing.T) { testGate(t, false) }

// TestGateWithoutMemory is the same for a gate that gets no copies of what has its fate.
func TestGateWithoutMemory(t *testing.T) { testGate(t, true) }

func testGate(t *testing.T, once bool) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		m := &gateModel{
			gate: control.NewGate(), once: once, open: map[string]uint64{}, handed: map[*control.Signal]bool{},
			final: map[control.Decision]control.Fate{}, until: map[control.Decision]clocksync.Instant{}, waits: map[control.Decision]*control.Signal{},
		}
		if once {
			m.gate.Once()
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter":  m.enter,
			"leave":  m.leave,
			"offer":  m.offer,
			"copy":   m.copy,
			"next":   m.nextSignal,
			"finish": m.finish,
			"pass":   func(t *rapid.T) { m.now += clocksync.Instant(rapid.IntRange(0, 5).Draw(t, "ns")) },
			"":       m.check,
		})
		for _, region := range gateRegions {
			if s := m.gate.Leave(m.open[region]); s != nil {
				m.handed[s] = true
			}
		}
		for _, s := range m.made {
			if m.handed[s] {
				m.gate.Finish(s, control.Applied, "")
			}
		}
		m.check(t)
		if len(m.waits) > 0 {
			t.Fatalf("left without a final fate: %v", m.waits)
		}
	})
}

type gateModel struct {
	gate    *control.Gate
	once    bool
	now     clocksync.Instant
	entries uint64
	open    map[string]uint64
	number  uint64
	highest uint64 // epoch
	made    []*control.Signal
	handed  map[*control.Signal]bool // out for their handlers
	waits   map[control.Decision]*control.Signal
	final   map[control.Decision]control.Fate
	until   map[control.Decision]clocksync.Instant // of activations with a TTL
}

var gateRegions = []string{"r", "q"}

func (m *gateModel) enter(t *rapid.T) {
	region := rapid.SampledFrom(gateRegions).Draw(t, "region")
	entry, err := m.gate.Enter(region, []control.Handler{{Name: "a"}, {Name: "b", At: control.AtOnce}})
	if _, open := m.open[region]; open {
		if err == nil {
			t.Fatalf("region %q was entered twice", region)
		}
		return
	}
	m.entries++
	if err != nil || entry != m.entries {
		t.Fatalf("entry %d, %v; want %d", entry, err, m.entries)
	}
	m.open[region] = entry
}

func (m *gateModel) leave(t *rapid.T) {
	region := rapid.SampledFrom(gateRegions).Draw(t, "region")
	if s := m.gate.Leave(m.open[region]); s != nil {
		m.handed[s] = true
	}
	delete(m.open, region)
}

func (m *gateModel) offer(t *rapid.T) {
	m.number++
	s := &control.Signal{
		Decision: control.Decision{Synchronizer: "s", Term: 1, Epoch: uint64(rapid.IntRange(1, 3).Draw(t, "epoch")), Number: m.number},
		Name:     rapid.SampledFrom([]string{"a", "b", "none"}).Draw(t, "name"),
		Kind:     rapid.SampledFrom([]control.Kind{control.Activate, control.Activate, control.Activate, control.Cancel}).Draw(t, "kind"),
		Region:   rapid.SampledFrom(gateRegions).Draw(t, "region"),
		TTL:      time.Duration(rapid.IntRange(0, 4).Draw(t, "ttl")),
	}
	s.Entry = uint64(max(0, int(m.open[s.Region])-rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "behind")))
	o := m.gate.Offer(m.now, s)
	m.made = append(m.made, s)
	if o.Again {
		t.Fatalf("a new signal was taken for a copy: %v", o)
	}
	old := s.Decision.Epoch < m.highest
	m.highest = max(m.highest, s.Decision.Epoch)
	late := s.Entry == 0 || m.open[s.Region] != s.Entry
	switch {
	case old && o.Fate != control.OldEpoch,
		!old && late && o.Fate != control.NoSuchEntry,
		!late && s.Kind == control.Activate && s.Name == "none" && o.Fate == control.Waiting:
		t.Fatalf("%v (old %t, late %t) has fate %v", s, old, late, o.Fate)
	}
	if o.Fate == control.Waiting {
		m.waits[s.Decision] = s
		if s.TTL > 0 && s.Kind == control.Activate {
			m.until[s.Decision] = m.now.Add(s.TTL)
		}
		return
	}
	m.end(t, s.Decision, o.Fate)
}

func (m *gateModel) copy(t *rapid.T) {
	if len(m.made) == 0 {
		t.Skip("nothing was offered yet")
	}
	again := *rapid.SampledFrom(m.made).Draw(t, "signal")
	want, final := m.final[again.Decision]
	until, expires := m.until[again.Decision]
	switch {
	case !final && expires && m.now >= until && !m.handed[m.waits[again.Decision]]:
		want = control.Expired
	case !final:
		want = control.Waiting
	case m.once:
		t.Skip("it would be a new one")
	}
	o := m.gate.Offer(m.now, &again)
	if !o.Again || o.Fate != want {
		t.Fatalf("copy of %v: %v, want %v again", again, o, want)
	}
}

func (m *gateModel) nextSignal(t *rapid.T) {
	region := rapid.SampledFrom(gateRegions).Draw(t, "region")
	how := rapid.SampledFrom([]control.Delivery{control.AtCheck, control.AtOnce}).Draw(t, "how")
	s := m.gate.Next(m.now, m.open[region], how)
	if s == nil {
		return
	}
	if m.handed[s] || m.waits[s.Decision] != s || s.Entry != m.open[region] || s.Kind != control.Activate {
		t.Fatalf("%v was handed out in entry %d", s, m.open[region])
	}
	m.handed[s] = true
}

func (m *gateModel) finish(t *rapid.T) {
	for _, s := range m.made { // in a fixed order
		if m.handed[s] {
			delete(m.handed, s)
			m.gate.Finish(s, control.Applied, "")
			return
		}
	}
	t.Skip("nothing runs")
}

func (m *gateModel) check(t *rapid.T) {
	for _, o := range m.gate.Settled() {
		d := o.Signal.Decision
		if m.waits[d] == nil {
			t.Fatalf("%v was settled and did not wait", o)
		}
		delete(m.waits, d)
		m.end(t, d, o.Fate)
	}
	waiting := map[uint64]int{}
	for _, s := range m.waits {
		if s.Kind == control.Activate {
			waiting[s.Entry]++
		}
	}
	for entry, n := range waiting {
		if n > control.MaxWaiting {
			t.Fatalf("%d signals wait for entry %d", n, entry)
		}
	}
}

func (m *gateModel) end(t *rapid.T, d control.Decision, fate control.Fate) {
	if first, ok := m.final[d]; ok || !fate.Final() {
		t.Fatalf("%v ends in %v, before in %v", d, fate, first)
	}
	m.final[d] = fate
}

// TestACopyAfterItsTimeIsExpired: whoever asks again for a signal that waits and whose time is
// over learns that it takes effect no more.
func TestACopyAfterItsTimeIsExpired(t *testing.T) {
	g, entry := led(t)
	s := control.Signal{
		Decision: control.Decision{Synchronizer: "s", Term: 1, Number: 1}, Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry, TTL: time.Second,
	}
	if o := g.Offer(0, &s); o.Fate != control.Waiting {
		t.Fatalf("%+v", o)
	}
	again := s
	if o := g.Offer(clocksync.Instant(time.Second)-1, &again); o.Fate != control.Waiting || !o.Again {
		t.Errorf("in time: %+v", o)
	}
	if o := g.Offer(clocksync.Instant(time.Second), &again); o.Fate != control.Expired || !o.Again {
		t.Errorf("after its time: %+v", o)
	}
	if settled := g.Settled(); len(settled) != 1 || settled[0].Fate != control.Expired {
		t.Errorf("%+v", settled)
	}
	if next := g.Next(0, entry, control.AtCheck); next != nil {
		t.Errorf("it takes effect: %+v", next)
	}
}

// TestGarbledNumbersKeepFewOut: in one entry a signal whose number was garbled is forgotten, and
// what has a lower one takes effect all the same; nothing does twice.
func TestGarbledNumbersKeepFewOut(t *testing.T) {
	for _, c := range []struct {
		every, step, out int // each so manieth number is garbled; the honest ones differ by so many; so many in a thousand are kept out
	}{{1 << 20, 1, 0}, {500, 1, 0}, {500, 7, 0}, {5, 3, 1000}} {
		g, entry := led(t)
		applied, kept, sent := map[uint64]int{}, 0, 0
		offer := func(n uint64) control.Fate {
			s := &control.Signal{Decision: control.Decision{Synchronizer: "s", Term: 1, Number: n}, Name: "a", Kind: control.Activate, Target: "w", Region: "r", Entry: entry}
			o := g.Offer(0, s)
			if o.Fate == control.Waiting {
				g.Finish(g.Next(0, entry, control.AtCheck), control.Applied, "")
				if applied[n]++; applied[n] > 1 {
					t.Fatalf("%d takes effect twice", n)
				}
			}
			g.Settled()
			return o.Fate
		}
		random := rand.New(rand.NewPCG(1, 2))
		number := uint64(1 << 20)
		for i := range 20_000 {
			number += uint64(c.step)
			if i == 1000 || i%c.every == c.every-1 {
				offer(number ^ 1<<random.IntN(40))
			}
			if sent++; offer(number) == control.Unconfirmed {
				kept++
			}
			if i%100 == 0 && i > 0 {
				offer(number - uint64(c.step*random.IntN(i)))
			}
		}
		if kept*1000 > c.out*sent {
			t.Errorf("%+v: %d of %d are kept out", c, kept, sent)
		}
		for n := range applied {
			offer(n)
		}
	}
}
