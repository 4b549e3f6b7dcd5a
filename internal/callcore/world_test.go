package callcore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/callcore"
)

// world is some members, the messages between them, and a judge of what their calls come to.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	faults  bool
	now     clocksync.Instant
	nodes   []*node
	mail    []letter
	rule    func(string) callcore.Rule
	slots   int
	run     time.Duration // the longest run
	ran     map[string]int
	order   []string // bodies in the order in which they began
	servers []string // that ran them
	sent    []callcore.Message
}

type letter struct {
	at   clocksync.Instant
	data []byte
}

type node struct {
	w     *world
	peer  callcore.Peer
	m     *callcore.Machine
	out   bool // of the roster
	runs  []runEnd
	calls map[uint64]*made
}

type runEnd struct {
	callcore.Run
	at clocksync.Instant
}

// made is a call, as its maker knows it.
type made struct {
	want  string
	ended *callcore.Outcome
}

func newWorld(t *testing.T, seed uint64, rule callcore.Rule) *world {
	return &world{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), rule: func(string) callcore.Rule { return rule }, slots: 1, ran: map[string]int{},
		run: 20 * time.Millisecond, now: clocksync.Instant(time.Hour),
	}
}

func (w *world) add(name string, life uint64, served ...string) *node {
	n := &node{w: w, peer: callcore.Peer{Name: name, Life: life}, calls: map[uint64]*made{}}
	n.m = callcore.New(callcore.Options{Self: n.peer, Served: served, Slots: w.slots, Rule: w.rule, First: uint64(w.now)})
	w.nodes = append(w.nodes, n)
	return n
}

// roster tells all members who is there.
func (w *world) roster() {
	var peers []callcore.Peer
	for _, n := range w.nodes {
		if !n.out {
			peers = append(peers, n.peer)
		}
	}
	for _, n := range w.nodes {
		n.m.TakeRoster(w.now, peers)
		n.carry()
	}
}

// carry carries out what a machine asks for, and judges it.
func (n *node) carry() {
	w := n.w
	out := n.m.Output()
	for _, msg := range out.Messages {
		w.sent = append(w.sent, msg)
		copies := 1
		if w.faults {
			copies = [10]int{0, 2, 1, 1, 1, 1, 1, 1, 1, 1}[w.rand.IntN(10)]
		}
		for range copies {
			w.mail = append(w.mail, letter{w.now.Add(time.Duration(w.rand.IntN(3000)) * time.Microsecond), msg.Append(nil)})
		}
	}
	for _, r := range out.Runs {
		text := string(r.Body)
		w.ran[r.Name+" "+text]++
		w.order, w.servers = append(w.order, text), append(w.servers, n.peer.Name)
		n.runs = append(n.runs, runEnd{r, w.now.Add(time.Duration(w.rand.Int64N(int64(w.run))))})
	}
	for _, stop := range out.Stops {
		n.runs = slices.DeleteFunc(n.runs, func(r runEnd) bool { return r.ID == stop })
	}
	for _, o := range out.Outcomes {
		c := n.calls[o.Number]
		switch {
		case c == nil:
			w.t.Fatalf("an outcome of call %d, which was not made", o.Number)
		case c.ended != nil:
			w.t.Fatalf("call %d has the outcomes %+v and %+v", o.Number, c.ended, o)
		case o.Fault == callcore.None && string(o.Body) != c.want:
			w.t.Fatalf("call %d has the result %q, want %q", o.Number, o.Body, c.want)
		}
		c.ended = &o
	}
	if calls, bytes := n.m.Held(); calls > callcore.MaxHeld || bytes > callcore.MaxHeldBytes+callcore.MaxBody || bytes < 0 {
		w.t.Fatalf("%s holds %d calls with %d bytes", n.peer.Name, calls, bytes)
	}
}

// find is the present life of a member.
func (w *world) find(p callcore.Peer) *node {
	for _, n := range w.nodes {
		if n.peer == p {
			return n
		}
	}
	return nil
}

// step advances to the next due event, at most a millisecond on.
func (w *world) step() {
	w.now = w.now.Add(200 * time.Microsecond)
	due := w.mail
	w.mail = nil
	for _, l := range due {
		if l.at > w.now {
			w.mail = append(w.mail, l)
			continue
		}
		msg, err := callcore.Names(nil).Read(l.data)
		if err != nil {
			w.t.Fatal(err)
		}
		if n := w.find(msg.To); n != nil {
			n.m.Take(w.now, &msg)
			n.carry()
		}
	}
	for _, n := range w.nodes {
		ended := slices.Clone(n.runs)
		n.runs = slices.DeleteFunc(n.runs, func(r runEnd) bool { return r.at <= w.now })
		for _, r := range ended {
			if r.at > w.now {
				continue
			}
			failed, result := false, r.Name+"("+string(r.Body)+")"
			if strings.Contains(result, "bad") {
				failed, result = true, "it is bad"
			}
			n.m.Ended(w.now, r.ID, failed, []byte(result))
			n.carry()
		}
		if n.m.Wake() <= w.now {
			n.m.Tick(w.now)
			n.carry()
		}
	}
}

// until runs until something holds, for a while at most.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := w.now.Add(5 * time.Minute); !holds(); w.step() {
		if w.now > end {
			for _, n := range w.nodes {
				calls, _ := n.m.Held()
				w.t.Logf("%v holds %d", n.peer, calls)
			}
			w.t.Fatalf("%s: it has not come", what)
		}
	}
}

func (n *node) call(text string, names ...string) *made {
	return n.callWith(callcore.Stage{Name: names[0]}, text, names[1:]...)
}

