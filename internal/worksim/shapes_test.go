package worksim

import (
	"math"
	"strings"
	"testing"
)

// TestShapes: loops with uniform, increasing, decreasing and random tasks (C16) have the same work, and guided chunks fare worse the more
// of it lies in the first ones.
func TestShapes(t *testing.T) {
	reached := map[string]float64{}
	for name, weight := range map[string]string{
		"uniform": "0.0505", "increasing": "{linear: [0.001, 0.1]}", "decreasing": "{linear: [0.1, 0.001]}", "random": "{uniform: [0.001, 0.1]}",
	} {
		s := parse(t, "nodes: 8\nwork: {strategy: {kind: chunk, cut: gss}}\ntasks: [{count: 800, weight: "+weight+"}]")
		r := mustRun(t, s)
		if math.Abs(r.Work-40.4) > 2.5 || r.Items != 800 {
			t.Errorf("%s: %d tasks of %v units, want 800 of 40.4", name, r.Items, r.Work)
		}
		reached[name] = r.Efficiency
	}
	if reached["decreasing"] > reached["uniform"]-0.1 || reached["increasing"] < 0.9 || reached["uniform"] < 0.9 {
		t.Errorf("%v: want decreasing tasks to be the worst", reached)
	}
	for weight, want := range map[string]string{
		"{linear: [1]}":    "tasks[0].weight.linear: the list has 1 numbers: write one for the first item and one for the last, such as [1, 2]",
		"{linear: [1, 0]}": "tasks[0].weight.linear[1]: 0 is out of range: write 1e-09 to 1e+12",
	} {
		if _, err := Parse("t.yaml", []byte("tasks: [{weight: "+weight+"}]")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", weight, err, want)
		}
	}
}
