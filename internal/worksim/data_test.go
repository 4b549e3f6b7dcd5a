package worksim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/draw"
)

// TestBlockmatch: block matching on a hypercube comes near to the oracle, with few moves of objects, also with a slow link. The
// scenario file has 128 nodes; docs/cli.md has its figures.
func TestBlockmatch(t *testing.T) {
	for _, slow := range []bool{false, true} {
		s := load(t, "blockmatch128.yaml")
		if err := s.Resize(16); err != nil {
			t.Fatal(err)
		}
		if slow {
			s.Network.Slow = Slow{1, 2, 10}
		}
		r := mustRun(t, s)
		t.Logf("%.4f, oracle %.4f; %d objects moved, oracle %d", r.Efficiency, r.Oracle.Efficiency, r.Objects, r.Oracle.Moves)
		if r.Tasks != 6480 || r.Classes != 4 || r.Diameter != 4 || r.Load < 1.05 || r.Load > 2 {
			t.Errorf("%d tasks of %d classes, a diameter of %d, the largest load %v", r.Tasks, r.Classes, r.Diameter, r.Load)
		}
		if r.Efficiency < 0.95*r.Oracle.Efficiency || r.Objects > 2*max(r.Oracle.Moves, 8) || r.Moved == 0 {
			t.Errorf("efficiency %.4f, and the oracle has %.4f; %d objects moved, and with the oracle %d", r.Efficiency, r.Oracle.Efficiency, r.Objects, r.Oracle.Moves)
		}
		if waits := meanOf(r.Waits); r.Objects == 0 || waits > 0.001 { // Objects come ahead of need: each takes as long as four tasks.
			t.Errorf("%d objects were moved, and nodes wait for them for %v of the time", r.Objects, waits)
		}
		if slow {
			continue
		}
		if other := mustRun(t, s); other.Time != r.Time || other.Objects != r.Objects {
			t.Errorf("the same scenario takes %v, and then %v", r.Time, other.Time)
		}
	}
}

// TestManyNodes: 512 nodes work. A message costs the same there as on few nodes, so this takes some seconds. It is short for
// so many nodes: the oracle needs no time to spread the tasks.
func TestManyNodes(t *testing.T) {
	r := mustRun(t, load(t, "blockmatch512.yaml"))
	t.Logf("%.4f, oracle %.4f; %d tasks and %d objects moved, oracle %d; %d messages", r.Efficiency, r.Oracle.Efficiency, r.Moved, r.Objects, r.Oracle.Moves, r.Messages)
	if r.Nodes != 512 || r.Items != 10240 || r.Diameter != 9 || r.Moved == 0 || r.Efficiency < 0.8*r.Oracle.Efficiency || r.Objects > 2*r.Oracle.Moves {
		t.Errorf("%d nodes, %d tasks, a diameter of %d, %d tasks moved; efficiency %.4f, and the oracle has %.4f", r.Nodes, r.Items, r.Diameter, r.Moved, r.Efficiency, r.Oracle.Efficiency)
	}
}

// TestObjects: tasks wait for their objects, which take the time of their bytes, and other nodes fetch each object once.
func TestObjects(t *testing.T) {
	r := mustRun(t, parse(t, `
nodes: 2
network: {cost: 1ms, per_byte: 1us, topology: ring}
data: {count: 1, bytes: 1048576}
work: {slots: 1}
tasks: [{put: {node: 1}, count: 100, reads: 1, weight: 0.1}]`))
	if r.Objects != 1 || r.Waits[0] != 0 {
		t.Errorf("%d objects were moved, and the writer waits %v of the time", r.Objects, r.Waits[0])
	}
	wait := time.Duration(r.Waits[1] * float64(r.Time))
	if wait < 1048*time.Millisecond || wait > 1200*time.Millisecond {
		t.Errorf("the other node waits %v for 1.05 s of bytes", wait)
	}
	if last := r.Lanes[1][len(r.Lanes[1])-1]; last != (Span{r.Time, Idle}) {
		t.Errorf("the lane ends with %v, and the run after %v", last, r.Time)
	}
}

