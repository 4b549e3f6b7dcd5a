package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Param is a parameter of the file: a value that it is given a name for, and that a run
// may be given another one for.
type Param struct {
	Field    scgs.Field // its name and type
	Default  scgs.Value // where none is given
	Min, Max scgs.Value // Invalid: none
	Value    scgs.Value // in force
}

// Params are the parameters in the order of the file.
type Params []Param

// MaxParams is how many parameters a file may declare.
const MaxParams = 64

// UnmarshalNode takes a map of names to {type: T, default: V, min: V, max: V}.
func (p *Params) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Fault("params is a map of parameters, such as {limit: {type: float, default: 100, min: 0}}")
	}
	var broken error
	for _, item := range n.Items() {
		one, err := decodeParam(item)
		broken = cmp.Or(broken, err)
		if err == nil {
			*p = append(*p, one)
		}
	}
	if broken != nil {
		return broken
	}
	if len(*p) > MaxParams {
		return n.Fault("%d parameters, at most %d may be declared", len(*p), MaxParams)
	}
	if err := p.schema().Validate(); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

func (p Params) schema() scgs.Schema {
	s := make(scgs.Schema, len(p))
	for i := range p {
		s[i] = p[i].Field
	}
	return s
}

// paramKeys are the keys of a parameter.
var paramKeys = []string{"type", "default", "min", "max"}

func decodeParam(n yamlconf.Node) (Param, error) {
	p := Param{}
	p.Field.Name, _ = n.Key()
	of, ok := n.Get("type")
	if !ok {
		return p, n.Fault("a parameter has a type and a default: write {type: float, default: 100}")
	}
	if err := decodeType(&p.Field, of); err != nil {
		return p, err
	}
	if p.Field.Type.IsList() {
		return p, of.Fault("a parameter is a single value, and %s is a list", p.Field)
	}
	for _, item := range n.Items() {
		key, _ := item.Key()
		if !slices.Contains(paramKeys, key) {
			return p, item.Fault("unknown key %q: a parameter has %s", key, strings.Join(paramKeys, ", "))
		}
		if key == "type" {
			continue
		}
		if bound := key != "default"; bound && !ordered(p.Field.Type) {
			return p, item.Fault("%s is for numbers and durations, and %s is neither", key, p.Field)
		}
		v, err := decodeValue(p.Field, item)
		if err != nil {
			return p, err
		}
		switch key {
		case "default":
			p.Default = v
		case "min":
			p.Min = v
		default:
			p.Max = v
		}
	}
	if p.Default.Type() == scgs.Invalid {
		return p, n.Fault("a parameter has a default: write {type: %s, default: ...}", of.Text())
	}
	p.Value = p.Default
	if err := p.Accepts(p.Default); err != nil {
		return p, n.Fault("the default: %v", err)
	}
	return p, nil
}

// ordered is whether values of a type have an order.
func ordered(t scgs.Type) bool { return t == scgs.Int || t == scgs.Float || t == scgs.Duration }

// Accepts says why a value is not one of the parameter; nil if it is.
func (p *Param) Accepts(v scgs.Value) error {
	if !p.Field.Accepts(v) {
		return fmt.Errorf("params.%s does not take %v: it is declared as %s", p.Field.Name, v, p.Field)
	}
	below := p.Min.Type() != scgs.Invalid && less(v, p.Min)
	above := p.Max.Type() != scgs.Invalid && less(p.Max, v)
	if below || above {
		return fmt.Errorf("params.%s does not take %s: use %s", p.Field.Name, ParamText(v), p.Range())
	}
	return nil
}

func less(a, b scgs.Value) bool {
	if a.Type() == scgs.Float {
		return a.Float() < b.Float()
	}
	return a.Int() < b.Int()
}

// Range says which values are taken; empty if all of the type are.
func (p *Param) Range() string {
	low, high := p.Min.Type() != scgs.Invalid, p.Max.Type() != scgs.Invalid
	switch {
	case low && high:
		return ParamText(p.Min) + " to " + ParamText(p.Max)
	case low:
		return ParamText(p.Min) + " or more"
	case high:
		return ParamText(p.Max) + " or less"
	}
	return ""
}

// ParamText is a value as the file writes it.
func ParamText(v scgs.Value) string {
	switch v.Type() { //nolint:exhaustive // The others are written as they are.
	case scgs.String, scgs.Enum:
		return v.Text()
	case scgs.Duration:
		return time.Duration(v.Int()).String()
	}
	return v.String()
}

// Give sets the value of the parameter of a name, as the file would write it.
func (p Params) Give(name, text string) error {
	i := slices.IndexFunc(p, func(q Param) bool { return q.Field.Name == name })
	if i < 0 {
		names := make([]string, len(p))
		for k := range p {
			names[k] = p[k].Field.Name
		}
		if len(names) == 0 {
			return fmt.Errorf("the configuration declares no parameter %q: it declares none", name)
		}
		return fmt.Errorf("the configuration declares no parameter %q: it has %s", name, strings.Join(names, ", "))
	}
	v, err := ParseValue(p[i].Field, text)
	if err != nil {
		return fmt.Errorf("params.%s: %w", name, err)
	}
	if err := p[i].Accepts(v); err != nil {
		return err
	}
	p[i].Value = v
	return nil
}

// Named is the value that a text such as params.limit stands for where a number or a
// duration is written.
func (p Params) Named(text string) (value string, ok bool) {
	name, is := strings.CutPrefix(text, "params.")
	if !is {
		return "", false
	}
	for i := range p {
		if p[i].Field.Name == name {
			return ParamText(p[i].Value), true
		}
	}
	return "", false
}

// Values are the parameters as expressions read them.
func (p Params) Values() []predicates.Param {
	var list []predicates.Param
	for i := range p {
		list = append(list, predicates.Param{Field: p[i].Field, Value: p[i].Value})
	}
	return list
}

// DecodeParams decodes the parameters of a document, and lets them be written where a number or
// a duration stands. It comes before everything else is decoded. The error concerns the given
// values; faults of the document are in it.
func DecodeParams(root yamlconf.Node, given []Given) (Params, error) {
	var p Params
	n, declared := root.Get("params")
	if faulty := declared && n.Decode(&p) != nil; faulty {
		given = nil
	}
	var wrong []error
	for _, g := range given {
		if err := p.Give(g.Name, g.Value); err != nil {
			wrong = append(wrong, err)
		}
	}
	root.Names(p.Named)
	return p, errors.Join(wrong...)
}

// Given is a value for a parameter, as the file would write it.
type Given struct {
	Name  string // of the parameter
	Value string // as the file would write it
}
