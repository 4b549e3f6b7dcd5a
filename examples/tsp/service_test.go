package main

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
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

// account is a coordinator that no synchronizer knows.
func account(tb testing.TB, out io.Writer) *coordinator {
	tb.Helper()
	p, err := prepared()
	if err != nil {
		tb.Fatal(err)
	}
	in := p.Instance()
	info := runInfo{ID: "r", Instance: "burma14", N: in.N, Kind: "prefix", Seed: 1, Threads: 2}
	c := newCoordinator(info, in, 0, newScreen(out, false, time.Now()))
	c.problem = p
	c.improve("test", p.Tour(), p.Length()+5)
	return c
}

// send has a coordinator answer a request.
func send(tb testing.TB, c *coordinator, r request) (a reply) {
	tb.Helper()
	if err := json.Unmarshal(c.handle(marshal(r)), &a); err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestService(t *testing.T) {
	var out strings.Builder
	c := account(t, &out)
	tour, length := c.problem.Tour(), c.problem.Length()
	c.file = []byte(strings.Repeat("x", chunkSize+1))
	for range 2 { // A request that comes twice does once what it does.
		if a := send(t, c, request{Name: "w1", Op: opHello, PID: 7}); a.Status != statusOK || a.Run != c.info {
			t.Fatalf("hello: %+v", a)
		}
		if a := send(t, c, request{Name: "w1", Op: opImprove, Tour: tour, Length: length}); a.Status != statusOK || c.best != length {
			t.Errorf("%+v, best %d", a, c.best)
		}
	}
	if a := send(t, c, request{Op: opTour}); a.Length != length || len(a.Tour) != len(tour) {
		t.Errorf("%+v", a)
	}
	if a := send(t, c, request{Op: opInstance, Offset: chunkSize}); string(a.Chunk) != "x" {
		t.Errorf("%+v", a)
	}
	for _, c2 := range []struct {
		r    request
		want string
	}{
		{request{Op: "dance"}, `unknown operation "dance"`},
		{request{Op: opInstance, Offset: chunkSize + 1}, "the instance has no such part"},
		{request{Op: opInstance, Offset: -1}, "the instance has no such part"},
		{request{Op: opImprove, Tour: tour, Length: length - 1}, "bnb: "},
		{request{Op: opImprove, Tour: []int{0, 0}, Length: 1}, "bnb: "},
		{request{Op: opImprove, Length: 1}, "bnb: "},
	} {
		if a := send(t, c, c2.r); a.Status != statusError || !strings.HasPrefix(a.Error, c2.want) || c.best != length {
			t.Errorf("%+v: %+v, want %s", c2.r, a, c2.want)
		}
	}
	var a reply
	if err := json.Unmarshal(c.handle([]byte("{")), &a); err != nil || !strings.HasPrefix(a.Error, "not a request: ") {
		t.Errorf("%+v, %v", a, err)
	}
	c.drop("w1", "silent for 2s")
	if want := "w1 is lost (silent for 2s): its subtasks are queued again\n"; out.String() != want || c.sessions["w1"] != nil {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if a := send(t, c, request{Name: "w1", Op: opPing, Outside: true, Progress: progress{Nodes: 3}}); a.Status != statusOK || c.outsiders() != 1 || c.sessions["w1"].progress.Nodes != 3 {
		t.Errorf("%+v of one that is back", a)
	}
	c.dismiss()
	for _, o := range []op{opPing, opHello} {
		if a := send(t, c, request{Name: "w1", Op: o, Progress: progress{Nodes: 4}}); a.Status != statusOver || c.sessions["w1"].progress.Nodes != 4 {
			t.Errorf("%+v after the end", a)
		}
	}
}

// TestProof: a search that has ended by a tour which is not recorded proves nothing.
func TestProof(t *testing.T) {
	c := account(t, io.Discard)
	over := make(chan error, 1)
	for _, c2 := range []struct {
		proof int
		want  string
	}{
		{c.best, ""},
		{c.best - 1, "the search has ended by a tour of length 3327, and the best recorded tour has 3328: the end proves nothing"},
	} {
		c.verdict, c.proof = "Done", c2.proof
		over <- nil
		if err := c.conclude(over); (err == nil) != (c2.want == "") || err != nil && err.Error() != c2.want {
			t.Errorf("%v, want %s", err, c2.want)
		}
	}
	c.found(Best{Length: 1, Tour: []int{0}})
	if c.best != 3328 {
		t.Errorf("best %d by a tour that is none", c.best)
	}
}

// TestBound: what is left of the bags bounds all tours from below, and a bound never falls.
func TestBound(t *testing.T) {
	c := account(t, io.Discard)
	for _, c2 := range []struct {
		rests []lowBound
		want  int
	}{{[]lowBound{3100, 3050}, 3050}, {[]lowBound{3000}, 3050}, {nil, 3050}, {[]lowBound{4000}, c.best}} {
		if c.raiseBound(c2.rests); c.bound != c2.want {
			t.Errorf("bound %d by %v, want %d", c.bound, c2.rests, c2.want)
		}
	}
}
