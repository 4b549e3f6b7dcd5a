package local

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func clusters(speeds ...float64) (list []*cluster) {
	for i, speed := range speeds {
		list = append(list, &cluster{name: "W" + string(rune('1'+i)), throughput: speed})
	}
	return list
}

// TestGoldenTree has the trees of CORD, the first split, the shares, and the throughputs and balance of
// clusters.
func TestGoldenTree(t *testing.T) {
	for _, c := range goldenOf[struct{ Speeds []float64 }, struct {
		Links [][]any `json:"links_slow_fast_level"`
	}](t, "cord-tree-") {
		_, links := clusterTree(clusters(c.Given.Speeds...))
		var want []treeLink
		for _, l := range c.Expect.Links {
			want = append(want, treeLink{l[0].(string), l[1].(string), int(l[2].(float64))})
		}
		if !slices.Equal(links, want) {
			t.Errorf("%s: %v, want %v", c.ID, links, want)
		}
	}
	split := goldenOf[struct {
		Speeds []float64
		Tasks  int
	}, struct{ V, W int }](t, "cord-split")[0]
	root, _ := clusterTree(clusters(split.Given.Speeds...))
	into := map[string]int{}
	if root.splitTasks(split.Given.Tasks, into); into["W1"] != split.Expect.V || into["W2"] != split.Expect.W {
		t.Errorf("the first split is %v, want %+v", into, split.Expect)
	}
	gamma := goldenOf[struct{ T1, T4 float64 }, struct {
		Gamma fraction `json:"gamma_14"`
	}](t, "cord-gamma")[0]
	s := &tree{speeds: map[string]float64{"1": gamma.Given.T1, "4": gamma.Given.T4}}
	if got := s.gammaOf("1", "4"); !close9(got, float64(gamma.Expect.Gamma)) {
		t.Errorf("the share is %v, want %v", got, gamma.Expect.Gamma)
	}
	sum := goldenOf[struct{ Speeds []float64 }, struct{ Throughput float64 }](t, "cord-6.3")[0]
	if root, _ := clusterTree(clusters(sum.Given.Speeds...)); root.throughput != sum.Expect.Throughput {
		t.Errorf("theorem 6.3: %v, want %v", root.throughput, sum.Expect.Throughput)
	}
	ratio := goldenOf[any, struct {
		B      []fraction
		Parent fraction `json:"B_parent"`
	}](t, "cord-6.4")[0].Expect
	root, _ = clusterTree(clusters(1, 2, 3, 4))
	if !close9(root.slow.balance(), float64(ratio.B[0])) || !close9(root.fast.balance(), float64(ratio.B[1])) || root.balance() != float64(ratio.Parent) {
		t.Errorf("balance %v and %v, of the parent %v", root.slow.balance(), root.fast.balance(), root.balance())
	}
}

// TestTheorem64: of four members a parent is more balanced than the less balanced of its clusters, but where
// all speeds are equal.
func TestTheorem64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		speeds := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 4, 4).Draw(t, "speeds")
		root, _ := clusterTree(clusters(speeds...))
		if worst := max(root.slow.balance(), root.fast.balance()); root.balance() > worst+1e-12 {
			t.Fatalf("%v: the parent has %v, its clusters at most %v", speeds, root.balance(), worst)
		}
	})
}

// pair runs a slow and a fast member with N tasks each on divisible load: whenever the fast one is done, the slow
// one gives it gamma of what it has left (section 6.3.1).
func pair(slow, fast, n, gamma float64) (moved float64, moves []float64, end float64) {
	a, b := n, n
	for b > 1e-9 {
		d := b / fast
		end += d
		if a -= slow * d; a < 1e-9 {
			break
		}
		b = gamma * a
		a -= b
		moves, moved = append(moves, b), moved+b
	}
	return moved, moves, end
}

// TestGoldenTheorems compares the shares of the tree with theorems 6.1 and 6.2 and with example 6.3.
func TestGoldenTheorems(t *testing.T) {
	for _, c := range goldenOf[struct {
		TV, TW, N float64
		Gamma     fraction
	}, struct {
		Moved, First fraction
		Moves        int `json:"fluid_migrations_of_1_or_more"`
	}](t, "cord-6.1-") {
		g := c.Given
		s := &tree{share: float64(g.Gamma)}
		moved, moves, _ := pair(g.TV, g.TW, g.N, s.gammaOf("v", "w"))
		large := 0
		for _, m := range moves {
			if m >= 1 {
				large++
			}
		}
		if math.Abs(moved-float64(c.Expect.Moved)) > 1e-6 || !close9(moves[0], float64(c.Expect.First)) || large != c.Expect.Moves {
			t.Errorf("%s: %v moved in %v, want %+v", c.ID, moved, moves, c.Expect)
		}
	}
	type given struct{ Speeds []float64 }
	type expect struct {
		T     fraction
		Moved fraction
	}
	c := goldenOf[given, expect](t, "cord-ex-6.3-case1")[0]
	s := &tree{speeds: map[string]float64{"P1": 1, "P2": 2, "P3": 3, "P4": 4}}
	first, one, end := pair(1, 4, 1, s.gammaOf("P1", "P4"))
	second, two, other := pair(2, 3, 1, s.gammaOf("P2", "P3"))
	if len(one) != 1 || len(two) != 1 || !close9(end, float64(c.Expect.T)) || !close9(other, float64(c.Expect.T)) || !close9(first+second, float64(c.Expect.Moved)) {
		t.Errorf("example 6.3: %v and %v, ends at %v and %v", one, two, end, other)
	}
}

// TestSplit: the first split loses no task, and no part is off by more than one for each level.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		speeds := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 9).Draw(t, "speeds")
		tasks := rapid.IntRange(0, 10_000).Draw(t, "tasks")
		root, _ := clusterTree(clusters(speeds...))
		into := map[string]int{}
		root.splitTasks(tasks, into)
		sum := 0
		for i, c := range clusters(speeds...) {
			n := into[c.name]
			sum += n
			if exact := float64(tasks) * speeds[i] / root.throughput; n < 0 || math.Abs(float64(n)-exact) > 5 {
				t.Fatalf("%v: %s gets %d of %d", speeds, c.name, n, tasks)
			}
		}
		if sum != tasks {
			t.Fatalf("%v: %d of %d tasks are split", speeds, sum, tasks)
		}
	})
}

// TestTreeLook: a member asks only when it is dry, its partner of the lowest level that has tasks, and a member
// without a partner that has some the one with the most.
func TestTreeLook(t *testing.T) {
	s, err := New(Config{Kind: Tree, Speeds: "W1: 1, W2: 2, W3: 3, W4: 4"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		waiting, running int
		w1, w2, w3       float64
		want             string
	}{{0, 0, 5, 9, 20, "W1"}, {0, 0, 0, 9, 20, "W2"}, {0, 0, 0, 0, 20, "W3"}, {1, 1, 5, 9, 20, ""}, {0, 1, 5, 9, 20, ""}} {
		v := &View{Self: "W4", Members: 4, Waiting: c.waiting, Neighbours: []Neighbour{{Name: "W1", Load: c.w1}, {Name: "W2", Load: c.w2}, {Name: "W3", Load: c.w3}}}
		v.Activity.Set(0, c.running, 1)
		got := ""
		if demands, _ := s.Look(1, v, nil); len(demands) == 1 {
			got = demands[0].Member
		}
		if got != c.want {
			t.Errorf("%+v: it asks %q", c, got)
		}
	}
}
