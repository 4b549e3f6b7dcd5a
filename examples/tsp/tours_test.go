package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// searchBag searches a bag to its end and returns the shortest tour it has found. Every so many steps a part goes to more.
func searchBag(t *testing.T, p *bnb.Problem, b *Tours, incumbent *atomic.Int64, every int, more func(Tours)) (best Best) {
	t.Helper()
	for steps := 1; len(b.list) > 0; {
		s, err := bnb.NewSearch(p, b.list[0], incumbent)
		if err != nil {
			t.Fatal(err)
		}
		b.list, b.search = b.list[1:], s
		for st := s.Step(); st != bnb.Done; st = s.Step() {
			if st == bnb.Improved {
				tour, length := s.Tour()
				best = shorter(best, Best{length, tour})
			}
			if n := b.Len(); n < 1 {
				t.Fatalf("a search that goes on counts %d", n)
			} else if steps++; steps%every == 0 && n > 1 {
				more(b.Split(max(1, n/2)))
			}
		}
		b.search = nil
	}
	return best
}

// TestTours: no tour is lost where bags are split, travel, and go on from what was saved.
func TestTours(t *testing.T) {
	in, err := tsplib.Load("st70")
	if err != nil {
		t.Fatal(err)
	}
	solved, err := bnb.Solve(in, bnb.SolveOptions{Seed: 1})
	if err != nil || !solved.Proven {
		t.Fatal(solved, err)
	}
	tour, _ := bnb.NewImprover(in, bnb.ImproverOptions{Seed: 1, Start: bnb.Poor}).Best()
	p, err := bnb.Prepare(in, bnb.Options{Seed: 1, Tour: tour})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []bnb.Kind{bnb.Edges, bnb.Prefix} {
		var incumbent atomic.Int64
		incumbent.Store(math.MaxInt64)
		bags, best, parts := []*Tours{{list: []bnb.Subtask{bnb.Root(kind)}}}, Best{}, 0
		for len(bags) > 0 {
			b := bags[len(bags)-1]
			bags = bags[:len(bags)-1]
			found := searchBag(t, p, b, &incumbent, 3, func(part Tours) {
				for _, one := range []*Tours{&part, b} { // Both travel; what is kept is read only here.
					data, err := one.MarshalBinary()
					if err != nil {
						t.Fatal(err)
					}
					other, low := &Tours{}, lowBound(0)
					if err := errors.Join(other.UnmarshalBinary(data), low.UnmarshalBinary(data)); err != nil {
						t.Fatal(err)
					}
					want := len(one.list)
					if one.search != nil {
						want += one.search.Open()
					}
					if int(low) != one.lowest() || other.Len() != want {
						t.Fatalf("%d of %d subtasks travel, with the bound %d of %d", other.Len(), want, low, one.lowest())
					}
					if one == &part && part.Len() > 0 {
						bags = append(bags, other)
					}
				}
				parts++
			})
			if best = shorter(best, found); best.Length > 0 {
				incumbent.Store(min(incumbent.Load(), int64(best.Length)))
			}
		}
		if best.Length != solved.Length || bnb.Verify(in, best.Tour, best.Length) != nil || parts == 0 {
			t.Errorf("%v: %+v from %d parts, want length %d", kind, best, parts, solved.Length)
		}
	}
}

