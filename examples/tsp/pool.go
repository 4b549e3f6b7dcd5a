package main

import (
	"math"
	"slices"
	"sync"
)

// processState is what a worker process tells its thread-level synchronizer
// beside its threads: the fields of "process" in the configuration.
type processState struct {
	Queue     int     // bags that have come for a thread
	Coming    int     // bags behind them, that wait in the space
	Searching int     // bags that threads have
	Load      float64 // estimate of the work in both: 1 each, the least there is
	Best      int     // the best tour that is recorded
	Ready     bool    // the instance is prepared, and signals decide who gets subtasks
	Asking    bool    // a request for subtasks is under way
	Giving    bool    // subtasks are being given away
}

// pool hands the bags of a worker process to its threads, and tells the state that says so. Every change of the state is
// told at once, in order. It may be used from any goroutine.
type pool struct {
	tell func(processState)

	mu      sync.Mutex
	state   processState
	queue   []*job
	loads   map[*job]float64 // what the threads have
	waiting func() int       // bags that wait in the space; nil: there is none
	stopped bool
}

func newPool() *pool {
	return &pool{state: processState{Best: math.MaxInt}, loads: map[*job]float64{}}
}

// open begins to tell the state.
func (p *pool) open(tell func(processState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = tell
	p.tell(p.state)
}

// change does something to the pool and tells the state if it became another.
func (p *pool) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.state
	do()
	p.state.Queue, p.state.Coming, p.state.Searching = len(p.queue), 0, len(p.loads)
	if p.waiting != nil {
		p.state.Coming = p.waiting()
	}
	if p.state.Load = float64(p.state.Queue + p.state.Coming); p.state != before && p.tell != nil {
		p.tell(p.state)
	}
}

// join notes that the space is open, with a function that counts the bags that wait in it, and whether signals decide who gets
// subtasks. With nil it is closed.
func (p *pool) join(waiting func() int, signals bool) {
	p.change(func() {
		p.waiting, p.state.Ready = waiting, waiting != nil && signals
		p.state.Asking, p.state.Giving = false, false
	})
}

// known notes that a tour of that length is recorded.
func (p *pool) known(best int) {
	p.change(func() { p.state.Best = min(p.state.Best, best) })
}

// ask begins a request for subtasks and returns how many there is room for up to level. It is 0 if a request is under way
// or the queue is full.
func (p *pool) ask(level int) (n int) {
	p.change(func() {
		if p.state.Ready && !p.state.Asking {
			n = max(0, level-p.state.Queue-p.state.Coming)
		}
		p.state.Asking = p.state.Asking || n > 0
	})
	return n
}

// answered ends a request, whatever it has brought.
func (p *pool) answered() { p.change(func() { p.state.Asking = false }) }

// give begins to give subtasks away, unless that is under way.
func (p *pool) give() (ok bool) {
	p.change(func() { ok, p.state.Giving = !p.state.Giving, true })
	return ok
}

// gave ends the giving.
func (p *pool) gave() { p.change(func() { p.state.Giving = false }) }

// add queues a bag that has come for the threads.
func (p *pool) add(j *job) {
	p.change(func() {
		p.state.Asking = false
		if p.stopped {
			j.done <- errStopped
			return
		}
		p.queue = append(p.queue, j)
	})
}

// take gives a thread the oldest bag; nil: there is none.
func (p *pool) take() (j *job) {
	p.change(func() {
		if len(p.queue) > 0 {
			j = p.queue[0]
			p.queue = slices.Delete(p.queue, 0, 1)
			p.loads[j] = 0
		}
	})
	return j
}

// finish gives a bag back to its function, with what went wrong.
func (p *pool) finish(j *job, err error) {
	p.change(func() { delete(p.loads, j) })
	j.done <- err
}

// stop gives all bags back that no thread has begun, and each that comes later.
func (p *pool) stop() {
	p.change(func() {
		for _, j := range p.queue {
			j.done <- errStopped
		}
		p.queue, p.stopped = nil, true
	})
}

// note notes the work that is left in a bag.
func (p *pool) note(j *job, load float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads[j] = load
}

// load adds up everything.
func (p *pool) load() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.state.Load
	for _, load := range p.loads {
		sum += load
	}
	return sum
}
