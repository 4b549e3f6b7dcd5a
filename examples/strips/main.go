// Strips: an iterative computation on a matrix, cut into 100 strips on 10 processes (ALDY, section 5.3). A strip is an
// object: it sends its borders to its two neighbours, and steps once it has theirs. It moves only to a process that
// has one of these, or no strip. The work is calibrated sleep. The baseline is a static map, on which the same
// computation runs first.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/crew"
	"github.com/gopegasus/pegasus/work"
)

func main() {
	var j job
	flag.IntVar(&j.strips, "strips", 100, "`N` strips")
	flag.IntVar(&j.steps, "iterations", 100, "`N` iterations")
	flag.DurationVar(&j.cost, "cost", 20*time.Millisecond, "`TIME` of an iteration of a strip")
	flag.IntVar(&j.slow, "slow", 0, "process `N` has half the speed, 1 is the first; 0: none")
	flag.BoolVar(&j.baseline, "baseline", true, "run it on a static map first")
	crew.Main(&crew.Program{
		Name: "strips", Processes: 10, Section: section,
		Functions: []work.Option{work.Object("strip", begin), work.On("strip", "border", takeBorder), work.Func("end", end)},
		Job: func(seed uint64) (*crew.Job, error) {
			if j.strips < 1 || j.strips > 1000 || j.steps < 1 || j.steps > 10_000 || j.cost < 0 || j.cost > time.Second || j.slow < 0 || j.slow > 64 {
				return nil, errors.New("-strips, -iterations, -cost, -slow: use 1 to 1000 strips, 1 to 10000 iterations, at most 1s for one, and one of the processes")
			}
			j.seed = seed
			return &crew.Job{Part: j.part, Read: j.read}, nil
		},
	})
}

// section has a process ask if it was idle for 4 % of the last half second, some two iterations, and give if it was
// hardly idle.
const section = `{slots: 1, objects: {stay: 1s}, strategy: {kind: receiver, below: "avg(0.96, 0.5)", from: "avg(0.98, 0.5)", again: 20ms, longest: 40ms}}`

// cells is how many a strip has.
const cells = 8

// job is the computation, twice: first on the static map.
type job struct {
	strips, steps, slow int
	cost                time.Duration
	seed                uint64
	baseline            bool
	moving              atomic.Bool
}

// Strip is the state of a strip.
type Strip struct {
	Set         string        // static or moving
	Number      int           // of this strip
	Strips      int           // all of the set
	Step        int           // iterations done
	Steps       int           // iterations to do
	Cost        time.Duration // of an iteration
	Slow        string        // the process that has half the speed; empty: none
	Cells       [cells]uint64 // after the last iteration
	Left, Right []uint64      // borders of neighbours, from that of this step on
	Places      []Place       // in order
}

// Place is a process where a strip was.
type Place struct {
	Process     string // its name
	First, Last int64  // when it took a border there first, and when it took one or stepped last, in Unix nanoseconds
}

// Border is a message between neighbours.
type Border struct {
	Left  bool   // of the strip that gets it
	Value uint64 // of the cell at the border
}

func id(set string, strip int) string { return fmt.Sprintf("%s/%d", set, strip) }

// begin makes a strip, which sends its borders.
func begin(ctx context.Context, s Strip) (*Strip, error) { return &s, s.sendBorders(ctx) }

func (s *Strip) sendBorders(ctx context.Context) error {
	space := work.SpaceOf(ctx)
	if s.Number > 0 {
		if err := space.Send(ctx, id(s.Set, s.Number-1), "border", Border{false, s.Cells[0]}); err != nil {
			return err
		}
	}
	if s.Number < s.Strips-1 {
		return space.Send(ctx, id(s.Set, s.Number+1), "border", Border{true, s.Cells[cells-1]})
	}
	return nil
}