func TestToursRefused(t *testing.T) {
	low := "\x00\x00\x00\x00\x00\x00\x00\x05"
	for data, want := range map[string]string{
		"":                                "a bag of tours has 0 bytes: it needs 8 to 8388608",
		low[1:]:                           "a bag of tours has 7 bytes: it needs 8 to 8388608",
		low:                               "a bag of tours: unexpected end of JSON input",
		low + "{}":                        "a bag of tours: json: ",
		"\xff" + low[1:] + "[]":           "a bag of tours: lower bound 18374686479671623685 is too large",
		low + strings.Repeat(" ", maxBag): "a bag of tours has 8388616 bytes: it needs 8 to 8388608",
	} {
		if err := new(Tours).UnmarshalBinary([]byte(data)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if b := shorter(Best{}, Best{Length: 3}); b.Length != 3 || shorter(b, Best{}).Length != 3 || shorter(b, Best{Length: 2}).Length != 2 || shorter(b, Best{Length: 4}).Length != 3 {
		t.Error("not the shorter one")
	}
}

// TestBags: the state says what the threads can have and have, and each bag goes back to its function.
func TestBags(t *testing.T) {
	var told []processState
	b := newBags(func(s processState) { told = append(told, s) })
	b.open()
	if b.ask(4) != 0 {
		t.Error("a process that is not ready asks")
	}
	waits := 1
	b.join(func() int { return waits }, true)
	if n := b.ask(4); n != 3 || b.ask(4) != 0 {
		t.Errorf("room for %d, want 3, once", n)
	}
	j := &job{done: make(chan error, 1)}
	b.add(j)
	if s := told[len(told)-1]; s.Asking || s.Queue != 1 || s.Coming != 1 || s.Load != 2 || !s.Ready {
		t.Errorf("%+v", s)
	}
	if waits = 0; b.take() != j || b.take() != nil {
		t.Error("another bag")
	}
	b.note(j, 7)
	if s := told[len(told)-1]; s.Searching != 1 || s.Queue+s.Coming != 0 || b.load() != 7 {
		t.Errorf("%+v, load %v", s, b.load())
	}
	if !b.give() || b.give() {
		t.Error("two orders to give at a time")
	}
	b.gave()
	b.known(9)
	b.known(11)
	gone := errors.New("gone")
	if b.finish(j, gone); !errors.Is(<-j.done, gone) || b.state != (processState{Best: 9, Ready: true}) {
		t.Errorf("%+v", b.state)
	}
	late := &job{done: make(chan error, 1)}
	b.add(j)
	b.stop()
	b.add(late)
	if !errors.Is(<-j.done, errStopped) || !errors.Is(<-late.done, errStopped) || b.take() != nil {
		t.Error("a bag is left after the stop")
	}
	if b.join(nil, false); b.state.Ready {
		t.Error("ready without a space")
	}
}

// TestBranchStopped: a bag that a signal has stopped does not fail: its function waits for the end of the space.
func TestBranchStopped(t *testing.T) {
	w := &worker{bags: newBags(nil)}
	w.bags.stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.branch(ctx, &Tours{}, &Best{}) }()
	select {
	case err := <-done:
		t.Errorf("%v before the space is closed", err)
	case <-time.After(10 * time.Millisecond):
	}
	cancel()
	if err := <-done; !errors.Is(err, errStopped) {
		t.Error(err)
	}
}

// TestDelivery (P35): the member that is asked decides how much it gives, by the room that the other one has.
func TestDelivery(t *testing.T) {
	view := func(slots, running, waiting int) *local.View {
		v := &local.View{Waiting: waiting, Items: 9, Members: 4}
		v.Activity.Set(0, running, slots)
		return v
	}
	for _, c := range []struct {
		v    *local.View
		room int
		want local.Share
	}{
		{view(0, 0, 24), 9, local.Share{Tasks: 4}}, // A half of an equal share.
		{view(0, 0, 24), 2, local.Share{Tasks: 2}}, // There is no more room.
		{view(0, 0, 24), 0, local.Share{Tasks: 4}}, // The other one does not tell.
		{view(0, 0, 1), 9, local.Share{Tasks: 1}},
		{view(2, 2, 3), 9, local.Share{Tasks: 3}}, // A worker.
		{view(2, 2, 3), 1, local.Share{Tasks: 1}},
		{view(2, 2, 0), 1, local.Share{Part: 0.5}},
	} {
		if got := (delivery{}).Answer(0, c.v, local.Demand{Tasks: c.room}); got != c.want {
			t.Errorf("%d wait, room for %d: %+v, want %+v", c.v.Waiting, c.room, got, c.want)
		}
	}
	v := view(2, 1, 0)
	v.Neighbours = []local.Neighbour{{Name: "a", Load: 9}, {Name: "b", Offers: 5}}
	got, next := delivery{}.Look(0, v, nil)
	if !slices.Equal(got, []local.Demand{{Member: "b", Tasks: 1}}) || next != clocksync.MaxInstant {
		t.Errorf("%+v until %v, want one task of b", got, next)
	}
}

// eager is a strategy of this test's own: it asks all neighbours in turn, and gives one task or half of a bag.
type eager struct{ turn int }

func (e *eager) Look(now clocksync.Instant, v *local.View, to []local.Demand) ([]local.Demand, clocksync.Instant) {
	if v.Activity.Free() == 0 || len(v.Neighbours) == 0 {
		return to, clocksync.MaxInstant
	}
	e.turn++
	return append(to, local.Demand{Member: v.Neighbours[e.turn%len(v.Neighbours)].Name}), now.Add(time.Millisecond)
}

func (e *eager) Answer(_ clocksync.Instant, v *local.View, _ local.Demand) local.Share {
	return local.Share{Tasks: min(1, v.Waiting), Part: 0.5}
}

func init() { strategies["eager"] = func() local.Local { return &eager{} } }

// TestStrategies (P24): any strategy moves the subtasks, also one that is not of this repository's packages.
func TestStrategies(t *testing.T) {
	for _, name := range []string{"eager", local.Receiver, local.Diffusion, local.Pegasus} {
		code, r := begin(t, "-instance", "st70", "-processes", "2", "-threads", "1", "-strategy", name, "-json").finish(t)
		checkProven(t, code, r, "st70", 675)
		if r.Signals.NewSubtask+r.migrate > 0 || r.Nodes == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
