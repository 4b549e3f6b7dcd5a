package worksim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
)

// Scenario is what a run is made from. The tags are the keys of its file; docs/cli.md describes them.
type Scenario struct {
	Seed    uint64      `yaml:"seed"`    // of all that is drawn
	Nodes   Nodes       `yaml:"nodes"`   // in their order
	Network Network     `yaml:"network"` // between all nodes
	Work    config.Work `yaml:"work"`    // as in a configuration
	Data    Data        `yaml:"data"`    // that tasks read
	Tasks   []Tasks     `yaml:"tasks"`   // in the order in which they are put
	Kills   Kills       `yaml:"kills"`   // of nodes

	Withdrawals Withdrawals `yaml:"withdrawals"` // of nodes

	trace *Trace // the tasks, instead of those that are drawn; nil: these
}

// Nodes are groups of nodes, numbered from 1 through all groups. In a file a number stands for one group.
type Nodes []Group

// Group is nodes of one kind. Each of its slots does Speed units of work in a second.
type Group struct {
	Count   int     `yaml:"count"`   // of nodes
	Speed   float64 `yaml:"speed"`   // units a second, of each slot
	Fastest float64 `yaml:"fastest"` // of the last node: speeds rise evenly from Speed; 0: all have Speed
	Slots   int     `yaml:"slots"`   // 0: as work.slots says, or 1
	Changes Changes `yaml:"changes"` // of the speed
	Runs    []int   `yaml:"runs"`    // entries of tasks whose function the nodes can run, from 1; empty: all
}

// Changes multiply the speed of each node of a group.
type Changes struct {
	Steps []Step        `yaml:"steps"` // by their times
	Every time.Duration `yaml:"every"` // the steps begin again after that time; 0: never
	Shift time.Duration `yaml:"shift"` // node i of the group begins i times that later, from i = 0
}

// Step is a factor of the speed from an instant on.
type Step struct {
	At     time.Duration `yaml:"at"`     // after the begin of the period
	Factor float64       `yaml:"factor"` // 0: the node stands still
}

// Network is how long frames take: Cost, PerByte for each byte, and up to Jitter.
type Network struct {
	Cost    time.Duration `yaml:"cost"`     // of each frame
	PerByte time.Duration `yaml:"per_byte"` // of the encoded frame
	Jitter  time.Duration `yaml:"jitter"`   // the most, drawn for each frame
	Loss    float64       `yaml:"loss"`     // the part of the frames that is lost
	Double  float64       `yaml:"double"`   // the part that arrives twice

	Topology string `yaml:"topology"` // between which nodes there are links; empty: all
	Slow     Slow   `yaml:"slow"`     // a link that is slower
}

// Slow is a link that is slower, in both directions, by a factor. From and To are nodes.
type Slow struct {
	From   int     `yaml:"from"`   // one end
	To     int     `yaml:"to"`     // the other
	Factor float64 `yaml:"factor"` // 0: none is slower
}

// Data are objects that tasks read.
type Data struct {
	Count int `yaml:"count"` // of them; 0: there are none
	Bytes int `yaml:"bytes"` // of each
}

// The kinds of tasks.
const (
	Plain = "plain"
	Bag   = "bag"
)

// Tasks are tasks of one kind that are put together.
type Tasks struct {
	Put    Put           `yaml:"put"`    // by whom, and when
	Kind   string        `yaml:"kind"`   // Plain or Bag
	Count  int           `yaml:"count"`  // of tasks, or of bags
	Items  int           `yaml:"items"`  // of each bag
	Weight Weight        `yaml:"weight"` // of a plain task, or of an item
	Yield  time.Duration `yaml:"yield"`  // the work between two yields of a bag
	Bytes  int           `yaml:"bytes"`  // of the argument
	Reads  int           `yaml:"reads"`  // how many objects in a row each task reads; from task to task they move over all objects
	Areas  int           `yaml:"areas"`  // so many tasks in a row have one more factor of their weights, drawn from 0.5 to 1.5; 0: none has
}

