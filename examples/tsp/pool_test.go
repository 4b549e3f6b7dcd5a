package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

func leases(ids ...lease.ID) []lease.Lease {
	var list []lease.Lease
	for _, id := range ids {
		list = append(list, lease.Lease{ID: id, Items: []lease.Item{{Bound: 100}}, Bound: 100})
	}
	return list
}

// one is the work in any subtask.
func one(int, int) float64 { return 1 }

// opened is a pool that is ready, and the states it tells.
func opened() (*pool, *[]processState) {
	var told []processState
	p := newPool()
	p.known(100)
	p.open(func(s processState) { told = append(told, s) })
	p.ready(one)
	return p, &told
}

func TestPoolTellsEveryChangeOnce(t *testing.T) {
	p, told := opened()
	p.known(120) // Worse: no change.
	if n := p.ask(4, 3); n != 3 {
		t.Fatalf("asks for %d, want the 3 that are offered", n)
	}
	if n := p.ask(4, 3); n != 0 {
		t.Fatalf("asks for %d while a request is under way", n)
	}
	p.receive(leases(1, 2))
	first, ok := p.take()
	if !ok || first.ID != 1 {
		t.Fatalf("took %v, want the oldest", first.ID)
	}
	if !p.finish(first) {
		t.Fatal("the subtask is not its own")
	}
	ready := processState{Best: 100, Ready: true}
	asking, queued, searching, finished := ready, ready, ready, ready
	asking.Asking = true
	queued.Queue, queued.Load, queued.Received = 2, 2, 2
	searching.Queue, searching.Load, searching.Received, searching.Searching = 1, 1, 2, 1
	finished.Queue, finished.Load, finished.Received = 1, 1, 2
	want := []processState{{Best: 100}, ready, asking, queued, searching, finished}
	if diff := cmp.Diff(want, *told); diff != "" {
		t.Error(diff)
	}
}

func TestPoolAsks(t *testing.T) {
	p := newPool()
	if n := p.ask(4, 9); n != 0 {
		t.Errorf("asks for %d before the instance is prepared", n)
	}
	p.ready(one)
	for i, c := range []struct{ want, brings int }{{4, 1}, {3, 2}, {1, 0}, {1, 1}, {0, 0}} {
		if n := p.ask(4, 9); n != c.want {
			t.Errorf("request %d asks for %d, want %d", i, n, c.want)
		}
		p.receive(leases(1, 2)[:c.brings])
	}
}

func TestPoolGives(t *testing.T) {
	p, _ := opened()
	p.ask(4, 4)
	p.receive(leases(1, 2, 3))
	ids, ok := p.give(2)
	if diff := cmp.Diff([]lease.ID{1, 2}, ids); diff != "" || !ok {
		t.Error(diff)
	}
	if _, ok := p.give(2); ok {
		t.Error("gives a second time before the first is over")
	}
	p.gave()
	if ids, ok := p.give(9); !ok || len(ids) != 1 {
		t.Errorf("gives %v of the one left", ids)
	}
	p.gave()
	if ids, ok := p.give(1); !ok || len(ids) != 0 || !p.exhausted() {
		t.Errorf("gives %v of nothing", ids)
	}
}

func TestPoolBeginsAgain(t *testing.T) {
	p, told := opened()
	p.ask(4, 4)
	p.receive(leases(1, 2, 3))
	old, _ := p.take()
	p.give(1)
	p.ask(4, 1)
	p.begin()
	if got, want := (*told)[len(*told)-1], (processState{Best: 100, Ready: true}); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
	if p.finish(old) || p.note(old, held{}) {
		t.Error("a subtask of the old account counts")
	}
	if _, ok := p.take(); ok || len(p.progress().Bounds) > 0 {
		t.Error("there is something in hand")
	}
}

func TestPoolProgress(t *testing.T) {
	p, _ := opened()
	p.ask(9, 9)
	p.receive([]lease.Lease{{ID: 7, Bound: 60}, {ID: 3, Bound: 70}, {ID: 9, Items: []lease.Item{{Bound: 100}}, Bound: 100}})
	for range 2 {
		task, _ := p.take()
		p.note(task, held{bound: task.Bound + 1, load: 2})
	}
	want := progress{Load: 5, Bounds: []heldBound{{3, 71}, {7, 61}}} // The one in the queue has nothing to gain: 1.
	if diff := cmp.Diff(want, p.progress()); diff != "" {
		t.Error(diff)
	}
}

// TestPoolCounts: what was received is queued, searched, finished or given.
func TestPoolCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, told := opened()
		var next lease.ID
		var mine []task
		gone, received := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"receive": func(t *rapid.T) {
				n := p.ask(rapid.IntRange(0, 6).Draw(t, "level"), rapid.IntRange(0, 6).Draw(t, "offered"))
				for range n {
					next++
					p.receive(leases(next))
					received++
				}
			},
			"take": func(*rapid.T) {
				if task, ok := p.take(); ok {
					mine = append(mine, task)
				}
			},
			"finish": func(t *rapid.T) {
				if len(mine) == 0 {
					return
				}
				if !p.finish(mine[0]) {
					t.Fatal("not its own")
				}
				mine, gone = mine[1:], gone+1
			},
			"give": func(t *rapid.T) {
				if ids, ok := p.give(rapid.IntRange(0, 4).Draw(t, "n")); ok {
					gone += len(ids)
					p.gave()
				}
			},
			"begin": func(*rapid.T) {
				p.begin()
				mine, gone, received = nil, 0, 0
			},
			"": func(t *rapid.T) {
				s := (*told)[len(*told)-1]
				if s.Received != received || s.Queue+s.Searching+gone != received || s.Searching != len(mine) {
					t.Fatalf("%+v with %d received, %d searched, %d gone", s, received, len(mine), gone)
				}
			},
		})
	})
}
