package peers

import (
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Change is one change of a worker's state. The states of a worker alternate: it is busy in those with an even number,
// from 0, and idle in the others. A change has the number of the state that it leads to.
type Change struct {
	Before clocksync.Instant `json:"b"` // read before the change
	After  clocksync.Instant `json:"a"` // read after it
}

// Firing is one decision of a controller.
type Firing struct {
	Number uint64            // which the workers receive
	At     clocksync.Instant // of the decision
	States []int             // by worker: the number of the state that the firing rests on
}

// Telling is the receipt of a firing by one worker.
type Telling struct {
	Number uint64            `json:"n"` // of the firing
	At     clocksync.Instant `json:"t"` // of the receipt
	Over   bool              `json:"o"` // the controller said that the condition was over
}

// Trace is the record of one run.
type Trace struct {
	Changes [][]Change  // by worker, in order
	Told    [][]Telling // by worker, in order
	Firings []Firing    // in order
}

// Judgement is how right and how fast a controller was, by the definitions of the package comment.
type Judgement struct {
	Changes      int     `json:"changes"`        // of all workers
	Intervals    int     `json:"true_intervals"` // however short
	Firings      int     `json:"firings"`        // false ones included
	False        int     `json:"false_firings"`  // of Firings
	Long         int     `json:"true_intervals_over_5ms"`
	Missed       int     `json:"missed_over_5ms"` // of Long
	Longer       int     `json:"true_intervals_over_20ms"`
	MissedLonger int     `json:"missed_over_20ms"`   // of Longer
	Late         int     `json:"late_firings"`       // of Firings
	Over         int     `json:"firings_known_over"` // of Firings, with which a worker received that the condition was over
	P50          float64 `json:"p50_ms"`             // of the latency; 0 if there is none
	P99          float64 `json:"p99_ms"`             // likewise
}

// The certain lengths over which a true interval must not be missed.
const (
	long   = 5 * time.Millisecond
	longer = 20 * time.Millisecond
)

// span is an interval of time.
type span struct{ from, to clocksync.Instant }

// trueInterval is a longest span in which all workers were possibly idle.
type trueInterval struct {
	span

	certain time.Duration
	told    bool // a firing that belongs to it was received
}

// Judge judges a trace. A firing that rests on a state that its worker did not have is false, and so is one that does
// not name the state of each worker.
func Judge(t *Trace) Judgement {
	intervals := t.intervals()
	j := Judgement{Intervals: len(intervals), Firings: len(t.Firings)}
	for _, changes := range t.Changes {
		j.Changes += len(changes)
	}
	tellings, over := map[uint64][]clocksync.Instant{}, map[uint64]bool{}
	for _, worker := range t.Told {
		for _, told := range worker {
			tellings[told.Number] = append(tellings[told.Number], told.At)
			over[told.Number] = over[told.Number] || told.Over
		}
	}
	var latencies []time.Duration
	for i := range t.Firings {
		f := &t.Firings[i]
		told := tellings[f.Number]
		j.Over += count(over[f.Number])
		at := f.At
		for _, receipt := range told {
			at = min(at, receipt)
		}
		interval := t.belongsTo(f, at, intervals)
		if interval == nil {
			j.False++
			continue
		}
		if len(told) == 0 {
			continue
		}
		if slices.Max(told) > interval.to {
			j.Late++
		}
		if !interval.told {
			for _, receipt := range told {
				latencies = append(latencies, receipt.Sub(interval.from))
			}
		}
		interval.told = true
	}
	for _, interval := range intervals {
		if interval.certain > long {
			j.Long++
			j.Missed += count(!interval.told)
		}
		if interval.certain > longer {
			j.Longer++
			j.MissedLonger += count(!interval.told)
		}
	}
	slices.Sort(latencies)
	j.P50, j.P99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
	return j
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quantile is the least of the sorted values, in milliseconds, that a share of them does not exceed; 0 without values.
func quantile(values []time.Duration, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	at := int(math.Ceil(share*float64(len(values)))) - 1
	return float64(values[max(at, 0)]) / float64(time.Millisecond)
}

// belongsTo returns the true interval of a firing that was made at an instant, or nil if the firing is false.
func (t *Trace) belongsTo(f *Firing, at clocksync.Instant, intervals []trueInterval) *trueInterval {
	if len(f.States) != len(t.Changes) {
		return nil
	}
	newest := clocksync.MinInstant
	for worker, n := range f.States {
		if n < 0 || n >= len(t.Changes[worker]) {
			return nil
		}
		newest = max(newest, t.Changes[worker][n].Before)
	}
	// The first one that ends after the newest known change.
	first, _ := slices.BinarySearchFunc(intervals, newest, func(i trueInterval, newest clocksync.Instant) int {
		if i.to <= newest {
			return -1
		}
		return 1
	})
	if first < len(intervals) && intervals[first].from < at {
		return &intervals[first]
	}
	return nil
}

// intervals returns the true intervals in order.
func (t *Trace) intervals() []trueInterval {
	possible := t.together(func(idle, busy Change) span { return span{idle.Before, busy.After} })
	certain := t.together(func(idle, busy Change) span { return span{idle.After, busy.Before} })
	intervals := make([]trueInterval, len(possible))
	for i, s := range possible {
		intervals[i].span = s
		for len(certain) > 0 && certain[0].to <= s.to {
			intervals[i].certain = max(intervals[i].certain, certain[0].to.Sub(certain[0].from))
			certain = certain[1:]
		}
	}
	return intervals
}

// together returns the spans in which all workers are idle. The function is given a worker's change to idle and its
// next change, and returns the span in which it counts as idle. The last state of a worker that is idle does not
// count, since its end is not known.
func (t *Trace) together(idle func(idle, busy Change) span) (all []span) {
	type edge struct {
		at   clocksync.Instant
		step int // of the number of idle workers
	}
	var edges []edge
	for _, changes := range t.Changes {
		for i := 1; i+1 < len(changes); i += 2 {
			if s := idle(changes[i], changes[i+1]); s.from < s.to {
				edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at != b.at && a.at < b.at:
			return -1
		case a.at != b.at:
			return 1
		}
		return a.step - b.step // Ends first: spans that touch do not overlap.
	})
	n := 0
	for i, e := range edges {
		if n == len(t.Changes) && edges[i-1].at < e.at {
			all = append(all, span{edges[i-1].at, e.at})
		}
		n += e.step
	}
	return all
}
