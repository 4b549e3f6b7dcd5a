package datacore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// settle lets messages go to and fro until nothing is on the wire.
func (w *world) settle() {
	for range 500 {
		w.pass()
	}
}

// TestDamaged: a member damages what it sends. Its copy is refused, the tasks that need it fail, and others are not.
func TestDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 3, 10*PieceBytes, 0)
	w.liar = "m1"
	w.write(w.nodes[1], "bad", blob(w.rand, PieceBytes+1))
	w.write(w.nodes[2], "good", blob(w.rand, PieceBytes+1))
	w.nodes[0].waiting = [][]string{{"bad"}, {"good"}}
	w.settle()
	want := fmt.Sprintf("data %q: what the members that have them send has another digest than ", "bad")
	if why := w.nodes[0].Fault([]string{"bad"}); !strings.HasPrefix(why, want) || !strings.HasSuffix(why, ": write them again under another name") {
		t.Errorf("%q; want %q", why, want)
	}
	if w.started != 1 || w.failed != 1 || w.nodes[0].Counts().Damaged != 1 {
		t.Errorf("%d tasks started, %d failed, %+v", w.started, w.failed, w.nodes[0].Counts())
	}
	w.write(w.nodes[2], "bad", w.truth["bad"])
	w.nodes[0].waiting = [][]string{{"bad"}}
	if w.settle(); w.started != 2 {
		t.Error("the data of another writer are not fetched")
	}
}

// TestWrongPieces: pieces of a wrong length are asked for a few times only. Then the data come from another member, or the
// tasks that read them fail.
func TestWrongPieces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 3, 10*PieceBytes, 0)
	w.cutter = "m1"
	w.write(w.nodes[1], "bad", blob(w.rand, 2*PieceBytes))
	w.write(w.nodes[1], "both", blob(w.rand, 2*PieceBytes))
	w.write(w.nodes[2], "both", w.truth["both"])
	w.nodes[0].waiting = [][]string{{"bad"}, {"both"}}
	w.settle()
	const want = `data "bad": what the members that have them send has another digest than `
	if why := w.nodes[0].Fault([]string{"bad"}); !strings.HasPrefix(why, want) || !strings.HasSuffix(why, ": write them again under another name") {
		t.Errorf("%q; want %q", why, want)
	}
	if c := w.nodes[0].Counts(); w.started != 1 || w.failed != 1 || c.Damaged == 0 || c.Damaged > 2 || w.pieces > 4*maxDamaged {
		t.Errorf("%d tasks started, %d failed, %+v, %d pieces", w.started, w.failed, c, w.pieces)
	}
}

// TestConflict: two members write different data under one name before they hear of each other.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 3, PieceBytes, 0)
	w.write(w.nodes[1], "x", []byte("one"))
	w.write(w.nodes[2], "x", []byte("two"))
	w.settle()
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	for _, n := range w.nodes {
		why := n.Fault([]string{"x"})
		if !strings.Contains(why, hex.EncodeToString(one[:8])) || !strings.Contains(why, hex.EncodeToString(two[:8])) || !strings.HasPrefix(why, `data "x": two members have written them, with the digests `) ||
			!strings.HasSuffix(why, ": let one member write them, or give them two names") || !n.Ready([]string{"x"}) {
			t.Errorf("%s: %q", n.self.Name, why)
		}
		var out Output
		if err := n.Write(w.now, "x", []byte("one"), one, &out); err == nil || err.Error() != why {
			t.Errorf("%s writes it again: %v", n.self.Name, err)
		}
	}
}

// TestTooLarge: what a task reads does not fit into the cache.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 2, 100, 0)
	w.write(w.nodes[0], "x", make([]byte, 60))
	w.write(w.nodes[0], "y", make([]byte, 41))
	w.settle()
	const want = `data ["x" "y"]: they have 101 bytes together, and data.cache allows 100: raise data.cache, or let the task read less`
	both := []string{"x", "y"}
	if n := w.nodes[1]; n.Fault(both) != want || n.TooLarge(both) != want || !n.Ready(both) || n.Fault(both[:1]) != "" {
		t.Errorf("%q and %q; want %q", n.Fault(both), n.TooLarge(both), want)
	}
	if n := w.nodes[0]; n.Fault(both) != "" || n.TooLarge(both) != want {
		t.Errorf("the writer has both: %q, %q", n.Fault(both), n.TooLarge(both))
	}
}

