package config

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Config is a configuration file: the synchronizers of every level by name.
type Config struct {
	// Params are values that have names; Given are others for them than the file's.
	Params        Params                     `yaml:"params"`
	Given         []Given                    // set before the file is decoded
	Wrong         error                      // of Given: what cannot be given
	Synchronizers yamlconf.Map[Synchronizer] `yaml:"synchronizers,required"` // in the order of the file
}

// UnmarshalNode decodes the parameters first: the rest may name them.
func (c *Config) UnmarshalNode(n yamlconf.Node) error {
	c.Params, c.Wrong = DecodeParams(n, c.Given)
	var raw struct {
		Params        yamlconf.Node              `yaml:"params"`
		Synchronizers yamlconf.Map[Synchronizer] `yaml:"synchronizers,required"`
	}
	err := n.Decode(&raw)
	c.Synchronizers = raw.Synchronizers
	return err
}

// Synchronizer is the section of a synchronizer.
type Synchronizer struct {
	// Parent names the synchronizer one level up, empty at the top.
	Parent  string  `yaml:"parent"`
	Members Members `yaml:"members,required"` // who takes part
	Silence Silence `yaml:"silence"`          // zero: the default, DefaultSilence and Drop
	// State declares the fields of a member's local state.
	State Fields `yaml:"state"`
	// Process declares the state that a process reports beside its threads.
	Process Fields `yaml:"process"`
	// Memory declares the synchronizer's own variables.
	Memory Variables `yaml:"memory"`
	// Let gives expressions names, for all predicates.
	Let        yamlconf.Map[string]    `yaml:"let" json:",omitempty"`
	Predicates yamlconf.Map[Predicate] `yaml:"predicates"` // by name, in the order of the file
	// Balance has loads moved between the members; nil: there is no such section.
	Balance *Balance `yaml:"balance" json:",omitempty"`
	// Work has tasks shared among the members; nil: there is no such section.
	Work *Work `yaml:"work" json:",omitempty"`
	// Summary gives the member's state at the parent, an expression a field.
	Summary yamlconf.Map[string] `yaml:"summary"`
}

// Members says who takes part: the members of a group, or the threads of each
// process that is a member of the parent.
type Members struct {
	Group   string // empty: threads
	Threads bool   // of each process that is a member of the parent
	Count   int    // awaited before the first epoch
	Min     int    // below it there is no epoch
	Max     int    // one over it is refused
}

// The default and the limit of the number of members.
const (
	DefaultMaxMembers = 1000
	MaxMembers        = 100_000
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
	m.Group, m.Min, m.Count, m.Max = raw.Group, 1, 1, DefaultMaxMembers
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
	case m.Max > MaxMembers:
		return n.Fault("max %d is above the limit of %d members", m.Max, MaxMembers)
	}
	return nil
}

// Limits gives the three numbers as lines for people have them.
func (m Members) Limits() string {
	return fmt.Sprintf("count %d, min %d, max %d", m.Count, m.Min, m.Max)
}

// counts is a number, or {min: A, max: B}.
type counts struct {
	fixed int
	Min   *int `yaml:"min"`
	Max   *int `yaml:"max"`
}

// UnmarshalNode implements yamlconf.Unmarshaler.
func (c *counts) UnmarshalNode(n yamlconf.Node) error {
	if n.Kind() != yamlconf.KindMap {
		return n.Decode(&c.fixed)
	}
	type plain counts // Without this method.
	return n.Decode((*plain)(c))
}