// Put says who puts tasks, and when.
type Put struct {
	Node  int           `yaml:"node"`  // 0: all nodes in turn
	Split bool          `yaml:"split"` // each node puts an equal part in a row; with node: 0
	At    time.Duration `yaml:"at"`    // after the begin of the run
}

// Weight draws units of work.
type Weight struct {
	Uniform     []float64 `yaml:"uniform"`     // between two numbers
	Exponential float64   `yaml:"exponential"` // of that mean
	List        []float64 `yaml:"list"`        // one after the other, and from the first again
	Linear      []float64 `yaml:"linear"`      // evenly from that of the first item to that of the last one
	constant    float64
}

// Kills kills nodes that put no tasks. They leave the roster after Silence.
type Kills struct {
	Count   int           `yaml:"count"`   // of nodes
	From    time.Duration `yaml:"from"`    // the earliest
	Until   time.Duration `yaml:"until"`   // the latest
	Silence time.Duration `yaml:"silence"` // of a dead node, until the others hear that it is gone
}

// Withdrawals are of nodes that take no work for a time, as their owners would say.
type Withdrawals struct {
	Count int           `yaml:"count"` // of them; a node may be drawn again
	From  time.Duration `yaml:"from"`  // the earliest
	Until time.Duration `yaml:"until"` // the latest
	For   time.Duration `yaml:"for"`   // after which the node takes work again; 0: never
}

// Limits of a scenario.
const (
	maxNodes  = 1024
	maxItems  = 1_000_000
	maxSteps  = 1000
	maxTime   = 24 * time.Hour
	maxFrame  = time.Hour // that a frame takes
	maxNumber = 1e12
	leastWork = 1e-9
	maxBytes  = 48 << 10
	// maxObjects is how many objects there are at most, and maxObject how large one is.
	maxObjects = 10_000
	maxObject  = 32 << 20
)

func defaultGroup() Group { return Group{Count: 1, Speed: 1} }

func defaultTasks() Tasks {
	return Tasks{Put: Put{Node: 1}, Kind: Plain, Count: 1, Items: 1000, Weight: Weight{constant: 1}, Yield: time.Millisecond, Bytes: 64}
}

// Default has everything but tasks.
func Default() Scenario {
	g := defaultGroup()
	g.Count = 16
	return Scenario{
		Seed: 1, Nodes: Nodes{g}, Work: config.DefaultWork(),
		Network: Network{Cost: 100 * time.Microsecond, PerByte: 10 * time.Nanosecond},
		Data:    Data{Bytes: 1 << 20},
		Kills:   Kills{Until: 10 * time.Second, Silence: 2 * time.Second}, Withdrawals: Withdrawals{Until: 10 * time.Second},
	}
}

// UnmarshalNode takes a number of nodes, or a list of groups.
func (n *Nodes) UnmarshalNode(node yamlconf.Node) error {
	if node.Kind() != yamlconf.KindList {
		g := defaultGroup()
		*n = Nodes{g}
		return node.Decode(&(*n)[0].Count)
	}
	return node.Decode((*[]Group)(n))
}

// UnmarshalNode fills in the defaults.
func (g *Group) UnmarshalNode(n yamlconf.Node) error {
	type plain Group
	raw := plain(defaultGroup())
	err := n.Decode(&raw)
	*g = Group(raw)
	return err
}

// UnmarshalNode fills in the defaults.
func (t *Tasks) UnmarshalNode(n yamlconf.Node) error {
	type plain Tasks
	raw := plain(defaultTasks())
	err := n.Decode(&raw)
	*t = Tasks(raw)
	return err
}

// UnmarshalNode takes a number, or one way to draw.
func (w *Weight) UnmarshalNode(n yamlconf.Node) error {
	*w = Weight{}
	if n.Kind() != yamlconf.KindMap {
		return n.Decode(&w.constant)
	}
	if len(n.Items()) != 1 {
		return errors.New("write one of uniform, exponential, list and linear, or a number")
	}
	type plain Weight
	return n.Decode((*plain)(w))
}

