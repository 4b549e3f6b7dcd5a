package executor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/monitor"
)

// shownBlocks is how many blocks, and runs of each, a status has.
const shownBlocks = 100

// countsOf are those that a run of a construct belongs to.
func (f *executor) countsOf(construct int) [2]*monitor.RunCounts {
	n := f.tallies[construct]
	if n == nil {
		n = &tally{}
		f.tallies[construct] = n
	}
	return [2]*monitor.RunCounts{&n.RunCounts, &f.total}
}

// noteTime counts how long a run with a result took.
func (f *executor) noteTime(r *blockRun, took time.Duration) {
	n := f.tallies[r.construct]
	n.sum += took
	n.longest = max(n.longest, took)
}

// Counts implements [plan.Executor].
func (f *executor) Counts() (total monitor.RunCounts, running, queued int) {
	return f.total, len(f.runs), f.run.Waiting()
}

// Status implements [plan.Executor].
func (f *executor) Status(now clocksync.Instant) *monitor.ProgramStatus {
	s := &monitor.ProgramStatus{Name: f.program.Program().Name, Outcome: "running", Blocks: []monitor.BlockStatus{}}
	if f.finish != nil {
		s.Outcome, s.Reason = f.finish.Outcome.String(), f.finish.Reason
	}
	s.Drawing = f.drawing()
	waits, more := f.run.Waits(shownBlocks)
	for _, w := range waits {
		info := f.program.Info(w.Construct)
		s.Waits = append(s.Waits, monitor.WaitStatus{Path: info.Path, Name: cmp.Or(info.Name, info.Kind.String()), Replica: joinDotted(w.Replicas), For: w.For})
	}
	s.WaitsMore = more
	place := map[int]int{}
	for _, construct := range slices.Sorted(maps.Keys(f.tallies)) {
		if len(s.Blocks) == shownBlocks {
			s.LeftOut = len(f.tallies) - shownBlocks
			break
		}
		info := f.program.Info(construct)
		place[construct] = len(s.Blocks)
		n := f.tallies[construct]
		b := monitor.BlockStatus{Path: info.Path, Name: info.Name, RunCounts: n.RunCounts, Longest: n.longest.Seconds(), Runs: []monitor.RunStatus{}}
		if n.Done > 0 {
			b.Mean = n.sum.Seconds() / float64(n.Done)
		}
		s.Blocks = append(s.Blocks, b)
	}
	for _, number := range slices.Sorted(maps.Keys(f.runs)) {
		r := f.runs[number]
		i, ok := place[r.construct]
		if !ok || len(s.Blocks[i].Runs) == shownBlocks {
			continue
		}
		phase := "starting"
		switch {
		case r.cancel:
			phase = "cancelling"
		case r.seen:
			phase = "running"
		}
		s.Blocks[i].Runs = append(s.Blocks[i].Runs, monitor.RunStatus{
			Run: r.number, Attempt: r.id.Attempt, Replica: joinDotted(r.replicas), Processor: r.on, Phase: phase, Seconds: now.Add(-f.behind).Sub(r.placed).Seconds(),
		})
	}
	return s
}

// drawing is the flow of the program; nil if it is too large. It is made once, as the program stays.
func (f *executor) drawing() *monitor.ProgramDrawing {
	if f.drawn.is {
		return f.drawn.drawing
	}
	f.drawn.is = true
	g := f.program.Draw()
	if len(g.Vertices) > monitor.MaxDrawn {
		return nil
	}
	d := &monitor.ProgramDrawing{Width: g.W, Height: g.H}
	for i := range g.Vertices {
		v := &g.Vertices[i]
		shape := [...]string{program.Box: "block", program.Bar: "bar", program.Diamond: "switch", program.Dot: "dot"}[v.Shape]
		d.Vertices = append(d.Vertices, monitor.ProgramVertex{Shape: shape, X: v.X, Y: v.Y, Width: v.W, Height: v.H, Label: v.Label, Path: v.Path, Conditions: v.Conditions})
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		points, at, end := g.Route(e)
		d.Edges = append(d.Edges, monitor.ProgramEdge{Points: points, Label: e.Label, At: at, End: end})
	}
	f.drawn.drawing = d
	return d
}
