package main

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/gopegasus/pegasus/examples/tsp/lease"
)

// processState is what a worker process tells its thread-level synchronizer
// beside its threads: the fields of "process" in the configuration.
type processState struct {
	Queue     int     // subtasks that no thread has begun
	Searching int     // subtasks that threads have
	Load      float64 // estimate of the work in the queue
	Best      int     // the best tour that the coordinator has from here
	Ready     bool    // the instance is prepared
	Asking    bool    // a request for subtasks is under way
	Giving    bool    // subtasks are being given away
	Received  int     // subtasks received since the account began
}

// pool is a worker process's account: the subtasks that wait for a thread, what
// its threads search, and the state that says so. Every change of the state is
// told at once, in order. It may be used from any goroutine.
type pool struct {
	tell  func(processState)
	weigh func(bound, best int) float64 // estimates the work in a subtask; set by ready

	mu        sync.Mutex
	state     processState
	queue     []lease.Lease
	searching map[lease.ID]held // what the threads have
	life      int               // how often the account began again
}

// held is how far the search of a lease is.
type held struct {
	bound int
	load  float64
}

func newPool() *pool {
	return &pool{state: processState{Best: math.MaxInt}, searching: map[lease.ID]held{}}
}

// open begins to tell the state.
func (p *pool) open(tell func(processState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = tell
	p.tell(p.state)
}

// change does something to the account and tells the state if it became
// another.
func (p *pool) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.state
	do()
	p.state.Queue, p.state.Searching, p.state.Load = len(p.queue), len(p.searching), 0
	for _, l := range p.queue {
		for _, it := range l.Items {
			p.state.Load += p.weigh(it.Bound, p.state.Best)
		}
	}
	if p.state != before && p.tell != nil {
		p.tell(p.state)
	}
}

// ready notes that the search can begin, and how to estimate the work in a
// subtask of a lower bound when the best tour is so long.
func (p *pool) ready(weigh func(bound, best int) float64) {
	p.change(func() { p.weigh, p.state.Ready = weigh, true })
}

// known notes that the coordinator has a tour of that length.
func (p *pool) known(best int) {
	p.change(func() { p.state.Best = min(p.state.Best, best) })
}

// ask begins a request for subtasks and returns how many to ask for: as many as
// fill the queue up to level, at most offered. It is 0 if a request is under way
// or the queue is full.
func (p *pool) ask(level, offered int) (n int) {
	p.change(func() {
		if p.state.Ready && !p.state.Asking {
			n = max(0, min(offered, level-len(p.queue)))
		}
		p.state.Asking = p.state.Asking || n > 0
	})
	return n
}

// receive ends a request with what it brought.
func (p *pool) receive(leases []lease.Lease) {
	p.change(func() {
		p.queue = append(p.queue, leases...)
		p.state.Received += len(leases)
		p.state.Asking = false
	})
}

// task is a subtask for a thread, in one life of the account.
type task struct {
	lease.Lease
	life int
}

// take gives a thread the oldest subtask of the queue.
func (p *pool) take() (t task, ok bool) {
	p.change(func() {
		if len(p.queue) == 0 {
			return
		}
		t, ok = task{p.queue[0], p.life}, true
		p.queue = slices.Delete(p.queue, 0, 1)
		p.searching[t.ID] = held{bound: t.Bound}
	})
	return t, ok
}

// note notes how far the search of a subtask is; false if it is no longer the
// worker's.
func (p *pool) note(t task, h held) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.life != p.life {
		return false
	}
	p.searching[t.ID] = h
	return true
}

// finish ends the search of a subtask; false if it is no longer the worker's.
func (p *pool) finish(t task) (mine bool) {
	p.change(func() {
		if mine = t.life == p.life; mine {
			delete(p.searching, t.ID)
		}
	})
	return mine
}

// give begins to give subtasks away, unless that is under way: those of the
// queue, up to n of them, else ids is empty and the threads have to give.
func (p *pool) give(n int) (ids []lease.ID, ok bool) {
	p.change(func() {
		if p.state.Giving {
			return
		}
		p.state.Giving, ok = true, true
		n = max(0, min(n, len(p.queue)))
		for _, l := range p.queue[:n] {
			ids = append(ids, l.ID)
		}
		p.queue = slices.Delete(p.queue, 0, n)
	})
	return ids, ok
}

// gave ends the giving.
func (p *pool) gave() {
	p.change(func() { p.state.Giving = false })
}

// exhausted reports whether no thread has a subtask and none waits.
func (p *pool) exhausted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.searching) == 0 && len(p.queue) == 0
}

// progress lists the bounds of what is being searched, by number, and adds up
// the loads of everything.
func (p *pool) progress() progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := progress{Load: p.state.Load}
	for _, id := range slices.Sorted(maps.Keys(p.searching)) {
		h := p.searching[id]
		all.Bounds = append(all.Bounds, heldBound{id, h.bound})
		all.Load += h.load
	}
	return all
}

// begin starts the account again with nothing in hand: the coordinator has queued
// everything again.
func (p *pool) begin() {
	p.change(func() {
		p.life++
		p.queue, p.searching = nil, map[lease.ID]held{}
		p.state.Asking, p.state.Giving, p.state.Received = false, false, 0
	})
}