// Parse reads a scenario over the defaults. The error has every fault and its place.
func Parse(name string, src []byte) (*Scenario, error) { return ParseTraced(name, src, nil) }

// ParseTraced reads a scenario that puts the tasks of a trace, unless that is nil.
func ParseTraced(name string, src []byte, trace *Trace) (*Scenario, error) {
	s := Default()
	doc, err := yamlconf.Decode(name, src, &s)
	if doc == nil {
		return nil, err
	}
	if doc.Err() == nil && trace != nil {
		if len(s.Tasks) > 0 || s.Data.Count > 0 {
			doc.FaultAt("tasks", "the trace has tasks and data already: leave out tasks and data, or --trace")
		}
		s.setTrace(trace)
	}
	if doc.Err() == nil {
		s.check(doc)
		if err := s.checkTrace(); err != nil && doc.Err() == nil {
			return nil, err
		}
	}
	return &s, doc.Err()
}

// Strategy replaces the strategy by one of a text, which is a map of YAML such as "{kind: chunk, cut: gss}".
// Name stands for the text in the error.
func (s *Scenario) Strategy(name, text string) error {
	var c local.Config
	doc, err := yamlconf.Decode(name, []byte(text), &c)
	if doc == nil {
		return err
	}
	if c.Central() {
		doc.FaultAt("kind", notSimulated, c.Kind)
	}
	if doc.Err() == nil {
		for _, f := range c.Faults() {
			if f.Column > 0 {
				doc.FaultIn(f.Key, f.Column-1, "%s", f.Message) // All words of a strategy are ASCII.
			} else {
				doc.FaultAt(f.Key, "%s", f.Message)
			}
		}
	}
	if err := doc.Err(); err != nil {
		return err
	}
	s.Work.Strategy = c.WithDefaults()
	return nil
}

const notSimulated = "a synchronizer plans for the strategy %s, and none is simulated: use another kind"

// countNodes is how many there are.
func (s *Scenario) countNodes() (n int) {
	for i := range s.Nodes {
		n += s.Nodes[i].Count
	}
	return n
}

// checker reports faults at the values of paths.
type checker struct{ doc *yamlconf.Doc }

func (c checker) needTrue(ok bool, path, format string, args ...any) {
	if !ok {
		c.doc.FaultAt(path, format, args...)
	}
}

func (c checker) checkNumber(x, low, high float64, path string) {
	c.needTrue(x >= low && x <= high, path, "%v is out of range: write %v to %v", x, low, high) // Also NaN.
}

func (c checker) checkCount(n, low, high int, path string) {
	c.needTrue(n >= low && n <= high, path, "%d is out of range: write %d to %d", n, low, high)
}

func (c checker) checkWithin(d, least, most time.Duration, path string) {
	c.needTrue(d >= least && d <= most, path, "%v is out of range: write %v to %v", d, least, most)
}

