package callcore_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/callcore"
)

// loadOf is how many calls of f wait or run at a member.
func loadOf(n *node) int {
	for _, c := range n.m.Report() {
		if c.Name == "f" {
			return c.Waiting + c.Running
		}
	}
	return 0
}

// heldBy is how many calls of f wait at their caller.
func heldBy(n *node) int {
	for _, c := range n.m.Report() {
		if c.Name == "f" {
			return c.Held
		}
	}
	return 0
}

// TestMarksOfAllCallers: random callers, with members that die, are cut off and go away, and with messages that are lost, doubled and
// late. No server ever has more calls of all callers than the upper mark, and each call ends.
func TestMarksOfAllCallers(t *testing.T) {
	most := 0
	for seed := range uint64(48) {
		high, batch := 1+int(seed%6), int(seed%3) //nolint:gosec // They are small.
		w := newWorld(t, seed, callcore.Rule{Style: callcore.Demand, Low: 1, High: high, Retry: 1000, Batch: batch, Linger: 2 * time.Millisecond})
		w.faults, w.slots = seed%4 > 0, 1+w.rand.IntN(3)
		life := uint64(0)
		callers, servers := 2+w.rand.IntN(5), 1+w.rand.IntN(3)
		join := func(name string, served ...string) {
			life++
			w.add(name, life, served...)
		}
		for i := range callers {
			join(fmt.Sprint("x", i))
		}
		for i := range servers {
			join(fmt.Sprint("s", i), "f")
		}
		w.roster()
		judge := func() {
			for _, n := range w.nodes {
				if load := loadOf(n); load > high {
					t.Fatalf("seed %d: %s has %d calls, and the upper mark is %d", seed, n.peer.Name, load, high)
				} else if load == high {
					most++
				}
			}
		}
		for range 80 {
			for range w.rand.IntN(30) {
				w.step()
				judge()
			}
			n := w.nodes[w.rand.IntN(len(w.nodes))] // A server may call as well.
			switch w.rand.IntN(24) {
			case 0:
				if !w.faults {
					break
				}
				var served []string
				if n.peer.Name[0] == 's' {
					served = []string{"f"}
				}
				w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == n })
				w.roster()
				join(n.peer.Name, served...)
				w.roster()
			case 1:
				n.out = w.faults && !n.out
				w.roster()
			case 2:
				n.m.SetAway(w.now, w.rand.IntN(2) == 0)
				n.carry()
			default:
				for range w.rand.IntN(12) {
					n.call(strconv.Itoa(w.rand.IntN(1000)), "f")
				}
			}
			judge()
		}
		w.faults = false
		for _, n := range w.nodes {
			n.out = false
			n.m.SetAway(w.now, false)
			n.carry()
		}
		w.roster()
		w.until(fmt.Sprintf("seed %d", seed), func() bool { judge(); return w.over() })
	}
	if most < 1000 {
		t.Errorf("servers were at their upper mark at %d steps", most)
	}
}

// TestMarksKeepServersBusy: while calls wait at callers, servers stay between the marks, whoever calls.
func TestMarksKeepServersBusy(t *testing.T) {
	for _, callers := range []int{1, 2, 8} {
		w := newWorld(t, 12, callcore.Rule{Style: callcore.Demand, Low: 2, High: 6, Retry: 1})
		for i := range callers {
			w.add(fmt.Sprint("x", i), 1)
		}
		servers := []*node{w.add("a", 1, "f"), w.add("b", 1, "f")}
		w.roster()
		for range 100 {
			w.step()
		}
		for i, n := range w.nodes[:callers] {
			for j := range 400 / callers {
				n.call(fmt.Sprint(i, " ", j), "f")
			}
		}
		for range 100 {
			w.step()
		}
		steps, below := 0, 0
		w.until("the last calls are sent", func() bool {
			waits := 0
			for _, n := range w.nodes[:callers] {
				waits += heldBy(n)
			}
			for _, n := range servers {
				load := loadOf(n)
				if steps++; load < 2 {
					below++
				}
				if load > 6 {
					t.Fatalf("%d callers: %d calls at %s", callers, load, n.peer.Name)
				}
			}
			return waits == 0
		})
		w.until("results", w.over)
		asks := 0
		for _, m := range w.sent {
			if m.Kind == callcore.Ask {
				asks++
			}
		}
		t.Logf("%d callers: %d of %d steps below the lower mark, %d asks for 400 calls", callers, below, steps, asks)
		if below*20 > steps || asks > 400+2*6*callers {
			t.Errorf("%d callers: %d of %d steps are below the lower mark, and 400 calls were sent %d times", callers, below, steps, asks)
		}
	}
}

