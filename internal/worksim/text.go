package worksim

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gopegasus/pegasus/balance/local"
)

// figure is one line of the output.
type figure struct {
	name   string
	of     func(*Result) float64
	text   func(float64) string
	oracle func(*Oracle) float64 // nil: the oracle has no such figure
}

func number(x float64) string  { return fmt.Sprintf("%.0f", x) }
func part(x float64) string    { return fmt.Sprintf("%.1f%%", 100*x) }
func seconds(x float64) string { return fmt.Sprintf("%.3fs", x) }
func places(x float64) string  { return fmt.Sprintf("%.4f", x) }
func short(x float64) string   { return fmt.Sprintf("%.2f", x) }

var figures = []figure{
	{"time", func(r *Result) float64 { return r.Time.Seconds() }, seconds, func(o *Oracle) float64 { return o.Time.Seconds() }},
	{"bound", func(r *Result) float64 { return r.Bound.Seconds() }, seconds, nil},
	{"efficiency", func(r *Result) float64 { return r.Efficiency }, places, func(o *Oracle) float64 { return o.Efficiency }},
	{"idle, least", func(r *Result) float64 { x, _, _ := r.IdleOf(); return x }, part, nil},
	{"idle, mean", func(r *Result) float64 { _, x, _ := r.IdleOf(); return x }, part, func(o *Oracle) float64 { return o.Idle }},
	{"idle, most", func(r *Result) float64 { _, _, x := r.IdleOf(); return x }, part, nil},
	{"waits for data, mean", func(r *Result) float64 { return meanOf(r.Waits) }, part, func(o *Oracle) float64 { return o.Overhead }},
	{"waits for data, most", func(r *Result) float64 { return slices.Max(r.Waits) }, part, nil},
	{"parcels", func(r *Result) float64 { return float64(r.Parcels) }, number, nil},
	{"tasks moved", func(r *Result) float64 { return float64(r.Moved) }, number, func(o *Oracle) float64 { return float64(o.Tasks) }},
	{"objects moved", func(r *Result) float64 { return float64(r.Objects) }, number, func(o *Oracle) float64 { return float64(o.Moves) }},
	{"messages", func(r *Result) float64 { return float64(r.Messages) }, number, nil},
	{"bytes", func(r *Result) float64 { return float64(r.Bytes) }, number, nil},
	{"largest load", func(r *Result) float64 { return r.Load }, short, nil},
	{"classes", func(r *Result) float64 { return float64(r.Classes) }, number, nil},
	{"diameter", func(r *Result) float64 { return float64(r.Diameter) }, number, nil},
	{"nodes killed", func(r *Result) float64 { return float64(r.Killed) }, number, nil},
	{"withdrawn", func(r *Result) float64 { return float64(r.Withdrawn) }, number, nil},
	{"done again", func(r *Result) float64 { return r.Again }, short, nil},
	{"recorded twice", func(r *Result) float64 { return float64(r.Twice) }, number, nil},
}

// Table has a row for each figure: its value, or of several seeds the least, the median and the largest; and what the oracle
// comes to, of several seeds the median.
func Table(results []*Result) [][]string {
	head := []string{"", "RUN"}
	if len(results) > 1 {
		head = []string{"", "MIN", "MEDIAN", "MAX"}
	}
	rows := [][]string{append(head, "ORACLE")}
	hasOracle := !slices.ContainsFunc(results, func(r *Result) bool { return r.Oracle == nil })
	for _, f := range figures {
		list, oracle := make([]float64, len(results)), make([]float64, len(results))
		for i, r := range results {
			if list[i] = f.of(r); hasOracle && f.oracle != nil {
				oracle[i] = f.oracle(r.Oracle)
			}
		}
		slices.Sort(list)
		slices.Sort(oracle)
		row := []string{f.name, f.text(list[0])}
		if n := len(list); n > 1 {
			row = append(row, f.text(list[(n-1)/2]), f.text(list[n-1]))
		} else if f.name == "bound" {
			row[1] += " (" + results[0].Why + ")"
		}
		cell := "-"
		if hasOracle && f.oracle != nil {
			cell = f.text(oracle[(len(oracle)-1)/2])
		}
		rows = append(rows, append(row, cell))
	}
	return rows
}

