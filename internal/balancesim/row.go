package balancesim

import (
	"fmt"
	"math"
	"slices"

	"github.com/gopegasus/pegasus/balance"
)

// Combinations are a configuration with each of the strategies and values in turn.
// Strategies other than the paper's have no alpha, beta and gamma, and so one each.
func Combinations(c balance.Config, strategies []string, alpha, beta, gamma []float64) (list []balance.Config) {
	for _, c.Strategy = range strategies {
		for _, c.Alpha = range alpha {
			for _, c.Beta = range beta {
				for _, c.Gamma = range gamma {
					if n := len(list); c.Strategy == balance.Pegasus || n == 0 || list[n-1].Strategy != c.Strategy {
						list = append(list, c)
					}
				}
			}
		}
	}
	return list
}

// Row is one combination with the results of its seeds, at least one.
type Row struct {
	Config  balance.Config // what was run
	Results []*Result      // of each seed
}

// values are those of the seeds.
func (r *Row) values(of func(*Result) float64) []float64 {
	list := make([]float64, len(r.Results))
	for i, result := range r.Results {
		list[i] = of(result)
	}
	return list
}

// column is a column of the table: a value of each seed, and what is told of them.
type column struct {
	name, format string
	of           func(*Result) float64
	over         func([]float64) float64
}

var columns = []column{
	{"EFFICIENCY", "%.4f", efficiency, median},
	{"WORST", "%.4f", efficiency, slices.Min[[]float64]},
	{"TIME", "%.2fs", func(r *Result) float64 { return r.Time }, median},
	{"BOUND", "%.2fs", func(r *Result) float64 { return r.Bound }, median},
	{"MIGRATIONS", "%.0f", func(r *Result) float64 { return float64(r.Migrations) }, median},
	{"UNITS", "%.0f", func(r *Result) float64 { return float64(r.Units) }, median},
	{"BYTES", "%.0f", func(r *Result) float64 { return r.Bytes }, median},
	{"MESSAGES", "%.0f", func(r *Result) float64 { return float64(r.Messages) }, median},
	{"IDLE", "%.1f%%", idlePercent, median},
	{"TAIL", "%.2fs", func(r *Result) float64 { return r.Tail }, median},
	{"CUT", "%.0f%%", cutPercent, median},
	{"A-B-A", "%.0f", func(r *Result) float64 { return float64(r.Returned) }, total},
	{"LATE", "%.0f", func(r *Result) float64 { return float64(r.Late) }, total},
	{"WRONG", "%.0f", func(r *Result) float64 { return float64(r.WrongMoves) }, total},
	{"STOPS", "%.0f", func(r *Result) float64 { return float64(r.WrongStops) }, total},
}

// median is the lower of two.
func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[(len(list)-1)/2] }

// total is for what one seed may have too many of, which a median hides.
func total(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

func efficiency(r *Result) float64 { return r.Efficiency }

// idlePercent is of the time of all nodes.
func idlePercent(r *Result) float64 {
	if r.Time == 0 || r.Nodes == 0 {
		return 0
	}
	return 100 * r.Idle / (r.Time * float64(r.Nodes))
}

// cutPercent is of the traffic between tasks.
func cutPercent(r *Result) float64 {
	if r.Volume == 0 {
		return 0
	}
	return 100 * r.Cut / r.Volume
}

// Header has the names of the columns of Cells.
func Header() []string {
	list := []string{"STRATEGY", "ALPHA", "BETA", "GAMMA"}
	for _, c := range columns {
		list = append(list, c.name)
	}
	return list
}

// Cells are the texts of its line of a table: medians of the seeds, the worst
// efficiency, and totals of what should not happen.
func (r *Row) Cells() []string {
	list := []string{r.Config.Strategy, "-", "-", "-"}
	if r.Config.Strategy == balance.Pegasus {
		list = []string{r.Config.Strategy, fmt.Sprint(r.Config.Alpha), fmt.Sprint(r.Config.Beta), fmt.Sprint(r.Config.Gamma)}
	}
	for _, c := range columns {
		text := "-" // There is no bound.
		if x := c.over(r.values(c.of)); !math.IsInf(x, 1) {
			text = fmt.Sprintf(c.format, x)
		}
		list = append(list, text)
	}
	if n := total(r.values(func(r *Result) float64 { return float64(r.Unfinished) })); n > 0 {
		list = append(list, fmt.Sprintf("unfinished: %.0f", n))
	}
	return list
}

// Fields are the configuration, and the result of each seed, under the keys that they
// have in JSON. What is infinite is nil.
func (r *Row) Fields() map[string]any {
	c := &r.Config
	results := make([]map[string]any, len(r.Results))
	for i, result := range r.Results {
		results[i] = result.fields()
	}
	return map[string]any{
		"strategy": c.Strategy, "alpha": c.Alpha, "beta": c.Beta, "gamma": c.Gamma, "waiting": c.Waiting, "results": results,
	}
}

func (r *Result) fields() map[string]any {
	finite := func(x float64) any {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return x
	}
	return map[string]any{
		"nodes": r.Nodes, "tasks": r.Tasks, "efficiency": finite(r.Efficiency), "time_seconds": finite(r.Time), "bound_seconds": finite(r.Bound),
		"migrations": r.Migrations, "units": r.Units, "bytes": r.Bytes, "messages": r.Messages, "message_bytes": r.MessageBytes,
		"idle_seconds": r.Idle, "tail_seconds": r.Tail, "talk_seconds": r.Talk, "cut_bytes": r.Cut, "volume_bytes": r.Volume,
		"a_b_a": r.Returned, "late": r.Late, "wrong_moves": r.WrongMoves, "wrong_stops": r.WrongStops, "plans": r.Plans,
		"last_move_seconds": r.Settled, "unfinished": r.Unfinished,
	}
}
