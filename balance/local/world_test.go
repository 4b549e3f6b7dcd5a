package local_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// tick is the delay of a message in a world, and how far time goes in a step.
const tick = time.Millisecond

// task has items that are worked on one after the other; it is divisible at more than one.
type task struct {
	items int
	put   *worker  // that has put it
	cost  float64  // of an item, in seconds on a worker of speed 1
	spent *float64 // on the item that runs
}

// worker is a member of a world, and what a member's machine keeps for a strategy.
type worker struct {
	view     local.View
	strategy local.Local
	speed    float64
	slots    int
	waiting  []*task
	running  []*task
	again    clocksync.Instant
	place    int // in the roster; -1: it left
}

// message arrives at an instant.
type message struct {
	at       clocksync.Instant
	from, to *worker
	answer   bool
	demand   local.Demand
	tasks    []*task
}

// world runs workers in virtual time. The first worker never leaves: tasks return to it.
type world struct {
	t        interface{ Fatalf(string, ...any) }
	now      clocksync.Instant
	topology local.Topology
	roster   []*worker
	all      []*worker
	messages []message
	delay    func() time.Duration
	offered  map[[2]*worker]bool // open offers
	still    bool                // tasks start, and none ends

	done, moves, demands int
}

func (w *world) add(c local.Config, speed float64, slots int) {
	strategy, err := local.New(c)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	m := &worker{strategy: strategy, speed: speed, slots: slots, view: local.View{Self: fmt.Sprint("w", len(w.all))}}
	w.roster, w.all = append(w.roster, m), append(w.all, m)
	w.newRoster()
}

// newRoster gives all workers their neighbours, keeping what is known of the old ones.
func (w *world) newRoster() {
	for i, m := range w.roster {
		m.place = i
		old := m.view.Neighbours
		m.view.Neighbours, m.view.Members = nil, len(w.roster)
		for _, j := range w.topology.AppendNeighbours(nil, i, len(w.roster)) {
			n := local.Neighbour{Name: w.roster[j].view.Self}
			if k := slices.IndexFunc(old, func(n local.Neighbour) bool { return n.Name == w.roster[j].view.Self }); k >= 0 {
				n = old[k]
			}
			m.view.Neighbours = append(m.view.Neighbours, n)
		}
		m.again = w.now
	}
}

// leave takes a worker out; its tasks go back to the first one.
func (w *world) leave(m *worker) {
	w.roster = slices.DeleteFunc(w.roster, func(o *worker) bool { return o == m })
	w.all[0].waiting = append(w.all[0].waiting, slices.Concat(m.waiting, m.running)...)
	m.waiting, m.running, m.place = nil, nil, -1
	w.newRoster()
}

func (w *world) byName(name string) *worker {
	for _, m := range w.all {
		if m.view.Self == name {
			return m
		}
	}
	w.t.Fatalf("a demand for %q, which is no member", name)
	return nil
}

// refresh brings the view of a worker up to date after it started what it can.
func (w *world) refresh(m *worker) {
	for len(m.running) < m.slots && len(m.waiting) > 0 {
		m.running, m.waiting = append(m.running, m.waiting[0]), m.waiting[1:]
	}
	v := &m.view
	v.Activity.Set(w.now, len(m.running), m.slots)
	v.Waiting, v.Put, v.Items = len(m.waiting), 0, 0
	for _, t := range m.waiting {
		if t.put == m {
			v.Put++
		}
	}
	for _, t := range m.running {
		v.Items = max(v.Items, t.items)
	}
}

// work lets a worker run for a tick: each slot takes the next task when one ends.
func (w *world) work(m *worker) {
	for i := 0; i < len(m.running); i++ {
		for left := m.speed * tick.Seconds(); left > 0; {
			t := m.running[i]
			used := min(left, t.cost-*t.spent)
			*t.spent += used
			left -= used
			if *t.spent < t.cost-1e-12 {
				continue
			}
			*t.spent = 0
			t.items--
			w.done++
			if t.items == 0 {
				m.view.Done++
			}
			if t.items > 0 {
				continue
			}
			if len(m.waiting) == 0 {
				m.running = slices.Delete(m.running, i, i+1)
				i--
				break
			}
			m.running[i], m.waiting = m.waiting[0], m.waiting[1:]
		}
	}
}