// TestLoss: nodes die and messages about objects are lost, and all work is done once.
func TestLoss(t *testing.T) {
	for seed := range uint64(5) {
		s := parse(t, `
nodes: 8
network: {loss: 0.05, double: 0.05, per_byte: 100ns}
data: {count: 9, bytes: 200000}
work: {slots: 1, losses: 9, data: {cache: 1, classes: 3}, topology: mesh, strategy: {kind: diffusion}}
tasks: [{put: {node: 1}, count: 400, reads: 2, weight: {uniform: [0.01, 0.05]}}]
kills: {count: 3, from: 200ms, until: 1500ms, silence: 500ms}`)
		s.Seed = seed
		if r := mustRun(t, s); r.Items != 400 || r.Killed != 3 || r.Oracle != nil {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}

// TestLinksOfTopology: by hand. A frame takes the shortest path, waits for those before it on a link, and a slow link is slow.
func TestLinksOfTopology(t *testing.T) {
	for topology, want := range map[string]int{"hypercube": 3, "mesh": 4, "tree": 5, "ring": 4, "full": 1} {
		if l := newLinks(&Network{Topology: topology}, 8); l.diameter != want {
			t.Errorf("%s: a diameter of %d, want %d", topology, l.diameter, want)
		}
	}
	if l := newLinks(&Network{}, 8); l != nil {
		t.Error("a network without a topology has links")
	}
	l := newLinks(&Network{Topology: "hypercube", Cost: time.Millisecond, PerByte: time.Microsecond, Slow: Slow{5, 6, 10}}, 8)
	for i, c := range []struct {
		from, to, bytes int
		want            time.Duration
	}{
		{0, 1, 500, 1500 * time.Microsecond},
		{0, 1, 500, 2000 * time.Microsecond}, // Behind the first.
		{0, 7, 100, 3100 * time.Microsecond}, // 0, 4, 6, 7.
		{2, 6, 100, 1100 * time.Microsecond},
		{4, 5, 100, 11 * time.Millisecond},
	} {
		if got := l.arrivalOf(0, c.from, c.to, c.bytes).Sub(0); got != c.want {
			t.Errorf("%d: from %d to %d: %v, want %v", i, c.from, c.to, got, c.want)
		}
	}
}

// TestOracle: by hand.
func TestOracle(t *testing.T) {
	for src, want := range map[string]Oracle{
		// Half of the tasks go to the other node.
		"nodes: 2\ntasks: [{count: 8}]": {Time: 4 * time.Second, Efficiency: 1, Tasks: 4},
		// Three tasks on two nodes: one idles a third of the time, which is a quarter of all time.
		"nodes: 2\ntasks: [{count: 3}]": {Time: 2 * time.Second, Efficiency: 0.75, Tasks: 1, Idle: 0.25},
		// The other node waits a second for the object, and does 4 of the 10 tasks.
		"nodes: 2\nnetwork: {per_byte: 1us}\ndata: {count: 1, bytes: 1000000}\ntasks: [{count: 10, reads: 1}]": {Time: 6 * time.Second, Efficiency: 5.0 / 6, Moves: 1, Tasks: 4, Idle: 1.0 / 6, Overhead: 1.0 / 12},
		// Each node has its own object, and nothing moves.
		"nodes: 2\ndata: {count: 2}\ntasks: [{put: {node: 0, split: true}, count: 8, reads: 1}]": {Time: 4 * time.Second, Efficiency: 1},
	} {
		got := mustRun(t, parse(t, src)).Oracle
		if got == nil || (got.Time-want.Time).Abs() > 20*time.Millisecond || math.Abs(got.Efficiency-want.Efficiency) > 0.005 || got.Moves != want.Moves ||
			got.Tasks != want.Tasks || math.Abs(got.Idle-want.Idle) > 0.005 || math.Abs(got.Overhead-want.Overhead) > 0.005 {
			t.Errorf("%s: %+v, want %+v", src, got, want)
		}
	}
	if r := mustRun(t, parse(t, "nodes: 2\ntasks: [{count: 8, put: {at: 1s}}]")); r.Oracle != nil {
		t.Errorf("tasks are put later, and there is an oracle: %+v", r.Oracle)
	}
}

// TestSizes: efficiency by the number of nodes, and as many tasks for each.
func TestSizes(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		s := load(t, "blockmatch128.yaml")
		if err := s.Resize(n); err != nil {
			t.Fatal(err)
		}
		if r := mustRun(t, s); r.Nodes != n || r.Tasks != 405*n || r.Efficiency < 0.9*r.Oracle.Efficiency || r.Classes != max(1, n/4) {
			t.Errorf("%d nodes: %d tasks of %d classes, an efficiency of %.4f, and the oracle has %.4f", n, r.Tasks, r.Classes, r.Efficiency, r.Oracle.Efficiency)
		}
	}
	s := parse(t, "nodes: [{count: 3}]\ntasks: [{put: {node: 3}}]")
	for n, want := range map[int]string{0: "0 nodes: use 1 to 1024 nodes, and a scenario with one group of them", 2: "2 nodes: node 3 puts tasks: use more nodes"} {
		if err := s.Resize(n); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	s = parse(t, "nodes: 1\ntasks: [{count: 1000000}]")
	if err := s.Resize(2); err == nil || err.Error() != "2 nodes: they have 2000000 tasks, and at most 1000000 are allowed: use fewer nodes" {
		t.Error(err)
	}
}

// TestDataRefused shows what is told of data and networks.
func TestDataRefused(t *testing.T) {
	for src, want := range map[string]string{
		"tasks: [{reads: 1}]":                                                       "tasks[0].reads: 1 is out of range: write 0 to 0, and set data.count to the number of objects",
		"data: {count: 3}\ntasks: [{reads: 1, kind: bag}]":                          "tasks[0].reads: a bag reads no data here: write kind: plain",
		"data: {count: -1}\ntasks: [{}]":                                            "data.count: -1 is out of range: write 0 to 10000",
		"data: {bytes: 1000000000}\ntasks: [{}]":                                    "data.bytes: 1000000000 is out of range: write 0 to 33554432",
		"tasks: [{put: {node: 1, split: true}}]":                                    "tasks[0].put.split: node 1 puts all tasks: write node: 0",
		"tasks: [{areas: -1}]":                                                      "tasks[0].areas: -1 is out of range: write 0 to 1000000",
		"network: {topology: cube}\ntasks: [{}]":                                    `network.topology: "cube" is no topology: write one of full, ring, hypercube, mesh, torus, tree`,
		"network: {slow: {from: 1, to: 2}}\ntasks: [{}]":                            "network.slow.factor: 0 is out of range: write 1 to 1e+06",
		"network: {slow: {from: 1, to: 17, factor: 2}}\ntasks: [{}]":                "network.slow.to: 17 is out of range: write 1 to 16",
		"network: {topology: ring, slow: {from: 1, to: 3, factor: 2}}\ntasks: [{}]": "network.slow: there is no link between the nodes 1 and 3: write two neighbours of the topology",
	} {
		if s, err := Parse("s.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%+v\n%v\nwant %s", src, s, err, want)
		}
	}
}

// TestSVG: the drawing has a lane for each node without overlaps, and its parts of the time are those of the result.
func TestSVG(t *testing.T) {
	r := mustRun(t, parse(t, "nodes: 3\ndata: {count: 1, bytes: 10000000}\nnetwork: {per_byte: 100ns}\nwork: {slots: 1}\ntasks: [{count: 90, reads: 1, weight: 0.1}]"))
	of := r.Lanes
	for _, nodes := range []int{3, 1000} {
		for len(r.Lanes) < nodes { // Not a run of so many nodes, which takes minutes.
			r.Lanes = append(r.Lanes, of[len(r.Lanes)%len(of)])
		}
		text := r.SVG(local.Config{Kind: local.Chunk, Cut: "css(<5)"})
		if faults, err := draw.Overlaps(text); err != nil || len(faults) > 0 {
			t.Errorf("%d nodes: %v %q", nodes, err, faults)
		}
		if busy, moving := strings.Count(text, `<path class="busy`), strings.Count(text, `<path class="waits`); busy != nodes || moving != nodes*2/3 {
			t.Errorf("of %d nodes %d are busy, %d wait for data", nodes, busy, moving)
		}
	}
	l := lane{}
	for _, s := range []Span{{0, Idle}, {1, Busy}, {1, Moving}, {2, Busy}, {4, Busy}, {5, Idle}, {5, Busy}} {
		l.set(clocksync.Instant(0).Add(s.At), s.State)
	}
	l.endLane(clocksync.Instant(0).Add(10))
	if l.shareOfTime(Moving) != 0.1 || l.shareOfTime(Busy) != 0.8 {
		t.Errorf("%v: moving %v, busy %v", l.spans, l.shareOfTime(Moving), l.shareOfTime(Busy))
	}
}
