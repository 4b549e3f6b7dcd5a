package balance_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/clocksync"
)

// odd are numbers that reports should not have, and the edges of those they may.
var odd = []float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e100, 1e-100, 2}

// drawState draws a state; one number in five is odd where that is wanted.
func drawState(t *rapid.T, allowOdd bool) *balance.State {
	number := func(low, high float64, what string) float64 {
		if allowOdd && rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
			return rapid.SampledFrom(odd).Draw(t, what)
		}
		return rapid.Float64Range(low, high).Draw(t, what)
	}
	var s balance.State
	nodes := rapid.IntRange(0, 6).Draw(t, "nodes")
	name := func(what string) string {
		if allowOdd && rapid.IntRange(0, 9).Draw(t, "stranger") == 0 {
			return "stranger"
		}
		return fmt.Sprintf("n%d", rapid.IntRange(0, max(0, nodes-1)).Draw(t, what))
	}
	for i := range nodes {
		n := balance.Node{Name: fmt.Sprintf("n%d", i), Power: number(0.5, 8, "power"), Share: number(0.1, 1, "share")}
		if allowOdd && rapid.IntRange(0, 9).Draw(t, "twin") == 0 {
			n.Name = "n0"
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range rapid.IntRange(0, 24).Draw(t, "loads") {
		l := balance.Load{Name: fmt.Sprintf("t%d", i), Node: name("node"), Weight: number(0.1, 20, "weight"), Size: number(0, 10, "size")}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			l.Running = true
		case 1:
			l.To = name("to")
		}
		s.Loads = append(s.Loads, l)
	}
	for range rapid.IntRange(0, 10).Draw(t, "traffic") {
		load := func() string { return fmt.Sprintf("t%d", rapid.IntRange(0, 24).Draw(t, "talks")) }
		s.Traffic = append(s.Traffic, balance.Traffic{From: load(), To: load(), Volume: number(0, 5, "volume")})
	}
	if rapid.Bool().Draw(t, "network") {
		s.Transfer = func(from, to int, size float64) float64 {
			if (from+to)%5 == 4 {
				return odd[(from*7+to)%len(odd)]
			}
			return 0.01*float64(from+to) + 0.001*size
		}
	}
	return &s
}

func drawConfig(t *rapid.T) balance.Config {
	c := balance.Default()
	c.Strategy = rapid.SampledFrom(balance.Names).Draw(t, "strategy")
	c.Alpha = rapid.SampledFrom([]float64{1.01, 1.5, 2.5}).Draw(t, "alpha")
	c.Beta = rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "beta")
	c.Gamma = rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "gamma")
	c.Margin = rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "margin")
	c.Waiting = rapid.SampledFrom([]string{balance.ByWeight, balance.ByCount}).Draw(t, "waiting")
	c.Moves = rapid.SampledFrom([]int{1, 1000}).Draw(t, "moves")
	return c
}

func strategyOf(t interface{ Fatal(...any) }, c balance.Config) balance.Strategy {
	s, err := balance.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// queues works out the longest queue of the nodes that are not left alone, from
// the report alone.
func queues(s *balance.State, p *balance.Plan, at func(*balance.Load) string) (longest float64) {
	for i, n := range s.Nodes {
		if p.Nodes[i].Note != "" {
			continue
		}
		work := 0.0
		for j := range s.Loads {
			if at(&s.Loads[j]) == n.Name {
				work += s.Loads[j].Weight
			}
		}
		if work > 0 {
			longest = max(longest, work/(n.Power*n.Share))
		}
	}
	return longest
}

// TestPlansAreSound checks every strategy on states with every kind of bad input:
// moves are possible, of loads that wait, once each, and neither the plan's account
// nor one made apart has a longer longest queue.
func TestPlansAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := drawConfig(t), drawState(t, true)
		p := strategyOf(t, c).Plan(0, s)
		checkPlan(t, c, s, &p)
		again := strategyOf(t, c).Plan(0, s)
		if diff := cmp.Diff(p.String(), again.String()); diff != "" {
			t.Fatalf("the same state gives another plan: %s", diff)
		}
	})
}

