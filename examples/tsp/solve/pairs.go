package main

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// pairs searches every instance with one goroutine, with two that give open
// nodes away on demand, and with two that share an equal split and give nothing,
// in turn, and prints a line each. Beside the speed-up as timed it prints what it
// would be on processors without other work: from the time that goroutines had
// something to search, and the processor time it took.
func pairs(w io.Writer, list []task, o options) error {
	p := printer{w: w}
	p.say("%s; seconds of the search behind bnb.Prepare, best of %d\n\n", machine(), o.runs)
	p.say("%-14s %5s %8s %8s | %8s %8s %8s %6s | %8s %8s %8s\n",
		"instance", "n", "nodes", "alone s", "donate s", "speed-up", "undist.", "given", "static s", "speed-up", "undist.")
	for _, t := range list {
		problem, err := bnb.Prepare(t.in, bnb.Options{Seed: o.seed})
		if err != nil {
			return err
		}
		var least [3]searched
		for range o.runs {
			for i, how := range []plan{{1, true}, {2, true}, {2, false}} {
				r, err := together(problem, how, o.limit)
				if err != nil {
					return err
				}
				if least[i].took == 0 || r.took < least[i].took {
					least[i] = r
				}
			}
		}
		alone, donate, static := least[0], least[1], least[2]
		if alone.length != donate.length || alone.length != static.length {
			return errors.New(t.name + ": the searches ended with tours of different lengths")
		}
		p.say("%-14s %5d %8d %8.3f | %8.3f %8.2f %8.2f %6d | %8.3f %8.2f %8.2f\n", t.name, t.in.N, alone.nodes, alone.took.Seconds(),
			donate.took.Seconds(), speedUp(alone, donate), undisturbed(alone, donate), donate.given,
			static.took.Seconds(), speedUp(alone, static), undisturbed(alone, static))
	}
	return p.err
}

// speedUp is how much sooner b ended than a.
func speedUp(a, b searched) float64 { return a.took.Seconds() / b.took.Seconds() }

// undisturbed is the speed-up of b over a, which is of one goroutine, had each
// goroutine a processor of its own.
func undisturbed(a, b searched) float64 {
	return b.busy * a.processor.Seconds() / b.processor.Seconds()
}

// plan is how goroutines share a search.
type plan struct {
	workers int
	donate  bool // on demand, else each keeps to its part of a first cut
}

// searched is what a search came to.
type searched struct {
	took   time.Duration
	length int
	nodes  int64
	given  int // subtasks given on demand

	busy      float64       // goroutines that had something to search, on average
	processor time.Duration // as used
}

// staticParts is how many subtasks a goroutine has in a first cut.
const staticParts = 16

var errLate = errors.New("not proven within the cap")

// together searches everything with the given number of goroutines and waits
// for them.
func together(p *bnb.Problem, how plan, limit time.Duration) (searched, error) {
	start, before := time.Now(), used()
	s := newShare(p, how, func() bool { return time.Since(start) > limit })
	lists, err := s.lists()
	if err != nil {
		return searched{}, err
	}
	var all sync.WaitGroup
	errs := make([]error, how.workers)
	for i := range how.workers {
		all.Go(func() { errs[i] = s.work(lists[i]) })
	}
	all.Wait()
	r := searched{took: time.Since(start), length: int(s.incumbent.Load()), nodes: s.nodes.Load(), given: s.given, processor: used() - before}
	r.busy = float64(s.worked.Load()) / float64(r.took)
	return r, errors.Join(errs...)
}

// share is what goroutines that search together have in common.
type share struct {
	p         *bnb.Problem
	how       plan
	late      func() bool
	incumbent atomic.Int64
	asked     atomic.Int64 // subtasks that goroutines wait for
	nodes     atomic.Int64
	worked    atomic.Int64 // time that goroutines had a subtask

	mu      sync.Mutex
	changed *sync.Cond
	queue   []bnb.Subtask
	waiting int
	over    bool // nothing is left, or one has failed
	given   int
}

func newShare(p *bnb.Problem, how plan, late func() bool) *share {
	s := &share{p: p, how: how, late: late}
	s.incumbent.Store(int64(p.Length()))
	s.changed = sync.NewCond(&s.mu)
	return s
}

// lists cuts the search into what each goroutine has first.
func (s *share) lists() ([][]bnb.Subtask, error) {
	lists := make([][]bnb.Subtask, s.how.workers)
	if s.how.donate {
		lists[0] = []bnb.Subtask{bnb.Root(bnb.Edges)}
		return lists, nil
	}
	parts, err := s.cut(staticParts * s.how.workers)
	for i, part := range parts {
		lists[i%len(lists)] = append(lists[i%len(lists)], part)
	}
	return lists, err
}

// cut is the first cut, into about n subtasks.
func (s *share) cut(n int) ([]bnb.Subtask, error) {
	start := time.Now()
	first, err := bnb.NewSearch(s.p, bnb.Root(bnb.Edges), &s.incumbent)
	if err != nil {
		return nil, err
	}
	for first.Split(n, s.late) == bnb.Improved {
		s.found(first.Tour())
	}
	if s.late() {
		return nil, errLate
	}
	s.nodes.Add(first.Nodes())
	s.worked.Add(int64(time.Since(start)))
	return first.Remaining(), nil
}

// found lowers the incumbent. The tour itself is of no use here.
func (s *share) found(_ []int, length int) {
	for {
		now := s.incumbent.Load()
		if int64(length) >= now || s.incumbent.CompareAndSwap(now, int64(length)) {
			return
		}
	}
}

// work searches what a goroutine has first, then what others give it.
func (s *share) work(mine []bnb.Subtask) error {
	for {
		for len(mine) > 0 {
			part := mine[len(mine)-1]
			mine = mine[:len(mine)-1]
			if err := s.search(part); err != nil {
				s.end()
				return err
			}
		}
		part, ok := s.take()
		if !ok {
			return nil
		}
		mine = append(mine, part)
	}
}

// search looks through one subtask and gives away its oldest node whenever
// another goroutine waits.
func (s *share) search(part bnb.Subtask) error {
	search, err := bnb.NewSearch(s.p, part, &s.incumbent)
	if err != nil {
		return err
	}
	start := time.Now()
	defer func() {
		s.nodes.Add(search.Nodes())
		s.worked.Add(int64(time.Since(start)))
	}()
	for !s.late() {
		switch search.Step() {
		case bnb.Improved:
			s.found(search.Tour())
		case bnb.Done:
			return nil
		case bnb.Running:
		}
		if s.how.donate && s.asked.Load() > 0 {
			s.give(search.Donate(1))
		}
	}
	return errLate
}

func (s *share) give(parts []bnb.Subtask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, parts...)
	s.given += len(parts)
	s.asked.Add(-int64(len(parts)))
	s.changed.Broadcast()
}

// take waits for a subtask; false when there will be none.
func (s *share) take() (bnb.Subtask, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	s.asked.Add(1)
	for len(s.queue) == 0 && !s.over {
		if s.waiting == s.how.workers || !s.how.donate {
			s.over = s.over || s.how.donate
			s.changed.Broadcast()
			return bnb.Subtask{}, false
		}
		s.changed.Wait()
	}
	if s.over {
		return bnb.Subtask{}, false
	}
	s.waiting--
	part := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	return part, true
}

// end makes all goroutines end.
func (s *share) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.changed.Broadcast()
}
