package main

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/gopegasus/pegasus/balance"
)

// task is a piece of work, which anybody can do.
type task struct {
	Number int
	Units  float64 // of work
}

// parcel is tasks on their way from one member to another.
type parcel struct {
	ID    string
	Tasks []task
}

// state is what a member tells: the fields that configs/pool.yaml declares.
type state struct {
	Tasks          []int
	Work           []float64
	Rest           float64
	Power, Share   float64
	Sent, Received int
}

// told is how many tasks a state has room for.
const told = 64

// pool holds the tasks of a member, and tells each change before anything else
// happens: a task that comes is told before it begins.
type pool struct {
	power float64
	tell  func(state) error

	mu             sync.Mutex
	waiting        []task // the largest first
	running        float64
	sent, received int
	had            map[string]bool // parcels that came: one that comes again is a repetition
	done           []int           // numbers
	wake           chan struct{}   // of capacity 1: there may be something to do
	failed         error           // the first error of tell
}

func newPool(tasks []task, power float64, tell func(state) error) *pool {
	p := &pool{power: power, tell: tell, had: map[string]bool{}, wake: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.Clone(tasks)
	p.changed()
	return p
}

// changed tells the state. The caller has the lock, so that states are told in the
// order in which they came about.
func (p *pool) changed() {
	slices.SortStableFunc(p.waiting, func(a, b task) int { return cmp.Compare(b.Units, a.Units) })
	s := state{Rest: p.running, Power: p.power, Share: 1, Sent: p.sent, Received: p.received}
	for i, t := range p.waiting {
		if i >= told {
			s.Rest += t.Units
			continue
		}
		s.Tasks, s.Work = append(s.Tasks, t.Number), append(s.Work, t.Units)
	}
	if err := p.tell(s); err != nil && p.failed == nil {
		p.failed = err
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next begins a task, if there is one.
func (p *pool) next() (t task, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 || p.failed != nil {
		return task{}, false, p.failed
	}
	t, p.waiting = p.waiting[0], p.waiting[1:]
	p.running = t.Units
	p.changed()
	return t, true, p.failed
}

func (p *pool) finish(t task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = 0
	p.done = append(p.done, t.Number)
	p.changed()
}

// give takes out what was ordered away and still waits, by target.
func (p *pool) give(orders []balance.Order) map[string][]task {
	p.mu.Lock()
	defer p.mu.Unlock()
	parcels := map[string][]task{}
	for _, o := range orders {
		i := slices.IndexFunc(p.waiting, func(t task) bool { return strconv.Itoa(t.Number) == o.Load })
		if i < 0 {
			continue // It has begun.
		}
		parcels[o.To] = append(parcels[o.To], p.waiting[i])
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.sent++
	}
	p.changed()
	return parcels
}

// take adds the tasks of a parcel, unless it has come before.
func (p *pool) take(x parcel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.had[x.ID] {
		return
	}
	p.had[x.ID] = true
	p.waiting = append(p.waiting, x.Tasks...)
	p.received += len(x.Tasks)
	p.changed()
}
