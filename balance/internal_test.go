package balance

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelOf is a model of nodes with powers, each with the loads of some weights.
func modelOf(c Config, powers []float64, weights ...[]float64) *model {
	s := &State{}
	for i, p := range powers {
		name := string(rune('a' + i))
		s.Nodes = append(s.Nodes, Node{Name: name, Power: p, Share: 1})
		for j, w := range weights[i] {
			s.Loads = append(s.Loads, Load{Name: name + string(rune('1'+j)), Node: name, Weight: w})
		}
	}
	b := &base{cfg: c, memory: map[string]lastMove{}}
	return b.readModel(0, s)
}

// TestTrapX1 wants an imbalance where max > alpha x min, which the paper prints
// the other way round.
func TestTrapX1(t *testing.T) {
	c := Default()
	c.Alpha = 1.5
	for want, work := range map[bool]float64{false: 2, true: 8} {
		v := modelOf(c, []float64{1, 1}, []float64{2}, []float64{work}).detect()
		if v.imbalance != want {
			t.Errorf("2 against %v: %v", work, v)
		}
	}
}

// TestTrapX2 wants the node with the least availability overloaded.
func TestTrapX2(t *testing.T) {
	m := modelOf(Default(), []float64{1, 1, 1}, []float64{9, 9}, []float64{3, 3}, nil)
	m.detect()
	for i, want := range []Class{Overloaded, Normal, Underloaded} {
		if got := m.places[i].Class; got != want {
			t.Errorf("node %d is %v, want %v", i, got, want)
		}
	}
	if got := m.mostOverloaded(); got != 0 {
		t.Errorf("node %d is the most overloaded, want 0", got)
	}
}

// TestTrapX5 has no communication, no deviation and an empty node: each quotient
// would be 0/0.
func TestTrapX5(t *testing.T) {
	for _, waiting := range []string{ByWeight, ByCount} {
		c := Default()
		c.Waiting = waiting
		m := modelOf(c, []float64{1, 2}, []float64{3, 3}, nil)
		m.detect()
		for _, l := range m.candidates(0) {
			if l.rank != 0 || l.attraction != 0 || l.deviation != 0 {
				t.Errorf("%s: %+v, want zeros", waiting, l)
			}
		}
		if got := m.corrected(1, 3); got != 2 {
			t.Errorf("%s: an empty node has %v, want 2", waiting, got)
		}
	}
}

// TestEquations compares attraction, equations 3.1 to 3.4 and the weighted form of
// 3.4 with values worked out by hand.
func TestEquations(t *testing.T) {
	c := Default()
	c.Beta, c.Gamma, c.Waiting = 0.25, 0.75, ByCount
	s := &State{
		Nodes: []Node{{Name: "a", Power: 4, Share: 0.5}, {Name: "b", Power: 2, Share: 1}, {Name: "c", Power: 4, Share: 0.75}},
		Loads: []Load{
			{Name: "r", Node: "a", Weight: 3, Running: true},
			{Name: "s", Node: "a", Weight: 5},
			{Name: "t", Node: "a", Weight: 10},
			{Name: "u", Node: "b", Weight: 1, Running: true},
			{Name: "v", Node: "c", Weight: 1, Running: true},
			{Name: "w", Node: "c", Weight: 1},
		},
		Traffic: []Traffic{{"r", "s", 2}, {"s", "r", 4}, {"s", "t", 6}, {"t", "u", 3}, {"u", "t", 1}, {"w", "t", 1}},
	}
	b := &base{cfg: c, memory: map[string]lastMove{}}
	m := b.readModel(0, s)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("Ind_avail(a)", m.places[0].Available, 2)
	near("attr(s)", m.attraction(1, 0), 12)
	near("attr(t)", m.attraction(2, 0), 6)
	near("attrext(t, b)", m.attraction(2, 1), 4)
	near("attrext(t, c)", m.attraction(2, 2), 1)
	// The mean on a is 6: ldev is 3, 1 and 4, and the greatest attr is 12.
	list := m.candidates(0)
	slices.SortFunc(list, func(x, y candidate) int { return x.load - y.load })
	near("Rank(s)", list[0].rank, 0.25*1+0.75*0.25)
	near("Rank(t)", list[1].rank, 0.25*0.5+0.75*1)
	// A probe beside what runs: 2/2 of b, 3/2 of c; of c one of two waits.
	near("Ind*_avail(b)", m.corrected(1, 10), 1)
	near("Ind*_avail(c)", m.corrected(2, 10), 0.75)
	m.places[1].Class, m.places[2].Class = Underloaded, Underloaded
	best, _ := m.target(&list[1], 0)
	if best == nil || best.node != 1 {
		t.Fatalf("target %+v, %v", best, m.plan.Refused)
	}
	near("Quality(t, b)", best.quality, 0.75*1+0.25*1)
	m.base.cfg.Waiting = ByWeight
	near("Ind*_avail(c) by weight", m.corrected(2, 10), 3*(1-2.0/12))
}

