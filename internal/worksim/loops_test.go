package worksim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the recorded owners again")

func parseLoops(tb testing.TB, src string) *LoopScenario {
	tb.Helper()
	s, err := ParseLoops("l.yaml", []byte(src))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func owners128(tb testing.TB) *LoopScenario {
	tb.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "owners128.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return parseLoops(tb, string(src))
}

func mustRunLoops(tb testing.TB, s *LoopScenario) *LoopResult {
	tb.Helper()
	r, err := RunLoops(s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if len(r.Faults) > 0 {
		tb.Errorf("%q", r.Faults)
	}
	for i, l := range r.Loops {
		if l.Redone > 0 {
			tb.Errorf("loop %d has done %d rows again, and no node was lost", i+1, l.Redone)
		}
	}
	return r
}

// TestOwnersRecorded: the owners of owners128.yaml are those of its model. Half of their visits and absences are short.
func TestOwnersRecorded(t *testing.T) {
	random := rand.New(rand.NewPCG(128, 10)) //nolint:gosec // It is to be repeatable.
	draw := func(short, long float64) time.Duration {
		mean := short
		if random.IntN(2) == 0 {
			mean = long
		}
		return time.Duration(1+mean*10*random.ExpFloat64()) * 100 * time.Millisecond
	}
	var text strings.Builder
	text.WriteString(`# 128 computers whose owners come and go for ten minutes: visits of 15 s or 2 minutes as a mean, absences of 30 s or 4 minutes.
time: 10m
network: {cost: 1ms, per_byte: 10ns, jitter: 1ms}
owners: {check: 500ms, left: 0.5}
loops: [{rows: 100000}]
nodes:
`)
	for i := range 128 {
		var times []string
		at, there := time.Duration(0), random.IntN(3) == 0
		if there {
			times = append(times, "0s")
		}
		for at < 10*time.Minute && i > 0 { // Node 1 is the home, and has no owner.
			if there {
				at += draw(15, 120)
			} else {
				at += draw(30, 240)
			}
			there = !there
			times = append(times, at.String())
		}
		if i == 0 {
			times = nil
		}
		fmt.Fprintf(&text, "  - {speed: %d, owner: [%s]}\n", 100*(1+random.IntN(4)), strings.Join(times, ", "))
	}
	name := filepath.Join("testdata", "owners128.yaml")
	if *rewrite {
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text.String() {
		t.Errorf("%v: the file differs from its model: run the test with -rewrite", err)
	}
}

// TestLoopOwners: on 128 nodes whose owners come and go by a record, a loop does at least 0.90 of the rows that the nodes
// could do (ADM: the sum of the available speeds).
func TestLoopOwners(t *testing.T) {
	s := owners128(t)
	r := mustRunLoops(t, s)
	t.Logf("efficiency %.4f, available %.3f, %d iterations, %d withdrawals, longest %v, %d messages, %d rows moved", r.Efficiency, r.Available, r.Loops[0].Iterations, r.Withdrawn, r.Longest, r.Messages, r.Loops[0].Moved)
	if r.Efficiency < 0.90 || r.Efficiency > 1 {
		t.Errorf("an efficiency of %.4f, and at least 0.90 is wanted", r.Efficiency)
	}
	if r.Nodes != 128 || r.Time != 10*time.Minute || r.Withdrawn < 300 || r.Loops[0].Iterations < 50 || r.Available < 0.5 || r.Available > 0.9 {
		t.Errorf("%+v", r)
	}
	if row := time.Second / 50; r.Longest > row { // The slowest node does 100 rows a second, half as many beside its owner.
		t.Errorf("a withdrawn node worked for %v more, and a row takes %v", r.Longest, row)
	}
}

// TestLoopsShareNodes: three loops share the same nodes by their weights. Together they are nearly as efficient.
func TestLoopsShareNodes(t *testing.T) {
	s := owners128(t)
	s.Loops = []LoopShare{{Rows: 50_000, Weight: 2}, {Rows: 25_000, Weight: 1}, {Rows: 25_000, Weight: 1}}
	r := mustRunLoops(t, s)
	t.Logf("%+v", r)
	if r.Efficiency < 0.90 || r.Efficiency > 1 {
		t.Errorf("an efficiency of %.4f, and at least 0.90 is wanted", r.Efficiency)
	}
	all := 0.0
	for _, l := range r.Loops {
		all += l.Rows
	}
	for i, l := range r.Loops {
		if share := l.Rows / all; share < l.Weight/4*0.93 || share > l.Weight/4*1.07 {
			t.Errorf("loop %d has done %.3f of all rows, want %.3f", i+1, share, l.Weight/4)
		}
	}
	if r.Assigned > r.Withdrawn {
		t.Errorf("%d changes of loop for %d withdrawals", r.Assigned, r.Withdrawn)
	}
}

const troubledLoops = `
time: 30s
network: {cost: 1ms, jitter: 5ms, loss: 0.05, double: 0.05}
loops: [{rows: 300}, {rows: 200, weight: 2}]
nodes:
  - {count: 2}
  - {count: 6, speed: 300, owner: [0s, 5s, 10s, 12s, 13s, 13.5s]}
  - {count: 4, speed: 200, owner: [7s, 20s, 28s]}
`

// TestLoopsInTrouble: frames are lost, doubled and late, and each row is in one partial result of each iteration. A run is a
// function of its scenario and seed.
func TestLoopsInTrouble(t *testing.T) {
	for seed := range uint64(20) {
		s := parseLoops(t, troubledLoops)
		s.Seed = seed
		r := mustRunLoops(t, s)
		if r.Efficiency < 0.35 || r.Efficiency > 1 || r.Loops[0].Iterations < 20 || r.Loops[1].Iterations < 50 {
			t.Errorf("seed %d: %+v", seed, r)
		}
		if seed > 0 {
			continue
		}
		if again := mustRunLoops(t, s); !reflect.DeepEqual(r, again) {
			t.Errorf("%+v\n%+v", r, again)
		}
	}
}

// TestLoopOwnerAlone: how much a loop of two nodes can do is plain: the second one is there for half of the time.
func TestLoopOwnerAlone(t *testing.T) {
	r := mustRunLoops(t, parseLoops(t, `
time: 100s
owners: {check: 1s, left: 0}
loops: [{rows: 100}]
nodes: [{}, {owner: [0s, 50s]}]
`))
	// Alone the home takes 1 s for an iteration, and both together half of that.
	if n := r.Loops[0].Iterations; r.Available != 0.75 || n < 145 || n > 150 || r.Loops[0].Rows != float64(100*n) || r.Efficiency != r.Loops[0].Rows/15000 {
		t.Errorf("%+v", r)
	}
}

// TestLoopMutants: the judge notices rows that are in no partial result, or in two.
func TestLoopMutants(t *testing.T) {
	for want, bend := range map[string]func(*owned, *loopPart){
		"loop 1, iteration 1: rows 750 to 750 ": func(_ *owned, p *loopPart) {
			if p.node.place == 3 && len(p.did) > 0 {
				p.did[0].Low++
			}
		},
		"loop 1, iteration 1: rows ": func(_ *owned, p *loopPart) {
			if p.node.place == 3 && len(p.did) > 0 {
				p.did = append(p.did, p.did[0])
			}
		},
		"loop 1, iteration 1: member ": func(_ *owned, p *loopPart) {
			if p.node.place == 3 {
				p.number++
			}
		},
	} {
		r, err := runLoops(parseLoops(t, "time: 2s\nloops: [{rows: 1000}]\nnodes: [{count: 4, speed: 500}]"), nil, bend)
		if err != nil || len(r.Faults) == 0 || !strings.Contains(r.Faults[0], want) {
			t.Errorf("%v, %+v, want %s", err, r, want)
		}
	}
}

// TestLoopScenarioFaults has what a scenario of loops refuses, and the texts.
func TestLoopScenarioFaults(t *testing.T) {
	for src, want := range map[string]string{
		"nodes: [{}]":                                        `missing key "loops"`,
		"loops: [{}]":                                        `missing key "nodes"`,
		"loops: []\nnodes: [{}]":                             `there are 0 loops: write 1 to 16, at most as many as nodes: each has its home on a node of its own`,
		"loops: [{}, {}]\nnodes: [{}]":                       `there are 2 loops: write 1 to 16, at most as many as nodes: each has its home on a node of its own`,
		"loops: [{rows: 0}]\nnodes: [{}]":                    `0 is out of range: write 1 to 2147483647`,
		"loops: [{weight: -1}]\nnodes: [{}]":                 `-1 is out of range: write 0.001 to 1000`,
		"loops: [{}]\nnodes: [{speed: -3}]":                  `-3 is out of range: write 0.001 to 1e+09`,
		"loops: [{}]\nnodes: [{count: 2000}]":                `2000 is out of range: write 1 to 1024`,
		"loops: [{}]\nnodes: [{count: 1000}, {count: 1000}]": `there are 2000 nodes, and at most 1024 are allowed`,
		"loops: [{}]\nnodes: [{owner: [2s, 1s]}]":            `1s is not after the time before: sort the times: the owner comes, leaves, comes, and so on`,
		"loops: [{}]\nnodes: [{}]\nowners: {left: 2}":        `2 is out of range: write 0 to 1`,
		"loops: [{}]\nnodes: [{}]\nowners: {check: 0s}":      `0s is out of range: write 1ms to 24h0m0s`,
		"loops: [{}]\nnodes: [{}]\ntime: 1ms":                `1ms is out of range: write 100ms to 24h0m0s`,
		"loops: [{}]\nnodes: [{}]\nnetwork: {loss: 1}":       `1 is out of range: write 0 to 0.9`,
	} {
		if _, err := ParseLoops("l.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// TestVary: all combinations of values, and what is refused.
func TestVary(t *testing.T) {
	s := parseLoops(t, "loops: [{}, {rows: 5}]\nnodes: [{count: 3}, {count: 5, speed: 7}]")
	list, values, err := s.Vary([]string{"rows=10,20", "nodes=4,8", "speed=2", "cost=1ms", "check=2s", "time=3s"})
	if err != nil || len(list) != 4 || fmt.Sprint(values) != "[[10 4 2 1ms 2s 3s] [10 8 2 1ms 2s 3s] [20 4 2 1ms 2s 3s] [20 8 2 1ms 2s 3s]]" {
		t.Fatalf("%v, %v", values, err)
	}
	v := list[2]
	if v.Loops[0].Rows != 20 || v.Loops[1].Rows != 20 || v.countNodes() != 4 || v.Nodes[1].Speed != 14 || v.Network.Cost != time.Millisecond || v.Owners.Check != 2*time.Second || v.Time != 3*time.Second {
		t.Errorf("%+v", v)
	}
	if s.Loops[1].Rows != 5 || s.countNodes() != 8 || s.Nodes[1].Speed != 7 || list[1].countNodes() != 8 || list[1].Loops[0].Rows != 10 {
		t.Errorf("the scenario has changed: %+v", s)
	}
	mustRunLoops(t, v)
	many := "rows=1" + strings.Repeat(",1", 40)
	for _, c := range []struct {
		of   []string
		want string
	}{
		{[]string{"row=1"}, `"row" is no parameter: write one of check, cost, nodes, rows, speed, time`},
		{[]string{"rows"}, `rows: "" is no number from 1 to 2147483647`},
		{[]string{"rows=1,x"}, `rows: "x" is no number from 1 to 2147483647`},
		{[]string{"nodes=9"}, `nodes: "9" is no number from 1 to 8`},
		{[]string{"nodes=1"}, `nodes: 1 nodes are too few for 2 loops, each of which has its home on a node: write 2 or more`},
		{[]string{"speed=0"}, `speed: "0" is no factor from 0.001 to 1000`},
		{[]string{"speed=x"}, `speed: "x" is no factor from 0.001 to 1000`},
		{[]string{"cost=-1s"}, `cost: "-1s" is no time from 0s to 1h0m0s`},
		{[]string{many, many}, `there are more than 1000 combinations: give fewer values`},
	} {
		if _, _, err := s.Vary(c.of); err == nil || err.Error() != c.want {
			t.Errorf("%.20v: %v, want %s", c.of, err, c.want)
		}
	}
}
