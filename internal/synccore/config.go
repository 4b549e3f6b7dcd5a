package synccore

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/scgs"
)

// Config is a configuration file: the synchronizers of every level by name.
type Config struct {
	Synchronizers yamlconf.Map[Synchronizer] `yaml:"synchronizers,required"`
}

// Synchronizer is the section of one synchronizer.
type Synchronizer struct {
	// Parent names the synchronizer one level up, empty at the top.
	Parent  string  `yaml:"parent"`
	Members Members `yaml:"members,required"`
	Silence Silence `yaml:"silence"`
	// State declares the fields of a member's local state.
	State Fields `yaml:"state"`
	// Process declares the state that a process reports beside its threads.
	Process Fields `yaml:"process"`
	// Memory declares the synchronizer's own variables.
	Memory     Variables               `yaml:"memory"`
	Predicates yamlconf.Map[Predicate] `yaml:"predicates"`
	// Balance has loads moved between the members; nil: there is no such section.
	Balance *Balance `yaml:"balance" json:",omitempty"`
	// Summary gives the member's state at the parent, an expression a field.
	Summary yamlconf.Map[string] `yaml:"summary"`
}

// Members says who takes part: the members of a group, or the threads of each
// process that is a member of the parent.
type Members struct {
	Group   string
	Threads bool
	Count   int // awaited before the first epoch
	Min     int // below it there is no epoch
	Max     int // one over it is refused
}

// The default and the limit of the number of members.
const (
	defaultMaxMembers = 1000
	maxMembers        = 100_000
)

// UnmarshalNode takes {group: NAME, count: N}, {group: NAME, count: {min: A,
// max: B}} and {threads: N}.
func (m *Members) UnmarshalNode(n yamlconf.Node) error {
	var raw struct {
		Group   string  `yaml:"group"`
		Threads *counts `yaml:"threads"`
		Count   *counts `yaml:"count"`
		Min     *int    `yaml:"min"`
		Max     *int    `yaml:"max"`
	}
	if err := n.Decode(&raw); err != nil {
		return err
	}
	switch {
	case raw.Threads != nil && (raw.Group != "" || raw.Count != nil):
		return n.Fault("members are a group, {group: NAME, count: N}, or the threads of a process, {threads: N}: not both")
	case raw.Threads != nil:
		m.Threads = true
		raw.Count = raw.Threads
	case raw.Group == "":
		return n.Fault("members need a group, {group: NAME, count: N}, or {threads: N}")
	}
	m.Group, m.Min, m.Count, m.Max = raw.Group, 1, 1, defaultMaxMembers
	if raw.Count != nil {
		raw.Count.into(m)
	}
	if raw.Min != nil {
		m.Min = *raw.Min
		m.Count = max(m.Count, m.Min)
	}
	if raw.Max != nil {
		m.Max = *raw.Max
	}
	return m.check(n)
}

func (m *Members) check(n yamlconf.Node) error {
	switch {
	case m.Min < 1 || m.Count < m.Min:
		return n.Fault("at least one member is needed: min %d, count %d", m.Min, m.Count)
	case m.Max < m.Count:
		return n.Fault("count %d is above max %d", m.Count, m.Max)
	case m.Max > maxMembers:
		return n.Fault("max %d is above the limit of %d members", m.Max, maxMembers)
	}
	return nil
}

// counts is a number, or {min: A, max: B}.
type counts struct {
	fixed    int
	min, max *int
}

// UnmarshalNode implements yamlconf.Unmarshaler.
func (c *counts) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Decode(&c.fixed)
	}
	var raw struct {
		Min *int `yaml:"min"`
		Max *int `yaml:"max"`
	}
	err := n.Decode(&raw)
	c.min, c.max = raw.Min, raw.Max
	return err
}

func (c *counts) into(m *Members) {
	m.Count = c.fixed
	if c.min != nil {
		m.Min, m.Count = *c.min, *c.min
	}
	if c.max != nil {
		m.Max = *c.max
		if c.min == nil {
			m.Count = 1
		}
	}
	m.Max = max(m.Max, m.Count)
}

// Policy is what becomes of a member that is silent for too long.
type Policy string

// The policies.
const (
	Drop  Policy = "drop"  // the next epoch is without it
	Block Policy = "block" // nothing is decided until it is back
	Fail  Policy = "fail"  // the synchronizer stops with an error
)

// Silence says when a member counts as silent, and what follows.
type Silence struct {
	After time.Duration `yaml:"after"`
	Then  Policy        `yaml:"then"`
}

const (
	defaultSilence = 3 * time.Second
	minSilence     = 200 * time.Millisecond
)

// UnmarshalNode implements yamlconf.Unmarshaler.
func (s *Silence) UnmarshalNode(n yamlconf.Node) error {
	raw := struct {
		After yamlconf.Node `yaml:"after"`
		Then  yamlconf.Node `yaml:"then"`
	}{}
	*s = Silence{After: defaultSilence, Then: Drop}
	if err := n.Decode(&raw); err != nil {
		return err
	}
	var faults []error
	if _, ok := n.Get("after"); ok {
		faults = append(faults, s.decodeAfter(raw.After))
	}
	if _, ok := n.Get("then"); ok {
		faults = append(faults, s.decodeThen(raw.Then))
	}
	return cmp.Or(faults...)
}

