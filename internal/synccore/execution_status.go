package synccore

import (
	"cmp"
	"maps"
	"slices"
)

// ProgramStatus is where a program stands.
type ProgramStatus struct {
	Name string `json:"name"`
	// Outcome is "running", or how the program has ended.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	// Blocks are those that were started, in the order of the program.
	Blocks  []BlockStatus `json:"blocks"`
	LeftOut int           `json:"left_out,omitempty"` // blocks beyond the first 100
	// Waits are the constructs that wait for something from outside, oldest first.
	Waits     []WaitStatus `json:"waits,omitempty"`
	WaitsMore int          `json:"waits_left_out,omitempty"` // beyond the first 100
}

// WaitStatus is a construct that waits.
type WaitStatus struct {
	Path    string `json:"path"`
	Name    string `json:"name"` // its kind if it has none
	Replica string `json:"replica,omitempty"`
	For     string `json:"for"`
}

// BlockStatus is where a block stands, all its runs taken together.
type BlockStatus struct {
	Path string `json:"path"` // of the construct
	Name string `json:"name"`
	RunCounts

	Runs []RunStatus `json:"runs"` // that have not ended; 100 at most
}

// RunCounts counts runs of blocks.
type RunCounts struct {
	Starts   uint64 `json:"starts"`
	Done     uint64 `json:"done"`
	Failed   uint64 `json:"failed"`
	Canceled uint64 `json:"canceled"`
	Lost     uint64 `json:"lost"`
}

// RunStatus is a run that has not ended.
type RunStatus struct {
	Run       uint64 `json:"run"`
	Replica   string `json:"replica,omitempty"`
	Processor string `json:"processor"`
	// Phase is "starting" before a global state has shown the run, then "running",
	// and "cancelling" after it was told to end.
	Phase string `json:"phase"`
}

// shownBlocks is how many blocks, and runs of each, a status has.
const shownBlocks = 100

// counts are those that a run of a construct belongs to.
func (f *execution) counts(construct int) [2]*RunCounts {
	n := f.tallies[construct]
	if n == nil {
		n = &RunCounts{}
		f.tallies[construct] = n
	}
	return [2]*RunCounts{n, &f.total}
}

// programStatus is nil if the machine runs no program.
func (c *Core) programStatus() *ProgramStatus {
	f := c.exec
	if f == nil {
		return nil
	}
	s := &ProgramStatus{Name: c.plan.program.Program().Name, Outcome: "running", Blocks: []BlockStatus{}}
	if f.finish != nil {
		s.Outcome, s.Reason = f.finish.Outcome.String(), f.finish.Reason
	}
	waits, more := f.run.Waits(shownBlocks)
	for _, w := range waits {
		info := c.plan.program.Info(w.Construct)
		s.Waits = append(s.Waits, WaitStatus{info.Path, cmp.Or(info.Name, info.Kind.String()), dotted(w.Replicas), w.For})
	}
	s.WaitsMore = more
	place := map[int]int{}
	for _, construct := range slices.Sorted(maps.Keys(f.tallies)) {
		if len(s.Blocks) == shownBlocks {
			s.LeftOut = len(f.tallies) - shownBlocks
			break
		}
		info := c.plan.program.Info(construct)
		place[construct] = len(s.Blocks)
		s.Blocks = append(s.Blocks, BlockStatus{Path: info.Path, Name: info.Name, RunCounts: *f.tallies[construct], Runs: []RunStatus{}})
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
		s.Blocks[i].Runs = append(s.Blocks[i].Runs, RunStatus{r.number, dotted(r.replicas), r.on, phase})
	}
	return s
}