// look asks a strategy and sends its demands.
func (w *world) look(m *worker) {
	demands, again := m.strategy.Look(w.now, &m.view, nil)
	if again < w.now {
		w.t.Fatalf("%s looks again at %v, which is before %v", m.view.Self, again, w.now)
	}
	m.again = again
	for _, d := range demands {
		i := slices.IndexFunc(m.view.Neighbours, func(n local.Neighbour) bool { return n.Name == d.Member })
		if i < 0 || d.Member == m.view.Self {
			w.t.Fatalf("%s asks %s, which is not a neighbour", m.view.Self, d.Member)
		}
		n := &m.view.Neighbours[i]
		if n.Pending {
			w.t.Fatalf("%s asks %s again while a demand is open", m.view.Self, d.Member)
		}
		if n.Pending = true; d.Offer {
			if d.Tasks < 1 || d.Tasks > max(1, len(m.waiting)) {
				w.t.Fatalf("%s offers %d tasks of %d", m.view.Self, d.Tasks, len(m.waiting))
			}
			w.offered[[2]*worker{m, w.byName(d.Member)}] = true
		}
		w.demands++
		w.messages = append(w.messages, message{w.now.Add(w.delay()), m, w.byName(d.Member), false, d, nil})
	}
}

// answer gives what a strategy says, and judges it.
func (w *world) answer(m *worker, asking *worker, d local.Demand) (given []*task) {
	d.Member = asking.view.Self
	share := m.strategy.Answer(w.now, &m.view, d)
	if share.Tasks < 0 || share.Tasks > len(m.waiting) || share.Tasks > 0 && len(m.running) < m.slots && len(m.waiting)-share.Tasks < m.slots-len(m.running) {
		w.t.Fatalf("%s gives %d tasks of %d, %d slots of %d are taken", m.view.Self, share.Tasks, len(m.waiting), len(m.running), m.slots)
	}
	if share.Tasks > 0 {
		given = slices.Clone(m.waiting[:share.Tasks])
		m.waiting = m.waiting[share.Tasks:]
	} else if share.Part != 0 {
		t := slices.MaxFunc(m.running, func(a, b *task) int { return a.items - b.items })
		n := share.ItemsOf(t.items)
		if !(share.Part > 0 && share.Part <= 1) || n < 0 || n >= t.items {
			w.t.Fatalf("%s gives %v, %d of %d items", m.view.Self, share, n, t.items)
		}
		if n > 0 {
			t.items -= n
			given = []*task{{items: n, put: t.put, cost: t.cost, spent: new(float64)}}
		}
	}
	if len(given) > 0 {
		w.moves++
	}
	return given
}

// deliver carries out what arrived.
func (w *world) deliver() {
	due := w.messages[:0:0]
	w.messages = slices.DeleteFunc(w.messages, func(m message) bool {
		if m.at <= w.now {
			due = append(due, m)
		}
		return m.at <= w.now
	})
	for _, m := range due {
		switch {
		case m.demand.Offer && !m.answer && m.to.place >= 0:
			w.offer(m)
		case !m.answer && m.to.place < 0: // A member that left: the machine counts a refusal.
			w.settle(m.from, m.to, nil)
		case !m.answer:
			w.refresh(m.to)
			if w.offered[[2]*worker{m.to, m.from}] { // It has taken an offer.
				w.settle(m.to, m.from, []*task{nil})
			}
			given := w.answer(m.to, m.from, m.demand)
			w.messages = append(w.messages, message{w.now.Add(w.delay()), m.to, m.from, true, m.demand, given})
			w.refresh(m.to)
		case m.to.place < 0:
			w.all[0].waiting = append(w.all[0].waiting, m.tasks...)
		default:
			m.to.waiting = append(m.to.waiting, m.tasks...)
			w.settle(m.to, m.from, m.tasks)
		}
	}
}

