package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is how a run ended: what -json prints.
type result struct {
	Instance    string  `json:"instance"`
	N           int     `json:"n"`
	Length      int     `json:"length"`
	LowerBound  int     `json:"lower_bound"`
	Proven      bool    `json:"proven"`
	Interrupted bool    `json:"interrupted"`
	Seconds     float64 `json:"seconds"`
	Search      float64 `json:"search_seconds"` // from the first delivery to the verdict, 0 without one
	Busy        float64 `json:"busy_seconds"`   // that threads had a subtask, added up
	Nodes       int64   `json:"nodes"`          // searched
	Processes   int     `json:"processes"`
	Threads     int     `json:"threads"`
	PIDs        []int   `json:"pids"`
	Subtasks    int     `json:"subtasks"`
	Signals     signals `json:"signals"`
	Migrations  int     `json:"migrations"`
	LateSignals int     `json:"late_signals"`
	Clocks      string  `json:"clocks"` // by which the last decision was made
	Tour        []int   `json:"tour"`

	verdict string  // the predicate that ended the search, if one did
	gap     float64 // that was asked for
	migrate int     // signals of that name that were applied
}

// signals counts those that were applied: each process counts.
type signals struct {
	NewBest    int `json:"new_best"`
	NewSubtask int `json:"new_subtask"`
	Stop       int `json:"stop"`
}

// result sums the run up; end counts if there was no verdict.
func (c *coordinator) result(start, end time.Time) *result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict != "" {
		end = c.end
	}
	applied := c.tally.applied
	r := &result{
		Instance: c.info.title(), N: c.in.N, Length: c.best, LowerBound: c.bound, Seconds: end.Sub(start).Seconds(),
		Processes: len(c.pids), Threads: c.info.Threads, PIDs: []int{}, Nodes: c.nodes,
		LateSignals: c.tally.late,
		Signals:     signals{applied["NewBest"], applied["NewSubtask"], applied["StopIteration"] + applied["Done"]},
		verdict:     c.verdict, gap: c.gap, migrate: applied["Migrate"], Clocks: c.tally.clocks,
	}
	if c.space != nil {
		r.Subtasks = int(c.space.Stats().Tasks) //nolint:gosec // A count.
		r.Migrations = max(0, r.Subtasks-c.parts)
	}
	if c.verdict == "Done" {
		r.LowerBound = r.Length
	}
	r.Proven = c.verdict != "" && r.LowerBound == r.Length
	for _, name := range slices.Sorted(maps.Keys(c.pids)) {
		r.PIDs = append(r.PIDs, c.pids[name])
	}
	for _, s := range c.sessions {
		r.LateSignals += int(s.progress.Late)
		r.Nodes += s.progress.Nodes
		r.Busy += s.progress.Busy
	}
	for _, city := range c.tour {
		r.Tour = append(r.Tour, city+1)
	}
	if !c.first.IsZero() {
		r.Search = end.Sub(c.first).Seconds()
	}
	return r
}

// good reports whether the run reached what was asked for.
func (r *result) good() bool { return r.verdict != "" }

// String is the verdict line.
func (r *result) String() string {
	by := ""
	if r.Clocks != "" {
		by = " by " + r.Clocks
	}
	return fmt.Sprintf("%s: length %d, %s%s, %.2f s (search %.2f s); %s x %s; %s; signals: %d new best, %d new subtask, %d migrate, %d stop; %s, %s",
		r.Instance, r.Length, r.standing(), by, r.Seconds, r.Search,
		plural(r.Processes, "process"), plural(r.Threads, "thread"), plural(r.Subtasks, "subtask"),
		r.Signals.NewBest, r.Signals.NewSubtask, r.migrate, r.Signals.Stop,
		plural(r.Migrations, "migration"), plural(r.LateSignals, "late signal"))
}

func (r *result) standing() string {
	gap := percent(r.Length, r.LowerBound)
	switch {
	case r.Proven:
		return "proven optimal"
	case r.good():
		return fmt.Sprintf("at most %s above the optimum, as asked for with -gap", gap)
	case r.Interrupted:
		return fmt.Sprintf("interrupted, not proven (lower bound %d, gap %s)", r.LowerBound, gap)
	default:
		return fmt.Sprintf("not proven (lower bound %d, gap %s)", r.LowerBound, gap)
	}
}

// percent is how far a length is above a lower bound.
func percent(length, bound int) string {
	if bound <= 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.2f%%", 100*float64(length-bound)/float64(bound))
}

// printJSON writes the result as one object.
func (r *result) printJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// tourLine lists the cities of the tour, counted from 1.
func (r *result) tourLine() string {
	var b strings.Builder
	b.WriteString("tour")
	for _, city := range r.Tour {
		b.WriteByte(' ')
		b.WriteString(strconv.Itoa(city))
	}
	return b.String()
}

// openSubtasks is how many bags are not searched. The lock is held.
func (c *coordinator) openSubtasks() int {
	if c.space == nil {
		return 0
	}
	return c.space.Stats().Open
}

// status is the live line: the loads of the workers in the order of their names,
// and the signals applied for new bests, new subtasks and migrations.
func (c *coordinator) status(now, start time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %.0fs", c.info.title(), now.Sub(start).Seconds())
	if c.tour != nil {
		fmt.Fprintf(&b, " best %d", c.best)
	}
	if c.problem != nil {
		fmt.Fprintf(&b, " bound %d gap %s open %d", c.bound, percent(c.best, c.bound), c.openSubtasks())
	}
	var loads []string
	for _, name := range slices.Sorted(maps.Keys(c.sessions)) {
		loads = append(loads, strconv.FormatFloat(c.sessions[name].progress.Load, 'f', 0, 64))
	}
	applied := c.tally.applied
	fmt.Fprintf(&b, " load %s signals %d/%d/%d", strings.Join(loads, "/"), applied["NewBest"], applied["NewSubtask"], applied["Migrate"])
	return b.String()
}
