package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// prepare makes the problem ready and cuts it into the first subtasks. Its own
// tour is a quick one: the workers look for better ones.
func (c *coordinator) prepare(ctx context.Context, im *bnb.Improver, parts int) ([]bnb.Subtask, error) {
	stop := func() bool { return ctx.Err() != nil }
	for done := false; !done && !stop(); {
		_, done = im.Step()
	}
	tour, length := im.Best()
	c.improve(memberName, tour, length)
	p, err := bnb.Prepare(c.in, bnb.Options{Seed: c.info.Seed, Tour: tour, Stop: stop})
	if err != nil {
		return nil, err
	}
	list, nodes, err := c.split(p, parts, stop)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem, c.bound, c.nodes, c.parts = p, p.LowerBound(), nodes, len(list)
	c.journal.Info("split", "subtasks", len(list), "bound", c.bound)
	return list, nil
}

// splitWait bounds the time for the first cut.
const splitWait = time.Second

// split cuts the problem into about parts subtasks, or none if that proves the
// best tour already. It tells how many nodes that took.
func (c *coordinator) split(p *bnb.Problem, parts int, stop func() bool) ([]bnb.Subtask, int64, error) {
	until := c.now().Add(splitWait)
	late := func() bool { return stop() || c.now().After(until) }
	return cut(p, c.info.Kind, parts, stop, late, func(tour []int, length int) { c.improve(memberName, tour, length) })
}

// cut is split for whoever takes the tours. It stops at a node when late says so, and
// inside one when stop does.
func cut(p *bnb.Problem, kindName string, parts int, stop, late func() bool, improved func(tour []int, length int)) ([]bnb.Subtask, int64, error) {
	kind, err := bnb.ParseKind(kindName)
	if err != nil {
		return nil, 0, err
	}
	incumbent := incumbentOf(p.Length())
	s, err := bnb.NewSearch(p, bnb.Root(kind), incumbent)
	if err != nil {
		return nil, 0, err
	}
	s.SetPoll(stop)
	for {
		switch s.Split(parts, late) {
		case bnb.Improved:
			tour, length := s.Tour()
			improved(tour, length)
			incumbent.Store(int64(length))
		case bnb.Done:
			return nil, s.Nodes(), nil
		case bnb.Running:
			return s.Remaining(), s.Nodes(), nil
		}
	}
}

// incumbentOf is a length that a search of its own may lower.
func incumbentOf(length int) *atomic.Int64 {
	var v atomic.Int64
	v.Store(int64(length))
	return &v
}
