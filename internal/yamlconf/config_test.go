package yamlconf_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/nearest"
	"github.com/gopegasus/pegasus/internal/yamlconf"
)

// config is shaped like the first example of a user, with one field of every
// supported type.
type config struct {
	Synchronizers yamlconf.Map[synchronizer] `yaml:"synchronizers,required"`
}

type synchronizer struct {
	Members    members                   `yaml:"members,required"`
	Silence    *silence                  `yaml:"silence"`
	State      yamlconf.Map[stateType]   `yaml:"state"`
	Memory     yamlconf.Map[variable]    `yaml:"memory"`
	Predicates yamlconf.Map[predicate]   `yaml:"predicates"`
	Limits     limits                    `yaml:"limits"`
	Tags       []string                  `yaml:"tags"`
	Extra      yamlconf.Node             `yaml:"extra"`
	Matrix     [][]int                   `yaml:"matrix"`
	Skipped    map[string]map[int]string `yaml:"-"`
}

type silence struct {
	After time.Duration `yaml:"after"`
	Then  string        `yaml:"then,required"`
}

type variable struct {
	Type    stateType `yaml:"type,required"`
	Initial float64   `yaml:"initial"`
}

type predicate struct {
	When     string        `yaml:"when,required"`
	Modality string        `yaml:"modality"`
	For      time.Duration `yaml:"for"`
	Every    bool          `yaml:"every"`
}

type limits struct {
	Small  int8    `yaml:"small"`
	Count  uint16  `yaml:"count"`
	Ratio  float32 `yaml:"ratio"`
	Number int     `yaml:"number"`
}

// members is a count, or a map with more.
type members struct {
	Group string `yaml:"group"`
	Count int    `yaml:"count,required"`
}

func (m *members) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() == yamlconf.KindInt {
		return n.Decode(&m.Count)
	}
	type plain members // Without this method.
	if err := n.Decode((*plain)(m)); err != nil {
		return err
	}
	if m.Count < 0 {
		return fmt.Errorf("%d members are not possible", m.Count)
	}
	return nil
}

// stateType is a name, or the literals of an enum.
type stateType struct {
	Name string
	Enum []string
}

func (t *stateType) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() == yamlconf.KindText && !n.Quoted() {
		t.Name = n.Text()
		if near := nearest.Name(t.Name, []string{"float", "int", "string", "bool"}); near != t.Name {
			return n.Fault("unknown type %q; did you mean %q?", t.Name, near)
		}
		return nil
	}
	enum, ok := n.Get("enum")
	if !ok || len(n.Items()) != 1 {
		return n.Fault("expected float, int, string, bool or {enum: [a, b]}")
	}
	t.Name = "enum"
	return enum.Decode(&t.Enum)
}

// check is what a domain does after Decode: it finds the byte where a made-up
// compiler stumbles.
func (c *config) check(doc *yamlconf.Doc) error {
	for _, s := range c.Synchronizers {
		for _, p := range s.Value.Predicates {
			path := yamlconf.Path("synchronizers", s.Key, "predicates", p.Key)
			if i := strings.Index(p.Value.When, "$"); i >= 0 {
				doc.FaultIn(path+".when", i, "unexpected %q", "$")
			}
			if p.Value.For < 0 {
				doc.FaultAt(path+".for", "a hold time cannot be negative")
			}
			if p.Value.Modality == "" && p.Value.For > 0 {
				doc.FaultAt(path+".modality", "a hold time needs a modality")
			}
			if p.Key == "now" {
				doc.Fault(p.Pos, "%q is no name for a predicate", p.Key)
			}
		}
	}
	return doc.Err()
}

const good = `# The first config.
synchronizers:
  gsync:
    members: {group: workers, count: 3}
    silence: {after: 2s, then: drop} # or block, fail
    state: {phase: {enum: [idle, search]}, load: float, best: float}
    memory: {best: {type: float, initial: +inf}}
    predicates:
      all-idle:
        when: all(members, .phase == "idle")
        modality: inst
        for: 200ms
      "low.load":
        when: |
          sum(members, .load) < 2 &&
            any(members, .phase == 'search')
        every: true
    tags:
      - one
      - "two \u00e9"
    limits: {small: -5, count: 0x10, ratio: .5, number: 12}
    matrix: [[1, 2], [], [3]]
    extra: {a: [b]}
  lower:
    members: 2
`
