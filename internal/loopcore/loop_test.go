package loopcore

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/workcore"
)

// The places of a program of a loop, at which something may happen to its member.
const (
	atNext   = iota // it waits for an iteration
	atFirst         // its iteration has begun
	atMiddle        // it has done a row
	atRest          // it has done all that it has, and may get more
	atClosed        // it gets no more, and has not given its partial result
	atSent          // it has given it
	atEnd
)

// loopNode is one life of a member of a loop, with its program.
type loopNode struct {
	peer   workcore.Peer
	loop   *Loop
	place  int
	cur    int     // the iteration that its program is in
	pos    int     // rows done
	rows   []int   // which
	net    uint64  // what the home carried into it
	speed  float64 // rows a tick
	dead   bool    // killed
	frozen clocksync.Instant
	cut    clocksync.Instant // until when none of its frames arrives
	roster []workcore.Peer
	hears  clocksync.Instant // of roster
	waits  bool              // withdrawn, and stays as a member without rows
	// returns is when a member that is withdrawn takes rows again; 0: never.
	returns clocksync.Instant
	back    bool

	fault          string
	faultAt, iters int
}

// String is how far the node is.
func (n *loopNode) String() string {
	list := []string{fmt.Sprintf("\n%v: at %d of iteration %d, dead %t, begun %t", n.peer, n.place, n.loop.number, n.dead, n.loop.open)}
	for _, o := range n.loop.all() {
		list = append(list, fmt.Sprintf("\n  %v: in %t, number %d, spans %v, done %d, closed %t, has %t", o.Peer, o.in, o.number, o.spans, o.done, o.closed, o.has))
	}
	return strings.Join(list, "")
}

// loopWorld is a world of members of one loop. Its judge looks at what the programs have done and got, and not at the machines.
type loopWorld struct {
	*rand.Rand
	now     clocksync.Instant
	total   int
	last    int // iterations
	nodes   []*loopNode
	roster  []workcore.Peer
	drop    map[workcore.Peer]clocksync.Instant // when the group notices that one is gone
	joins   []*loopNode                         // that come later
	joinAt  []clocksync.Instant
	flights []loopFlight
	nets    []uint64 // carried into iteration i, from 1
	sums    []uint64
	faults  []string
	seen    map[string]int

	// Of mutants.
	arrive func(n *loopNode, from workcore.Peer, f *workcore.LoopFrame)
	lost   func(n *loopNode) // before the home hears of a roster
	after  func(n *loopNode)
}

type loopFlight struct {
	at    clocksync.Instant
	frame workcore.Frame
}

func loopSum(row int, net uint64) uint64 {
	return (uint64(row)*0x9e3779b97f4a7c15 + 1) ^ net*uint64(row+3)
} //nolint:gosec // Of a test.

func newLoopWorld(seed uint64) *loopWorld {
	w := &loopWorld{Rand: rand.New(rand.NewPCG(seed, 7)), drop: map[workcore.Peer]clocksync.Instant{}, seen: map[string]int{}} //nolint:gosec // It is to be repeatable.
	if w.total, w.last = w.IntN(60), 2+w.IntN(4); w.IntN(3) == 0 {                                                             // So many that rows are spare in the first iteration.
		w.total *= 4
	}
	w.nets, w.sums = []uint64{0, 1}, []uint64{0}
	for i := 1; i <= w.last; i++ {
		sum := uint64(0)
		for row := range w.total {
			sum += loopSum(row, w.nets[i])
		}
		w.sums, w.nets = append(w.sums, sum), append(w.nets, w.nets[i]*31+sum)
	}
	n := 1 + w.IntN(5)
	for i := range n {
		node := w.node(fmt.Sprintf("n%d", i+1), 1, i == 0)
		w.nodes = append(w.nodes, node)
		w.roster = append(w.roster, node.peer)
	}
	for range w.IntN(3) {
		name, life := fmt.Sprintf("m%d", len(w.joins)), uint64(1)
		if w.IntN(2) == 0 {
			name, life = fmt.Sprintf("n%d", 2+w.IntN(5)), 2
		}
		if !slices.ContainsFunc(w.joins, func(o *loopNode) bool { return o.peer.Name == name }) {
			w.joins = append(w.joins, w.node(name, life, false))
			w.joinAt = append(w.joinAt, clocksync.Instant(w.IntN(400))*clocksync.Instant(time.Millisecond))
		}
	}
	w.tellRoster()
	return w
}

