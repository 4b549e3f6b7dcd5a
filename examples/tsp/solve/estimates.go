package main

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
)

// estimateParts is how many subtasks an instance is cut into.
const estimateParts = 32

// estimates cuts every instance breadth first, searches each part alone, and
// prints how well the estimates of work rank them.
func estimates(w io.Writer, list []task, o options) error {
	p := printer{w: w}
	p.say("Spearman's rank correlation of estimates with the nodes searched, %d subtasks of an instance\n\n", estimateParts)
	p.say("%-14s %-7s %5s %9s %9s %9s %7s %7s\n", "instance", "kind", "parts", "min", "median", "max", "gap", "leaves")
	for _, t := range list {
		for _, kind := range []bnb.Kind{bnb.Edges, bnb.Prefix} {
			r, err := rank(t, kind, o)
			switch {
			case errors.Is(err, errLate):
				p.say("%-14s %-7v takes longer than %v\n", t.name, kind, o.limit)
			case err != nil:
				return err
			case len(r.nodes) < 8:
				p.say("%-14s %-7v falls into %d parts only\n", t.name, kind, len(r.nodes))
			default:
				sorted := slices.Sorted(slices.Values(r.nodes))
				p.say("%-14s %-7v %5d %9.0f %9.0f %9.0f %7s %7s\n", t.name, kind, len(sorted),
					sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1], shown(r.nodes, r.gap), shown(r.nodes, r.leaves))
			}
		}
	}
	return p.err
}

// ranked is the work in each subtask of an instance, as found and as estimated.
type ranked struct{ nodes, gap, leaves []float64 }

// rank cuts an instance, estimates the parts and searches each.
func rank(t task, kind bnb.Kind, o options) (ranked, error) {
	p, err := bnb.Prepare(t.in, bnb.Options{Seed: o.seed})
	if err != nil {
		return ranked{}, err
	}
	var incumbent atomic.Int64
	incumbent.Store(int64(p.Length()))
	s, err := bnb.NewSearch(p, bnb.Root(kind), &incumbent)
	if err != nil {
		return ranked{}, err
	}
	for s.Split(estimateParts, nil) == bnb.Improved {
	}
	if tour, length := s.Tour(); tour != nil {
		incumbent.Store(int64(length))
	}
	best := int(incumbent.Load())
	start := time.Now()
	var r ranked
	for _, part := range s.Remaining() {
		nodes, err := alone(p, part, &incumbent, func() bool { return time.Since(start) > o.limit })
		if err != nil {
			return ranked{}, err
		}
		r.nodes = append(r.nodes, float64(nodes))
		r.gap = append(r.gap, p.Load(part, best, bnb.Gap))
		r.leaves = append(r.leaves, p.Load(part, best, bnb.Leaves))
	}
	return r, nil
}

// alone counts the nodes of a subtask that is searched without news from others.
func alone(p *bnb.Problem, part bnb.Subtask, incumbent *atomic.Int64, late func() bool) (int64, error) {
	s, err := bnb.NewSearch(p, part, incumbent)
	if err != nil {
		return 0, err
	}
	for s.Step() != bnb.Done {
		if late() {
			return 0, errLate
		}
	}
	return s.Nodes(), nil
}

// shown is Spearman's correlation, or that there is none because all are equal.
func shown(x, y []float64) string {
	rho := spearman(x, y)
	if math.IsNaN(rho) {
		return "equal"
	}
	return strconv.FormatFloat(rho, 'f', 2, 64)
}

// spearman is the rank correlation of two lists, ties sharing the mean of their
// ranks; it is not a number if one list is all the same.
func spearman(x, y []float64) float64 {
	return pearson(ranks(x), ranks(y))
}

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

func pearson(x, y []float64) float64 {
	mean := func(v []float64) (m float64) {
		for _, a := range v {
			m += a / float64(len(v))
		}
		return m
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
