package executor

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gopegasus/pegasus/control/program"
	"github.com/gopegasus/pegasus/monitor"
)

// shownBlocks is how many blocks, and runs of each, a status has.
const shownBlocks = 100

// countsOf are those that a run of a construct belongs to.
func (f *executor) countsOf(construct int) [2]*monitor.RunCounts {
	n := f.tallies[construct]
	if n == nil {
		n = &monitor.RunCounts{}
		f.tallies[construct] = n
	}
	return [2]*monitor.RunCounts{n, &f.total}
}

// Counts implements [plan.Executor].
func (f *executor) Counts() (total monitor.RunCounts, running, queued int) {
	return f.total, len(f.runs), f.run.Waiting()
}

// Status implements [plan.Executor].
func (f *executor) Status() *monitor.ProgramStatus {
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
		s.Blocks = append(s.Blocks, monitor.BlockStatus{Path: info.Path, Name: info.Name, RunCounts: *f.tallies[construct], Runs: []monitor.RunStatus{}})
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
		s.Blocks[i].Runs = append(s.Blocks[i].Runs, monitor.RunStatus{Run: r.number, Replica: joinDotted(r.replicas), Processor: r.on, Phase: phase})
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
