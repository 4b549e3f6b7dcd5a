package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/balancesim"
	"github.com/gopegasus/pegasus/internal/show"
)

// simColumn is a column of the table: a value of each seed, and what is told of them.
type simColumn struct {
	name, format string
	of           func(*balancesim.Result) float64
	over         func([]float64) float64
}

var simColumns = []simColumn{
	{"EFFICIENCY", "%.4f", efficiency, median},
	{"WORST", "%.4f", efficiency, slices.Min[[]float64]},
	{"TIME", "%.2fs", func(r *balancesim.Result) float64 { return r.Time }, median},
	{"BOUND", "%.2fs", func(r *balancesim.Result) float64 { return r.Bound }, median},
	{"MIGRATIONS", "%.0f", func(r *balancesim.Result) float64 { return float64(r.Migrations) }, median},
	{"UNITS", "%.0f", func(r *balancesim.Result) float64 { return float64(r.Units) }, median},
	{"BYTES", "%.0f", func(r *balancesim.Result) float64 { return r.Bytes }, median},
	{"MESSAGES", "%.0f", func(r *balancesim.Result) float64 { return float64(r.Messages) }, median},
	{"IDLE", "%.1f%%", idlePercent, median},
	{"TAIL", "%.2fs", func(r *balancesim.Result) float64 { return r.Tail }, median},
	{"CUT", "%.0f%%", cutPercent, median},
	{"A-B-A", "%.0f", func(r *balancesim.Result) float64 { return float64(r.Returned) }, total},
	{"LATE", "%.0f", func(r *balancesim.Result) float64 { return float64(r.Late) }, total},
	{"WRONG", "%.0f", func(r *balancesim.Result) float64 { return float64(r.WrongMoves) }, total},
	{"STOPS", "%.0f", func(r *balancesim.Result) float64 { return float64(r.WrongStops) }, total},
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

func efficiency(r *balancesim.Result) float64 { return r.Efficiency }

// idlePercent is of the time of all nodes.
func idlePercent(r *balancesim.Result) float64 {
	if r.Time == 0 || r.Nodes == 0 {
		return 0
	}
	return 100 * r.Idle / (r.Time * float64(r.Nodes))
}

// cutPercent is of the traffic between tasks.
func cutPercent(r *balancesim.Result) float64 {
	if r.Volume == 0 {
		return 0
	}
	return 100 * r.Cut / r.Volume
}

// writeSimTable prints a line for each combination: medians of the seeds, the worst
// efficiency, and totals of what should not happen.
func writeSimTable(out io.Writer, rows []simRow) error {
	first := rows[0].results[0]
	head := fmt.Sprintf("%s, %s", show.Count(first.Nodes, "node"), show.Count(first.Tasks, "task"))
	if n := len(rows[0].results); n > 1 {
		head += fmt.Sprintf("; medians of %d seeds, the worst efficiency, and totals of A-B-A and what follows", n)
	}
	cells := []string{"STRATEGY", "ALPHA", "BETA", "GAMMA"}
	for _, c := range simColumns {
		cells = append(cells, c.name)
	}
	table := [][]string{cells}
	for i := range rows {
		table = append(table, rows[i].cells())
	}
	_, err := io.WriteString(out, head+"\n"+show.Table(table))
	return err
}

// cells are the texts of a line of the table.
func (r *simRow) cells() []string {
	list := []string{r.config.Strategy, "-", "-", "-"}
	if r.config.Strategy == balance.Pegasus {
		list = []string{r.config.Strategy, fmt.Sprint(r.config.Alpha), fmt.Sprint(r.config.Beta), fmt.Sprint(r.config.Gamma)}
	}
	for _, c := range simColumns {
		text := "-" // There is no bound.
		if x := c.over(r.values(c.of)); !math.IsInf(x, 1) {
			text = fmt.Sprintf(c.format, x)
		}
		list = append(list, text)
	}
	if n := total(r.values(func(r *balancesim.Result) float64 { return float64(r.Unfinished) })); n > 0 {
		list = append(list, fmt.Sprintf("unfinished: %.0f", n))
	}
	return list
}

// writeSimJSON prints an object a line: the configuration, and the result of each
// seed. What is infinite is null.
func writeSimJSON(out io.Writer, rows []simRow) error {
	for i := range rows {
		r := &rows[i]
		c := &r.config
		results := make([]show.Fields, len(r.results))
		for j, result := range r.results {
			results[j] = resultFields(result)
		}
		if _, err := io.WriteString(out, show.JSONLine(show.Fields{
			"strategy": c.Strategy, "alpha": c.Alpha, "beta": c.Beta, "gamma": c.Gamma, "waiting": c.Waiting, "results": results,
		})); err != nil {
			return err
		}
	}
	return nil
}

func resultFields(r *balancesim.Result) show.Fields {
	finite := func(x float64) any {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil
		}
		return x
	}
	return show.Fields{
		"nodes": r.Nodes, "tasks": r.Tasks, "efficiency": finite(r.Efficiency), "time_seconds": finite(r.Time), "bound_seconds": finite(r.Bound),
		"migrations": r.Migrations, "units": r.Units, "bytes": r.Bytes, "messages": r.Messages, "message_bytes": r.MessageBytes,
		"idle_seconds": r.Idle, "tail_seconds": r.Tail, "talk_seconds": r.Talk, "cut_bytes": r.Cut, "volume_bytes": r.Volume,
		"a_b_a": r.Returned, "late": r.Late, "wrong_moves": r.WrongMoves, "wrong_stops": r.WrongStops, "plans": r.Plans,
		"last_move_seconds": r.Settled, "unfinished": r.Unfinished,
	}
}