// TestRest: members that are at rest find out that nothing is written any more, and not while one of them works.
func TestRest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(t, seed, 4, PieceBytes, 0)
		w.faults = true
		hopeless, works := 0, w.nodes[3]
		for round := range 600 {
			for i, n := range w.nodes {
				w.do(n, func(out *Output) {
					if n.SetRest(w.now, n != works || round >= 300, i == 0, out); out.Hopeless {
						hopeless++
					}
					n.Tick(w.now, out)
				})
				if hopeless > 0 && round < 300 {
					t.Fatalf("seed %d, round %d: a member works, and the others give up", seed, round)
				}
			}
			list := w.wire
			w.wire = nil
			w.now = w.now.Add(20 * time.Millisecond)
			for _, e := range list {
				i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.self == e.to })
				m, err := Read(e.data)
				if err != nil {
					t.Fatal(err)
				}
				w.do(w.nodes[i], func(out *Output) {
					w.nodes[i].Take(w.now, e.from.Name, &m, out)
					if out.Hopeless {
						if hopeless++; round < 300 {
							t.Fatalf("seed %d, round %d: a member works, and the others give up", seed, round)
						}
					}
				})
			}
		}
		if hopeless == 0 {
			t.Errorf("seed %d: all are at rest, and nobody finds out", seed)
		}
	}
}

// TestHostile: damaged messages are refused, and those of strangers and other phases are counted.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, m := range []Message{
		{Kind: Have, Upto: 3, Entries: []Entry{{Name: "x", State: Wrote, Size: 5}}},
		{Kind: Heard, Upto: 4},
		{Kind: Want, Name: "x", Count: 2},
		{Kind: Gone, Name: "x"},
		{Kind: Find, Name: "x"},
		{Kind: Found, Entries: []Entry{{Name: "x"}}},
		{Kind: Ask, Round: 3},
		{Kind: Answer, Round: 3, Turns: 4, Rests: true},
	} {
		data := m.Append(nil)
		if got, err := Read(data); err != nil || string(got.Append(nil)) != string(data) {
			t.Errorf("%+v, %v; want %+v", got, err, m)
		}
		for n := range data {
			if _, err := Read(data[:n]); err == nil || err.Error() != "message about data: it is damaged: let all members of the space run the same version" {
				t.Errorf("kind %d: the first %d of %d bytes: %v", m.Kind, n, len(data), err)
			}
		}
		if _, err := Read(append(data, 0)); err == nil {
			t.Errorf("kind %d: a byte is left over", m.Kind)
		}
	}
	if _, err := Read([]byte{99, 1, 1}); err == nil || err.Error() != "message about data: it has the kind 99: let all members of the space run the same version" {
		t.Error(err)
	}
	for _, m := range []Message{{Kind: Piece, Name: "x", At: 1, Data: []byte{1}}, {Kind: Piece, Name: "x", Data: make([]byte, PieceBytes+1)}, {Kind: Piece, Name: "x"}, {Kind: Want, Name: "x", Count: window + 1}, {Kind: Gone}} {
		if _, err := Read(m.Append(nil)); err == nil {
			t.Errorf("%+v is read", m)
		}
	}
	w := newWorld(t, 1, 2, 2*PieceBytes, 0)
	w.write(w.nodes[1], "x", []byte("data"))
	w.settle()
	n := w.nodes[0]
	for _, m := range []Message{
		{Kind: Heard, Life: 1, Phase: 2},
		{Kind: Heard, Life: 2, Phase: 1},
		{Kind: Heard, Life: 1, Phase: 1, Upto: 9},
		{Kind: Want, Life: 1, Phase: 1, Name: "none", At: 7, Count: 1},
		{Kind: Piece, Life: 1, Phase: 1, Name: "x", Data: []byte("evil")},
	} {
		w.do(n, func(out *Output) { n.Take(w.now, "m1", &m, out) })
	}
	if _, here := n.Get("x"); here || n.Counts().Stray != 2 || n.Counts().Refused != 1 {
		t.Errorf("x is here: %v; %+v", here, n.Counts())
	}
}