// Fields are the result under the keys that it has in JSON.
func (r *Result) Fields(strategy local.Config) map[string]any {
	idle := make([]float64, len(r.Idle))
	for i, x := range r.Idle {
		idle[i] = rounded(x)
	}
	object := map[string]any{
		"seed": r.Seed, "strategy": StrategyText(strategy), "nodes": r.Nodes, "tasks": r.Tasks, "items": r.Items, "work": rounded(r.Work),
		"time_seconds": r.Time.Seconds(), "bound_seconds": r.Bound.Seconds(), "bound": r.Why, "efficiency": rounded(r.Efficiency), "idle": idle,
		"parcels": r.Parcels, "moved": r.Moved, "messages": r.Messages, "bytes": r.Bytes, "killed": r.Killed, "withdrawn": r.Withdrawn,
		"done": rounded(r.Done), "done_again": rounded(r.Again), "recorded_twice": r.Twice, "faults": append([]string{}, r.Faults...),
		"waits": rounded(meanOf(r.Waits)), "objects_moved": r.Objects, "classes": r.Classes, "diameter": r.Diameter, "largest_load": rounded(r.Load),
	}
	if r.Traced > 0 {
		object["traced_seconds"] = r.Traced.Seconds()
	}
	if o := r.Oracle; o != nil {
		object["oracle"] = map[string]any{
			"time_seconds": o.Time.Seconds(), "efficiency": rounded(o.Efficiency), "idle": rounded(o.Idle), "waits": rounded(o.Overhead), "objects_moved": o.Moves, "moved": o.Tasks,
		}
	}
	return object
}

// rounded has six digits behind the point: processors add up differently beyond.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// StrategyText is a strategy as it stands in a configuration, with its defaults.
func StrategyText(c local.Config) string {
	var parts []string
	for f, v := range reflect.ValueOf(c.WithDefaults()).Fields() {
		if v.IsZero() {
			continue
		}
		text := fmt.Sprint(v.Interface())
		if f.Type.Kind() == reflect.String {
			text = quoted(text)
		}
		parts = append(parts, f.Tag.Get("yaml")+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quoted quotes what has a comma, which ends a value in braces.
func quoted(text string) string {
	if strings.ContainsAny(text, ",#[:") {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// LoopTable has a row for each run of loops, with the values of the parameters that vary.
func LoopTable(parameters []string, values [][]string, results []*LoopResult) [][]string {
	head := append([]string{"SEED"}, parameters...)
	for _, p := range []string{"NODES", "TIME"} { // Else they are among the parameters.
		if !slices.Contains(parameters, p) {
			head = append(head, p)
		}
	}
	rows := [][]string{append(slices.Clip(head), "EFFICIENCY", "AVAILABLE", "ITERATIONS", "ROWS MOVED", "WITHDRAWN", "LONGEST", "ASSIGNED", "MESSAGES")}
	for i, r := range results {
		iterations, moved := 0, 0
		for _, l := range r.Loops {
			iterations, moved = iterations+l.Iterations, moved+l.Moved
		}
		row := append([]string{strconv.FormatUint(r.Seed, 10)}, values[i]...)
		for _, p := range head[len(row):] {
			row = append(row, map[string]string{"NODES": strconv.Itoa(r.Nodes), "TIME": r.Time.String()}[p])
		}
		rows = append(rows, append(row, fmt.Sprintf("%.4f", r.Efficiency), part(r.Available), strconv.Itoa(iterations), strconv.Itoa(moved), strconv.Itoa(r.Withdrawn), fmt.Sprintf("%.1fms", 1e3*r.Longest.Seconds()), strconv.Itoa(r.Assigned), strconv.Itoa(r.Messages)))
	}
	return rows
}

// Fields are the result under the keys that it has in JSON.
func (r *LoopResult) Fields() map[string]any {
	loops := make([]map[string]any, len(r.Loops))
	for i, l := range r.Loops {
		loops[i] = map[string]any{"weight": l.Weight, "iterations": l.Iterations, "rows": l.Rows, "moved_rows": l.Moved, "redone_rows": l.Redone}
	}
	return map[string]any{
		"seed": r.Seed, "nodes": r.Nodes, "time_seconds": r.Time.Seconds(), "efficiency": rounded(r.Efficiency), "available": rounded(r.Available),
		"messages": r.Messages, "bytes": r.Bytes, "withdrawn": r.Withdrawn, "longest_seconds": r.Longest.Seconds(), "assigned": r.Assigned,
		"loops": loops, "faults": append([]string{}, r.Faults...),
	}
}
