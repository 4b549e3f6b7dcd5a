package balancesim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Instance is the work and the nodes of a run, before a strategy sees them. All
// strategies run on the same.
type Instance struct {
	Nodes   []string
	Speeds  []Speed // by time
	Tasks   []Task  // by time of arrival
	Traffic []Traffic
}

// Speed is power and share of a node from a time on.
type Speed struct {
	At           float64 // seconds
	Node         int
	Power, Share float64
}

// Task is one load.
type Task struct {
	Name   string
	At     float64 // arrival, seconds
	Node   int
	Work   float64 // in truth
	Weight float64 // as reported, of the whole task
	Size   float64
}

// Traffic is between two tasks, in bytes, each way.
type Traffic struct {
	From, To int
	Volume   float64
}

// Generate draws the instance of a scenario without Faults from its seed.
func Generate(s *Scenario) *Instance {
	// One stream for each matter: more tasks do not change the speeds.
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, n)) }
	var in Instance
	powers := s.Nodes.powers(stream(1).Float64)
	r := stream(2)
	for i, power := range powers {
		in.Nodes = append(in.Nodes, fmt.Sprintf("n%d", i+1))
		in.Speeds = append(in.Speeds, Speed{0, i, power, 1})
		if s.Changes.Every == 0 {
			continue
		}
		until := s.Changes.Until.Seconds()
		for at := r.ExpFloat64() * s.Changes.Every.Seconds(); at < until; at += r.ExpFloat64() * s.Changes.Every.Seconds() {
			in.Speeds = append(in.Speeds, Speed{at, i, power, s.Changes.Least + (s.Changes.Most-s.Changes.Least)*r.Float64()})
		}
	}
	slices.SortStableFunc(in.Speeds, func(a, b Speed) int { return cmp.Compare(a.At, b.At) })
	work, place, arrive, wrong := stream(3), stream(4), stream(5), stream(6)
	for i := range s.Tasks.Count {
		t := Task{Name: fmt.Sprintf("t%d", i+1), Work: s.Tasks.shape(i, work.Float64, work.NormFloat64), Size: s.Tasks.Size}
		switch s.Tasks.Placed {
		case "blocks":
			t.Node = i * len(powers) / s.Tasks.Count
		case "random":
			t.Node = place.IntN(len(powers))
		}
		t.At = arrive.Float64() * s.Tasks.Arrive.Seconds()
		t.Weight = t.Work * math.Exp(s.Tasks.Error*wrong.NormFloat64())
		in.Tasks = append(in.Tasks, t)
	}
	slices.SortStableFunc(in.Tasks, func(a, b Task) int { return cmp.Compare(a.At, b.At) })
	if g := s.Tasks.Groups; g > 1 && s.Tasks.Traffic > 0 {
		in.group(g, s.Tasks.Traffic, stream(7))
	}
	return &in
}

// group lets tasks that are drawn together send to the next of their group.
func (in *Instance) group(size int, volume float64, r *rand.Rand) {
	order := r.Perm(len(in.Tasks))
	for group := range slices.Chunk(order, size) {
		for i, t := range group[1:] {
			in.Traffic = append(in.Traffic, Traffic{group[i], t, volume})
		}
	}
}