// TestMarksAreFair: a caller with few calls gets its turns beside one with many.
func TestMarksAreFair(t *testing.T) {
	w := newWorld(t, 13, callcore.Rule{Style: callcore.Demand, Low: 1, High: 3, Retry: 1})
	many, few := w.add("x", 1), w.add("y", 1)
	w.add("a", 1, "f")
	w.roster()
	for i := range 300 {
		many.call(strconv.Itoa(i), "f")
	}
	for range 500 {
		w.step()
	}
	before := len(w.order)
	for i := range 10 {
		few.call(fmt.Sprint("few ", i), "f")
	}
	w.until("the results of the second caller", func() bool { calls, _ := few.m.Open(); return calls == 0 })
	if n := len(w.order) - before; n > 60 {
		t.Errorf("%d calls began while 10 calls of the second caller were open", n)
	}
	w.until("results", w.over)
	if r := many.m.Report(); r[0].Busy == 0 || r[0].Full != 0 {
		t.Errorf("the waits of the calls are not counted: %+v", r)
	}
}

// TestLostPlaces: a caller whose Free is lost tries again, and the place of a caller that is silent goes to the next one.
func TestLostPlaces(t *testing.T) {
	w := newWorld(t, 14, callcore.Rule{Style: callcore.Demand, High: 1, Retry: 1})
	x, y, z := w.add("x", 1), w.add("y", 1), w.add("z", 1)
	w.add("a", 1, "f")
	w.roster()
	var calls []*made
	for _, n := range []*node{x, y, z} {
		calls = append(calls, n.call("1", "f"))
		for range 20 {
			w.step()
		}
	}
	start := w.now
	without := func(lost func(m callcore.Message) bool) {
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool {
			m, err := callcore.Names(nil).Read(l.data)
			return err == nil && lost(m)
		})
	}
	w.until("the results of the others", func() bool {
		without(func(m callcore.Message) bool { return m.From == y.peer })
		return calls[0].ended != nil && calls[2].ended != nil
	})
	if calls[1].ended != nil {
		t.Error("the call of the silent caller has ended")
	}
	for i := range 3 {
		x.call(strconv.Itoa(i), "f")
		z.call(strconv.Itoa(i), "f")
	}
	w.until("all results", func() bool {
		without(func(m callcore.Message) bool { return m.Kind == callcore.Free })
		return w.over()
	})
	if d := w.now.Sub(start); d > 10*time.Second {
		t.Errorf("nine calls took %v", d)
	}
}

// TestPass: a caller whose calls went to another server gives its place back at once.
func TestPass(t *testing.T) {
	w := newWorld(t, 15, callcore.Rule{Style: callcore.Demand, High: 1, Retry: 1})
	x := w.add("x", 1)
	a := w.add("a", 1, "f")
	w.roster()
	x.m.Take(w.now, &callcore.Message{Kind: callcore.Free, From: a.peer, To: x.peer, Origin: x.peer, Load: 1, Names: []string{"f"}})
	if out := x.m.Output(); len(out.Messages) == 0 || out.Messages[len(out.Messages)-1].Kind != callcore.Pass {
		t.Errorf("%+v", out.Messages)
	}
}

