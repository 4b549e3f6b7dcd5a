package main

import (
	"context"
	"errors"
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

// bags hands the bags that have come to a worker process to its threads, and tells the state that says so. It tells each change
// of the state at once, in order. It may be used from any goroutine.
type bags struct {
	tell func(processState)

	mu      sync.Mutex
	opened  bool // changes go out
	state   processState
	queue   []*job
	loads   map[*job]float64 // what the threads have
	waiting func() int       // bags that wait in the space; nil: there is none
	stopped bool
}

func newBags(tell func(processState)) *bags {
	return &bags{tell: tell, state: processState{Best: math.MaxInt}, loads: map[*job]float64{}}
}

// open begins to tell the state.
func (b *bags) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = true
	b.tell(b.state)
}

// change runs do and tells the state if it became another.
func (b *bags) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.state
	do()
	b.state.Queue, b.state.Coming, b.state.Searching = len(b.queue), 0, len(b.loads)
	if b.waiting != nil {
		b.state.Coming = b.waiting()
	}
	if b.state.Load = float64(b.state.Queue + b.state.Coming); b.state != before && b.opened {
		b.tell(b.state)
	}
}

// join notes that the space is open, with a function that counts the bags that wait in it, and whether signals decide who gets
// subtasks. With nil it is closed.
func (b *bags) join(waiting func() int, signals bool) {
	b.change(func() {
		b.waiting, b.state.Ready = waiting, waiting != nil && signals
		b.state.Asking, b.state.Giving = false, false
	})
}

// known notes that a tour of that length is recorded.
func (b *bags) known(best int) {
	b.change(func() { b.state.Best = min(b.state.Best, best) })
}

// ask begins a request for subtasks and returns how many there is room for up to level. It is 0 if a request is under way
// or the queue is full.
func (b *bags) ask(level int) (n int) {
	b.change(func() {
		if b.state.Ready && !b.state.Asking {
			n = max(0, level-b.state.Queue-b.state.Coming)
		}
		b.state.Asking = b.state.Asking || n > 0
	})
	return n
}

// answered ends a request, whatever it has brought.
func (b *bags) answered() { b.change(func() { b.state.Asking = false }) }

// give begins to give subtasks away, unless that is under way.
func (b *bags) give() (ok bool) {
	b.change(func() { ok, b.state.Giving = !b.state.Giving, true })
	return ok
}

// gave ends the giving.
func (b *bags) gave() { b.change(func() { b.state.Giving = false }) }

// add queues a bag that has come for the threads.
func (b *bags) add(j *job) {
	b.change(func() {
		b.state.Asking = false
		if b.stopped {
			j.done <- errStopped
			return
		}
		b.queue = append(b.queue, j)
	})
}

// take gives a thread the oldest bag; nil: there is none.
func (b *bags) take() (j *job) {
	b.change(func() {
		if len(b.queue) > 0 {
			j = b.queue[0]
			b.queue = slices.Delete(b.queue, 0, 1)
			b.loads[j] = 0
		}
	})
	return j
}

// finish gives a bag back to its function, with the error that it ended with.
func (b *bags) finish(j *job, err error) {
	b.change(func() { delete(b.loads, j) })
	j.done <- err
}

// stop gives all bags back that no thread has begun, and each that comes later.
func (b *bags) stop() {
	b.change(func() {
		for _, j := range b.queue {
			j.done <- errStopped
		}
		b.queue, b.stopped = nil, true
	})
}

// note notes the work that is left in a bag.
func (b *bags) note(j *job, load float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads[j] = load
}

// load adds up everything.
func (b *bags) load() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.state.Load
	for _, load := range b.loads {
		sum += load
	}
	return sum
}

// errStopped says that a signal has ended the search.
var errStopped = errors.New("the search was stopped")

// job is a bag in the hands of this process, for one of its threads.
type job struct {
	ctx  context.Context //nolint:containedctx // The function of the bag has this context, and waits for done.
	bag  *Tours
	best *Best
	done chan error // capacity 1
}

// branch is the function of a bag: it waits until a thread has searched it. A bag that a signal has stopped stays as it is
// until the space is closed.
func (w *worker) branch(ctx context.Context, bag *Tours, best *Best) error {
	j := &job{ctx, bag, best, make(chan error, 1)}
	bag.given = w.bags.gave
	w.bags.add(j)
	err := <-j.done
	if errors.Is(err, errStopped) {
		<-ctx.Done()
	}
	return err
}
