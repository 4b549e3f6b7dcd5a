package callcore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/internal/callcore"
	"github.com/gopegasus/pegasus/internal/workreport"
)

// TestRatio is the case cord-ratio: 1:2:3 gives 2, 4 and 6 of 12 calls, and each period is smooth.
func TestRatio(t *testing.T) {
	w := newWorld(t, 1, callcore.Rule{Replicas: []string{"a", "b", "c"}, Ratio: []int{1, 2, 3}, Retry: 1})
	caller := w.add("x", 1)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.add(name, 1, "f")
	}
	w.roster()
	for i := range 13 {
		caller.call(strconv.Itoa(i), "f")
	}
	w.until("results", w.over)
	var to []string
	for _, m := range w.sent {
		if m.Kind == callcore.Ask {
			to = append(to, m.To.Name)
		}
	}
	if want := strings.Split("cbacbccbacbc", ""); !slices.Equal(to[:12], want) {
		t.Errorf("%v, want %v", to, want)
	}
}

// TestMarks: no server has more calls of a member than the upper mark allows, a server is filled to the lower mark first, and
// an answer brings the next call.
func TestMarks(t *testing.T) {
	for _, high := range []int{1, 3, 5} {
		w := newWorld(t, 2, callcore.Rule{Style: callcore.Demand, Low: 1, High: high, Retry: 1})
		caller := w.add("x", 1)
		w.add("a", 1, "f")
		w.add("b", 1, "f")
		w.roster()
		for i := range 40 {
			caller.call(strconv.Itoa(i), "f")
		}
		most := map[string]int{}
		w.until("results", func() bool {
			for _, n := range w.nodes {
				for _, c := range n.m.Report() {
					most[n.peer.Name] = max(most[n.peer.Name], c.Waiting+c.Running)
				}
			}
			return w.over()
		})
		if most["a"] != high || most["b"] > high {
			t.Errorf("upper mark %d: %v calls at the servers", high, most)
		}
		sent := map[string]int{}
		for _, m := range w.sent {
			if m.Kind == callcore.Ask {
				sent[m.To.Name]++
			}
		}
		if sent["a"]+sent["b"] != 40 || sent["a"] < 10 || sent["b"] < 10 {
			t.Errorf("%v", sent)
		}
	}
}

// TestFewMessages: a call takes two messages where its answer comes soon, and the acknowledgement goes with the next call. The server
// learns that a caller has an answer even if there is no next call, and a caller that the server has a call even if it runs for long.
func TestFewMessages(t *testing.T) {
	w := newWorld(t, 9, callcore.Rule{Retry: 1})
	caller := w.add("x", 1)
	a := w.add("a", 1, "f")
	w.roster()
	for i := range 20 {
		c := caller.call(strconv.Itoa(i), "f")
		w.until("the answer", func() bool { return c.ended != nil })
	}
	count := map[callcore.Kind]int{}
	for _, m := range w.sent {
		count[m.Kind]++
	}
	if count[callcore.Ask] != 20 || count[callcore.Answer] != 20 || count[callcore.Got] != 0 || count[callcore.Done] != 19 {
		t.Errorf("messages by kind: %v", count)
	}
	w.until("the last answer is acknowledged", func() bool { calls, _ := a.m.Held(); return calls == 0 })
	w.run = time.Hour
	caller.call("long", "f")
	w.until("a call that runs for long is acknowledged", func() bool {
		return slices.ContainsFunc(w.sent, func(m callcore.Message) bool { return m.Kind == callcore.Got })
	})
	for range 2000 {
		w.step()
	}
	asks := 0
	for _, m := range w.sent {
		if m.Kind == callcore.Ask {
			asks++
		}
	}
	if asks != 21 {
		t.Errorf("%d calls are sent, 21 are made", asks)
	}
}

