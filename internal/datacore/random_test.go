package datacore

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// world is some members, a network that loses, doubles and swaps messages, and a judge that knows all data.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	now     clocksync.Instant
	faults  bool
	liar    string // this member damages the pieces that it sends
	cutter  string // this member leaves out the last byte of each piece that it sends
	pieces  int    // that it has sent
	nodes   []*node
	wire    []envelope
	truth   map[string][]byte
	classes int
	started int
	failed  int
	lost    int
}

type envelope struct {
	from Peer
	to   Peer
	data []byte
}

type node struct {
	*Member
	self    Peer
	waiting [][]string
	running [][]string
	written map[string]bool // names that the member has learned of
}

func newWorld(t *testing.T, seed uint64, members, cache, classes int) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), truth: map[string][]byte{}, classes: classes} //nolint:gosec // It is a test.
	for i := range members {
		self := Peer{fmt.Sprintf("m%d", i), 1}
		w.nodes = append(w.nodes, &node{Member: NewMember(Options{Self: self, Phase: 1, Cache: cache, Classes: classes}), self: self, written: map[string]bool{}})
	}
	w.newRoster()
	return w
}

func (w *world) newRoster() {
	var roster []Peer
	for _, n := range w.nodes {
		roster = append(roster, n.self)
	}
	for _, n := range w.nodes {
		w.do(n, func(out *Output) { n.SetRoster(w.now, roster, out) })
	}
}

// do makes a call, carries out what it asks for, and judges.
func (w *world) do(n *node, call func(out *Output)) {
	var out Output
	call(&out)
	for {
		for _, s := range out.Sends {
			w.send(n, s)
		}
		for _, name := range out.Written {
			if n.written[name] {
				w.t.Errorf("%s learns twice of %q", n.self.Name, name)
			}
			n.written[name] = true
		}
		w.judge(n)
		if changed := w.startOne(n); !changed && !out.Changed {
			return
		}
		out = Output{}
		n.Plan(w.now, n.running, n.waiting, &out)
		if len(out.Sends) == 0 && !out.Changed {
			w.judge(n)
			return
		}
	}
}

func (w *world) send(n *node, s Send) {
	if n.self.Name == w.cutter && s.Message.Kind == Piece {
		w.pieces++
		s.Message.Data = s.Message.Data[:len(s.Message.Data)-1]
	}
	data := s.Message.Append(nil)
	if n.self.Name == w.liar && s.Message.Kind == Piece {
		data[len(data)-1] ^= 1
	}
	e := envelope{n.self, s.To, data}
	if !w.faults {
		w.wire = append(w.wire, e)
		return
	}
	for range [...]int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}[w.rand.IntN(10)] {
		w.wire = append(w.wire, e)
	}
	if k := len(w.wire); k > 1 && w.rand.IntN(4) == 0 {
		i := w.rand.IntN(k)
		w.wire[i], w.wire[k-1] = w.wire[k-1], w.wire[i]
	}
}

// startOne starts the first task that is ready, and checks its data against the truth.
func (w *world) startOne(n *node) bool {
	if len(n.running) == 2 {
		return false
	}
	i := slices.IndexFunc(n.waiting, n.Ready)
	if i < 0 {
		return false
	}
	reads := n.waiting[i]
	n.waiting = slices.Delete(n.waiting, i, i+1)
	if why := n.Fault(reads); why != "" {
		w.failed++
		w.justify(reads, why)
		return true
	}
	for _, name := range reads {
		if data, here := n.Get(name); !here || !bytes.Equal(data, w.truth[name]) {
			w.t.Fatalf("%s starts a task without %q: here %v, %d bytes", n.self.Name, name, here, len(data))
		}
	}
	n.running = append(n.running, reads)
	w.started++
	kinds := map[string]bool{}
	for _, r := range n.running {
		kinds[strings.Join(r, " ")] = true
	}
	if w.classes > 0 && len(kinds) > w.classes {
		w.t.Fatalf("%s works on %d classes", n.self.Name, len(kinds))
	}
	return true
}

// justify checks that a task fails since no member has one of its data.
func (w *world) justify(reads []string, why string) {
	for _, name := range reads {
		if strings.Contains(why, fmt.Sprintf("%q", name)) && strings.Contains(why, "no member that has them is left") {
			for _, n := range w.nodes {
				if d := n.data[name]; d != nil && d.here {
					w.t.Errorf("task %q fails, and %s has %q: %s", reads, n.self.Name, name, why)
				}
			}
			w.lost++
			return
		}
	}
	if w.liar+w.cutter == "" || !strings.Contains(why, "another digest") {
		w.t.Errorf("task %q fails: %s", reads, why)
	}
}