func (w *loopWorld) node(name string, life uint64, home bool) *loopNode {
	n := &loopNode{peer: workcore.Peer{Name: name, Life: life}, speed: 0.05 + w.Float64(), iters: 1 + w.IntN(w.last), faultAt: w.IntN(atEnd)}
	var err error
	if n.loop, err = New(Options{Name: "rows", Self: n.peer, Home: home, Total: w.total, Repeat: 10 * time.Millisecond}); err != nil {
		panic(err)
	}
	if n.waits = w.IntN(2) == 0; !home && w.IntN(3) > 0 {
		n.fault = []string{"kill", "stop", "cut", "withdraw", "leave"}[w.IntN(5)]
	}
	return n
}

// tellRoster has each node hear of the roster some time later.
func (w *loopWorld) tellRoster() {
	for _, n := range w.nodes {
		n.roster, n.hears = slices.Clone(w.roster), w.now.Add(time.Duration(w.IntN(5))*time.Millisecond)
	}
}

// lose has the group notice later that a life is gone.
func (w *loopWorld) lose(n *loopNode) {
	w.drop[n.peer] = w.now.Add(time.Duration(5+w.IntN(60)) * time.Millisecond)
}

func (w *loopWorld) fail(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%v: ", time.Duration(w.now))+fmt.Sprintf(format, args...))
}

// strike makes the fault of a node happen, if it is its time.
func (w *loopWorld) strike(n *loopNode) {
	number, _, begun := n.loop.Begun()
	at := n.place
	if !begun && n.place != atEnd {
		at = atNext
	}
	if n.fault == "" || number < n.iters || at != n.faultAt {
		return
	}
	w.seen[fmt.Sprintf("%s at %d", n.fault, n.faultAt)]++
	switch n.fault {
	case "kill":
		n.dead = true
		w.lose(n)
	case "stop":
		if n.frozen = w.now.Add(time.Duration(5+w.IntN(30)) * time.Millisecond); w.IntN(2) == 0 {
			n.frozen = n.frozen.Add(150 * time.Millisecond)
			w.lose(n)
		}
	case "cut":
		n.cut = w.now.Add(time.Duration(5+w.IntN(80)) * time.Millisecond)
		if w.IntN(3) == 0 {
			n.cut = n.cut.Add(100 * time.Millisecond)
			w.lose(n)
		}
	case "withdraw":
		if n.place == atFirst || n.place == atMiddle {
			n.loop.SetDone(n.pos, 0)
		}
		n.loop.GiveBack()
		if w.IntN(2) == 0 {
			n.waits, n.returns = true, w.now.Add(time.Duration(w.IntN(60))*time.Millisecond)
		}
	case "leave":
		n.loop.Leave("")
	}
	n.fault = ""
}