func (s *Silence) decodeAfter(n yamlconf.Node) error {
	if err := n.Decode(&s.After); err != nil {
		return err
	}
	if s.After < minSilence {
		return n.Fault("%v is too short to tell silence from delay: use at least %v", s.After, minSilence)
	}
	return nil
}

func (s *Silence) decodeThen(n yamlconf.Node) error {
	switch s.Then = Policy(n.Text()); s.Then {
	case Drop, Block, Fail:
		return nil
	}
	return n.Fault("%q is no policy: use drop, block or fail", n.Text())
}

// Fields declares the fields of a state in the order of the file.
type Fields scgs.Schema

// UnmarshalNode takes a map of field names to a type, or to {type: T, default: V}.
func (f *Fields) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Fault("the fields of a state are a map, such as {load: float, phase: {enum: [idle, busy]}}")
	}
	for _, item := range n.Items() {
		name, _ := item.Key()
		if name == "prev" {
			return item.Fault("the field name prev is reserved: .prev is the member in the global state before")
		}
		field, value, err := decodeField(name, item, "default")
		if err != nil {
			return err
		}
		if value != nil {
			if field.Default, err = decodeDefault(field, *value); err != nil {
				return err
			}
		}
		*f = append(*f, field)
	}
	if err := scgs.Schema(*f).Validate(); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

// Variable is a variable of the synchronizer's memory.
type Variable struct {
	Field   scgs.Field
	Initial *string // as the file writes it; nil: unknown until it is set
}

// Variables declares the memory in the order of the file.
type Variables []Variable

// UnmarshalNode takes a map of names to a type, or to {type: T, initial: V}.
func (v *Variables) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Fault("memory is a map of variables, such as {best: {type: float, initial: +inf}}")
	}
	for _, item := range n.Items() {
		name, _ := item.Key()
		variable, err := decodeVariable(name, item)
		if err != nil {
			return err
		}
		*v = append(*v, variable)
	}
	if err := v.schema().Validate(); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

func (v Variables) schema() scgs.Schema {
	s := make(scgs.Schema, len(v))
	for i := range v {
		s[i] = v[i].Field
	}
	return s
}

// Predicate is one named condition on global states and what follows from it.
type Predicate struct {
	When     string        `yaml:"when,required"`
	Modality string        `yaml:"modality"`
	For      time.Duration `yaml:"for"`
	Every    bool          `yaml:"every"`
	// Until says when it may fire again; empty: when it is false.
	Until string `yaml:"until"`
	// Cooldown is the least time between two firings.
	Cooldown time.Duration `yaml:"cooldown"`
	Priority int           `yaml:"priority"`
	// Set gives new values to variables of the memory, an expression each.
	Set    yamlconf.Map[string] `yaml:"set"`
	Signal Signals              `yaml:"signal"`
}

// Signals is one signal or a list of signals.
type Signals []Signal

// UnmarshalNode implements yamlconf.Unmarshaler.
func (s *Signals) UnmarshalNode(n yamlconf.Node) error {
	items := []yamlconf.Node{n}
	if n.Kind() == yamlconf.KindList {
		items = n.Items()
	}
	for _, item := range items {
		one := Signal{To: everybody, Expires: defaultExpiry}
		if err := item.Decode(&one); err != nil {
			return err
		}
		*s = append(*s, one)
	}
	return nil
}

// Signal says what a predicate sends when it fires.
type Signal struct {
	Name    string               `yaml:"name"`
	Kind    string               `yaml:"kind,required"`
	Region  string               `yaml:"region,required"`
	To      Target               `yaml:"to"`
	Data    yamlconf.Map[string] `yaml:"data"`
	Expires time.Duration        `yaml:"expires"`
}

// Target says who is sent a signal: the members that an expression gives, those that
// are named, or all members of another group.
type Target struct {
	Expr  string
	Names []string
	Group string
	Max   int // members of the other group that are listened to; 0: the default
}

var everybody = Target{Expr: "all"}

// holders stands for the members that the predicate's own detector has found.
const holders = "holders"

// UnmarshalNode takes an expression, a list of names, or {group: NAME, max: N}.
func (t *Target) UnmarshalNode(n yamlconf.Node) error {
	*t = Target{}
	switch n.Kind() {
	case yamlconf.KindList:
	case yamlconf.KindMap:
		return t.decodeGroup(n)
	default:
		return n.Decode(&t.Expr)
	}
	if err := n.Decode(&t.Names); err != nil {
		return err
	}
	if len(t.Names) == 0 {
		return n.Fault("a list of nobody: name the members, or leave the signal out")
	}
	return nil
}

