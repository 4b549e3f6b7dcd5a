package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

// The blocks of program.yaml, in a process that is a node.

// searchers is how many there are, as program.yaml says.
const searchers = 3

// round is what goes from block to block.
type round struct {
	Number int
	Tour   []int
	Length int           // of the tour
	Pruned int           // the least length by which somebody has pruned
	Rest   []bnb.Subtask // what is not searched
	Nodes  int64         // searched in all
	Again  int           // how often the search began again
}

// node is a process that runs the blocks.
type node struct {
	o       *options
	problem func() (*bnb.Problem, error) // the same in every process
}

// searcherState and gatherState are what blocks tell.
type (
	searcherState struct {
		Round     int
		Searching bool
		Left      int
		Best      int
	}
	gatherState struct{ Gathered, Undone int }
)

// runNode takes part in a run of the program until ctx ends.
func runNode(ctx context.Context, o *options, name string, log *slog.Logger) error {
	n := &node{o: o}
	n.problem = sync.OnceValues(n.prepareProblem)
	joined, err := agent.JoinNode(ctx, o.nats, agent.NodeConfig{Group: "searchers", Name: name, Tenant: o.run, Logger: log},
		agent.Block("prepare", n.prepare), agent.Block("search", n.search), agent.Block("gather", n.gather))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return joined.Close()
}

// prepareProblem starts from a poor tour, so that there are better ones to tell of.
func (n *node) prepareProblem() (*bnb.Problem, error) {
	in, err := tsplib.Load(n.o.instance)
	if err != nil {
		return nil, err
	}
	tour, _ := bnb.NewImprover(in, bnb.ImproverOptions{Seed: n.o.seed, Start: bnb.Poor}).Best()
	return bnb.Prepare(in, bnb.Options{Seed: n.o.seed, Tour: tour})
}

// prepare cuts the problem into the subtasks of the first round.
func (n *node) prepare(ctx context.Context, _ *agent.Run, _ any) (round, error) {
	p, err := n.problem()
	if err != nil {
		return round{}, err
	}
	first := round{Number: 1, Tour: p.Tour(), Length: p.Length()}
	stop := func() bool { return ctx.Err() != nil }
	first.Rest, _, err = cut(p, n.o.subtasks, searchers*partsPerThread, stop, stop, func(tour []int, length int) {
		first.Tour, first.Length = tour, length
	})
	first.Pruned = first.Length
	return first, err
}

// search looks through every third subtask of a round, until all are searched or the
// others are out of work.
func (n *node) search(ctx context.Context, r *agent.Run, all round) (round, error) {
	p, err := n.problem()
	if err != nil {
		return round{}, err
	}
	s := &searching{run: r, problem: p, got: round{Number: all.Number, Tour: all.Tour, Length: all.Length, Again: all.Again}}
	part := r.Replicas()[0]
	if part == 0 {
		s.got.Nodes = all.Nodes // It is handed on once.
	}
	for i, item := range all.Rest {
		if i%searchers == part {
			s.got.Rest = append(s.got.Rest, item)
		}
	}
	s.incumbent.Store(int64(all.Length))
	err = r.Region(ctx, "branch", s.work, agent.OnActivate("NewBest", s.newBest), agent.OnActivate("Share", s.share))
	s.got.Pruned = int(s.incumbent.Load())
	return s.got, err
}

// searching is a search block at work.
type searching struct {
	run       *agent.Run
	region    *agent.Region
	problem   *bnb.Problem
	incumbent atomic.Int64 // the least length known here
	got       round
	search    *bnb.Search // of the first of got.Rest, which that lacks
	steps     int
	shared    bool // what is left is to be handed back
	told      time.Time
	stop      error
}

func (s *searching) newBest(_ context.Context, sig agent.Signal) error {
	s.incumbent.Store(min(s.incumbent.Load(), sig.Int("length")))
	return s.tell(true)
}

func (s *searching) share(context.Context, agent.Signal) error {
	s.shared = true
	return nil
}

// tell sets the state.
func (s *searching) tell(on bool) error {
	left := len(s.got.Rest)
	if s.search != nil {
		left += s.search.Open()
	}
	s.told = time.Now()
	return s.run.Set(searcherState{s.got.Number, on, left, int(s.incumbent.Load())})
}

// enough runs what signals have arrived. What is shared is left after a step at
// least, so that every round gets on.
func (s *searching) enough() bool {
	if s.stop == nil {
		s.stop = s.region.Check()
	}
	return s.stop != nil || s.shared && s.steps > 0
}

func (s *searching) work(_ context.Context, r *agent.Region) error {
	s.region = r
	if err := s.tell(true); err != nil {
		return err
	}
	for len(s.got.Rest) > 0 && !s.enough() {
		var err error
		if s.search, err = bnb.NewSearch(s.problem, s.got.Rest[0], &s.incumbent); err != nil {
			return err
		}
		s.got.Rest = s.got.Rest[1:]
		s.search.SetPoll(s.enough)
		if err := s.explore(); err != nil {
			return err
		}
	}
	if s.stop != nil {
		return s.stop
	}
	return s.tell(false)
}

// explore searches one subtask. What is left of it goes back to the rest.
func (s *searching) explore() error {
	for done := false; !done && !s.enough(); s.steps++ {
		status := s.search.Step()
		if status == bnb.Improved {
			s.got.Tour, s.got.Length = s.search.Tour()
			s.incumbent.Store(int64(s.got.Length))
		}
		if status == bnb.Improved || time.Since(s.told) > reportEvery {
			if err := s.tell(true); err != nil {
				return err
			}
		}
		done = status == bnb.Done
	}
	s.got.Nodes += s.search.Nodes()
	s.got.Rest = append(s.search.Remaining(), s.got.Rest...)
	s.search = nil
	return nil
}

// gather puts a round together for the next one, and tells what is left.
func (n *node) gather(_ context.Context, r *agent.Run, parts []round) (round, error) {
	kind, err := bnb.ParseKind(n.o.subtasks)
	if err != nil {
		return round{}, err
	}
	next := merge(parts, kind)
	return next, r.Set(gatherState{parts[0].Number, len(next.Rest)})
}

// merge puts the parts of a round together.
func merge(parts []round, kind bnb.Kind) round {
	next := parts[0]
	next.Rest, next.Nodes = nil, 0
	for _, p := range parts {
		if p.Length < next.Length {
			next.Tour, next.Length = p.Tour, p.Length
		}
		next.Pruned = min(next.Pruned, p.Pruned)
		next.Nodes += p.Nodes
		next.Rest = append(next.Rest, p.Rest...)
	}
	next.Number++
	if next.Pruned < next.Length {
		// Somebody has heard of a tour that was lost with the process that found it, and has
		// pruned by it. So what was searched proves nothing.
		next.Rest, next.Pruned = []bnb.Subtask{bnb.Root(kind)}, next.Length
		next.Again++
		return next
	}
	next.Rest = slices.DeleteFunc(next.Rest, func(s bnb.Subtask) bool { return s.LowerBound >= next.Length })
	// Those with the lowest bounds take longest: everybody gets some.
	slices.SortStableFunc(next.Rest, func(a, b bnb.Subtask) int { return cmp.Compare(a.LowerBound, b.LowerBound) })
	return next
}