// check reports what is wrong with the values.
func (s *Scenario) check(doc *yamlconf.Doc) {
	c := checker{doc}
	c.needTrue(len(s.Nodes) > 0, "nodes", "the list is empty: write one group at least, or the number of nodes")
	total := 0
	for i := range s.Nodes {
		at := "nodes"
		if len(s.Nodes) > 1 || doc.Pos("nodes[0]").Line > 0 {
			at = fmt.Sprintf("nodes[%d]", i)
		}
		s.Nodes[i].check(c, at, len(s.Tasks))
		total += s.Nodes[i].Count
	}
	c.needTrue(total <= maxNodes, "nodes", "there are %d nodes, and at most %d are allowed", total, maxNodes)
	s.Network.checkNetwork(c)
	s.checkNetwork(c, total)
	c.checkCount(s.Data.Count, 0, maxObjects, "data.count")
	c.checkCount(s.Data.Bytes, 0, maxObject, "data.bytes")
	s.checkWork(doc)
	c.needTrue(!s.Work.Strategy.Central(), "work.strategy.kind", notSimulated, s.Work.Strategy.Kind)
	c.needTrue(len(s.Tasks) > 0, "tasks", "the list is empty: write tasks to put")
	items := 0
	for i := range s.Tasks {
		t, at := &s.Tasks[i], fmt.Sprintf("tasks[%d]", i)
		items = min(items+t.check(c, at, total), maxItems+1)
		c.needTrue(t.Reads >= 0 && t.Reads <= s.Data.Count && t.Reads <= workcore.MaxReads, at+".reads", "%d is out of range: write 0 to %d, and set data.count to the number of objects", t.Reads, min(s.Data.Count, workcore.MaxReads))
		c.needTrue(t.Reads == 0 || t.Kind == Plain, at+".reads", "a bag reads no data here: write kind: %s", Plain)
	}
	c.needTrue(items <= maxItems, "tasks", "there are more than %d tasks and items of bags: give them more weight instead", maxItems)
	s.checkKills(c)
	d := &s.Withdrawals
	c.checkCount(d.Count, 0, maxItems, "withdrawals.count")
	c.checkWithin(d.From, 0, maxTime, "withdrawals.from")
	c.checkWithin(d.Until, d.From, maxTime, "withdrawals.until")
	c.checkWithin(d.For, 0, maxTime, "withdrawals.for")
}

func (n *Network) checkNetwork(c checker) {
	c.checkWithin(n.Cost, 0, maxFrame, "network.cost")
	c.checkWithin(n.PerByte, 0, time.Second, "network.per_byte")
	c.checkWithin(n.Jitter, 0, maxFrame, "network.jitter")
	c.checkNumber(n.Loss, 0, 0.9, "network.loss")
	c.checkNumber(n.Double, 0, 1, "network.double")
}

// checkNetwork checks the topology of a number of nodes.
func (s *Scenario) checkNetwork(c checker, nodes int) {
	n := &s.Network
	_, err := local.ParseTopology(n.Topology)
	c.needTrue(err == nil, "network.topology", "%q is no topology: write one of %s", n.Topology, strings.Join(local.Topologies, ", "))
	if n.Slow == (Slow{}) {
		return
	}
	c.checkNumber(n.Slow.Factor, 1, 1e6, "network.slow.factor")
	c.checkCount(n.Slow.From, 1, nodes, "network.slow.from")
	c.checkCount(n.Slow.To, 1, nodes, "network.slow.to")
	linked := err == nil && nodes <= maxNodes && slices.Contains(local.Topology(n.Topology).AppendNeighbours(nil, n.Slow.From-1, nodes), n.Slow.To-1)
	c.needTrue(linked, "network.slow", "there is no link between the nodes %d and %d: write two neighbours of the topology", n.Slow.From, n.Slow.To)
}

// Resize has another number of nodes, of the kind of the only group, and as many tasks and objects for each as before.
func (s *Scenario) Resize(nodes int) error {
	if s.trace != nil {
		return s.resizeTrace(nodes)
	}
	if len(s.Nodes) != 1 || nodes < 1 || nodes > maxNodes {
		return fmt.Errorf("%d nodes: use 1 to %d nodes, and a scenario with one group of them", nodes, maxNodes)
	}
	before := s.Nodes[0].Count
	s.Nodes[0].Count = nodes
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Put.Node > nodes {
			return fmt.Errorf("%d nodes: node %d puts tasks: use more nodes", nodes, t.Put.Node)
		}
		if t.Count = max(1, t.Count*nodes/before); t.Count > maxItems {
			return fmt.Errorf("%d nodes: they have %d tasks, and at most %d are allowed: use fewer nodes", nodes, t.Count, maxItems)
		}
	}
	if s.Data.Count > 0 {
		reads := 1
		for i := range s.Tasks {
			reads = max(reads, s.Tasks[i].Reads)
		}
		s.Data.Count = max(1, (s.Data.Count-reads+1)*nodes/before) + reads - 1
	}
	if max(s.Network.Slow.From, s.Network.Slow.To) > nodes {
		s.Network.Slow = Slow{}
	}
	return nil
}

