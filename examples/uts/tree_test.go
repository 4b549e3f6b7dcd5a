package main

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/internal/testprogram"
)

// sample is a tree of the golden cases of the benchmark.
type sample struct{ Nodes, Leaves, Depth int64 }

// TestTrees: the sample trees have as many nodes, leaves and levels as those who made the benchmark count.
func TestTrees(t *testing.T) {
	for name, c := range map[string]struct {
		shape shape
		want  sample
	}{
		"T1-d5": {shape{kind: fixed, root: 4, depth: 5, seed: 19}, sample{3987, 3232, 5}},
		"T1-d8": {shape{kind: fixed, root: 4, depth: 8, seed: 19}, sample{257042, 205878, 8}},
		"T2":    {shapes["T2"], sample{4117769, 2342762, 81}},
		"T3":    {shapes["T3"], sample{4112897, 3599034, 1572}},
	} {
		var got sample
		var visit func(at state, depth int)
		visit = func(at state, depth int) {
			got.Nodes++
			got.Depth = max(got.Depth, int64(depth))
			n := c.shape.children(&at, depth)
			if n == 0 {
				got.Leaves++
			}
			for i := range n {
				visit(at.child(i), depth+1)
			}
		}
		visit(rootOf(c.shape.seed), 0)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestSplit: no node is lost or doubled where a stack is split and travels.
func TestSplit(t *testing.T) {
	s, err := shapeOf("T1")
	if err != nil {
		t.Fatal(err)
	}
	s.depth = 8
	stacks, found := []*Stack{whole(s)}, int64(1)
	for steps := 0; len(stacks) > 0; steps++ {
		b := stacks[len(stacks)-1]
		b.Visit(1+steps%700, &found)
		if b.Len() == 0 {
			stacks = stacks[:len(stacks)-1]
		} else if n := b.Len(); n > 1 && steps%5 == 0 {
			part := b.Split(1 + steps%(n-1))
			if part.Len() == 0 || part.Len()+b.Len() != n {
				t.Fatalf("%d nodes were split into %d and %d", n, part.Len(), b.Len())
			}
			data, err := part.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			other := &Stack{}
			if err := other.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
			other.shape = s
			stacks = append(stacks, other)
		}
	}
	if found != 257042 {
		t.Errorf("%d nodes, want 257042", found)
	}
	for _, data := range []string{"", "\x02T", "\x02T9", "\x02T1x"} {
		if err := new(Stack).UnmarshalBinary([]byte(data)); err == nil {
			t.Errorf("%q is read as a stack", data)
		}
	}
}

func TestMain(m *testing.M) { testprogram.Main(m, main) }

// TestUTS: the example counts the tree, also if a process is killed.
func TestUTS(t *testing.T) {
	for _, args := range [][]string{{"-json"}, {"-json", "-tree", "T3", "-processes", "3", "-kill", "1"}} {
		out, err := testprogram.Command(t, args...).CombinedOutput()
		var got struct {
			Result, Processes, Redone, Lost int64
		}
		if err != nil || json.Unmarshal(out, &got) != nil || got.Lost != 0 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	out, err := testprogram.Command(t, "-tree", "T9").CombinedOutput()
	if want := "uts: -tree: there is no tree \"T9\": write one of [T1 T1L T2 T3]\n"; err == nil || string(out) != want {
		t.Errorf("%v: %s; want %s", err, out, want)
	}
}

// TestBeside: -beside compares the program with sequential runs, and refuses what it cannot measure.
func TestBeside(t *testing.T) {
	out, err := testprogram.Command(t, "-beside", "3", "-strategy", "diffusion", "-json").CombinedOutput()
	var got struct {
		Efficiency float64
		Rounds     []struct {
			Alone                []float64
			Together, Efficiency float64
		}
	}
	if err != nil || json.Unmarshal(out, &got) != nil || len(got.Rounds) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range got.Rounds {
		if len(r.Alone) != 2 || r.Alone[0] <= 0 || r.Together <= 0 || math.Abs(r.Efficiency*r.Together*(1/r.Alone[0]+1/r.Alone[1])-1) > 1e-9 {
			t.Errorf("%+v", r)
		}
	}
	all := []float64{got.Rounds[0].Efficiency, got.Rounds[1].Efficiency, got.Rounds[2].Efficiency}
	if slices.Sort(all); got.Efficiency != all[1] {
		t.Errorf("%v is not the middle of %v", got.Efficiency, all)
	}
	for want, args := range map[string][]string{
		"uts: -beside 1: give 1 to 100 rounds, without -kill and -table, and of an example that has a sequential run: uts, or blockmatch without -calibrated\n": {"-beside", "1", "-kill", "1"},
		"uts: -strategy best: use receiver or diffusion\n": {"-strategy", "best"},
	} {
		out, err := testprogram.Command(t, args...).CombinedOutput()
		if err == nil || string(out) != want {
			t.Errorf("%v: %s; want %s", err, out, want)
		}
	}
}