// offer shows an offer to a worker, which asks for it or refuses.
func (w *world) offer(m message) {
	i := slices.IndexFunc(m.to.view.Neighbours, func(n local.Neighbour) bool { return n.Name == m.from.view.Self })
	if i < 0 {
		w.settle(m.from, m.to, nil)
		return
	}
	w.refresh(m.to)
	n, before := &m.to.view.Neighbours[i], len(w.messages)
	n.Offers = m.demand.Tasks
	w.look(m.to)
	n.Offers = 0
	if !slices.ContainsFunc(w.messages[before:], func(d message) bool { return d.to == m.from && !d.demand.Offer }) {
		w.messages = append(w.messages, message{w.now.Add(w.delay()), m.to, m.from, true, m.demand, nil})
	}
}

func (w *world) settle(m, asked *worker, given []*task) {
	delete(w.offered, [2]*worker{m, asked})
	for i := range m.view.Neighbours {
		if n := &m.view.Neighbours[i]; n.Name == asked.view.Self {
			n.Pending = false
			if n.Refusals++; len(given) > 0 {
				n.Refusals = 0
			}
			n.Answered = w.now
		}
	}
}

// step advances by a tick, in a still world by ten. Every tenth tick, members tell their loads.
func (w *world) step() {
	w.now = w.now.Add(tick)
	if w.still {
		w.now = w.now.Add(10*tick - w.now.Sub(0)%(10*tick))
	}
	for _, m := range w.roster {
		if !w.still {
			w.work(m)
		}
	}
	w.deliver()
	for _, m := range w.roster {
		w.refresh(m)
		if w.now%(10*clocksync.Instant(tick)) == 0 {
			for i := range m.view.Neighbours {
				n := &m.view.Neighbours[i]
				o := w.byName(n.Name)
				n.Load, n.Told = float64(len(o.waiting)), w.now
				if o.view.Items > 1 {
					n.Load++
				}
			}
		}
		w.look(m)
	}
}

// open is how many items are left, wherever they are.
func (w *world) open() (n int) {
	for _, m := range w.all {
		for _, t := range slices.Concat(m.waiting, m.running) {
			n += t.items
		}
	}
	for _, m := range w.messages {
		for _, t := range m.tasks {
			n += t.items
		}
	}
	return n
}

var configs = []local.Config{
	{},
	aldy,
	{Below: "avg(0.9, 0.2)", From: "activity", Again: time.Millisecond, Share: 1},
	{Below: "avg(1, 0.1)", From: "avg(0, 1)", Share: 0.01},
	{Below: "idle(0.05)", From: "free(0)", Longest: time.Hour},
	{Below: "activity", From: "idle(1)"},
	{Kind: local.Sender},
	{Kind: local.Market},
	{Kind: local.Market, Below: "idle(0.05)", Latency: 50 * time.Millisecond},
	{Kind: local.Field},
	{Kind: local.Field, Share: 0.4},
	{Kind: local.Sender, Below: "idle(0.05)", From: "avg(0.6, 0.5)", Again: time.Second, Share: 1},
	{Kind: local.Diffusion},
	{Kind: local.Diffusion, Factor: 0.9, Start: 8, Latency: 100 * time.Millisecond},
	{Kind: local.Links, Links: "w0(o=(L>=1))[1/2]#w1, w1(o=(L>=1))[2/3]#w2, w2(o=(L>=1))[1]#w0, w0(u=(L<1))[1]#w3(u=(L<1))[1/2]"},
	{Kind: local.Links, Links: "w0(u=(L<1),o=(L>=3))[1/2]#w1(u=(L<1))[1/2], w1(u=(L<2))#w2[1/2], w2(o=(L>1))[0.9]#w0(u=(L<=0))"},
	{Kind: local.Tree, Speeds: "w0: 1, w1: 4, w2: 2"},
	{Kind: local.Tree, Share: 0.5, Below: "idle(0.01)"},
	{Kind: local.Chunk},
	{Kind: local.Chunk, Cut: "ss"},
	{Kind: local.Chunk, Cut: "css(8)", Below: "idle(0.01)"},
	{Kind: local.Chunk, Cut: "tss"},
	{Kind: local.Chunk, Cut: "fac2"},
}

