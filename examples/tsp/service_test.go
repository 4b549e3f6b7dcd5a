package main

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/lease"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// prepared is the instance of these tests.
var prepared = sync.OnceValues(func() (*bnb.Problem, error) {
	in, err := tsplib.Load("burma14")
	if err != nil {
		return nil, err
	}
	return bnb.Prepare(in, bnb.Options{Seed: 1})
})

// account is a coordinator that no synchronizer knows, with these many subtasks
// of the kind of the paper.
func account(tb testing.TB, subtasks int, out io.Writer) *coordinator {
	tb.Helper()
	p, err := prepared()
	if err != nil {
		tb.Fatal(err)
	}
	in := p.Instance()
	info := runInfo{ID: "r", Instance: "burma14", N: in.N, Kind: "prefix", Seed: 1, Threads: 2}
	c := newCoordinator(info, in, 0, newScreen(out, false, time.Now()))
	c.problem = p
	c.improve("test", p.Tour(), p.Length())
	c.table = lease.NewTable(bodies(subtasks))
	return c
}

// bodies are subtasks that begin with city 0 and another one.
func bodies(n int) []lease.Item {
	var list []bnb.Subtask
	for i := range n {
		list = append(list, bnb.Subtask{Kind: bnb.Prefix, Prefix: []int32{0, int32(i + 1)}, LowerBound: 3000 + i})
	}
	return encode(list)
}

// client numbers the requests of a session.
type client struct {
	c             *coordinator
	name, session string
	number        uint64
}

func (k *client) send(tb testing.TB, r request) reply {
	tb.Helper()
	k.number++
	return k.again(tb, r)
}

// again repeats the last number.
func (k *client) again(tb testing.TB, r request) reply {
	tb.Helper()
	r.Name, r.Session, r.Number = k.name, k.session, k.number
	var a reply
	if data := k.c.handle(marshal(r)); data != nil {
		if err := json.Unmarshal(data, &a); err != nil {
			tb.Fatal(err)
		}
	}
	return a
}

func ids(list []lease.Lease) []lease.ID {
	out := []lease.ID{}
	for _, l := range list {
		out = append(out, l.ID)
	}
	return out
}

func TestServiceCountsARequestOnce(t *testing.T) {
	c := account(t, 5, io.Discard)
	w := &client{c: c, name: "w1", session: "s"}
	if a := w.send(t, request{Op: opHello, PID: 7}); a.Status != statusOK || a.Run != c.info {
		t.Fatalf("hello: %+v", a)
	}
	first := w.send(t, request{Op: opGrant, First: 2, Count: 2})
	for range 3 {
		if diff := cmp.Diff(first, w.again(t, request{Op: opGrant, First: 2, Count: 2})); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]lease.ID{2, 3}, ids(first.Leases)); diff != "" {
		t.Error(diff)
	}
	w.number--
	if a := w.again(t, request{Op: opGrant, Count: 1}); a.Status != "" {
		t.Errorf("a late copy is answered: %+v", a)
	}
	want := lease.Counts{Open: 5, Pool: 3, Next: 1, Sent: 2}
	if diff := cmp.Diff(want, c.table.Counts()); diff != "" {
		t.Error(diff)
	}
}