// TestLateStage: a function that is added while a call is on its way or runs still gets the result from the server, not from the caller.
func TestLateStage(t *testing.T) {
	w := newWorld(t, 10, callcore.Rule{Retry: 1, Replicas: nil})
	caller := w.add("x", 1)
	w.add("a", 1, "f")
	w.add("b", 1, "g")
	w.roster()
	w.until("the servers are known", func() bool { return len(caller.m.Known("f")) == 1 && len(caller.m.Known("g")) == 1 })
	number, err := caller.m.Call(w.now, callcore.Stage{Name: "f"}, 1, []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	c := &made{want: "g(f(1))"}
	caller.calls[number] = c
	caller.carry() // The call goes.
	if err := caller.m.Then(w.now, number, callcore.Stage{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	caller.carry()
	w.until("the result", func() bool { return c.ended != nil })
	for _, m := range w.sent {
		if m.Kind == callcore.Ask && m.Stages[m.Stage].Name == "g" && m.From == caller.peer {
			t.Error("the result went by way of the caller")
		}
	}
}

// TestBatch: calls wait for others of their batch, and no longer than they linger.
func TestBatch(t *testing.T) {
	w := newWorld(t, 3, callcore.Rule{Batch: 4, Linger: 5 * time.Millisecond, Retry: 1})
	caller := w.add("x", 1)
	w.add("a", 1, "f")
	w.roster()
	caller.call("0", "f")
	for range 1000 {
		w.step()
	}
	asks := func() (n int) {
		for _, m := range w.sent {
			if m.Kind == callcore.Ask {
				n++
			}
		}
		return n
	}
	before := asks()
	for i := range 3 {
		caller.call(strconv.Itoa(i), "f")
	}
	if asks() != before {
		t.Error("calls are sent before their batch is full")
	}
	caller.call("3", "f", "f") // Its second stage goes with it.
	if n := asks() - before; n != 3 && n != 4 {
		t.Errorf("%d calls are sent with a full batch", n)
	}
	caller.call("4", "f")
	sent := w.now
	n := asks()
	w.until("the call that lingers", func() bool { return asks() > n })
	if d := w.now.Sub(sent); d < 4*time.Millisecond || d > 6*time.Millisecond {
		t.Errorf("a call lingers for %v", d)
	}
	w.until("results", w.over)
}

// TestBounds: a server refuses what is too much, another one takes it, and the call fails if there is none.
func TestBounds(t *testing.T) {
	w := newWorld(t, 4, callcore.Rule{Retry: 2})
	w.run = time.Hour
	var callers []*node
	for i := range 6 {
		callers = append(callers, w.add(fmt.Sprint("x", i), 1))
	}
	a := w.add("a", 1, "f")
	w.roster()
	for _, n := range callers {
		for i := range callcore.MaxOpen {
			n.call(strconv.Itoa(i), "f")
		}
		if _, err := n.m.Call(w.now, callcore.Stage{Name: "f"}, 1, nil); !errors.Is(err, callcore.ErrTooMany) || n.m.HasRoom("f") {
			t.Fatal(err)
		}
		if _, err := n.m.Call(w.now, callcore.Stage{Name: "g"}, callcore.MaxDepth+1, nil); !errors.Is(err, callcore.ErrTooDeep) {
			t.Fatal(err)
		}
	}
	full := func() (n int) {
		for _, caller := range callers {
			for _, c := range caller.calls {
				if c.ended != nil {
					n++
					if c.ended.Fault != callcore.Overfull || c.ended.Server != "a" {
						t.Fatalf("%+v", c.ended)
					}
				}
			}
		}
		return n
	}
	w.until("refusals", func() bool { return full() == 6*callcore.MaxOpen-callcore.MaxHeld })
	if calls, _ := a.m.Held(); calls != callcore.MaxHeld {
		t.Errorf("the server holds %d calls", calls)
	}
	if want := []workreport.Calls{{Name: "f", Waiting: callcore.MaxHeld - 1, Running: 1}}; !slices.Equal(a.m.Report(), want) {
		t.Errorf("%+v at the server, want %+v", a.m.Report(), want)
	}
	open, refused := 0, 0
	for _, caller := range callers {
		f := caller.m.Report()[0]
		open, refused = open+f.Open, refused+int(f.Full) //nolint:gosec // It is small.
	}
	if open != callcore.MaxHeld || refused != full() {
		t.Errorf("%d calls are open, and servers have refused %d", open, refused)
	}
	b := w.add("b", 1, "f")
	w.roster()
	w.until("the other server", func() bool { calls, _ := b.m.Held(); more := callers[5].m.HasRoom("f"); return calls > 0 || more })
	for callers[5].m.HasRoom("f") {
		callers[5].call("more", "f")
	}
	before := full()
	for range 5000 {
		w.step()
	}
	if calls, _ := b.m.Held(); calls == 0 || full() != before {
		t.Errorf("the other server holds %d calls, and %d more were refused", calls, full()-before)
	}
}

// TestChainFindsServers: a server that has not heard of all servers of the next function asks for them.
func TestChainFindsServers(t *testing.T) {
	w := newWorld(t, 9, callcore.Rule{Retry: 1})
	caller, a := w.add("x", 1), w.add("a", 1, "f")
	w.add("b", 1, "g")
	c := w.add("c", 1, "g")
	w.roster()
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool {
		m, err := callcore.Names(nil).Read(l.data)
		return err == nil && m.Kind == callcore.Serves && m.From == c.peer && m.To == a.peer
	})
	w.until("the roster is known", func() bool { return len(w.mail) == 0 })
	for i := range 20 {
		caller.call(strconv.Itoa(i), "f", "g")
	}
	w.until("results", w.over)
	sent := map[string]int{}
	for _, m := range w.sent {
		if m.Kind == callcore.Ask && m.From == a.peer && m.Stage == 1 {
			sent[m.To.Name]++
		}
	}
	if sent["b"] == 0 || sent["c"] == 0 {
		t.Errorf("%v", sent)
	}
}

// TestChainFaults: what cannot be added to a chain is refused.
func TestChainFaults(t *testing.T) {
	w := newWorld(t, 5, callcore.Rule{Retry: 2})
	a := w.add("a", 1, "f")
	w.roster()
	if err := a.m.Then(w.now, 17, callcore.Stage{Name: "f"}); !errors.Is(err, callcore.ErrEnded) {
		t.Error(err)
	}
	number, err := a.m.Call(w.now, callcore.Stage{Name: "none"}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range callcore.MaxStages - 1 {
		if err := a.m.Then(w.now, number, callcore.Stage{Name: "f"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.m.Then(w.now, number, callcore.Stage{Name: "f"}); !errors.Is(err, callcore.ErrTooLong) {
		t.Error(err)
	}
}

// TestStrangers: a member that does not serve a function says so, and nobody speaks for the origin of a call.
func TestStrangers(t *testing.T) {
	w := newWorld(t, 6, callcore.Rule{Retry: 1})
	w.run = time.Hour
	a, b, c := w.add("a", 1, "f"), w.add("b", 1), w.add("c", 1)
	w.roster()
	ask := callcore.Message{Kind: callcore.Ask, From: b.peer, To: a.peer, Origin: b.peer, Number: 1, Stages: []callcore.Stage{{Name: "g"}}}
	a.m.Take(w.now, &ask)
	if out := a.m.Output(); !slices.ContainsFunc(out.Messages, func(m callcore.Message) bool { return m.Kind == callcore.Gone && m.Number == 1 && m.To == b.peer }) {
		t.Errorf("%+v", out)
	}
	ask.Stages[0].Name = "f"
	a.m.Take(w.now, &ask)
	if calls, _ := a.m.Held(); calls != 1 {
		t.Fatal(calls)
	}
	a.m.Take(w.now, &callcore.Message{Kind: callcore.Done, From: c.peer, To: a.peer, Origin: b.peer, Number: 1})
	if calls, _ := a.m.Held(); calls != 1 {
		t.Error("a member has ended the call of another one")
	}
	a.m.Take(w.now, &callcore.Message{Kind: callcore.Done, From: b.peer, To: a.peer, Origin: b.peer, Number: 1})
	if calls, _ := a.m.Held(); calls != 0 {
		t.Error("the origin has not ended its call")
	}
	a.m.Take(w.now, &ask) // A late copy.
	if calls, _ := a.m.Held(); calls != 0 {
		t.Error("a call that is done runs again")
	}
	ask.Number, ask.Origin.Life = 2, 9
	a.m.Take(w.now, &ask)
	if calls, _ := a.m.Held(); calls != 0 {
		t.Error("a call of a life that is not in the group is taken")
	}
}

// TestStale: the answer of an earlier try is not taken, and its server need not send it again.
func TestStale(t *testing.T) {
	w := newWorld(t, 7, callcore.Rule{Retry: 2})
	w.run = time.Hour
	a, b := w.add("a", 1), w.add("b", 1, "f")
	w.roster()
	c := a.call("1", "f")
	w.until("the server", func() bool { calls, _ := b.m.Held(); return calls == 1 })
	b.out = true
	w.roster()
	b.out = false
	w.roster()
	w.until("the server has it again", func() bool { return len(b.runs) == 1 && b.runs[0].ID == 2 })
	for number := range a.calls {
		old := callcore.Message{Kind: callcore.Answer, From: b.peer, To: a.peer, Origin: a.peer, Number: number, Body: []byte("old")}
		a.m.Take(w.now, &old)
		if out := a.m.Output(); c.ended != nil || len(out.Outcomes) > 0 {
			t.Errorf("%+v", out)
		}
	}
	w.until("the server learns that the old answer is done", func() bool {
		return slices.ContainsFunc(w.sent, func(m callcore.Message) bool { return m.Kind == callcore.Done && m.Try == 0 })
	})
	for i := range b.runs {
		b.runs[i].at = w.now
	}
	w.until("the answer", func() bool { return c.ended != nil })
	if want := []workreport.Calls{{Name: "f", Lost: 1}}; !slices.Equal(a.m.Report(), want) {
		t.Errorf("%+v, want %+v", a.m.Report(), want)
	}
	if c.ended.Tries != 2 || c.ended.Fault != callcore.None {
		t.Errorf("%+v", c.ended)
	}
}

// TestAway: a member that takes no calls serves what it has, and the others send theirs elsewhere.
func TestAway(t *testing.T) {
	w := newWorld(t, 8, callcore.Rule{Retry: 1})
	caller, a, b := w.add("x", 1), w.add("a", 1, "f"), w.add("b", 1, "f")
	w.roster()
	for i := range 10 {
		caller.call(strconv.Itoa(i), "f")
	}
	w.until("both have calls", func() bool { m, _ := a.m.Held(); n, _ := b.m.Held(); return m > 0 && n > 0 })
	a.m.SetAway(w.now, true)
	a.carry()
	for i := range 10 { // Some go to it: it has not told them yet.
		caller.call(fmt.Sprint("later", i), "f")
	}
	w.until("results", w.over)
	a.m.SetAway(w.now, true)
	if from := slices.IndexFunc(w.order, func(text string) bool { return strings.HasPrefix(text, "later") }); slices.Contains(w.servers[from:], "a") && slices.ContainsFunc(w.order[from:], func(text string) bool {
		return strings.HasPrefix(text, "later") && w.servers[slices.Index(w.order, text)] == "a"
	}) {
		t.Error("a call that came later ran at the member that takes none")
	}
	for _, c := range caller.calls {
		if c.ended.Fault != callcore.None {
			t.Errorf("%+v", c.ended)
		}
	}
	a.m.SetAway(w.now, false)
	a.carry()
	before := len(w.servers)
	for range 50 {
		w.step()
	}
	caller.call("again1", "f")
	caller.call("again2", "f")
	w.until("results", w.over)
	if !slices.Contains(w.servers[before:], "a") {
		t.Error("a member that takes calls again gets none")
	}
}

// TestPassive: a function that waits leaves its slot to another call.
func TestPassive(t *testing.T) {
	w := newWorld(t, 7, callcore.Rule{Retry: 1})
	w.run = time.Hour
	a := w.add("a", 1, "f")
	w.roster()
	a.call("1", "f")
	a.call("2", "f")
	a.call("3", "f")
	if len(a.runs) != 1 {
		t.Fatal(len(a.runs))
	}
	a.m.SetPassive(w.now, a.runs[0].ID, true)
	a.m.SetPassive(w.now, a.runs[0].ID, true)
	a.carry()
	if len(a.runs) != 2 {
		t.Fatal(len(a.runs))
	}
	a.m.SetPassive(w.now, a.runs[0].ID, false)
	a.m.Ended(w.now, a.runs[0].ID, false, []byte("f(1)"))
	a.carry()
	if len(a.runs) != 2 {
		t.Errorf("%d runs: the slot is taken", len(a.runs))
	}
	a.m.Ended(w.now, a.runs[1].ID, false, []byte("f(2)"))
	a.carry()
	if len(a.runs) != 3 {
		t.Errorf("%d runs: the slot is free", len(a.runs))
	}
}

func randomMessage(r *rand.Rand) callcore.Message {
	text := func() string { return strings.Repeat("n", r.IntN(callcore.MaxName+1)) }
	peer := func() callcore.Peer { return callcore.Peer{Name: text(), Life: r.Uint64()} }
	m := callcore.Message{
		Kind: callcore.Kind(1 + r.IntN(13)), From: peer(), To: peer(), Origin: peer(), Number: r.Uint64(), Try: r.IntN(1 << 30), Depth: r.IntN(callcore.MaxDepth),
		Body: []byte(text()),
	}
	switch m.Kind {
	case callcore.Ask:
		m.Marked, m.Load = r.IntN(2) == 0, r.IntN(callcore.MaxHeld)
	case callcore.Moved:
		m.Failed, m.At = r.IntN(2) == 0, peer()
	default:
		m.Failed, m.Load = r.IntN(2) == 0, r.IntN(callcore.MaxHeld)
	}
	for range 1 + r.IntN(callcore.MaxStages) {
		m.Stages = append(m.Stages, callcore.Stage{Name: text(), Weight: r.NormFloat64(), Loc: r.NormFloat64()})
	}
	m.Stage = r.IntN(len(m.Stages))
	for range r.IntN(4) {
		m.Names = append(m.Names, text())
	}
	return m
}

// TestRead: what is written is read, and damaged bytes are refused or read as some message, without a panic.
func TestRead(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	names := callcore.Names{}
	for i := range 300 {
		m := randomMessage(r)
		data := m.Append(nil)
		read := callcore.Names(nil).Read
		if i%2 == 0 {
			read = names.Read
		}
		got, err := read(data)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v %v, want %+v", got, err, m)
		}
		if _, err := callcore.Names(nil).Read(data[:r.IntN(len(data)-len(m.Body))]); err == nil || err.Error() != "message about calls: it is damaged: let all members of the space run the same version" {
			t.Fatal("a message that was cut off is read: ", err)
		}
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		_, _ = callcore.Names(nil).Read(data)
	}
	for i := range 10000 { // Texts of a member that sends many do not stay.
		data := (&callcore.Message{Kind: callcore.Find, From: callcore.Peer{Name: strconv.Itoa(i)}}).Append(nil)
		if got, err := names.Read(data); err != nil || got.From.Name != strconv.Itoa(i) || len(names) > 4096 {
			t.Fatalf("%+v %v with %d texts", got, err, len(names))
		}
	}
	ask := callcore.Message{Kind: callcore.Ask, Stages: []callcore.Stage{{Name: "f"}}, Stage: 1}
	if _, err := callcore.Names(nil).Read(ask.Append(nil)); err == nil {
		t.Error("a call without its function is read")
	}
}

// TestHostile: messages of a member that follow no rule do no harm to the calls of others.
func TestHostile(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, seed, callcore.Rule{Retry: 1})
		a, b, evil := w.add("a", 1), w.add("b", 1, "f", "g"), w.add("evil", 1)
		w.roster()
		peers := []callcore.Peer{a.peer, b.peer, evil.peer, {Name: "nobody", Life: 3}}
		for i := range 30 {
			a.call(strconv.Itoa(i), "f", "g")
			for range 20 {
				m := randomMessage(w.rand)
				m.From, m.Origin, m.At = evil.peer, peers[w.rand.IntN(4)], peers[w.rand.IntN(4)]
				m.Number, m.Try = uint64(w.now)+uint64(w.rand.IntN(60))-30, w.rand.IntN(3)
				if m.Kind == callcore.Serves || m.Kind == callcore.Answer || m.Kind == callcore.Moved {
					m.Origin = evil.peer // A member of the group may say that it serves a function; it is believed.
				}
				for j := range m.Stages {
					m.Stages[j].Name = []string{"f", "g", "x"}[w.rand.IntN(3)]
				}
				if m.Kind == callcore.Serves {
					m.Names = []string{"x"}
				}
				to := []*node{a, b}[w.rand.IntN(2)]
				m.To = to.peer
				to.m.Take(w.now, &m)
				to.carry()
			}
			w.step()
		}
		evil.out = true
		w.roster()
		w.until(fmt.Sprintf("seed %d", seed), func() bool {
			for _, c := range a.calls {
				if c.ended == nil {
					return false
				}
			}
			return true
		})
		for _, c := range a.calls {
			if c.ended.Fault != callcore.None {
				t.Fatalf("seed %d: %+v", seed, c.ended)
			}
		}
	}
}