func (g *Group) check(c checker, at string, tasks int) {
	c.checkCount(g.Count, 1, maxNodes, at+".count")
	c.checkNumber(g.Speed, 1e-3, maxNumber, at+".speed")
	if g.Fastest != 0 {
		c.needTrue(g.Fastest >= g.Speed && g.Fastest <= maxNumber, at+".fastest", "%v is out of range: write %v, which is speed, to %v", g.Fastest, g.Speed, maxNumber)
	}
	c.checkCount(g.Slots, 0, maxNodes, at+".slots")
	for i, entry := range g.Runs {
		c.checkCount(entry, 1, tasks, fmt.Sprintf("%s.runs[%d]", at, i))
	}
	ch, at := &g.Changes, at+".changes"
	c.checkWithin(ch.Every, 0, maxTime, at+".every")
	c.checkWithin(ch.Shift, 0, maxTime, at+".shift")
	c.needTrue(len(ch.Steps) > 0 || ch.Every == 0 && ch.Shift == 0, at, "there are no steps: write steps: [{at: 1s, factor: 0.5}]")
	c.needTrue(len(ch.Steps) <= maxSteps, at+".steps", "there are %d steps, and at most %d are allowed", len(ch.Steps), maxSteps)
	c.needTrue(ch.Every == 0 || ch.Every >= time.Millisecond, at+".every", "%v is out of range: write 1ms or more, or leave it out", ch.Every)
	works := false
	for i, s := range ch.Steps {
		at := fmt.Sprintf("%s.steps[%d]", at, i)
		c.checkWithin(s.At, 0, maxTime, at+".at")
		c.checkNumber(s.Factor, 0, 1e6, at+".factor")
		c.needTrue(i == 0 || s.At > ch.Steps[i-1].At, at+".at", "%v is not after the step before: sort the steps by their times", s.At)
		c.needTrue(ch.Every == 0 || s.At < ch.Every, at+".at", "%v is not before every, %v, when the steps begin again", s.At, ch.Every)
		works = works || s.Factor > 0
	}
	if n := len(ch.Steps); n > 0 {
		c.needTrue(works && (ch.Every > 0 || ch.Steps[n-1].Factor > 0), at+".steps", "the nodes stop for good: write a last factor above 0, or kill nodes with kills")
	}
}

// check returns how many items there are.
func (t *Tasks) check(c checker, at string, nodes int) int {
	c.checkCount(t.Put.Node, 0, nodes, at+".put.node")
	c.checkWithin(t.Put.At, 0, maxTime, at+".put.at")
	c.needTrue(t.Kind == Plain || t.Kind == Bag, at+".kind", "%q is no kind of task: write %s or %s", t.Kind, Plain, Bag)
	c.checkCount(t.Count, 1, maxItems, at+".count")
	c.checkWithin(t.Yield, time.Microsecond, maxTime, at+".yield")
	c.checkCount(t.Bytes, 0, maxBytes-bodyBytes, at+".bytes")
	c.checkCount(t.Areas, 0, maxItems, at+".areas")
	c.needTrue(!t.Put.Split || t.Put.Node == 0, at+".put.split", "node %d puts all tasks: write node: 0", t.Put.Node)
	w := &t.Weight
	switch at := at + ".weight"; {
	case w.Uniform != nil:
		c.needTrue(len(w.Uniform) == 2, at+".uniform", "the list has %d numbers: write the least and the most, such as [1, 2]", len(w.Uniform))
		if len(w.Uniform) == 2 {
			c.checkNumber(w.Uniform[0], leastWork, maxNumber, at+".uniform[0]")
			c.checkNumber(w.Uniform[1], w.Uniform[0], maxNumber, at+".uniform[1]")
		}
	case w.Linear != nil:
		c.needTrue(len(w.Linear) == 2, at+".linear", "the list has %d numbers: write one for the first item and one for the last, such as [1, 2]", len(w.Linear))
		for i, x := range w.Linear {
			c.checkNumber(x, leastWork, maxNumber, fmt.Sprintf("%s.linear[%d]", at, i))
		}
	case w.List != nil:
		c.needTrue(len(w.List) > 0, at+".list", "the list is empty: write numbers")
		for i, x := range w.List {
			c.checkNumber(x, leastWork, maxNumber, fmt.Sprintf("%s.list[%d]", at, i))
		}
	case w.Exponential != 0:
		c.checkNumber(w.Exponential, leastWork, maxNumber, at+".exponential")
	default:
		c.checkNumber(w.constant, leastWork, maxNumber, at)
	}
	if t.Kind == Plain {
		return t.Count
	}
	c.checkCount(t.Items, 1, maxItems, at+".items")
	return int(min(int64(t.Count)*int64(t.Items), maxItems+1))
}