// TestWorlds lets members join, leave, put, run and split tasks at random, under each
// strategy and topology. No demand goes to a member itself or to one that left, no
// answer gives more than there is, no item is lost or twice. When no task ends any
// more, moves cease; and when tasks end again, all are done.
func TestWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(configs).Draw(t, "config")
		w := &world{t: t, offered: map[[2]*worker]bool{}, topology: local.Topology(rapid.SampledFrom(local.Topologies).Draw(t, "topology"))}
		w.delay = func() time.Duration { return time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * tick }
		total := 0
		put := func(m *worker) {
			k := task{items: 1, put: m, cost: rapid.Float64Range(0.001, 0.05).Draw(t, "cost"), spent: new(float64)}
			if rapid.IntRange(0, 4).Draw(t, "bag") == 0 {
				k.items = rapid.IntRange(2, 40).Draw(t, "items")
			}
			total += k.items
			m.waiting = append(m.waiting, &k)
		}
		join := func(first bool) {
			least := 1
			if first {
				least = 0
			}
			w.add(c, rapid.Float64Range(0.5, 4).Draw(t, "speed"), rapid.IntRange(least, 3).Draw(t, "slots"))
		}
		join(true)
		for range rapid.IntRange(1, 5).Draw(t, "members") {
			join(false)
		}
		for range 200 {
			switch rapid.IntRange(0, 39).Draw(t, "event") {
			case 0:
				join(false)
			case 1, 2:
				if n := len(w.roster); n > 2 {
					w.leave(w.roster[rapid.IntRange(1, n-1).Draw(t, "who")])
				}
			case 3, 4, 5, 6:
				for range rapid.IntRange(1, 20).Draw(t, "tasks") {
					put(w.all[0])
				}
			case 7:
				put(w.roster[len(w.roster)-1])
			}
			w.step()
			if w.done+w.open() != total {
				t.Fatalf("%d items are done and %d open, of %d", w.done, w.open(), total)
			}
		}
		w.still = true
		w.delay = func() time.Duration { return tick }
		for range 4000 { // 40 s: an average over 5 s takes 3 s from member to member.
			w.step()
		}
		moves := w.moves
		for range 1000 {
			w.step()
		}
		if w.moves != moves {
			t.Fatalf("%d moves while no task ends", w.moves-moves)
		}
		w.still = false
		for i := 0; w.open() > 0; i++ {
			if i == 100_000 {
				t.Fatalf("%d items are left after 100 s", w.open())
			}
			w.step()
		}
		if w.done != total {
			t.Fatalf("%d items are done, of %d", w.done, total)
		}
	})
}

// TestEfficiency has 16 members of speeds 1 to 8 run 4,000 equal items that one of them
// puts, as tasks and as one bag. The bound is the work by all speeds. Chunks by halves
// are shown beside the receiver: a large first chunk at a slow member holds up the end.
func TestEfficiency(t *testing.T) {
	const all, cost = 4000, 0.05
	for _, c := range []local.Config{{Kind: local.Receiver}, {Kind: local.Chunk, Cut: "fac2"}, {Kind: local.Sender}} {
		for what, items := range map[string]int{"tasks": 1, "bag": all} {
			w := &world{t: t, offered: map[[2]*worker]bool{}, topology: local.Full, delay: func() time.Duration { return tick }}
			speeds := 0.0
			for i := range 16 {
				speed := 1 + 7*float64(i)/15
				speeds += speed
				w.add(c, speed, 1)
			}
			for range all / items {
				w.all[0].waiting = append(w.all[0].waiting, &task{items: items, put: w.all[0], cost: cost, spent: new(float64)})
			}
			for w.open() > 0 {
				w.step()
			}
			efficiency := all * cost / speeds / w.now.Sub(0).Seconds()
			t.Logf("%s, %s: %.3f of the bound, %d moves, %d demands", c.Kind, what, efficiency, w.moves, w.demands)
			if c.Kind == local.Receiver && efficiency < 0.95 {
				t.Errorf("%s, %s: %.3f of the bound", c.Kind, what, efficiency)
			}
		}
	}
}