// TestServiceDropsAWorker: what it held is queued again, less what it returned,
// and whatever it says afterwards is void.
func TestServiceDropsAWorker(t *testing.T) {
	var out strings.Builder
	c := account(t, 3, &out)
	w := &client{c: c, name: "w1", session: "s"}
	w.send(t, request{Op: opHello})
	w.send(t, request{Op: opGrant, Count: 2})
	children := bodies(5)
	if a := w.send(t, request{Op: opReturn, ID: 1, Given: children[:2], Kept: children[2:]}); a.Status != statusOK {
		t.Fatalf("return: %+v", a)
	}
	if a := w.send(t, request{Op: opComplete, ID: 2}); a.Status != statusOK {
		t.Fatalf("complete: %+v", a)
	}
	c.drop("w1", "silent for 2s")
	c.drop("w1", "silent for 2s")
	c.drop("nobody", "left")
	if got, want := out.String(), "w1 is lost (silent for 2s): 1 subtask queued again\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	var kept []lease.Item
	for _, l := range c.table.Leases() {
		if l.Owner != "" {
			t.Errorf("lease %d is still with %s", l.ID, l.Owner)
		}
		kept = append(kept, l.Items...)
	}
	if got := len(kept); got != 3+1+2 {
		t.Errorf("%d subtasks are open, want the 3 kept, the third lease and 2 children", got)
	}
	for _, o := range []op{opComplete, opGrant, opPing, opBye} {
		if a := w.send(t, request{Op: o, ID: 1, Count: 1}); a.Status != statusVoid {
			t.Errorf("%s after the drop: %+v", o, a)
		}
	}
	if n := c.table.Counts(); n.Sent != 0 || n.Pool != 4 {
		t.Errorf("%+v", n)
	}
}

// TestServiceReplacesASession: a worker that begins again has nothing in hand.
func TestServiceReplacesASession(t *testing.T) {
	var out strings.Builder
	c := account(t, 3, &out)
	old, w := &client{c: c, name: "w1", session: "a"}, &client{c: c, name: "w1", session: "b"}
	old.send(t, request{Op: opHello})
	old.send(t, request{Op: opGrant, Count: 3})
	if a := w.send(t, request{Op: opHello}); a.Status != statusOK {
		t.Fatalf("%+v", a)
	}
	if a := old.send(t, request{Op: opComplete, ID: 1}); a.Status != statusVoid {
		t.Errorf("the old session: %+v", a)
	}
	if n := c.table.Counts(); n.Pool != 3 || n.Sent != 0 {
		t.Errorf("%+v", n)
	}
	if got, want := out.String(), "w1 begins again: 3 subtasks queued again\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestServiceRefuses(t *testing.T) {
	c := account(t, 2, io.Discard)
	w := &client{c: c, name: "w1", session: "s"}
	if a := w.send(t, request{Op: opGrant, Count: 1}); a.Status != statusVoid {
		t.Errorf("before hello: %+v", a)
	}
	w.number = 0
	w.send(t, request{Op: opHello})
	long := c.problem.Tour()
	for name, r := range map[string]request{
		`unknown operation "dance"`:      {Op: "dance"},
		"the instance has no such part":  {Op: opInstance, Offset: 5},
		"lease 9 is not held":            {Op: opComplete, ID: 9},
		"bnb: subtask":                   {Op: opReturn, ID: 1, Given: []lease.Item{{Body: []byte("x")}}},
		"lease 1 is not held":            {Op: opReturn, ID: 1, Given: bodies(1)},
		strconv.Itoa(c.problem.Length()): {Op: opImprove, Tour: long, Length: c.problem.Length() - 1},
		"bnb: ":                          {Op: opImprove, Tour: []int{1, 2}, Length: 1},
	} {
		if a := w.send(t, r); a.Status != statusError || !strings.Contains(a.Error, name) {
			t.Errorf("%s: %+v, want an error with %q", r.Op, a, name)
		}
	}
	var a reply
	if err := json.Unmarshal(c.handle([]byte(`{"op":7}`)), &a); err != nil || a.Status != statusError || !strings.Contains(a.Error, "not a request") {
		t.Errorf("not a request: %+v, %v", a, err)
	}
	if c.best != c.problem.Length() {
		t.Errorf("best %d, want %d", c.best, c.problem.Length())
	}
}