// program makes one step of the program of a node.
func (w *loopWorld) program(n *loopNode, home bool) {
	if why, ended := n.loop.Ended(); ended {
		if _, ok := n.loop.Value(n.cur); n.place == atSent && why == "" && !n.loop.self.out && !ok && !home {
			w.fail("%v: the loop has ended, and iteration %d has no value", n.peer, n.cur)
		}
		n.place = atEnd
		return
	}
	switch n.place {
	case atNext:
		w.next(n, home)
	case atSent:
		w.reduce(n, home)
	default:
		list, closed := n.loop.Assigned()
		switch {
		case n.pos < total(list) && !n.loop.self.gives:
			if w.seen["return"] > 0 && n.back {
				w.seen["rows after a return"]++
			}
			if n.place = max(n.place, atFirst); w.Float64() < n.speed {
				n.rows = append(n.rows, rowAt(list, n.pos))
				n.pos++
				n.place = atMiddle
				if n.pos == total(list) {
					n.loop.SetDone(n.pos, n.speed)
				}
			}
		case !closed:
			if n.place < atRest {
				n.place = atRest
				n.loop.SetDone(n.pos, 0)
			}
		case n.place < atClosed:
			n.place = atClosed
		default:
			data, err := json.Marshal(map[string]any{"cur": n.cur, "rows": n.rows, "net": n.net})
			if err == nil {
				err = n.loop.SetPartial(data, "rows")
			}
			if n.place = atSent; err != nil {
				w.fail("%v: %v", n.peer, err)
			}
		}
	}
}

func total(list []workcore.Span) (n int) {
	for _, s := range list {
		n += s.Len()
	}
	return n
}

func rowAt(list []workcore.Span, n int) int {
	for _, s := range list {
		if n < s.Len() {
			return s.Low + n
		}
		n -= s.Len()
	}
	panic("no row")
}

func (w *loopWorld) next(n *loopNode, home bool) {
	number, carry, begun := n.loop.Begun()
	switch {
	case begun:
		n.cur, n.pos, n.rows, n.place = number, 0, nil, atFirst
		if err := json.Unmarshal(carry, &n.net); err != nil || n.net != w.nets[number] {
			w.fail("%v: %s was carried into iteration %d, want %d: %v", n.peer, carry, number, w.nets[number], err)
		}
	case home && number == w.last:
		n.loop.Leave("")
	case home && (number > 0 || len(n.loop.Missing()) == 0):
		carry, _ = json.Marshal(w.nets[number+1])
		if err := n.loop.Open(w.now, carry); err != nil {
			w.fail("%v", err)
		}
	case !home && n.loop.self.gives && !n.waits:
		n.loop.Leave("")
	}
}

// reduce counts the rows of an iteration, at the home, or looks at their sum.
func (w *loopWorld) reduce(n *loopNode, home bool) {
	if !home {
		if value, ok := n.loop.Value(n.cur); ok {
			if n.place = atNext; string(value) != strconv.FormatUint(w.sums[n.cur], 10) {
				w.fail("%v: iteration %d has the value %s, want %d", n.peer, n.cur, value, w.sums[n.cur])
			}
		}
		return
	}
	parts, complete := n.loop.Parts()
	if !complete {
		return
	}
	seen, sum := make([]int, w.total), uint64(0)
	for i, p := range parts {
		var got struct {
			Cur  int
			Rows []int
			Net  uint64
		}
		if err := json.Unmarshal(p.Value, &got); err != nil || got.Cur != n.cur || got.Net != w.nets[n.cur] {
			w.fail("iteration %d has a result of iteration %d: %s", n.cur, got.Cur, p.Value)
		}
		if i > 0 && p.First <= parts[i-1].First || w.total > 0 && (len(got.Rows) == 0 || slices.Min(got.Rows) != p.First) {
			w.fail("iteration %d: the results are in another order than their first rows: %v", n.cur, parts)
		}
		for _, row := range got.Rows {
			seen[row]++
			sum += loopSum(row, got.Net)
		}
	}
	if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) || sum != w.sums[n.cur] {
		w.fail("iteration %d: its rows were counted %v", n.cur, seen)
	}
	if err := n.loop.Reduced(w.now, fmt.Append(nil, sum)); err != nil {
		w.fail("%v", err)
	}
	n.place = atNext
}

