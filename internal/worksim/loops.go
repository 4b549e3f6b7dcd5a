package worksim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/workcore"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// LoopScenario is elastic loops on nodes whose owners come and go. The tags are the keys of its file; docs/cli.md describes
// them. Loop i has its home on node i, which never leaves the loop.
type LoopScenario struct {
	Seed    uint64        `yaml:"seed"`           // of all that is drawn
	Time    time.Duration `yaml:"time"`           // of the run
	Network Network       `yaml:"network"`        // between all nodes
	Owners  Owners        `yaml:"owners"`         // how nodes notice them
	Loops   []LoopShare   `yaml:"loops,required"` // that share the nodes
	Nodes   []OwnedNode   `yaml:"nodes,required"` // in their order
}

// Owners says how the owners of nodes act on the loops.
type Owners struct {
	Check time.Duration `yaml:"check"` // how often a node looks whether its owner is there
	Left  float64       `yaml:"left"`  // the part of its speed that a node has while its owner is there
}

// LoopShare is one of the loops.
type LoopShare struct {
	Rows   int     `yaml:"rows"`   // of an iteration
	Weight float64 `yaml:"weight"` // the speeds of its nodes add up in proportion to that
}

// OwnedNode is nodes of one kind.
type OwnedNode struct {
	Count int             `yaml:"count"` // of nodes
	Speed float64         `yaml:"speed"` // rows a second
	Owner []time.Duration `yaml:"owner"` // when the owner comes, leaves, comes again, and so on
}

// Limits of a scenario of loops.
const (
	maxLoops    = 16
	leastCheck  = time.Millisecond
	leastTime   = 100 * time.Millisecond
	defaultTime = time.Minute
)

// UnmarshalNode fills in the defaults.
func (l *LoopShare) UnmarshalNode(n yamlconf.Node) error {
	type plain LoopShare
	raw := plain{Rows: 10_000, Weight: 1}
	err := n.Decode(&raw)
	*l = LoopShare(raw)
	return err
}

// UnmarshalNode fills in the defaults.
func (o *OwnedNode) UnmarshalNode(n yamlconf.Node) error {
	type plain OwnedNode
	raw := plain{Count: 1, Speed: 100}
	err := n.Decode(&raw)
	*o = OwnedNode(raw)
	return err
}

// ParseLoops reads a scenario of loops over the defaults. The error has every fault and its place.
func ParseLoops(name string, src []byte) (*LoopScenario, error) {
	s := LoopScenario{
		Seed: 1, Time: defaultTime, Network: Network{Cost: 100 * time.Microsecond, PerByte: 10 * time.Nanosecond},
		Owners: Owners{Check: time.Second, Left: 0.5},
	}
	doc, err := yamlconf.Decode(name, src, &s)
	if doc == nil {
		return nil, err
	}
	if doc.Err() == nil {
		s.check(doc)
	}
	return &s, doc.Err()
}

func (s *LoopScenario) check(doc *yamlconf.Doc) {
	c := checker{doc}
	c.checkWithin(s.Time, leastTime, maxTime, "time")
	s.Network.checkNetwork(c)
	c.checkWithin(s.Owners.Check, leastCheck, maxTime, "owners.check")
	c.checkNumber(s.Owners.Left, 0, 1, "owners.left")
	for i := range s.Nodes {
		n, at := &s.Nodes[i], fmt.Sprintf("nodes[%d]", i)
		c.checkCount(n.Count, 1, maxNodes, at+".count")
		c.checkNumber(n.Speed, 1e-3, maxSpeed, at+".speed")
		c.needTrue(len(n.Owner) <= maxSteps, at+".owner", "there are %d times, and at most %d are allowed", len(n.Owner), maxSteps)
		for k, t := range n.Owner {
			c.checkWithin(t, 0, maxTime, fmt.Sprintf("%s.owner[%d]", at, k))
			c.needTrue(k == 0 || t > n.Owner[k-1], fmt.Sprintf("%s.owner[%d]", at, k), "%v is not after the time before: sort the times: the owner comes, leaves, comes, and so on", t)
		}
	}
	total := s.countNodes()
	c.needTrue(total <= maxNodes, "nodes", "there are %d nodes, and at most %d are allowed", total, maxNodes)
	c.needTrue(len(s.Loops) > 0 && len(s.Loops) <= min(maxLoops, total), "loops", "there are %d loops: write 1 to %d, at most as many as nodes: each has its home on a node of its own", len(s.Loops), maxLoops)
	for i := range s.Loops {
		c.checkCount(s.Loops[i].Rows, 1, workcore.MaxRows, fmt.Sprintf("loops[%d].rows", i))
		c.checkNumber(s.Loops[i].Weight, 1e-3, 1e3, fmt.Sprintf("loops[%d].weight", i))
	}
}