// TestServiceEnds: when a predicate has held nothing is handed out any more, and
// after the dismissal everyone is told to go.
func TestServiceEnds(t *testing.T) {
	c := account(t, 2, io.Discard)
	w := &client{c: c, name: "w1", session: "s"}
	w.send(t, request{Op: opHello})
	c.verdict = "StopIteration"
	if a := w.send(t, request{Op: opGrant, Count: 1}); a.Status != statusOK || len(a.Leases) > 0 {
		t.Errorf("grant after the end: %+v", a)
	}
	c.dismiss()
	if a := w.send(t, request{Op: opPing}); a.Status != statusOver {
		t.Errorf("ping: %+v", a)
	}
	if a := w.send(t, request{Op: opBye, Progress: progress{Late: 3}}); a.Status != statusOK {
		t.Errorf("bye: %+v", a)
	}
	if r := c.result(time.Time{}, time.Time{}); r.LateSignals != 3 {
		t.Errorf("%d late signals, want 3", r.LateSignals)
	}
}

func TestStatus(t *testing.T) {
	c := account(t, 2, io.Discard)
	c.bound = 3000
	for i, name := range []string{"w2", "w1"} {
		w := &client{c: c, name: name, session: "s"}
		w.send(t, request{Op: opHello})
		w.send(t, request{Op: opPing, Progress: progress{Load: 1000.4 * float64(i)}})
	}
	c.tally.applied["NewBest"], c.tally.applied["Migrate"] = 3, 1
	start := time.Unix(0, 0)
	want := "burma14 7s best 3323 bound 3000 gap 10.77% open 2 load 1000/0 signals 3/0/1"
	if got := c.status(start.Add(7*time.Second), start); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestBound: the lower bound follows the open leases up, never above the best
// tour, and stays when none is open.
func TestBound(t *testing.T) {
	c := account(t, 2, io.Discard) // With bounds 3000 and 3001.
	c.bound = 2990
	w := &client{c: c, name: "w1", session: "s"}
	w.send(t, request{Op: opHello})
	w.send(t, request{Op: opGrant, Count: 2})
	for _, step := range []struct {
		r    request
		want int
	}{
		{request{Op: opPing}, 3000},
		{request{Op: opPing, Progress: progress{Bounds: []heldBound{{1, 3100}, {2, 3050}}}}, 3050},
		{request{Op: opPing, Progress: progress{Bounds: []heldBound{{2, 3010}}}}, 3050},
		{request{Op: opComplete, ID: 2}, 3100},
		{request{Op: opComplete, ID: 1}, 3100},
	} {
		if w.send(t, step.r); c.bound != step.want {
			t.Errorf("after %s: bound %d, want %d", step.r.Op, c.bound, step.want)
		}
	}
	c.table = lease.NewTable([]lease.Item{{Bound: math.MaxInt, Body: bodies(1)[0].Body}})
	if w.send(t, request{Op: opPing}); c.bound != c.best {
		t.Errorf("bound %d above every tour, best %d", c.bound, c.best)
	}
}

// FuzzHandle: whatever a worker sends, the coordinator answers, and no subtask
// is lost that was not completed.
func FuzzHandle(f *testing.F) {
	for _, r := range []request{
		{Op: opHello},
		{Op: opGrant, Count: 1},
		{Op: opReturn, ID: 1, Given: bodies(1)},
		{Op: opRelease, IDs: []lease.ID{1}},
		{Op: opImprove, Tour: []int{0}, Length: -1},
		{Op: opInstance, Offset: -1},
		{Op: opPing, Progress: progress{Bounds: []heldBound{{1, 1}}}},
	} {
		r.Name, r.Session, r.Number = "w1", "s", 3
		f.Add(marshal(r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := account(t, 2, io.Discard)
		w := &client{c: c, name: "w1", session: "s"}
		w.send(t, request{Op: opHello})
		w.send(t, request{Op: opGrant, Count: 1})
		c.handle(data)
		n := c.table.Counts()
		if n.Open+n.Completed < 2 || n.Completed > 1 {
			t.Errorf("%+v after %q", n, data)
		}
	})
}