// live runs the world until all programs have left the loop.
func (w *loopWorld) live() {
	for ; w.now < clocksync.Instant(20*time.Second) && len(w.faults) == 0; w.now = w.now.Add(time.Millisecond) {
		w.group()
		w.deliver()
		over := len(w.joins) == 0
		for i, n := range w.nodes {
			if n.dead || n.frozen > w.now {
				continue
			}
			if n.hears <= w.now && n.roster != nil {
				if w.lost != nil && i == 0 {
					w.lost(n)
				}
				if n.loop.TakeRoster(w.now, n.roster); !slices.Contains(n.roster, n.peer) {
					n.dead = true // It is out of the group.
					continue
				}
				n.roster = nil
			}
			w.strike(n)
			if n.dead || n.frozen > w.now {
				continue
			}
			if n.returns > 0 && n.returns <= w.now {
				if n.returns = 0; w.IntN(3) > 0 {
					n.fault, n.faultAt = "withdraw", w.IntN(atEnd) // Once more.
				}
				n.back = true
				n.loop.TakeBack()
				w.seen["return"]++
			}
			w.program(n, i == 0)
			if w.after != nil {
				w.after(n)
			}
			w.send(n)
			over = over && n.place == atEnd
		}
		if over {
			if home := w.nodes[0].loop; home.Report().Number != w.last {
				w.fail("the loop has ended in iteration %d", home.Report().Number)
			}
			return
		}
	}
	if len(w.faults) == 0 {
		w.fail("the loop goes on: %v", w.nodes)
	}
}

// group changes the roster.
func (w *loopWorld) group() {
	before := len(w.roster)
	w.roster = slices.DeleteFunc(w.roster, func(p workcore.Peer) bool { at, gone := w.drop[p]; return gone && at <= w.now })
	changed := len(w.roster) != before
	for i, n := range slices.Backward(w.joins) {
		if w.joinAt[i] > w.now && w.nodes[0].place != atEnd || slices.ContainsFunc(w.roster, func(p workcore.Peer) bool { return p.Name == n.peer.Name }) && w.nodes[0].place != atEnd {
			continue
		}
		w.joins, w.joinAt = slices.Delete(w.joins, i, i+1), slices.Delete(w.joinAt, i, i+1)
		if !slices.ContainsFunc(w.roster, func(p workcore.Peer) bool { return p.Name == n.peer.Name }) {
			w.nodes, w.roster, changed = append(w.nodes, n), append(w.roster, n.peer), true
		}
	}
	if changed {
		slices.SortFunc(w.roster, func(a, b workcore.Peer) int { return strings.Compare(a.Name, b.Name) })
		w.tellRoster()
	}
}

func (w *loopWorld) send(n *loopNode) {
	if n.loop.Wake() > w.now && n.loop.away == nil {
		return
	}
	for _, f := range n.loop.Frames(w.now, nil) {
		if err := f.Check(); err != nil {
			w.fail("%v", err)
		}
		if n.cut > w.now || w.IntN(10) == 0 {
			continue
		}
		for range 1 + w.IntN(10)/9 {
			w.flights = append(w.flights, loopFlight{w.now.Add(time.Duration(w.IntN(6)) * time.Millisecond), f})
		}
	}
}

func (w *loopWorld) deliver() {
	flights := w.flights
	w.flights = nil
	for _, f := range flights {
		if f.at > w.now {
			w.flights = append(w.flights, f)
			continue
		}
		for _, n := range w.nodes {
			if n.peer != f.frame.To || n.dead || n.cut > w.now {
				continue
			}
			if n.frozen > w.now {
				f.at = n.frozen
				w.flights = append(w.flights, f)
				continue
			}
			frame := *f.frame.Loop
			if w.arrive != nil {
				w.arrive(n, f.frame.From, &frame)
			}
			n.loop.TakeFrame(w.now, f.frame.From, &frame)
		}
	}
}

// judged runs the world, and returns its faults. A panic is one.
func (w *loopWorld) judged() (list []string) {
	defer func() {
		if r := recover(); r != nil {
			list = append(slices.Clone(w.faults), fmt.Sprintf("panic: %v", r))
		}
	}()
	w.live()
	return w.faults
}