func (t *Target) decodeGroup(n yamlconf.Node) error {
	raw := struct {
		Group string `yaml:"group,required"`
		Max   int    `yaml:"max"`
	}{Max: defaultMaxMembers}
	if err := n.Decode(&raw); err != nil {
		return err
	}
	if raw.Max < 1 || raw.Max > maxMembers {
		return n.Fault("max %d: from 1 to %d members of another group are listened to", raw.Max, maxMembers)
	}
	t.Group, t.Max = raw.Group, raw.Max
	return nil
}

const (
	defaultExpiry = 30 * time.Second
	maxExpiry     = time.Hour
)

// parseKind finds the kind a configuration word stands for.
func parseKind(word string) (control.Kind, bool) {
	for _, k := range []control.Kind{control.Activate, control.Cancel} {
		if k.String() == word {
			return k, true
		}
	}
	return 0, false
}

// decodeField reads a type: a word, {enum: [...]} or {list: T}; or {type: T} with
// one of these as T, in which a value may stand under another key.
func decodeField(name string, n yamlconf.Node, valueKey string) (scgs.Field, *yamlconf.Node, error) {
	field := scgs.Field{Name: name}
	of, ok := n.Get("type")
	if n.Kind() != yamlconf.KindMap || !ok {
		return field, nil, decodeType(&field, n)
	}
	for _, item := range n.Items() {
		if key, _ := item.Key(); key != "type" && key != valueKey {
			return field, nil, item.Fault("unknown key %q: beside type stands %s", key, valueKey)
		}
	}
	if err := decodeType(&field, of); err != nil {
		return field, nil, err
	}
	if value, ok := n.Get(valueKey); ok {
		return field, &value, nil
	}
	return field, nil, nil
}

// decodeType reads a word, {enum: [...]}, or {list: T} with one of these as T.
func decodeType(f *scgs.Field, n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		t, ok := scgs.ParseType(n.Text())
		if !ok || t == scgs.Enum {
			return n.Fault("%q is no type: use bool, int, float, string, duration, {enum: [a, b]} or {list: TYPE}", n.Text())
		}
		f.Type = t
		return nil
	}
	words, isEnum := n.Get("enum")
	elem, isList := n.Get("list")
	switch {
	case len(n.Items()) != 1 || !isEnum && !isList:
		return n.Fault("a type is a word, such as float, {enum: [a, b]} or {list: TYPE}")
	case isEnum:
		f.Type = scgs.Enum
		return words.Decode(&f.Words)
	}
	if err := decodeType(f, elem); err != nil {
		return err
	}
	if f.Type.IsList() {
		return elem.Fault("a list of lists is not possible: its elements are bool, int, float, string, duration or {enum: [a, b]}")
	}
	f.Type = scgs.ListOf(f.Type)
	return nil
}

// decodeDefault reads the value of a field that a state does not give.
func decodeDefault(f scgs.Field, n yamlconf.Node) (scgs.Value, error) {
	value, err := decodeValue(f, n)
	if err != nil {
		return value, err
	}
	f.Default = value
	if err := (scgs.Schema{f}).Validate(); err != nil {
		return value, n.Fault("%v", err)
	}
	return value, nil
}

// decodeValue reads a value of a field, a list as [a, b].
func decodeValue(f scgs.Field, n yamlconf.Node) (scgs.Value, error) {
	switch {
	case f.Type.IsList() && n.Kind() == yamlconf.KindList:
		elements := make([]scgs.Value, 0, len(n.Items()))
		for _, item := range n.Items() {
			value, err := decodeValue(f.Element(), item)
			if err != nil {
				return value, err
			}
			elements = append(elements, value)
		}
		return scgs.ListValue(f.Type.Elem(), elements...), nil
	case f.Type.IsList():
		return scgs.Value{}, n.Fault("a value of %s is a list, such as [] or [a, b]", f)
	case n.Kind() == yamlconf.KindList || n.Kind() == yamlconf.KindMap || n.Kind() == yamlconf.KindNull:
		return scgs.Value{}, n.Fault("%s is no value of %s", n.Kind(), f)
	}
	value, err := parseValue(f, n.Text())
	if err != nil {
		return value, n.Fault("%v", err)
	}
	return value, nil
}

// decodeVariable reads a type, or {type: T, initial: V}.
func decodeVariable(name string, n yamlconf.Node) (Variable, error) {
	field, value, err := decodeField(name, n, "initial")
	switch {
	case err != nil:
		return Variable{}, err
	case field.Type.IsList():
		return Variable{}, n.Fault("memory holds single values: %s is a list, which only a state has", field)
	case value == nil:
		return Variable{field, nil}, nil
	}
	if _, err := decodeValue(field, *value); err != nil {
		return Variable{}, err
	}
	text := value.Text()
	return Variable{field, &text}, nil
}

// parseValue reads a single value of a field as a configuration file writes it.
func parseValue(f scgs.Field, text string) (scgs.Value, error) {
	if f.Type != scgs.Float {
		return f.Parse(text)
	}
	x, err := yamlconf.ParseFloat(text)
	v := scgs.FloatValue(x)
	if err != nil || !f.Accepts(v) {
		return scgs.Value{}, fmt.Errorf("%q is no value of %s", text, f)
	}
	return v, nil
}
