package worksim

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/testcount"
	"github.com/gopegasus/pegasus/internal/workcore"
)

func load(tb testing.TB, name string) *Scenario {
	tb.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return parse(tb, string(src))
}

func parse(tb testing.TB, src string) *Scenario {
	tb.Helper()
	s, err := Parse("s.yaml", []byte(src))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func mustRun(tb testing.TB, s *Scenario) *Result {
	tb.Helper()
	r, err := Run(s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if r.Twice > 0 || len(r.Faults) > 0 {
		tb.Errorf("recorded twice: %d; %q", r.Twice, r.Faults)
	}
	return r
}

// TestFigures: how near the default strategy comes to the bound.
func TestFigures(t *testing.T) {
	for name, least := range map[string]float64{"farm16.yaml": 0.97, "changing.yaml": 0.95, "farm128.yaml": 0.94, "bag128.yaml": 0.96} {
		s := load(t, name)
		r := mustRun(t, s)
		if t.Logf("%s: %.4f, %d messages", name, r.Efficiency, r.Messages); r.Efficiency < least || r.Efficiency > 1 {
			t.Errorf("%s: an efficiency of %.4f, and at least %v is wanted", name, r.Efficiency, least)
		}
		if r.Again != 0 || math.Abs(r.Done-r.Work) > 1e-6*r.Work {
			t.Errorf("%s: without faults %v units of %v are done, %v of them again", name, r.Done, r.Work, r.Again)
		}
	}
}

// TestSelfScheduling compares the rules that cut chunks where nodes are unequal: large first chunks wait for
// the slowest node.
func TestSelfScheduling(t *testing.T) {
	got := map[string]float64{}
	for _, cut := range []string{"ss", "css(8)", "gss", "fac2", "tss"} {
		s := load(t, "farm16.yaml")
		if err := s.Strategy("s", "{kind: chunk, cut: "+cut+"}"); err != nil {
			t.Fatal(err)
		}
		got[cut] = mustRun(t, s).Efficiency
	}
	if t.Log(got); got["ss"] < 0.95 || got["ss"] < got["css(8)"] || got["css(8)"] < got["fac2"] || got["fac2"] < got["gss"] {
		t.Error(got)
	}
}

const troubled = `
seed: 3
nodes: [{count: 12, speed: 1, fastest: 3, slots: 2}]
network: {jitter: 2ms, loss: 0.05, double: 0.05}
work: {losses: 9, open: 100}
tasks:
  - {count: 300, weight: {exponential: 0.05}}
  - {put: {node: 2, at: 1s}, kind: bag, count: 2, items: 2000, weight: {list: [0.005, 0.01]}}
kills: {count: 4, from: 500ms, until: 2s, silence: 500ms}
`

// TestSame: a run is a function of its scenario and seed.
func TestSame(t *testing.T) {
	s := parse(t, troubled)
	first, second := mustRun(t, s), mustRun(t, s)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%+v\n%+v", first, second)
	}
	if s.Seed++; mustRun(t, s).Time == first.Time {
		t.Errorf("another seed takes the same time: %v", first.Time)
	}
}

// TestTroubles: nodes die and frames are lost, work is done again, and nothing is recorded twice.
func TestTroubles(t *testing.T) {
	again := 0
	for seed := range uint64(20) {
		s := parse(t, troubled)
		s.Seed = seed
		r := mustRun(t, s)
		if r.Killed != 4 || r.Items != 4300 {
			t.Errorf("seed %d: %+v", seed, r)
		}
		if r.Again > 0 {
			again++
		}
	}
	if again < 10 {
		t.Errorf("work is done again with %d seeds of 20", again)
	}
}

// TestWithdrawn: nodes are withdrawn and return at random beside other troubles, all work is done once, and a node
// that is withdrawn for all the time does none beside what runs.
func TestWithdrawn(t *testing.T) {
	for seed := range uint64(testcount.Of(t, "WORK", 20)) { //nolint:gosec // Above 0.
		s := parse(t, troubled+"withdrawals: {count: 25, until: 8s, for: 1500ms}")
		s.Seed = seed
		if r := mustRun(t, s); r.Withdrawn == 0 || r.Items != 4300 || r.Twice > 0 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
	idle := mustRun(t, parse(t, "nodes: 2\ntasks: [{count: 40, weight: 1, put: {node: 1}}]\nwithdrawals: {count: 1, from: 3s, until: 3s}")).Idle
	if least, most := min(idle[0], idle[1]), max(idle[0], idle[1]); least > 0.01 || most < 0.8 {
		t.Errorf("one of two nodes is withdrawn after 3 of about 37 seconds, and they idle %v", idle)
	}
	all := mustRun(t, parse(t, "nodes: 2\ntasks: [{count: 20, weight: 1, put: {node: 1}}]\nwithdrawals: {count: 40, from: 1s, until: 2s}"))
	if all.Withdrawn != 40 || all.Time < 10*time.Second || all.Time > 25*time.Second {
		t.Errorf("both nodes are withdrawn, and the work takes %v", all.Time)
	}
}

// TestTwice: a member that records what it has recorded before is noticed.
func TestTwice(t *testing.T) {
	s := parse(t, "nodes: 4\ntasks: [{kind: bag, items: 2000, weight: 0.01}]")
	bent := 0
	r, err := run(s, nil, func(f *workcore.Frame, _ *node) bool {
		if f.Step != nil && f.Step.Record.Fate == workcore.Kept && bent < 3 {
			low, _ := spanOf(f.Step.Record.Result)
			_, high := spanOf(f.Step.Record.Rest)
			f.Step.Record.Result = span(max(0, low-1), high, 0)
			bent++
		}
		return true
	})
	if err != nil || r.Twice == 0 || len(r.Faults) == 0 || !strings.Contains(r.Faults[0], "is recorded 2 times") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEarly tells why a run ends without all work done.
func TestEarly(t *testing.T) {
	for src, want := range map[string]string{
		"nodes: [{count: 1, speed: 0.001}, {count: 9, speed: 1000}]\nnetwork: {cost: 1h}\ntasks: [{count: 10}]":        "seed 1: 10 of 10 items are not done after 1m0.1111111s, 100 times the bound: the strategy does not spread the work, or too many frames are lost",
		"nodes: 2\nwork: {losses: 1}\ntasks: [{count: 20, weight: 1}]\nkills: {count: 1, from: 1500ms, until: 1500ms}": "seed 1: task 1/3 is poisoned after 3.5001s: 1 members died while they ran it, n0002#1 the last: raise work.losses, or kill fewer nodes",
		"nodes: 2\ntasks: [{weight: 1e12}]": "the work takes more than 2400h0m0s on all nodes together: give the tasks less weight, or the nodes more speed",
	} {
		if r, err := Run(parse(t, src), nil); err == nil || err.Error() != want {
			t.Errorf("%s\n%+v, %v", src, r, err)
		}
	}
}

// TestBound: by hand.
func TestBound(t *testing.T) {
	for src, want := range map[string]struct {
		bound time.Duration
		why   string
	}{
		"nodes: [{count: 2, speed: 1, fastest: 3}]\ntasks: [{count: 8}]":                                                                                         {2 * time.Second, boundWork},
		"nodes: [{count: 2, speed: 1, fastest: 4, slots: 2}]\ntasks: [{count: 2, weight: {list: [1, 8]}}]":                                                       {2 * time.Second, boundTask},
		"nodes: [{count: 1, speed: 2, changes: {steps: [{at: 1s, factor: 0}, {at: 2s, factor: 0.5}]}}]\ntasks: [{count: 3}]":                                     {3 * time.Second, boundWork},
		"nodes: [{count: 1, speed: 2, changes: {steps: [{at: 0s, factor: 1}, {at: 1s, factor: 0}], every: 2s, shift: 1s}}]\ntasks: [{put: {at: 10s}, count: 3}]": {12500 * time.Millisecond, boundWork},
	} {
		r, err := Run(parse(t, src), nil)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if d := r.Bound - want.bound; d < -time.Microsecond || d > time.Microsecond || r.Why != want.why || r.Time < r.Bound-time.Microsecond {
			t.Errorf("%s: %v, %s, and it took %v", src, r.Bound, r.Why, r.Time)
		}
	}
}

// TestSpeed: what is done until the end of some work is that work, also over very many periods.
func TestSpeed(t *testing.T) {
	c := Changes{Steps: []Step{{time.Millisecond, 0.25}, {3 * time.Millisecond, 0}, {4 * time.Millisecond, 2}}, Every: 5 * time.Millisecond}
	for _, begin := range []time.Duration{0, 2 * time.Millisecond} {
		s := newSpeed(3, c, clocksync.Instant(begin))
		for _, from := range []time.Duration{0, time.Millisecond, 3500 * time.Microsecond, time.Hour} {
			for _, work := range []float64{1e-4, 0.01, 1, 1000} {
				at := clocksync.Instant(from)
				if got := s.workBetween(at, s.endOfWork(at, work)); math.Abs(got-work) > 1e-6*work+1e-8 {
					t.Errorf("begin %v, from %v: %v of %v", begin, from, got, work)
				}
			}
		}
	}
}

// TestRefused shows what is told of scenarios.
func TestRefused(t *testing.T) {
	const tasks = "\ntasks: [{}]"
	for src, want := range map[string]string{
		"nodes: 3":                       `s.yaml:1:1: tasks: the list is empty: write tasks to put`,
		"nodes: 3\ntasks: []":            "s.yaml:2:8: tasks: the list is empty: write tasks to put",
		"nodes: 0" + tasks:               "s.yaml:1:8: nodes.count: 0 is out of range: write 1 to 1024",
		"nodes: []" + tasks:              "s.yaml:1:8: nodes: the list is empty: write one group at least, or the number of nodes",
		"nodes: [{count: 2000}]" + tasks: "s.yaml:1:17: nodes[0].count: 2000 is out of range: write 1 to 1024",
		"nodes: [{count: 1000}, {count: 1000}]" + tasks:                                   "nodes: there are 2000 nodes, and at most 1024 are allowed",
		"nodes: [{speed: 2, fastest: 1}]" + tasks:                                         "nodes[0].fastest: 1 is out of range: write 2, which is speed, to 1e+12",
		"nodes: [{changes: {every: 1s}}]" + tasks:                                         "nodes[0].changes: there are no steps: write steps: [{at: 1s, factor: 0.5}]",
		"nodes: [{changes: {steps: [{at: 1s, factor: 0}]}}]" + tasks:                      "nodes[0].changes.steps: the nodes stop for good: write a last factor above 0, or kill nodes with kills",
		"nodes: [{changes: {steps: [{at: 2s, factor: 1}, {at: 1s, factor: 2}]}}]" + tasks: "nodes[0].changes.steps[1].at: 1s is not after the step before: sort the steps by their times",
		"nodes: [{changes: {steps: [{at: 2s, factor: 1}], every: 1s}}]" + tasks:           "nodes[0].changes.steps[0].at: 2s is not before every, 1s, when the steps begin again",
		"network: {loss: 1}" + tasks:                                                      "s.yaml:1:17: network.loss: 1 is out of range: write 0 to 0.9",
		"network: {lost: 1}" + tasks:                                                      `unknown key "lost"`,
		"work: {slots: -1}" + tasks:                                                       "s.yaml:1:15: work.slots: -1 slots: use 1 to 1024, or 0 for one for each processor",
		"work: {strategy: {kind: pegasus}}" + tasks:                                       `work.strategy.kind: a synchronizer plans for the strategy pegasus, and none is simulated: use another kind`,
		"work: {strategy: {kind: chunk, cut: 'best'}}" + tasks:                            `work.strategy.cut: "best" is not a way to cut: write one of css, fac2, gss, ss, tss`,
		"work: {order: weigth}" + tasks:                                                   "s.yaml:1:15: work.order: ",
		"tasks: [{kind: box}]":                                                            `tasks[0].kind: "box" is no kind of task: write plain or bag`,
		"tasks: [{put: {node: 17}}]":                                                      "tasks[0].put.node: 17 is out of range: write 0 to 16",
		"tasks: [{kind: bag, count: 2000, items: 2000}]":                                  "tasks: there are more than 1000000 tasks and items of bags: give them more weight instead",
		"tasks: [{weight: 0}]":                                                            "tasks[0].weight: 0 is out of range: write 1e-09 to 1e+12",
		"tasks: [{weight: {uniform: [2]}}]":                                               "tasks[0].weight.uniform: the list has 1 numbers: write the least and the most, such as [1, 2]",
		"tasks: [{weight: {uniform: [2, 1]}}]":                                            "tasks[0].weight.uniform[1]: 1 is out of range: write 2 to 1e+12",
		"tasks: [{weight: {list: []}}]":                                                   "tasks[0].weight.list: the list is empty: write numbers",
		"tasks: [{weight: {list: [1], uniform: [1, 2]}}]":                                 "tasks[0].weight: write one of uniform, exponential, list and linear, or a number",
		"nodes: 2\nkills: {count: 2}" + tasks:                                             "kills.count: 2 is out of range: write 0 to 1, since 1 nodes put no tasks: tasks are lost with the node that has put them",
		"withdrawals: {count: -1}" + tasks:                                                "withdrawals.count: -1 is out of range: write 0 to 1000000",
		"withdrawals: {from: 20s}" + tasks:                                                "withdrawals.until: 10s is out of range: write 20s to 24h0m0s",
		"kills: {from: 20s}" + tasks:                                                      "kills.until: 10s is out of range: write 20s to 24h0m0s",
	} {
		if s, err := Parse("s.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%+v\n%v\nwant %s", src, s, err, want)
		}
	}
	s := parse(t, "tasks: [{}]")
	before := s.Work.Strategy
	for text, want := range map[string]string{
		"{kind: chunk, cut: best}": "--strategy:1:20: cut: \"best\" is not a way to cut: write one of css, fac2, gss, ss, tss",
		"{kind: best}":             "--strategy:1:8: kind: \"best\" is not a strategy: write one of ",
		"{kind: greedy}":           "--strategy:1:8: kind: a synchronizer plans for the strategy greedy, and none is simulated: use another kind",
		"{kin: chunk}":             "--strategy:1:2: kin: unknown key \"kin\"",
		"chunk":                    "expected a map",
	} {
		if err := s.Strategy("--strategy", text); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(s.Work.Strategy, before) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestStrategies: how near each strategy comes to the bound on 16 nodes of unequal speeds, and that every task is
// done once where nodes die and frames are lost.
func TestStrategies(t *testing.T) {
	for _, c := range []struct {
		strategy string
		least    float64
	}{
		{"{kind: sender}", 0.9},
		{"{kind: diffusion}", 0.9},
		{"{kind: tree}", 0.9},
		{"{kind: market}", 0.9},
		{"{kind: field}", 0.9},
	} {
		s := load(t, "farm16.yaml")
		if err := s.Strategy("s", c.strategy); err != nil {
			t.Fatal(err)
		}
		r := mustRun(t, s)
		if t.Logf("%s: %.4f, %d parcels, %d messages", c.strategy, r.Efficiency, r.Parcels, r.Messages); r.Efficiency < c.least {
			t.Errorf("%s: an efficiency of %.4f, and at least %v is wanted", c.strategy, r.Efficiency, c.least)
		}
		s = parse(t, troubled)
		if err := s.Strategy("s", c.strategy); err != nil {
			t.Fatal(err)
		}
		mustRun(t, s)
	}
}

// TestDiffusion: on a hypercube of 128 nodes that put 100 tasks each, of unequal weights, and on the other
// topologies.
func TestDiffusion(t *testing.T) {
	for topology, least := range map[string]float64{"hypercube": 0.95, "torus": 0.9, "mesh": 0.9, "tree": 0.8} {
		s := parse(t, `
nodes: 128
work: {slots: 1, topology: `+topology+`, strategy: {kind: diffusion}}
tasks: [{put: {node: 0}, count: 12800, weight: {uniform: [0.005, 0.025]}}]`)
		r := mustRun(t, s)
		if t.Logf("%s: %.4f, %d tasks moved, %d messages", topology, r.Efficiency, r.Moved, r.Messages); r.Efficiency < least {
			t.Errorf("%s: an efficiency of %.4f, and at least %v is wanted", topology, r.Efficiency, least)
		}
	}
}

// TestLinks: the ring of CORD's example, from one node that puts all tasks, and with nodes that die and frames
// that are lost.
func TestLinks(t *testing.T) {
	const ring = `{kind: links, links: "n0001(o=(L>=10))[1/2]#n0002, n0002(o=(L>=20))[1/3]#n0003, n0003(o=(L>=10))[1/4]#n0001"}`
	s := parse(t, "nodes: 3\nwork: {slots: 1, strategy: "+ring+"}\ntasks: [{count: 300, weight: 0.1}]")
	if r := mustRun(t, s); r.Efficiency < 0.9 {
		t.Errorf("an efficiency of %.4f", r.Efficiency)
	}
	s = parse(t, troubled)
	if err := s.Strategy("s", ring); err != nil {
		t.Fatal(err)
	}
	mustRun(t, s)
}

// TestTree: the cluster tree on 16 nodes, of which the slowest would take 2000 s alone and the fastest 250 s. It knows the speeds, and
// not the work of a task.
func TestTree(t *testing.T) {
	var nodes, speeds []string
	for i := range 16 {
		speed := math.Pow(8, float64(i)/15)
		nodes = append(nodes, fmt.Sprintf("{speed: %.4f}", speed))
		speeds = append(speeds, fmt.Sprintf("n%04d: %.4f", i+1, speed))
	}
	s := parse(t, "nodes: ["+strings.Join(nodes, ", ")+"]\nwork: {slots: 1, strategy: {kind: tree, speeds: \""+strings.Join(speeds, ", ")+
		"\"}}\ntasks: [{count: 1905, weight: {uniform: [0.1, 2]}}]")
	const seeds = 16
	efficiency, parcels := 0.0, 0
	for s.Seed = seeds; s.Seed > 0; s.Seed-- {
		r := mustRun(t, s)
		efficiency, parcels = efficiency+r.Efficiency/seeds, parcels+r.Parcels
	}
	if t.Logf("%.4f, %d parcels", efficiency, parcels/seeds); efficiency < 0.97 || parcels > 40*seeds {
		t.Errorf("a mean efficiency of %.4f with %d parcels", efficiency, parcels/seeds)
	}
	s.Seed = 1
	r := mustRun(t, s)
	if err := s.Strategy("s", "{kind: receiver}"); err != nil {
		t.Fatal(err)
	}
	other := mustRun(t, s)
	if t.Logf("receiver: %.4f, %d parcels", other.Efficiency, other.Parcels); other.Parcels < r.Parcels {
		t.Errorf("the receiver sends %d parcels, the tree %d", other.Parcels, r.Parcels)
	}
}