// maxSpeed of a node, in rows a second.
const maxSpeed = 1e9

// varied sets the parameters that [LoopScenario.With] knows, in a scenario that nobody else has.
var varied = map[string]func(s *LoopScenario, value string) error{
	"rows": func(s *LoopScenario, value string) error {
		n, err := wholeNumber(value, workcore.MaxRows)
		for i := range s.Loops {
			s.Loops[i].Rows = n
		}
		return err
	},
	"nodes": func(s *LoopScenario, value string) error {
		n, err := wholeNumber(value, s.countNodes())
		if err == nil && n < len(s.Loops) {
			err = fmt.Errorf("%d nodes are too few for %d loops, each of which has its home on a node: write %d or more", n, len(s.Loops), len(s.Loops))
		}
		for i := range s.Nodes {
			s.Nodes[i].Count = min(s.Nodes[i].Count, n)
			n -= s.Nodes[i].Count
		}
		return err
	},
	"speed": func(s *LoopScenario, value string) error {
		factor, err := yamlconf.ParseFloat(value)
		if err != nil || !(factor >= 1e-3 && factor <= 1e3) {
			return fmt.Errorf("%q is no factor from 0.001 to 1000", value)
		}
		for i := range s.Nodes {
			s.Nodes[i].Speed *= factor
		}
		return nil
	},
	"cost": func(s *LoopScenario, value string) error { return readTime(&s.Network.Cost, value, 0, maxFrame) },
	"check": func(s *LoopScenario, value string) error {
		return readTime(&s.Owners.Check, value, leastCheck, maxTime)
	},
	"time": func(s *LoopScenario, value string) error { return readTime(&s.Time, value, leastTime, maxTime) },
}

func wholeNumber(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%q is no number from 1 to %d", value, most)
	}
	return n, nil
}

func readTime(into *time.Duration, value string, least, most time.Duration) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < least || d > most {
		return fmt.Errorf("%q is no time from %v to %v", value, least, most)
	}
	*into = d
	return nil
}

// countNodes is how many there are.
func (s *LoopScenario) countNodes() (n int) {
	for i := range s.Nodes {
		n += s.Nodes[i].Count
	}
	return n
}

// With returns a copy of the scenario with another value of a parameter: rows of each loop, the first nodes, a factor of
// their speed, the cost of a frame, the check of owners, or the time of the run.
func (s *LoopScenario) With(parameter, value string) (*LoopScenario, error) {
	set := varied[parameter]
	if set == nil {
		return nil, fmt.Errorf("%q is no parameter: write one of %s", parameter, strings.Join(slices.Sorted(maps.Keys(varied)), ", "))
	}
	other := *s
	other.Loops, other.Nodes = slices.Clone(s.Loops), slices.Clone(s.Nodes)
	if err := set(&other, value); err != nil {
		return nil, fmt.Errorf("%s: %w", parameter, err)
	}
	return &other, nil
}

// maxVaried is how many runs [LoopScenario.Vary] makes at most.
const maxVaried = 1000

// Vary returns scenarios with all combinations of values, each of them written as PARAMETER=VALUE,VALUE, and the values that
// each one has.
func (s *LoopScenario) Vary(list []string) (scenarios []*LoopScenario, values [][]string, err error) {
	scenarios, values = []*LoopScenario{s}, [][]string{nil}
	for _, text := range list {
		parameter, rest, _ := strings.Cut(text, "=")
		var next []*LoopScenario
		var having [][]string
		for i, from := range scenarios {
			for value := range strings.SplitSeq(rest, ",") {
				other, err := from.With(parameter, value)
				if err != nil {
					return nil, nil, err
				}
				if next = append(next, other); len(next) > maxVaried {
					return nil, nil, fmt.Errorf("there are more than %d combinations: give fewer values", maxVaried)
				}
				having = append(having, append(slices.Clip(values[i]), value))
			}
		}
		scenarios, values = next, having
	}
	return scenarios, values, nil
}