func (n *node) callWith(stage callcore.Stage, text string, then ...string) *made {
	n.w.t.Helper()
	number, err := n.m.Call(n.w.now, stage, 1, []byte(text))
	if err != nil {
		n.w.t.Fatal(err)
	}
	c := &made{want: stage.Name + "(" + text + ")"}
	n.calls[number] = c
	for _, name := range then {
		if n.w.faults && n.w.rand.IntN(2) == 0 {
			n.carry()
			for range n.w.rand.IntN(100) {
				n.w.step()
			}
		}
		if err := n.m.Then(n.w.now, number, callcore.Stage{Name: name}); err == nil {
			c.want = name + "(" + c.want + ")"
		} else if c.ended == nil {
			n.w.t.Fatal(err)
		}
	}
	n.carry()
	return c
}

// over reports whether all calls of the members have ended, and nobody holds anything.
func (w *world) over() bool {
	for _, n := range w.nodes {
		for _, c := range n.calls {
			if c.ended == nil {
				return false
			}
		}
		if calls, bytes := n.m.Open(); calls > 0 || bytes != 0 {
			w.t.Fatalf("%d calls with %d bytes are open, and all have ended", calls, bytes)
		}
		calls, bytes := n.m.Held()
		if calls > 0 {
			return false
		}
		if bytes != 0 {
			w.t.Fatalf("no calls are held with %d bytes", bytes)
		}
	}
	return true
}

// TestFaults: with messages that are lost, doubled and late, and members that die, come back, or are cut off, each call
// has one outcome, and no server keeps anything in the end.
func TestFaults(t *testing.T) {
	rules := []callcore.Rule{
		{Retry: 3},
		{Retry: 1000},
		{Retry: 1000, Style: callcore.Demand, Low: 2, High: 4},
		{Retry: 1000, Replicas: []string{"a", "b", "c"}, Ratio: []int{1, 2, 3}},
		{Retry: 1000, Batch: 8, Linger: 2 * time.Millisecond, Order: func(w callcore.Waiting) float64 { return float64(-w.Size) }},
	}
	for seed := range uint64(150) {
		rule := rules[seed%uint64(len(rules))]
		w := newWorld(t, seed, rule)
		w.faults, w.slots = true, 1+w.rand.IntN(3)
		served := [][]string{{"f", "g"}, {"f"}, {"g"}, {"f", "g", "h"}, {}}
		life := uint64(0)
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			life++
			w.add(name, life, served[(i+int(seed))%5]...)
		}
		w.roster()
		lost := 0
		for range 60 {
			for range w.rand.IntN(30) {
				w.step()
			}
			n := w.nodes[w.rand.IntN(len(w.nodes))]
			switch w.rand.IntN(20) {
			case 0: // It dies, and another process has its name.
				life++
				w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == n })
				w.roster()
				w.add(n.peer.Name, life, served[w.rand.IntN(5)]...)
				w.roster()
				lost++
			case 1: // It is cut off, and comes back.
				n.out = !n.out
				w.roster()
				lost++
			case 3:
				n.m.SetAway(w.now, w.rand.IntN(2) == 0)
				n.carry()
			case 2:
				n.call(fmt.Sprint("bad", w.rand.IntN(9)), "f", "g")
			default:
				n.call(strconv.Itoa(w.rand.IntN(1000)), [][]string{{"f"}, {"g"}, {"f", "g"}, {"g", "f", "g"}}[w.rand.IntN(4)]...)
			}
		}
		w.faults = false
		life++
		w.add("z", life, "f", "g")
		if rule.Replicas != nil {
			w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return n.peer.Name == "a" })
			w.add("a", life, "f", "g")
		}
		for _, n := range w.nodes {
			n.out = false
			n.m.SetAway(w.now, false)
			n.carry()
		}
		w.roster()
		w.until(fmt.Sprintf("seed %d", seed), w.over)
		for _, n := range w.nodes {
			for _, c := range n.calls {
				switch c.ended.Fault {
				case callcore.Lost:
					if rule.Retry > 3 || lost == 0 {
						t.Fatalf("seed %d: %+v", seed, c.ended)
					}
				case callcore.Failed:
					if !strings.Contains(c.want, "bad") || c.ended.Text != "it is bad" {
						t.Fatalf("seed %d: %+v for %s", seed, c.ended, c.want)
					}
				case callcore.Overfull:
					t.Fatalf("seed %d: %+v", seed, c.ended)
				case callcore.None:
					if strings.Contains(c.want, "bad") {
						t.Fatalf("seed %d: %+v for %s", seed, c.ended, c.want)
					}
				}
			}
		}
	}
}

// TestOnce: where nothing is lost each call runs once, and a chain goes from server to server.
func TestOnce(t *testing.T) {
	w := newWorld(t, 1, callcore.Rule{Retry: 1})
	a := w.add("a", 1)
	w.add("b", 1, "f")
	w.add("c", 1, "g")
	w.roster()
	for i := range 100 {
		a.call(strconv.Itoa(i), "f", "g")
	}
	w.until("results", w.over)
	if len(w.ran) != 200 {
		t.Errorf("%d functions ran, want 200", len(w.ran))
	}
	for what, n := range w.ran {
		if n != 1 {
			t.Errorf("%s ran %d times", what, n)
		}
	}
	direct := 0
	for _, m := range w.sent {
		if m.Kind == callcore.Ask && m.From.Name == "b" && m.To.Name == "c" {
			direct++
		}
		if m.Kind == callcore.Answer && m.From.Name == "b" {
			t.Fatal("the result of f went to the caller")
		}
	}
	if direct != 100 {
		t.Errorf("%d results went from server to server, want 100", direct)
	}
}