type fataler interface{ Fatalf(string, ...any) }

func checkPlan(t fataler, c balance.Config, s *balance.State, p *balance.Plan) {
	if p.Verdict == "" || len(p.Nodes) != len(s.Nodes) || len(p.Moves) > c.Moves {
		t.Fatalf("%v", p)
	}
	if !(p.After <= p.Before) {
		t.Fatalf("longest queue %v -> %v\n%v", p.Before, p.After, p)
	}
	moved := map[string]bool{}
	for _, m := range p.Moves {
		ok := false
		for i := range s.Loads {
			l := &s.Loads[i]
			ok = ok || l.Name == m.Load && l.Node == m.From && l.To == "" && !l.Running && l.Weight > 0 && !moved[m.Load]
		}
		moved[m.Load] = true
		known := false
		for i, n := range s.Nodes {
			known = known || n.Name == m.To && n.Power*n.Share > 0 && p.Nodes[i].Note == ""
		}
		if !ok || !known || m.From == m.To {
			t.Fatalf("%+v is no move of this state\n%v", m, p)
		}
	}
}

// TestAccountIsRight compares Before and After with queues worked out apart.
func TestAccountIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := drawConfig(t), drawState(t, false)
		p := strategyOf(t, c).Plan(0, s)
		to := map[string]string{}
		for _, m := range p.Moves {
			to[m.Load] = m.To
		}
		before := func(l *balance.Load) string {
			if l.To != "" {
				return l.To
			}
			return l.Node
		}
		after := func(l *balance.Load) string {
			if n, ok := to[l.Name]; ok {
				return n
			}
			return before(l)
		}
		for what, pair := range map[string][2]float64{
			"before": {p.Before, queues(s, &p, before)}, "after": {p.After, queues(s, &p, after)},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*max(1, pair[1]) {
				t.Fatalf("%s: the plan has %v, and it is %v\n%v", what, pair[0], pair[1], &p)
			}
		}
	})
}

// TestMovesEnd carries plans out on a load that does not change: moves come to an
// end, and nothing goes back where it came from.
func TestMovesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := drawConfig(t), drawState(t, false)
		strategy := strategyOf(t, c)
		came := map[string]string{}
		quiet := 0
		for round := 0; quiet < 3; round++ {
			if round == 1000 {
				t.Fatalf("moves go on")
			}
			p := strategy.Plan(clocksync.Instant(round)*clocksync.Instant(c.Cooldown), s)
			quiet++
			for _, m := range p.Moves {
				quiet = 0
				if came[m.Load] == m.To {
					t.Fatalf("%s returns to %s", m.Load, m.To)
				}
				came[m.Load] = m.From
				for i := range s.Loads {
					if s.Loads[i].Name == m.Load {
						s.Loads[i].Node = m.To
					}
				}
			}
		}
	})
}

// TestLiars lets one node of at least four lie by a thousand times about its power
// or its weights: by what is true no plan makes the longest queue longer.
func TestLiars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		var truth balance.State
		nodes := rapid.IntRange(4, 7).Draw(t, "nodes")
		for i := range nodes {
			n := fmt.Sprintf("n%d", i)
			truth.Nodes = append(truth.Nodes, balance.Node{Name: n, Power: rapid.Float64Range(1, 4).Draw(t, "power"), Share: 1})
			for j := range rapid.IntRange(4, 12).Draw(t, "loads") {
				truth.Loads = append(truth.Loads, balance.Load{Name: fmt.Sprintf("%s-%d", n, j), Node: n, Weight: rapid.Float64Range(1, 4).Draw(t, "weight")})
			}
		}
		told := balance.State{Nodes: append([]balance.Node{}, truth.Nodes...), Loads: append([]balance.Load{}, truth.Loads...)}
		liar := rapid.IntRange(0, nodes-1).Draw(t, "liar")
		factor := rapid.SampledFrom([]float64{1000, 0.001}).Draw(t, "factor")
		if rapid.Bool().Draw(t, "power") {
			told.Nodes[liar].Power *= factor
		} else {
			for i := range told.Loads {
				if told.Loads[i].Node == told.Nodes[liar].Name {
					told.Loads[i].Weight *= factor
				}
			}
		}
		p := strategyOf(t, c).Plan(0, &told)
		if p.Nodes[liar].Note == "" {
			t.Fatalf("the liar is believed:\n%v", &p)
		}
		to := map[string]string{}
		for _, m := range p.Moves {
			to[m.Load] = m.To
		}
		p.Nodes[liar].Note = "" // Its queue counts in truth.
		before := queues(&truth, &p, func(l *balance.Load) string { return l.Node })
		after := queues(&truth, &p, func(l *balance.Load) string {
			if n, ok := to[l.Name]; ok {
				return n
			}
			return l.Node
		})
		if after > before*(1+1e-9) {
			t.Fatalf("longest queue %v -> %v\n%v", before, after, &p)
		}
	})
}