// checkWork checks the section as a configuration has it.
func (s *Scenario) checkWork(doc *yamlconf.Doc) {
	w := s.Work
	sec := config.Section{Name: "sim", Synchronizer: config.Synchronizer{Members: config.Members{Group: "nodes", Count: 1, Min: 1, Max: 1}, Work: &w}}
	plan.Compile(&sec, func(at string, offset int, message, hint string) {
		if hint != "" {
			message += ": " + hint
		}
		if offset >= 0 {
			doc.FaultIn(at, offset, "%s", message)
			return
		}
		doc.FaultAt(at, "%s", message)
	})
	if w.Order == "" {
		return
	}
	if _, err := predicates.CompileOrder(w.Order); err != nil {
		if e, ok := errors.AsType[*predicates.Error](err); ok {
			doc.FaultIn("work.order", yamlconf.Offset(w.Order, e.Line, e.Column), "%s", strings.TrimSuffix(e.Message+": "+e.Hint, ": "))
			return
		}
		doc.FaultAt("work.order", "%v", err)
	}
}

func (s *Scenario) checkKills(c checker) {
	k := &s.Kills
	c.checkWithin(k.From, 0, maxTime, "kills.from")
	c.checkWithin(k.Until, k.From, maxTime, "kills.until")
	c.checkWithin(k.Silence, time.Millisecond, maxTime, "kills.silence")
	spare := len(s.mortalNodes())
	c.needTrue(k.Count >= 0 && k.Count <= spare, "kills.count", "%d is out of range: write 0 to %d, since %d nodes put no tasks: tasks are lost with the node that has put them", k.Count, spare, spare)
}

// mortalNodes are the nodes that put no tasks.
func (s *Scenario) mortalNodes() (list []int) {
	for i := range s.countNodes() {
		if s.trace != nil && i >= len(s.trace.members) || s.trace == nil && !slices.ContainsFunc(s.Tasks, func(t Tasks) bool { return t.Put.Node == 0 || t.Put.Node == i+1 }) {
			list = append(list, i)
		}
	}
	return list
}

// drawWeight returns the weight of item i of n.
func (w *Weight) drawWeight(i, n int, uniform, exponential func() float64) float64 {
	switch {
	case len(w.Uniform) == 2:
		return w.Uniform[0] + (w.Uniform[1]-w.Uniform[0])*uniform()
	case len(w.Linear) == 2:
		return w.Linear[0] + (w.Linear[1]-w.Linear[0])*float64(i)/float64(max(1, n-1))
	case len(w.List) > 0:
		return w.List[i%len(w.List)]
	case w.Exponential > 0:
		return math.Max(leastWork, w.Exponential*exponential())
	}
	return w.constant
}
