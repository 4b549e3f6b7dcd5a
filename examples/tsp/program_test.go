package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopegasus/pegasus/examples/tsp/bnb"
	"github.com/gopegasus/pegasus/examples/tsp/tsplib"
)

var programVerdict = regexp.MustCompile(`(?m)^tour((?: \d+)+)
\w+: length (\d+), proven optimal by decision gsync/\d+/\d+, [0-9.]+ s; 3 processes, (\d+) rounds?, (\d+) nodes?; signals: (\d+) new best, (\d+) share$`)

// checkProgram checks the tour and the verdict line of a run by -program, and returns the
// numbers of rounds and nodes and of applied signals NewBest and Share.
func checkProgram(t *testing.T, p *program, spec string, optimum int) (counts [4]int) {
	t.Helper()
	code := p.end(t)
	m := programVerdict.FindStringSubmatch(p.stdout.String())
	if code != exitGood || m == nil {
		t.Fatalf("exit code %d, no verdict in\n%s\n%s", code, p.stdout, p.stderr)
	}
	var tour []int
	for city := range strings.FieldsSeq(m[1]) {
		n, _ := strconv.Atoi(city) // They are digits, as all that follow.
		tour = append(tour, n-1)
	}
	length, _ := strconv.Atoi(m[2])
	in, err := tsplib.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := bnb.Verify(in, tour, length); err != nil || length != optimum {
		t.Errorf("%s: length %d, want %d: %v", spec, length, optimum, err)
	}
	for i := range counts {
		counts[i], _ = strconv.Atoi(m[3+i])
	}
	return counts
}

// TestProgram: the program proves the same optimum as the plain run and as the bare
// solver.
func TestProgram(t *testing.T) {
	const name = "bays29"
	in, err := tsplib.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := bnb.Solve(in, bnb.SolveOptions{Seed: 1})
	if err != nil || !alone.Proven {
		t.Fatal(alone, err)
	}
	code, plain := begin(t, "-instance", name, "-json").finish(t)
	checkProven(t, code, plain, name, alone.Length)
	if got := checkProgram(t, begin(t, "-program", "-instance", name), name, plain.Length); got[0] == 0 {
		t.Errorf("%d rounds", got[0])
	}
}

func TestMerge(t *testing.T) {
	item := func(bounds ...int) (items []bnb.Subtask) {
		for _, b := range bounds {
			items = append(items, bnb.Subtask{LowerBound: b})
		}
		return items
	}
	parts := []round{
		{Number: 4, Tour: []int{0, 1}, Length: 100, Pruned: 90, Rest: item(89, 95, 80), Nodes: 7},
		{Number: 4, Tour: []int{1, 0}, Length: 90, Pruned: 90, Rest: item(90), Nodes: 2},
		{Number: 4, Tour: []int{0, 1}, Length: 100, Pruned: 95, Rest: item(85)},
	}
	next := merge(slices.Clone(parts), bnb.Edges)
	bounds := func(items []bnb.Subtask) (b []int) {
		for _, it := range items {
			b = append(b, it.LowerBound)
		}
		return b
	}
	if got := bounds(next.Rest); next.Number != 5 || next.Length != 90 || next.Tour[0] != 1 || next.Nodes != 9 || next.Again != 0 || !slices.Equal(got, []int{80, 85, 89}) {
		t.Errorf("%+v", next)
	}
	// The tour of 90 is lost with the one who found it; the others have pruned by it.
	parts[1] = round{Number: 4, Tour: []int{0, 1}, Length: 95, Pruned: 95}
	next = merge(parts, bnb.Edges)
	if next.Number != 5 || next.Length != 95 || next.Pruned != 95 || next.Again != 1 || len(next.Rest) != 1 {
		t.Fatalf("%+v", next)
	}
	if sub := next.Rest[0]; len(sub.Required)+len(sub.Forbidden) > 0 {
		t.Errorf("%+v", sub)
	}
}