// FuzzPlan reads nodes and loads from bytes, all numbers from their bits.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	seed := []byte{3, 0, 0}
	for _, x := range append([]float64{1, 1, 2, 1, 4, 0.5, 3, 1, 8, 0}, odd...) {
		seed = binary.LittleEndian.AppendUint64(seed, math.Float64bits(x))
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		nodes, c := int(data[0]%8), balance.Default()
		c.Strategy = balance.Names[int(data[1])%len(balance.Names)]
		if data[2]%2 == 1 {
			c.Waiting = balance.ByCount
		}
		var values []float64
		for rest := data[3:]; len(rest) >= 8 && len(values) < 400; rest = rest[8:] {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(rest)))
		}
		next := func() (x float64) {
			if len(values) > 0 {
				x, values = values[0], values[1:]
			}
			return x
		}
		var s balance.State
		for i := range nodes {
			s.Nodes = append(s.Nodes, balance.Node{Name: fmt.Sprintf("n%d", i), Power: next(), Share: next()})
		}
		for i := 0; len(values) > 0; i++ {
			w := next()
			bits := math.Float64bits(w)
			l := balance.Load{Name: fmt.Sprintf("t%d", i), Node: fmt.Sprintf("n%d", bits%9), Weight: w, Size: next(), Running: bits%16 == 9}
			if bits%32 == 5 {
				l.To = fmt.Sprintf("n%d", bits/32%9)
			}
			s.Loads = append(s.Loads, l)
			s.Traffic = append(s.Traffic, balance.Traffic{From: l.Name, To: "t0", Volume: l.Size})
		}
		strategy := strategyOf(t, c)
		for round := range 2 {
			p := strategy.Plan(clocksync.Instant(time.Duration(round)*time.Minute), &s)
			checkPlan(t, c, &s, &p)
		}
	})
}

// BenchmarkPlan is the first plan on a state where one node has all loads, and one
// on a state that is in balance.
func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ nodes, loads int }{{16, 1600}, {128, 12800}} {
		for _, kind := range []string{"heap", "even"} {
			var s balance.State
			for i := range size.nodes {
				s.Nodes = append(s.Nodes, balance.Node{Name: fmt.Sprintf("n%d", i), Power: 1 + float64(i%4), Share: 1})
			}
			for i := range size.loads {
				n, share := 0, 1.0
				if kind == "even" {
					n = i % size.nodes
					share = s.Nodes[n].Power
				}
				s.Loads = append(s.Loads, balance.Load{Name: fmt.Sprintf("t%d", i), Node: s.Nodes[n].Name, Weight: share * (1 + float64(i*7919%13)/130)})
			}
			b.Run(fmt.Sprintf("%s/nodes=%d/loads=%d", kind, size.nodes, size.loads), func(b *testing.B) {
				b.ReportAllocs()
				moves := 0
				for b.Loop() {
					p := strategyOf(b, balance.Default()).Plan(0, &s)
					moves = len(p.Moves)
				}
				b.ReportMetric(float64(moves), "moves")
			})
		}
	}
}