func (c *counts) into(m *Members) {
	m.Count = c.fixed
	if c.Min != nil {
		m.Min, m.Count = *c.Min, *c.Min
	}
	if c.Max != nil {
		m.Max = *c.Max
		if c.Min == nil {
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
	After time.Duration `yaml:"after"` // at least 200ms, default DefaultSilence
	Then  Policy        `yaml:"then"`  // default Drop
}

// String gives the policy as lines for people have it.
func (s Silence) String() string { return fmt.Sprintf("%v, %s", s.After, s.Then) }

// DefaultSilence is how long a member may say nothing where the file does not tell.
const DefaultSilence = 3 * time.Second

const minSilence = 200 * time.Millisecond

// UnmarshalNode implements yamlconf.Unmarshaler.
func (s *Silence) UnmarshalNode(n yamlconf.Node) error {
	type plain Silence // Without this method.
	*s = Silence{After: DefaultSilence, Then: Drop}
	if err := n.Decode((*plain)(s)); err != nil {
		return err
	}
	var faults []error
	if after, ok := n.Get("after"); ok && s.After < minSilence {
		faults = append(faults, after.Fault("%v is too short to tell silence from delay: use at least %v", s.After, minSilence))
	}
	if then, ok := n.Get("then"); ok && s.Then != Drop && s.Then != Block && s.Then != Fail {
		faults = append(faults, then.Fault("%q is no policy: use drop, block or fail", s.Then))
	}
	return cmp.Or(faults...)
}

// Predicate is one named condition on global states and what follows from it.
type Predicate struct {
	When     string        `yaml:"when,required"` // the condition, an expression
	Modality string        `yaml:"modality"`      // inst, definitely or possibly; empty: inst
	For      time.Duration `yaml:"for"`           // how long it must certainly have held; 0: at one instant
	Every    bool          `yaml:"every"`         // fires on every global state on which it holds
	// Until says when it may fire again; empty: when it is false.
	Until string `yaml:"until"`
	// Cooldown is the least time between two firings.
	Cooldown time.Duration `yaml:"cooldown"`
	Priority int           `yaml:"priority"` // judged from the highest down; default 0
	// Set gives new values to variables of the memory, an expression each.
	Set    yamlconf.Map[string] `yaml:"set"`
	Signal Signals              `yaml:"signal"` // sent when it fires
	// Let gives expressions names, for this predicate.
	Let yamlconf.Map[string] `yaml:"let" json:",omitempty"`
	// By names a field: there is one predicate for each of its words, on the members with it.
	By string `yaml:"by" json:",omitempty"`
	// Each is EachMember for a condition on one member, judged for each separately.
	Each string `yaml:"each" json:",omitempty"`
	// Once is how often it fires at most: once in a run, an epoch, or for a member.
	Once string `yaml:"once" json:",omitempty"`
	// Refire is for whom it fires in a new epoch in which it stays true; empty: RefireNewcomers.
	Refire string `yaml:"refire" json:",omitempty"`
	// After delays it: it fires so long after another one has, which is not ready again.
	After yamlconf.Map[time.Duration] `yaml:"after" json:",omitempty"`
	// Means is what names and parameters in its texts stand for, where that is a part of what it is.
	Means []string `json:",omitempty"`
}

// Signals is one signal or a list of signals.
type Signals []Signal

// UnmarshalNode implements yamlconf.Unmarshaler.
func (s *Signals) UnmarshalNode(n yamlconf.Node) error {
	for _, item := range n.Each() {
		_, to := item.Get("to")
		one := Signal{To: Everybody, ToDefault: !to, Expires: DefaultExpiry}
		if err := item.Decode(&one); err != nil {
			return err
		}
		*s = append(*s, one)
	}
	return nil
}

// Signal says what a predicate sends when it fires.
type Signal struct {
	Name   string `yaml:"name"`            // selects the handler; empty: the predicate's name
	Kind   string `yaml:"kind,required"`   // activate or cancel
	Region string `yaml:"region,required"` // that it goes to
	To     Target `yaml:"to"`              // default Everybody
	// ToDefault is set if To is not written: the predicate decides.
	ToDefault bool                 `json:"-"`
	Data      yamlconf.Map[string] `yaml:"data"`    // an expression each
	Expires   time.Duration        `yaml:"expires"` // how long it is tried; default DefaultExpiry, at most MaxExpiry
}

// Target says which members receive a signal: the members that an expression gives, those that
// are named, or all members of another group.
type Target struct {
	Expr  string   // gives the members: all, holders, or an expression
	Names []string // members by name
	Group string   `yaml:"group,required"` // another one
	Max   int      `yaml:"max"`            // members of the other group that are listened to; 0: the default
}

// Everybody is the target of a signal that names none: all members.
var Everybody = Target{Expr: "all"}

// EachMember is the word of a predicate that is judged for each member separately.
const EachMember = "members"

// The words of Refire.
const (
	RefireNewcomers = "newcomers" // for members that entered after its last firing
	RefireEpoch     = "epoch"     // for all, as at the start
)

// The words of Once.
const (
	OnceRun    = "run"
	OnceEpoch  = "epoch"
	OnceMember = "member"
)

// Holders stands for the members that the predicate's own detector has found.
const Holders = "holders"

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
		return n.Fault("an empty list: name the members, or leave the signal out")
	}
	return nil
}

func (t *Target) decodeGroup(n yamlconf.Node) error {
	type plain Target // Without its method.
	t.Max = DefaultMaxMembers
	if err := n.Decode((*plain)(t)); err != nil {
		return err
	}
	if t.Max < 1 || t.Max > MaxMembers {
		return n.Fault("max %d: from 1 to %d members of another group are listened to", t.Max, MaxMembers)
	}
	return nil
}

// How long a signal is tried.
const (
	DefaultExpiry = 30 * time.Second // where the file does not tell
	MaxExpiry     = time.Hour        // the most that it may ask for
)

// ParseKind finds the kind a configuration word stands for.
func ParseKind(word string) (control.Kind, bool) {
	for _, k := range []control.Kind{control.Activate, control.Cancel} {
		if k.String() == word {
			return k, true
		}
	}
	return 0, false
}

// Section is what a process needs to host the synchronizer below another one. It travels
// in welcomes as JSON, of which old journals have the digests: a new field, here or in a
// part, is left out where it is not set (json:",omitempty" or json:",omitzero").
type Section struct {
	Name         string                    // of the synchronizer
	Synchronizer Synchronizer              // its section of the file
	FromParent   []predicates.ParentSignal // the signals of the parent that it can read
	Params       []predicates.Param        `json:",omitempty"` // that it reads, with their values
	ParentState  scgs.Schema               // the parent's declared state, which the summary makes up
}

// BlockLevels are the blocks of a program that have threads, and the sections of the
// thread-level synchronizers above these.
type BlockLevels struct {
	Blocks   []BlockLevel // by name
	Sections []Section    // that the blocks name
}

// BlockLevel is a block of a program that has threads.
type BlockLevel struct {
	Block        string // its name
	Threads      int    // at least 1
	Synchronizer string `json:",omitempty"` // empty: a section that declares nothing
}