// takeBorder takes a border, and steps as long as both borders are there.
func takeBorder(ctx context.Context, s *Strip, b Border) error {
	if b.Left {
		s.Left = append(s.Left, b.Value)
	} else {
		s.Right = append(s.Right, b.Value)
	}
	here := work.SpaceOf(ctx).Member()
	s.noteProcess(here)
	for s.Step < s.Steps && (s.Number == 0 || len(s.Left) > 0) && (s.Number == s.Strips-1 || len(s.Right) > 0) {
		cost := s.Cost
		if here == s.Slow {
			cost *= 2
		}
		if err := crew.Sleep(ctx, cost); err != nil {
			return err
		}
		var left, right uint64
		if s.Number > 0 {
			left, s.Left = s.Left[0], s.Left[1:]
		}
		if s.Number < s.Strips-1 {
			right, s.Right = s.Right[0], s.Right[1:]
		}
		s.Cells = next(s.Cells, left, right)
		s.noteProcess(here)
		if s.Step++; s.Step == s.Steps {
			return work.SpaceOf(ctx).Put(ctx, "end", *s, work.ID("end/%s", id(s.Set, s.Number)))
		}
		if err := s.sendBorders(ctx); err != nil {
			return err
		}
	}
	return nil
}

// noteProcess notes where the strip is.
func (s *Strip) noteProcess(process string) {
	now := time.Now().UnixNano()
	if n := len(s.Places); n == 0 || s.Places[n-1].Process != process {
		s.Places = append(s.Places, Place{process, now, 0})
	}
	s.Places[len(s.Places)-1].Last = now
}

// next is the next iteration of the cells between two borders.
func next(c [cells]uint64, left, right uint64) (to [cells]uint64) {
	for i := range c {
		l, r := left, right
		if i > 0 {
			l = c[i-1]
		}
		if i < cells-1 {
			r = c[i+1]
		}
		to[i] = (l*3 + c[i]*5 + r*7) ^ c[i]>>7
	}
	return to
}

// end has a strip read by the process that has created it.
func end(_ context.Context, s Strip) (Strip, error) { return s, nil }

func (j *job) first(strip int) (c [cells]uint64) {
	for i := range c {
		c[i] = (j.seed + uint64(strip*cells+i)) * 0x9e3779b97f4a7c15 //nolint:gosec // Not below 0.
	}
	return c
}

// sequential is the computation by one process.
func (j *job) sequential() [][cells]uint64 {
	all := make([][cells]uint64, j.strips)
	for i := range all {
		all[i] = j.first(i)
	}
	for range j.steps {
		now := slices.Clone(all)
		for i := range all {
			var left, right uint64
			if i > 0 {
				left = now[i-1][cells-1]
			}
			if i < j.strips-1 {
				right = now[i+1][0]
			}
			all[i] = next(now[i], left, right)
		}
	}
	return all
}

// The two sets of strips.
const (
	static = "static"
	moving = "moving"
)

// create creates the strips of a set, as many next to each other on each process.
func (j *job) create(ctx context.Context, c *crew.Crew, set string) error {
	for i := range j.strips {
		at := crew.Process(i * c.Processes / j.strips)
		s := Strip{Set: set, Number: i, Strips: j.strips, Steps: j.steps, Cost: j.cost, Cells: j.first(i)}
		if j.slow > 0 {
			s.Slow = crew.Process(j.slow - 1)
		}
		where := work.At(at)
		if set == moving {
			where = work.Near(id(set, i-1), id(set, i+1)) // There is no strip -1, and none behind the last.
		}
		if err := c.Space.Create(ctx, "strip", id(set, i), s, where); err != nil {
			return err
		}
		if set == moving {
			if err := c.Space.Move("strip", id(set, i), at); err != nil {
				return err
			}
		}
	}
	return nil
}

// figures are what a run has come to.
type figures struct {
	Seconds float64 `json:"seconds"` // until the last strip has ended
	Share   float64 `json:"share"`   // of the bound
	Moves   int     `json:"moves"`   // of strips to another process
	Far     int     `json:"far"`     // moves to a process that had no neighbour of the strip, and another strip
	Returns int     `json:"returns"` // moves to the process where the strip was before the last one
}

