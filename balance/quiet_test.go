package balance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance"
)

// totals adds up the loads of a state, with the bounds of a node where more than half
// of its weights are within low and high.
func totals(s *balance.State, low, high float64) []balance.Total {
	list := make([]balance.Total, len(s.Nodes))
	at := map[string]int{}
	for i, n := range s.Nodes {
		list[i].Node = n
		if _, twin := at[n.Name]; !twin {
			at[n.Name] = i
		}
	}
	seen := map[string]bool{}
	within := make([]int, len(list))
	for i := range s.Loads {
		l := &s.Loads[i]
		on, ok := at[l.Node]
		if to, known := at[l.To]; known && l.To != "" {
			on, ok = to, true
		}
		if !ok || seen[l.Name] {
			continue
		}
		seen[l.Name] = true
		t := &list[on]
		t.Work += l.Weight
		t.Loads++
		if l.To == "" && !l.Running {
			if t.Waiting == 0 || l.Weight < t.Least {
				t.Least = l.Weight
			}
			if t.Waiting++; t.Waiting == 1 || l.Weight > t.Most {
				t.Most = l.Weight
			}
			if l.Weight >= low && l.Weight <= high {
				within[on]++
			}
		}
	}
	for i := range list {
		if t := &list[i]; 2*within[i] > t.Waiting {
			t.Low, t.High = low, high
		}
	}
	return list
}

// TestQuietHasNoMoves: where totals are quiet, no plan moves anything, also on
// numbers that nobody should report.
func TestQuietHasNoMoves(t *testing.T) {
	quiet := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		s := drawState(t, rapid.IntRange(0, 3).Draw(t, "allow odd") == 0)
		s.Transfer = nil
		for i := range s.Nodes {
			s.Nodes[i].Note = rapid.SampledFrom([]string{"", "", "", "", "left"}).Draw(t, "note")
		}
		c.Outlier = rapid.SampledFrom([]float64{3, 200}).Draw(t, "outlier")
		low := rapid.SampledFrom([]float64{0.5, 2, 6}).Draw(t, "low")
		if !c.Quiet(totals(s, low, low*c.Outlier*(1-1e-9))) {
			return
		}
		quiet++
		if p := strategyOf(t, c).Plan(0, s); len(p.Moves) > 0 {
			t.Fatalf("quiet, and there are moves:\n%v", &p)
		}
	})
	if quiet == 0 {
		t.Error("nothing was quiet")
	}
}

// TestQuiet: what is quiet, and by which of the two looks.
func TestQuiet(t *testing.T) {
	node := func(name string, power, work float64, loads int) balance.Total {
		one := balance.Total{Node: balance.Node{Name: name, Power: power, Share: 1}, Work: work, Loads: loads, Waiting: loads}
		if loads > 0 {
			one.Least, one.Most = work/float64(loads), work/float64(loads)
		}
		return one
	}
	for _, test := range []struct {
		name  string
		list  []balance.Total
		quiet bool
	}{
		{"nobody", nil, true},
		{"no loads", []balance.Total{node("a", 1, 0, 0), node("b", 2, 0, 0)}, true},
		{"queues of one length", []balance.Total{node("a", 1, 10, 10), node("b", 2, 20, 20)}, true},
		{"within alpha", []balance.Total{node("a", 1, 12, 12), node("b", 1, 10, 10)}, true},
		{"one has all", []balance.Total{node("a", 1, 10, 10), node("b", 2, 0, 0)}, false},
		{"on a node with nothing to spare", []balance.Total{node("a", 0, 10, 10), node("b", 2, 0, 0)}, false},
		{"nobody has anything to spare", []balance.Total{node("a", 0, 10, 10), node("b", 0, 0, 0)}, true},
	} {
		c := balance.Default()
		if got := c.Quiet(test.list); got != test.quiet {
			t.Errorf("%s: %v", test.name, got)
		}
		c.Strategy = balance.None
		if !c.Quiet(test.list) {
			t.Errorf("%s: no strategy has moves", test.name)
		}
	}
	c := balance.Default()
	even := []balance.Total{node("a", 1, 140, 140), node("b", 1, 100, 100)}
	even[0].Least = 1e-3
	if c.Quiet(even) {
		t.Error("the median of the weights of a node may be implausible")
	}
	even[0].Low, even[0].High = 0.5, 1.5
	if !c.Quiet(even) {
		t.Error("a light load is no reason not to believe a node of which the others are known")
	}
	c.Strategy = balance.Greedy // It knows no alpha.
	if c.Quiet([]balance.Total{node("a", 1, 12, 12), node("b", 1, 10, 10)}) {
		t.Error("greedy may have a move within alpha")
	}
}

func TestNote(t *testing.T) {
	s := &balance.State{
		Nodes: []balance.Node{{Name: "a", Power: 1, Share: 1}, {Name: "b", Power: 9, Share: 1, Note: "its state is unknown"}, {Name: "c", Power: 1, Share: 1}},
		Loads: []balance.Load{{Name: "t1", Node: "a", Weight: 1}, {Name: "t2", Node: "a", Weight: 1}, {Name: "t3", Node: "b", Weight: 7}},
	}
	p := strategyOf(t, balance.Default()).Plan(0, s)
	if len(p.Moves) != 1 || p.Moves[0].To != "c" || !strings.Contains(p.String(), "b     left alone: its state is unknown") {
		t.Errorf("%v", &p)
	}
}

func TestOrders(t *testing.T) {
	want := []balance.Order{{"17", "w2", 1.5}, {`a "b", c`, "w3", 1e-9}}
	text := ""
	for _, o := range want {
		text = balance.AppendOrder(text, o)
	}
	got, err := balance.ParseOrders(text)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%s: %v %v", text, got, err)
	}
	for text, want := range map[string]string{
		"":                       "balance: orders: unexpected end of JSON input: they are the datum moves of a signal of the section balance",
		`[{"load":"1"}]`:         "balance: orders: one has no load or no target",
		`[{"load":1,"to":"w2"}]`: "balance: orders: json: cannot unmarshal",
	} {
		if _, err := balance.ParseOrders(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