// judge counts the cache again.
func (w *world) judge(n *node) {
	sum := 0
	for _, d := range n.data {
		switch {
		case d.here && !d.own:
			sum += len(d.data)
			if d.size != len(d.data) {
				w.t.Fatalf("%s counts %q wrong", n.self.Name, d.name)
			}
		case d.fetch != nil:
			sum += d.size
		}
	}
	if sum != n.Cached() || sum > n.opts.Cache {
		w.t.Fatalf("%s has %d bytes in its cache, counts %d, and %d are allowed", n.self.Name, sum, n.Cached(), n.opts.Cache)
	}
}

func (w *world) write(n *node, name string, data []byte) {
	w.truth[name] = data
	w.do(n, func(out *Output) {
		if err := n.Write(w.now, name, data, sha256.Sum256(data), out); err != nil {
			w.t.Error(err)
		}
	})
}

// kill ends a member. Its tasks go to the others.
func (w *world) kill(i int) {
	gone := w.nodes[i]
	w.nodes = slices.Delete(w.nodes, i, i+1)
	for _, reads := range slices.Concat(gone.waiting, gone.running) {
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		n.waiting = append(n.waiting, reads)
	}
	w.newRoster()
}

// pass lets time pass, and delivers what is on the wire.
func (w *world) pass() {
	w.now = w.now.Add(20 * time.Millisecond)
	list := w.wire
	w.wire = nil
	for _, e := range list {
		i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.self == e.to })
		if i < 0 {
			continue
		}
		m, err := Read(e.data)
		if err != nil {
			w.t.Fatal(err)
		}
		w.do(w.nodes[i], func(out *Output) { w.nodes[i].Take(w.now, e.from.Name, &m, out) })
	}
	for _, n := range w.nodes {
		if len(n.running) > 0 && w.rand.IntN(3) == 0 {
			n.running = slices.Delete(n.running, 0, 1)
		}
		if w.now >= n.Wake() || len(n.waiting) > 0 {
			w.do(n, func(out *Output) { n.Tick(w.now, out); out.Changed = true })
		}
	}
}

func (w *world) busy() bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return len(n.waiting)+len(n.running)+len(n.open) > 0 })
}

func blob(r *rand.Rand, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// TestRandom: members write data and run tasks that read them, messages are lost, and members die. No task starts without
// its data, the cache is bounded, tasks fail only if their data are lost, and all fetches end.
func TestRandom(t *testing.T) {
	t.Parallel()
	started, failed, evicted, fetched := 0, 0, uint64(0), uint64(0)
	for seed := range uint64(24) {
		const most = 3 * PieceBytes
		classes := int(seed % 4)
		w := newWorld(t, seed, 5, 3*most, classes)
		w.faults = seed%3 > 0
		var names []string
		for step := range 300 {
			n := w.nodes[w.rand.IntN(len(w.nodes))]
			switch k := w.rand.IntN(10); {
			case k == 0 && len(names) < 30:
				name := fmt.Sprintf("d%d", len(names))
				names = append(names, name)
				w.write(n, name, blob(w.rand, w.rand.IntN(most)))
			case k < 5 && len(names) > 0:
				var reads []string
				for range 1 + w.rand.IntN(3) {
					reads = append(reads, names[w.rand.IntN(len(names))])
				}
				slices.Sort(reads)
				n.waiting = append(n.waiting, slices.Compact(reads))
			case k == 5 && step%50 == 0 && len(w.nodes) > 2 && seed%2 > 0:
				w.kill(w.rand.IntN(len(w.nodes)))
			}
			w.pass()
		}
		for range 5000 {
			if !w.busy() {
				break
			}
			w.pass()
		}
		if w.busy() {
			for _, n := range w.nodes {
				t.Logf("%s: waiting %q, running %q, %d fetches", n.self.Name, n.waiting, n.running, len(n.open))
			}
			t.Fatalf("seed %d: tasks still wait", seed)
		}
		if started, failed = started+w.started, failed+w.failed; failed > 0 && seed%2 == 0 && w.failed > 0 {
			t.Errorf("seed %d: %d tasks have failed, and no member died", seed, w.failed)
		}
		for _, n := range w.nodes {
			evicted, fetched = evicted+n.Counts().Evicted, fetched+n.Counts().Fetched
			if c := n.Counts(); c.Damaged+c.Refused > 0 {
				t.Errorf("seed %d: %+v", seed, c)
			}
		}
	}
	if started < 2000 || evicted == 0 || fetched == 0 || failed == 0 {
		t.Errorf("%d tasks started, %d failed, %d data were fetched, %d dropped", started, failed, fetched, evicted)
	}
	t.Logf("%d tasks started, %d failed, %d data were fetched, %d dropped", started, failed, fetched, evicted)
}