// TestClassify pins K-means on small sets.
func TestClassify(t *testing.T) {
	o, n, u := Overloaded, Normal, Underloaded
	for _, c := range []struct {
		values []float64
		want   []Class
	}{
		{nil, nil},
		{[]float64{3}, []Class{n}},
		{[]float64{2, 2, 2}, []Class{n, n, n}},
		{[]float64{1, 2}, []Class{o, u}},
		{[]float64{1, 5, 9}, []Class{o, n, u}},
		{[]float64{9, 1, 5, 1.5, 8}, []Class{u, o, n, o, u}},
		{[]float64{0, 1, 1, 1, 10}, []Class{o, o, o, o, u}},
	} {
		got := make([]Class, len(c.values))
		classifyValues(c.values, got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// TestClassifyIsAFixedPoint checks that each value has the class of the nearest
// mean, and that classes do not cross.
func TestClassifyIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1000), 1, 40).Draw(t, "values")
		classes := make([]Class, len(values))
		classifyValues(values, classes)
		var sum, number [4]float64
		for i, c := range classes {
			sum[c] += values[i]
			number[c]++
		}
		for i, c := range classes {
			for other := Overloaded; other <= Underloaded; other++ {
				if number[other] == 0 {
					continue
				}
				if far, near := absolute(values[i]-sum[c]/number[c]), absolute(values[i]-sum[other]/number[other]); far > near+1e-9 {
					t.Fatalf("%v is %v, and nearer to %v: %v %v", values[i], c, other, values, classes)
				}
			}
			for j := range values {
				if values[i] < values[j] && classes[i] > classes[j] {
					t.Fatalf("%v is %v, and %v is %v", values[i], c, values[j], classes[j])
				}
			}
		}
	})
}

// TestOneOutweighsAll moves a load that is more than a float64 can tell from the sum of
// all others of its node: these stay in the account.
func TestOneOutweighsAll(t *testing.T) {
	s := &State{
		Nodes: []Node{{Name: "a", Power: 1, Share: 1}, {Name: "b", Power: 4, Share: 1}},
		Loads: []Load{{Name: "r", Node: "a", Weight: 3, Running: true}, {Name: "s", Node: "a", Weight: 1e30}, {Name: "t", Node: "a", Weight: 2, Running: true}},
	}
	for _, name := range []string{Pegasus, Greedy, Largest} {
		c := Default()
		c.Strategy = name
		strategy, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p := strategy.Plan(0, s)
		if len(p.Moves) != 1 || p.Moves[0].FromAfter != 5 || p.Nodes[0].Then != 5 {
			t.Errorf("a keeps 5 seconds of work:\n%v", &p)
		}
	}
}

// TestNoGainIsNoMove has margins and weights so small that a product rounds them away:
// a move that evens nothing out is none.
func TestNoGainIsNoMove(t *testing.T) {
	for name, x := range map[string]struct{ margin, power, weight float64 }{
		"margin": {1e-17, 1, 3}, "weight": {0.05, 1e100, math.SmallestNonzeroFloat64},
	} {
		c := Default()
		c.Margin = x.margin
		m := modelOf(c, []float64{x.power, x.power}, []float64{x.weight}, nil)
		if _, against, ok := m.tryMove(0, 0, 1); ok || against != NoGain {
			t.Errorf("%s: a lone load goes to a node that is as fast", name)
		}
	}
}
