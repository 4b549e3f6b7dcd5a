package balancesim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// Scenario is what a run is made from. The tags are the keys of its file;
// docs/balance.md describes them.
type Scenario struct {
	Seed    uint64         `yaml:"seed"`
	Nodes   Nodes          `yaml:"nodes"`
	Changes Changes        `yaml:"changes"`
	Tasks   Tasks          `yaml:"tasks"`
	Links   Links          `yaml:"links"`
	Plans   Plans          `yaml:"plans"`
	Balance balance.Config `yaml:"balance"`
}

// Nodes are the computers: their powers, or how many with powers drawn between
// the slowest and the fastest.
type Nodes struct {
	Count   int       `yaml:"count"`
	Slowest float64   `yaml:"slowest"`
	Fastest float64   `yaml:"fastest"`
	Powers  []float64 `yaml:"powers"`
}

// Changes are those of the CPU share of each node: after a time of Every on
// average it is drawn again between Least and Most, until Until. With Every 0 it
// stays 1.
type Changes struct {
	Every time.Duration `yaml:"every"`
	Until time.Duration `yaml:"until"`
	Least float64       `yaml:"least"`
	Most  float64       `yaml:"most"`
}

// Shapes are the distributions of work, Placements where it begins, Orders how a
// node takes the next of its tasks: by reported weight, or as they came.
var (
	Orders     = []string{"largest", "arrival"}
	Shapes     = []string{"equal", "rising", "falling", "irregular", "heavy"}
	Placements = []string{"blocks", "random", "first"}
)

// Tasks is the work.
type Tasks struct {
	Count  int     `yaml:"count"`
	Shape  string  `yaml:"shape"`
	Mean   float64 `yaml:"mean"`   // work units
	Spread float64 `yaml:"spread"` // irregular: sigma of the logarithm
	Size   float64 `yaml:"size"`   // bytes
	Placed string  `yaml:"placed"`
	Order  string  `yaml:"order"`
	// Arrive is the time over which they arrive; 0: all are there at first.
	Arrive time.Duration `yaml:"arrive"`
	// Error is the sigma of the logarithm by which a reported weight is off.
	Error float64 `yaml:"error"`
	// Groups of tasks send each other Traffic bytes; 0 or 1: none do.
	Groups  int     `yaml:"groups"`
	Traffic float64 `yaml:"traffic"`
	// Steady is how long tasks stay as they are, never run: a steady load.
	Steady time.Duration `yaml:"steady"`
}

// Links is the network: a message of m bytes takes Startup + m x PerKilobyte/1000
// for each hop.
type Links struct {
	Topology    string        `yaml:"topology"`
	Startup     time.Duration `yaml:"startup"`
	PerKilobyte time.Duration `yaml:"per_kilobyte"`
}

// Views of the strategy.
const (
	Consistent = "consistent" // what held of all nodes at one instant
	Latest     = "latest"     // the newest report of each node, each of another time
)

// Plans is when the strategy is asked, and on what.
type Plans struct {
	Every time.Duration `yaml:"every"`
	View  string        `yaml:"view"`
}

// Default is 16 nodes of unequal and changing speed with irregular tasks.
func Default() Scenario {
	return Scenario{
		Seed:    1,
		Nodes:   Nodes{Count: 16, Slowest: 1, Fastest: 4},
		Changes: Changes{Every: 10 * time.Second, Until: time.Minute, Least: 0.4, Most: 1},
		Tasks:   Tasks{Count: 1600, Shape: "irregular", Mean: 1, Spread: 1, Size: 1000, Placed: "blocks", Order: "largest"},
		Links:   Links{Topology: "full", Startup: 200 * time.Microsecond, PerKilobyte: 10 * time.Microsecond},
		Plans:   Plans{Every: 250 * time.Millisecond, View: Consistent},
		Balance: balance.Default(),
	}
}

// Limits of a scenario and of a trace.
const (
	maxNodes = 4096
	maxTasks = 1_000_000
	maxTime  = 24 * time.Hour
	maxValue = 1e12
	// maxDraws bounds the changes of all nodes.
	maxDraws = 1_000_000
)

// Parse reads a scenario over the defaults. The error has every fault and its
// place.
func Parse(name string, src []byte) (Scenario, error) {
	s := Default()
	doc, err := yamlconf.Decode(name, src, &s)
	if doc == nil {
		return s, err
	}
	for _, f := range s.Faults() {
		doc.FaultAt(f.Key, "%s", f.Message)
	}
	return s, doc.Err()
}