// TestReleasesBefore: frames of releases before are read, theirs are written, and their callers are never refused.
func TestReleasesBefore(t *testing.T) {
	a, b := callcore.Peer{Name: "a", Life: 3}, callcore.Peer{Name: "b", Life: 300}
	for _, c := range []struct {
		frame string
		m     callcore.Message
	}{
		{
			"\x03\x01a\x03\x01b\xac\x02\x01a\x03\a\x01\x00\x02\x01\x01f?\xf0\x00\x00\x00\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00x",
			callcore.Message{Kind: callcore.Ask, From: a, To: b, Origin: a, Number: 7, Try: 1, Depth: 2, Stages: []callcore.Stage{{Name: "f", Weight: 1, Loc: 2}}, Body: []byte("x")},
		},
		{
			"\x04\x01b\xac\x02\x01a\x03\x01a\x03\a\x01\x00\x00\x00\x00\x00\x00\x00",
			callcore.Message{Kind: callcore.Got, From: b, To: a, Origin: a, Number: 7, Try: 1, Body: []byte{}},
		},
		{
			"\x06\x01b\xac\x02\x01a\x03\x01a\x03\a\x01\x00\x00\x00\x01\x00\x00\x00bad",
			callcore.Message{Kind: callcore.Answer, From: b, To: a, Origin: a, Number: 7, Try: 1, Failed: true, Body: []byte("bad")},
		},
		{
			"\a\x01b\xac\x02\x01a\x03\x01a\x03\a\x01\x01\x00\x00\x00\x01c\x05\x00",
			callcore.Message{Kind: callcore.Moved, From: b, To: a, Origin: a, Number: 7, Try: 1, Stage: 1, At: callcore.Peer{Name: "c", Life: 5}, Body: []byte{}},
		},
		{
			"\x02\x01b\xac\x02\x01a\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01f\x01g",
			callcore.Message{Kind: callcore.Serves, From: b, To: a, Names: []string{"f", "g"}, Body: []byte{}},
		},
	} {
		got, err := callcore.Names(nil).Read([]byte(c.frame))
		if err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%+v %v, want %+v", got, err, c.m)
		}
		if frame := string(c.m.Append(nil)); frame != c.frame {
			t.Errorf("%q, want %q", frame, c.frame)
		}
	}
	w := newWorld(t, 16, callcore.Rule{Style: callcore.Demand, High: 2, Retry: 1})
	w.run = time.Hour
	old, server := w.add("old", 1), w.add("a", 1, "f")
	w.roster()
	for i := range 5 {
		server.m.Take(w.now, &callcore.Message{Kind: callcore.Ask, From: old.peer, To: server.peer, Origin: old.peer, Number: uint64(i + 1), Stages: []callcore.Stage{{Name: "f"}}})
		for _, m := range server.m.Output().Messages {
			if m.Kind > callcore.Gone {
				t.Errorf("a caller of a release before gets %+v", m)
			}
		}
	}
	if load := loadOf(server); load != 5 {
		t.Errorf("the server has %d of 5 calls", load)
	}
}

// TestServesIsLost: a server takes calls again after it was away, and the message that says so is lost. The caller asks
// again while a call waits.
func TestServesIsLost(t *testing.T) {
	w := newWorld(t, 17, callcore.Rule{Style: callcore.Async, Retry: 1})
	x, a := w.add("x", 1), w.add("a", 1, "f")
	w.roster()
	x.call("first", "f")
	w.until("the first call", w.over)
	a.m.SetAway(w.now, true)
	a.carry()
	x.call("second", "f")
	for end := w.now.Add(time.Second); w.now < end; w.step() { // The server is known to be away.
	}
	a.m.SetAway(w.now, false)
	_ = a.m.Output() // It is lost.
	w.until("the second call", w.over)
}