// noticed fails the test if none of 2,000 worlds has a fault.
func noticed(t *testing.T, name string, faults func(seed uint64) []string) {
	t.Helper()
	for seed := range uint64(2000) {
		if list := faults(seed); len(list) > 0 {
			t.Logf("%s: noticed in world %d: %s", name, seed, list[0])
			return
		}
	}
	t.Errorf("%s: not noticed", name)
}

// TestLoops: whatever happens to members, and in whichever place of an iteration, each row is counted once in each
// iteration, all members get the value that one process alone computes, and the loop ends.
func TestLoops(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(testcount.Of(t, "LOOPS", 200)) { //nolint:gosec // Above 0.
		w := newLoopWorld(seed)
		if faults := w.judged(); len(faults) > 0 {
			t.Errorf("seed %d: %d rows, %d iterations: %s", seed, w.total, w.last, strings.Join(faults, "\n"))
		}
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	if seen["rows after a return"] == 0 {
		t.Error("no member has got rows after its return")
	}
	for _, fault := range []string{"kill", "stop", "cut", "withdraw", "leave"} {
		for at := range atEnd {
			if what := fmt.Sprintf("%s at %d", fault, at); seen[what] == 0 {
				t.Errorf("no seed had a %s", what)
			}
		}
	}
}

// TestLoopMutants: the judge of TestLoops notices a machine that is wrong.
func TestLoopMutants(t *testing.T) {
	for name, bend := range map[string]func(*loopWorld){
		"rows of a lost member are not redone": func(w *loopWorld) {
			w.lost = func(n *loopNode) {
				for _, s := range n.loop.seats {
					if !s.has && !slices.Contains(n.roster, s.Peer) {
						s.spans = nil
					}
				}
			}
		},
		"rows of a lost member are redone though its result is there": func(w *loopWorld) {
			w.lost = func(n *loopNode) {
				for _, s := range n.loop.seats {
					if s.has && n.loop.open && !slices.Contains(n.roster, s.Peer) {
						n.loop.gone, s.has = append(n.loop.gone, s.part()), false
					}
				}
			}
		},
		"the home closes its part as soon as all rows are done": func(w *loopWorld) {
			w.after = func(n *loopNode) {
				if l := n.loop; l.opts.Home && l.open && len(l.free) == 0 && !slices.ContainsFunc(l.all(), func(s *seat) bool { return s.in && s.done < total(s.spans) }) {
					l.self.closed = true
				}
			}
		},
		"a result of another iteration counts": func(w *loopWorld) {
			w.arrive = func(n *loopNode, _ workcore.Peer, f *workcore.LoopFrame) {
				if !f.Home && f.Number > 0 {
					f.Number = n.loop.number
				}
			}
		},
		"rows that are given back count as done": func(w *loopWorld) {
			w.arrive = func(n *loopNode, from workcore.Peer, f *workcore.LoopFrame) {
				if s := n.loop.find(from); f.Gives && s != nil {
					f.Done = total(s.spans)
				}
			}
		},
		"what is said is said once": func(w *loopWorld) {
			w.after = func(n *loopNode) {
				for _, s := range n.loop.seats {
					if s.again > w.now {
						s.acked = s.version
					}
				}
				if n.loop.home.again > w.now {
					n.loop.home.acked = n.loop.home.version
				}
			}
		},
		"the end overtakes the last value": func(w *loopWorld) {
			w.arrive = func(_ *loopNode, _ workcore.Peer, f *workcore.LoopFrame) { f.Has = f.Has && !f.Ended }
		},
		"a member that has left is waited for": func(w *loopWorld) {
			w.arrive = func(_ *loopNode, _ workcore.Peer, f *workcore.LoopFrame) { f.Out = false }
		},
		"a member takes rows again before its home knows that it gave them back": func(w *loopWorld) {
			w.after = func(n *loopNode) {
				if n.loop.back {
					n.loop.gave = 0
					n.loop.TakeBack()
				}
			}
		},
		"a member that takes rows again keeps those that it gave back": func(w *loopWorld) {
			spans := map[*loopNode][]workcore.Span{}
			w.after = func(n *loopNode) {
				if n.loop.self.gives && n.loop.self.closed && spans[n] != nil && n.loop.open {
					n.loop.self.spans = spans[n]
				} else if !n.loop.self.gives {
					spans[n] = n.loop.self.spans
				}
			}
		},
		"spare rows are forgotten": func(w *loopWorld) {
			w.after = func(n *loopNode) { n.loop.spare = first(n.loop.spare, 1) }
		},
		"a member gets no more once it has done its rows": func(w *loopWorld) {
			w.arrive = func(n *loopNode, _ workcore.Peer, f *workcore.LoopFrame) {
				if f.Home && n.loop.open && n.place == atRest && f.Number == n.loop.number && !f.Has {
					f.Spans = n.loop.self.spans
				}
			}
		},
	} {
		noticed(t, name, func(seed uint64) []string {
			w := newLoopWorld(seed)
			bend(w)
			return w.judged()
		})
	}
}

// loopOfTwo is the home of a loop in a group of members, and one of these.
func loopOfTwo(t *testing.T, total, other int) (home, member *Loop, exchange func()) {
	t.Helper()
	a, b := workcore.Peer{Name: "a", Life: 1}, workcore.Peer{Name: "b", Life: 1}
	home, err := New(Options{Name: "rows", Self: a, Home: true, Total: total})
	if err != nil {
		t.Fatal(err)
	}
	if member, err = New(Options{Name: "rows", Self: b, Total: other}); err != nil {
		t.Fatal(err)
	}
	home.TakeRoster(0, []workcore.Peer{a, b})
	member.TakeRoster(0, []workcore.Peer{a, b})
	now := clocksync.Instant(0)
	return home, member, func() {
		for range 10 {
			for _, f := range home.Frames(now, nil) {
				member.TakeFrame(0, a, f.Loop)
			}
			for _, f := range member.Frames(now, nil) {
				home.TakeFrame(0, b, f.Loop)
			}
		}
	}
}

// TestLoopFaults has what a loop refuses, and the texts.
func TestLoopFaults(t *testing.T) {
	for want, o := range map[string]Options{
		`loop "": its name has 0 bytes: give it one of 1 to 128`:                          {},
		`loop "rows": a total of -1 rows cannot be divided: give 0 to 2147483647`:         {Name: "rows", Total: -1},
		`loop "rows": a total of 2147483648 rows cannot be divided: give 0 to 2147483647`: {Name: "rows", Total: workcore.MaxRows + 1},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	home, member, exchange := loopOfTwo(t, 10, 10)
	for want, of := range map[string]func() error{
		`loop "rows": iteration 1 cannot begin here now`: func() error { return member.Open(0, nil) },
		`loop "rows": the carried value has 16777217 bytes, and at most 16777216 are allowed: carry the name of the data instead`: func() error { return home.Open(0, make([]byte, workcore.MaxBody+1)) },
		`loop "rows": iteration 0: its partial results are not there`:                                                             func() error { return home.Reduced(0, nil) },
		`loop "rows": iteration 0: its rows are not done: let the body range over all of Mine, then call Reduce once`:             func() error { return home.SetPartial(nil, "") },
	} {
		if err := of(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	exchange()
	if list := home.Missing(); len(list) > 0 {
		t.Errorf("%v are missing", list)
	}
	if err := home.Open(0, nil); err != nil {
		t.Fatal(err)
	}
	exchange()
	list, closed := member.Assigned()
	if fmt.Sprint(list, closed) != "[{5 10}] false" {
		t.Errorf("the member has %v, %t", list, closed)
	}
	for want, f := range map[string]workcore.LoopFrame{
		`loop "": a name has 1 to 128 bytes`:                                            {},
		`loop "rows": rows 3 to 3 are no span`:                                          {Name: "rows", Spans: []workcore.Span{{Low: 3, High: 3}}},
		`loop "rows": rows -1 to 3 are no span`:                                         {Name: "rows", Spans: []workcore.Span{{Low: -1, High: 3}}},
		`loop "rows": the speed -2: 0 or more rows a second are allowed`:                {Name: "rows", Speed: -2},
		`loop "rows": the speed NaN: 0 or more rows a second are allowed`:               {Name: "rows", Speed: math.NaN()},
		`loop "rows": iteration -1 of 0 rows, 0 done: none of them may be negative`:     {Name: "rows", Number: -1},
		`loop "rows": 513 spans with 513 rows: at most 512 with 2147483647 are allowed`: {Name: "rows", Spans: slices.Repeat([]workcore.Span{{Low: 0, High: 1}}, workcore.MaxSpans+1)},
		`loop "rows": a value of 16777217 bytes, and at most 16777216 are allowed`:      {Name: "rows", Value: make([]byte, workcore.MaxBody+1)},
	} {
		if err := f.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		f.Version, f.Has, f.Out = 99, true, true
		home.TakeFrame(0, workcore.Peer{Name: "b", Life: 1}, &f) // It is not read.
	}
	for _, f := range []workcore.LoopFrame{ // They are read, and make no sense.
		{Version: 50, Number: 1, Done: 6, Speed: math.MaxFloat64},
		{Version: 51, Number: 1, Done: 5, Has: true, Value: []byte("early")},
		{Version: 52, Number: 7, Done: 5, Has: true},
	} {
		f.Name = "rows"
		home.TakeFrame(0, workcore.Peer{Name: "b", Life: 1}, &f)
		home.TakeFrame(0, workcore.Peer{Name: "stranger", Life: 1}, &f)
	}
	home.SetDone(11, 0)
	if s := home.find(workcore.Peer{Name: "b", Life: 1}); s == nil || s.done > 5 || len(home.seats) != 1 || home.self.done != 0 {
		t.Errorf("the home believes %+v", s)
	}
}

// TestLoopTotals: a member with another total is refused, and no rows are no fault.
func TestLoopTotals(t *testing.T) {
	home, member, exchange := loopOfTwo(t, 10, 11)
	exchange()
	if why, ended := member.Ended(); !ended || why != `member "b" has 11 rows, and its home, member "a", has 10: let all programs give the same total` {
		t.Errorf("%q, %t", why, ended)
	}
	if _, ended := home.Ended(); ended || len(home.Missing()) > 0 {
		t.Errorf("the home has ended, or waits for %v", home.Missing())
	}
	home, member, exchange = loopOfTwo(t, 0, 0)
	exchange()
	if err := home.Open(0, nil); err != nil {
		t.Fatal(err)
	}
	exchange()
	for _, l := range []*Loop{member, home} {
		if list, closed := l.Assigned(); len(list) > 0 || !closed {
			t.Errorf("no rows were assigned as %v, %t", list, closed)
		}
		if err := l.SetPartial([]byte(l.opts.Self.Name), ""); err != nil {
			t.Error(err)
		}
		exchange()
	}
	if parts, complete := home.Parts(); !complete || len(parts) != 1 || string(parts[0].Value) != "a" {
		t.Errorf("no rows have the results %v", parts)
	}
}

// TestTwoHomes: two members that both say that they are the home learn so.
func TestTwoHomes(t *testing.T) {
	a, b := workcore.Peer{Name: "a", Life: 1}, workcore.Peer{Name: "b", Life: 1}
	var list []*Loop
	for _, p := range []workcore.Peer{a, b} {
		l, err := New(Options{Name: "rows", Self: p, Home: true, Total: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.TakeRoster(0, []workcore.Peer{a, b})
		list = append(list, l)
	}
	for _, f := range list[0].Frames(0, nil) {
		list[1].TakeFrame(0, a, f.Loop)
	}
	if why, ended := list[1].Ended(); !ended || why != `members "b" and "a" both say that they are its home: let one of them say so` {
		t.Errorf("%q, %t", why, ended)
	}
}