// Faults returns what is wrong with the values of a scenario.
func (s *Scenario) Faults() []balance.Fault {
	var list []balance.Fault
	need := func(ok bool, key, format string, args ...any) {
		if !ok {
			list = append(list, balance.Fault{Key: key, Message: fmt.Sprintf(format, args...)})
		}
	}
	word := func(value, key string, of []string) {
		need(slices.Contains(of, value), key, "%q is not one of %s", value, strings.Join(of, ", "))
	}
	within := func(d time.Duration, key string) {
		need(d >= 0 && d <= maxTime, key, "%v must be from 0 to %v", d, maxTime)
	}
	number := func(x, low, high float64, key string) {
		need(x >= low && x <= high, key, "%v must be from %v to %v", x, low, high) // Also NaN.
	}
	need(s.Nodes.Powers == nil || len(s.Nodes.Powers) > 0, "nodes.powers", "an empty list: give one power at least, or leave the key out")
	if n := s.Nodes; len(n.Powers) > 0 {
		need(len(n.Powers) <= maxNodes, "nodes.powers", "%d are more than %d", len(n.Powers), maxNodes)
		for i, p := range n.Powers {
			number(p, 0, maxValue, fmt.Sprintf("nodes.powers[%d]", i))
		}
	} else {
		need(n.Count >= 1 && n.Count <= maxNodes, "nodes.count", "%d must be from 1 to %d", n.Count, maxNodes)
		number(n.Slowest, 1e-6, maxValue, "nodes.slowest")
		number(n.Fastest, n.Slowest, maxValue, "nodes.fastest")
	}
	within(s.Changes.Every, "changes.every")
	within(s.Changes.Until, "changes.until")
	number(s.Changes.Least, 0, 1, "changes.least")
	number(s.Changes.Most, s.Changes.Least, 1, "changes.most")
	if s.Changes.Every > 0 {
		draws := float64(s.Nodes.number()) * (1 + float64(s.Changes.Until)/float64(s.Changes.Every))
		need(draws <= maxDraws, "changes.every", "%v gives some %.0f changes until %v, more than %d", s.Changes.Every, draws, s.Changes.Until, maxDraws)
	}
	t := &s.Tasks
	need(t.Count >= 0 && t.Count <= maxTasks, "tasks.count", "%d must be from 0 to %d", t.Count, maxTasks)
	word(t.Shape, "tasks.shape", Shapes)
	word(t.Placed, "tasks.placed", Placements)
	word(t.Order, "tasks.order", Orders)
	number(t.Mean, 0, maxValue, "tasks.mean")
	number(t.Spread, 0, 5, "tasks.spread")
	number(t.Size, 0, maxValue, "tasks.size")
	number(t.Error, 0, 5, "tasks.error")
	number(t.Traffic, 0, maxValue, "tasks.traffic")
	need(t.Groups >= 0 && t.Groups <= 64, "tasks.groups", "%d must be from 0 to 64", t.Groups)
	within(t.Arrive, "tasks.arrive")
	within(t.Steady, "tasks.steady")
	word(s.Links.Topology, "links.topology", Topologies)
	within(s.Links.Startup, "links.startup")
	within(s.Links.PerKilobyte, "links.per_kilobyte")
	need(s.Plans.Every >= time.Millisecond && s.Plans.Every <= maxTime, "plans.every", "%v must be from 1ms to %v", s.Plans.Every, maxTime)
	word(s.Plans.View, "plans.view", []string{Consistent, Latest})
	for _, f := range s.Balance.Faults() {
		list = append(list, balance.Fault{Key: "balance." + f.Key, Message: f.Message})
	}
	return list
}

func (n *Nodes) number() int { return cmp.Or(len(n.Powers), n.Count) }

// powers draws what is not given.
func (n *Nodes) powers(draw func() float64) []float64 {
	if len(n.Powers) > 0 {
		return n.Powers
	}
	list := make([]float64, n.Count)
	for i := range list {
		list[i] = n.Slowest + (n.Fastest-n.Slowest)*draw()
	}
	return list
}

// shape is the work of task i of a scenario, about Mean on average.
func (t *Tasks) shape(i int, draw, normal func() float64) float64 {
	x := (float64(i) + 0.5) / float64(t.Count)
	switch t.Shape {
	case "rising":
		return t.Mean * 2 * x
	case "falling":
		return t.Mean * 2 * (1 - x)
	case "irregular":
		return t.Mean * math.Exp(t.Spread*normal()-t.Spread*t.Spread/2)
	case "heavy": // Pareto of exponent 1.5, cut at 200 times the mean.
		return t.Mean * min(200, math.Pow(1-draw(), -1/1.5)/3)
	}
	return t.Mean
}