// TestFallback: a member fetches from a holder, which dies, then from one that has dropped the data, and then from the last one
// that has them. As long as one lives, the data are found.
func TestFallback(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(t, seed, 5, 4*PieceBytes, 0)
		w.write(w.nodes[0], "x", blob(w.rand, 3*PieceBytes))
		for _, n := range w.nodes[1:4] {
			n.waiting = [][]string{{"x"}}
		}
		w.settle()
		if w.started != 3 {
			t.Fatalf("%d tasks started", w.started)
		}
		asks := w.nodes[4]
		asks.waiting = [][]string{{"x"}}
		w.do(asks, func(out *Output) { out.Changed = true })
		asked := map[Peer]bool{}
		for len(w.nodes) > 2 {
			if len(asks.open) != 1 {
				t.Fatalf("seed %d: %d fetches with %d members that have the data", seed, len(asks.open), len(w.nodes)-1)
			}
			from := asks.open[0].from
			i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.self == from })
			if i < 0 || asked[from] {
				t.Fatalf("seed %d: %s is asked, which is gone or was asked before", seed, from.Name)
			}
			asked[from] = true
			if n := w.nodes[i]; !n.data["x"].own && w.rand.IntN(2) == 0 { // It drops them before the request is there.
				n.running = nil
				w.do(n, func(out *Output) { n.Plan(w.now, nil, nil, out) })
				if !n.makeRoom(4 * PieceBytes) {
					t.Fatal("the data are not dropped")
				}
				w.pass()
				w.pass()
				if len(asks.open) == 1 && asks.open[0].from == from {
					t.Fatalf("seed %d: %s has dropped the data, and is asked still", seed, from.Name)
				}
			}
			w.wire = nil // What it has sent is lost.
			w.kill(slices.IndexFunc(w.nodes, func(n *node) bool { return n.self == from }))
		}
		w.settle()
		if w.started != 4 || w.failed > 0 {
			t.Errorf("seed %d: %d tasks have started, %d failed, and a member has the data", seed, w.started, w.failed)
		}
	}
}

// TestPatience: on a network that is slow, a member that asked again too soon waits longer from then on, so that what is on its
// way is not sent many times; and it waits less again where answers come once.
func TestPatience(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 2, 40*PieceBytes, 0)
	w.write(w.nodes[0], "x", blob(w.rand, 30*PieceBytes))
	w.pass()
	w.pass()
	n := w.nodes[1]
	n.waiting = [][]string{{"x"}}
	w.do(n, func(out *Output) { out.Changed = true })
	for way := [][]envelope(nil); w.started == 0; w.pass() { // Each message is on its way for 600 ms.
		way = append(way, w.wire)
		if w.wire = nil; len(way) > 30 {
			w.wire, way = way[0], way[1:]
		}
		if w.now > clocksync.Instant(0).Add(2*time.Minute) {
			t.Fatal("the data do not come")
		}
	}
	served, slow := w.nodes[0].Counts().Served, n.patience
	if slow <= 2*resend || slow > maxPatience || served > 3*30 {
		t.Errorf("the member waits %v after %d pieces were sent instead of 30", slow, served)
	}
	for range 500 {
		n.speedUp()
	}
	if n.patience > resend+resend/10 {
		t.Errorf("it still waits %v", n.patience)
	}
	for range 100 {
		n.slowDown()
	}
	if n.patience != maxPatience {
		t.Errorf("it waits %v, and %v is the most", n.patience, maxPatience)
	}
}