// run runs the computation on a set, and judges the strips.
func (j *job) run(ctx context.Context, c *crew.Crew, set string) (f figures, err error) {
	begun := time.Now()
	if err := j.create(ctx, c, set); err != nil {
		return f, err
	}
	all, n, last := make([]Strip, j.strips), 0, int64(0)
	for r, err := range work.Results[Strip](ctx, c.Space, "end") {
		if err != nil {
			return f, err
		}
		s := r.Value
		if s.Set != set || s.Number < 0 || s.Number >= j.strips || all[s.Number].Step > 0 {
			return f, fmt.Errorf("strip %s was not expected", id(s.Set, s.Number))
		}
		n++
		all[s.Number] = s
		last = max(last, s.Places[len(s.Places)-1].Last)
	}
	want := j.sequential()
	for i := range all {
		if n != j.strips || all[i].Step != j.steps || all[i].Cells != want[i] {
			return f, fmt.Errorf("%d of %d strips have ended; strip %d has %x, and the sequential computation %x", n, j.strips, i, all[i].Cells, want[i])
		}
	}
	f.Seconds = time.Duration(last - begun.UnixNano()).Seconds()
	f.Share = j.bound(c).Seconds() / f.Seconds
	f.judgeMoves(all)
	return f, nil
}

// judgeMoves counts the moves, by what the strips have told.
func (f *figures) judgeMoves(all []Strip) {
	for i := range all {
		places := all[i].Places
		for k := 1; k < len(places); k++ {
			f.Moves++
			if k > 1 && places[k].Process == places[k-2].Process {
				f.Returns++
			}
			near, empty := false, true
			for other := range all {
				there := other != i && wasAt(&all[other], places[k].Process, places[k-1].Last, places[k].First)
				near = near || there && (other == i-1 || other == i+1)
				empty = empty && !there
			}
			if !near && !empty {
				f.Far++
			}
		}
	}
}

// wasAt reports whether a strip was at a process at some time from one instant to another. It was there until it
// was elsewhere.
func wasAt(s *Strip, process string, from, to int64) bool {
	for i, p := range s.Places {
		until := int64(math.MaxInt64)
		if i+1 < len(s.Places) {
			until = s.Places[i+1].First
		}
		if p.Process == process && p.First <= to && until >= from {
			return true
		}
	}
	return false
}

// bound is how long it takes at least.
func (j *job) bound(c *crew.Crew) time.Duration {
	speeds := float64(c.Processes)
	if j.slow > 0 && j.slow <= c.Processes {
		speeds -= 0.5
	}
	return time.Duration(float64(j.strips*j.steps) * float64(j.cost) / speeds)
}

// part is which part of the iterations of the moving set were run.
func (j *job) part(s *work.Space) float64 {
	if !j.moving.Load() {
		return 0
	}
	return float64(s.Stats().Tasks) / float64(cmp.Or(j.strips*j.steps, 1))
}

func (j *job) read(ctx context.Context, c *crew.Crew) (*crew.Report, error) {
	var still figures
	var err error
	if j.baseline {
		if still, err = j.run(ctx, c, static); err != nil {
			return nil, err
		}
	}
	j.moving.Store(true)
	stop := c.Watch()
	moved, err := j.run(ctx, c, moving)
	stop()
	if err != nil {
		return nil, err
	}
	return &crew.Report{
		Took: time.Duration(moved.Seconds * float64(time.Second)), Bound: j.bound(c),
		Result: map[string]any{"strips": j.strips, static: still, moving: moved},
		Text: fmt.Sprintf("%d strips, each as the sequential computation has it; a static map takes %.2f s; %d moves of strips, %d far from a neighbour, %d back",
			j.strips, still.Seconds, moved.Moves, moved.Far, moved.Returns),
	}, nil
}
