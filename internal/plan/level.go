package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Level is a synchronizer's compiled section: all that its machine needs. It does not change
// and may be shared.
type Level struct {
	Name    string         // of the synchronizer
	Parent  string         // the synchronizer one level up; empty at the top
	Members config.Members // who takes part
	Silence config.Silence // when a member counts as silent, and what follows
	State   scgs.Schema    // declared for the members
	Process scgs.Schema    // declared for the process beside its threads; empty: none
	// Warnings are likely mistakes that can be run all the same. Notes are texts that are
	// better written in another way.
	Warnings, Notes []yamlconf.Fault

	Params       config.Params             // of the file, with their values
	Env          *predicates.Env           // the names that expressions can read
	Prev         bool                      // some expression reads the global state before
	Variables    []config.Variable         // of the memory, in the order of the file
	Rules        []*Rule                   // in order of priority, then name
	Summaries    []SummaryField            // a value for each field of the parent's state; empty: no summary
	SignalsBelow []predicates.ParentSignal // what the level below can read of our signals
	AboveState   scgs.Schema               // the parent's, if there is a summary
	Uses         []Use                     // of every expression
	Below        []byte                    // the section of the level below, for our members; nil: none
	OtherGroups  []targetGroup             // other groups that signals go to
	Source       *Source                   // nil for a level that came with a Welcome
	names        *predicates.Env           // Env, with the names that expressions were given
	Program      Program                   // that runs on its members, nil if there is none
	Balance      *Balance                  // that moves loads between them, nil if there is none
	Work         *config.Work              // the section that members receive; nil: there is none
	WorkText     []byte                    // of that, as they receive it
	WorkHash     uint64                    // of that text; 0: there is none
	Newest       *predicates.Expression    // the newest phase that a member is in; nil: there is no section work
	Ended        int                       // the variable of the memory that has the last phase which is over, if there is a section
}

// Summary reports whether the level has a summary for its parent.
func (p *Level) Summary() bool { return len(p.Summaries) > 0 }

// Summarizes reports whether the summary has an expression for the i-th field of
// the parent's state.
func (p *Level) Summarizes(i int) bool { return p.Summaries[i].Expr != nil }

// Reads are the fields of a member's state that something reads of a global state, a bit
// for each: all if a program looks at it.
func (p *Level) Reads() (fields uint64) {
	for _, u := range p.Uses {
		fields |= u.Uses.Fields
	}
	for _, r := range p.Rules {
		if r.Judge != nil && !r.blind {
			return math.MaxUint64
		}
	}
	return fields
}

// Read are the parameters that expressions of the level read.
func (p *Level) Read(params []predicates.Param) []predicates.Param {
	var used uint64
	for _, u := range p.Uses {
		used |= u.Uses.Params
	}
	var list []predicates.Param
	for i := range params {
		if used>>i&1 == 1 {
			list = append(list, params[i])
		}
	}
	return list
}

// Groups names the other groups that signals of the level go to. Whoever hosts the
// machine lets it hear their members.
func (p *Level) Groups() []string {
	names := make([]string, len(p.OtherGroups))
	for i, g := range p.OtherGroups {
		names[i] = g.Name
	}
	return names
}

// targetGroup is another group that signals go to, and how many of its members are
// listened to.
type targetGroup struct {
	Name string
	Max  int
}

// Heartbeat is the longest time between two messages of a member that has nothing to
// say.
const Heartbeat = time.Second

// Heartbeat is how often a member of the level that has nothing to say shows that it is
// there: several times before it would count as silent.
func (p *Level) Heartbeat() time.Duration { return min(Heartbeat, p.Silence.After/3) }

// Predicates lists the names of the level's predicates.
func (p *Level) Predicates() []string {
	names := make([]string, len(p.Rules))
	for i, r := range p.Rules {
		names[i] = r.Name
	}
	slices.Sort(names)
	return names
}

// FromParent lists the signals of the level above that the level can read.
func (p *Level) FromParent() []predicates.ParentSignal { return p.Env.Parent }

// Memory is the declared memory, in the order in which a machine answers
// with its values.
func (p *Level) Memory() scgs.Schema { return p.Env.Memory }

// SummaryFields is the state that the summary makes up at the parent, in the
// order of a summary's rows; empty if there is no summary.
func (p *Level) SummaryFields() scgs.Schema { return p.AboveState }

// Run makes the level run a program, which reads the predicates of these names and
// has blocks attached to those for which that is true. Its members learn of the
// threads of blocks by the level below.
func (p *Level) Run(program Program, reads map[string]bool, below []byte) {
	p.Program, p.Below = program, below
	for _, r := range p.Rules {
		attached, read := reads[r.Name]
		r.Read, r.Attached = r.Read || read, r.Attached || attached
	}
}

// SummaryField is a field of the report to the parent: the value of an expression, or the
// field's default.
type SummaryField struct {
	Expr    *predicates.Expression // nil: the default
	Default scgs.Value             // Invalid: the field has none
}

// Rule is a compiled predicate.
type Rule struct {
	Name string     // of the predicate
	Key  string     // of its section; of a group of members, its name is more than that
	By   int        // the field by which members are grouped, counted from 1; 0: they are not
	Of   scgs.Value // of that field, in the rule's group
	// Text is the text of its section. A reload continues a rule of the same name and text, and
	// begins any other again: a key whose change shall not do that is left out.
	Text     string
	When     *predicates.Expression // the condition; nil if there is a Judge
	Judge    monitor.Judge          // in place of When; nil: none
	blind    bool                   // the Judge looks at nothing
	Detector Detector               // of its own; the zero Detector: judged on global states
	Hold     time.Duration          // how long it must certainly have held; 0: at one instant
	Every    bool                   // fires on every global state on which it holds
	Once     string                 // how often it fires at most, a word of package config; empty: as often as it may
	Refires  bool                   // in each epoch for all, as at the start; else for newcomers if it stays true
	After    []After                // what else has to have fired
	Until    *predicates.Expression // nil: it may fire again once it is false
	Cooldown time.Duration          // the least time between two firings; 0: none
	priority int
	Set      []assignment // of the memory, when it fires
	Signals  []Send       // sent when it fires
	Read     bool         // the program switches on it, or has blocks under it
	Attached bool         // the program has blocks under it, and it acts on those alone
}

// Again says in words what makes a predicate that has fired ready to fire again.
func (r *Rule) Again() string {
	if r.Until != nil {
		return "its until is true"
	}
	return "the condition was false"
}

// Source is the text of the condition, for people.
func (r *Rule) Source() string {
	if r.Judge != nil {
		return "a function of the program"
	}
	return r.When.Source()
}

// Outside reports whether a member with such a state is certainly not in the group that the
// rule is judged for. The row is empty if the state is unknown.
func (r *Rule) Outside(row []scgs.Value) bool {
	return r.By > 0 && len(row) >= r.By && row[r.By-1] != r.Of
}

// Detector is what a rule's own detector looks for; a rule without one is judged on
// global states.
type Detector struct {
	Local    *predicates.Expression // nil: there is none
	Modality scgs.Modality          // of all members
	AtLeast  int                    // of so many members, if it is not 0; 1 if Least says of how many
	Least    *predicates.Expression // of so many, by who the members of an epoch are; nil: of AtLeast
	Each     bool                   // of each member separately
	Until    *predicates.Expression // of Each: what ends it; nil: that Local is not true
}

// After is a predicate that has to have fired before another one does.
type After struct {
	Rule string        // its name
	Wait time.Duration // how long before
}

// AtLeast is the word of the modality of so many members.
const AtLeast = "atleast"

// Each is the word of the modality that judges each member separately.
const Each = "each"

// Exists reports whether the rule has a detector of its own.
func (o Detector) Exists() bool { return o.Each || o.AtLeast > 0 || o.Modality != scgs.Inst }

// Word is the modality as a word: atleast for a threshold.
func (o Detector) Word() string {
	switch {
	case o.Each:
		return Each
	case o.AtLeast > 0:
		return AtLeast
	}
	return o.Modality.String()
}

// assignment gives a variable of the memory, by its place there, a new value.
type assignment struct {
	Variable int
	Value    *predicates.Expression
}

// Send is a signal as a rule sends it, with its target and data still to be evaluated.
type Send struct {
	Name    string                 // selects the handler
	Kind    control.Kind           // Activate or Cancel
	Region  string                 // that it goes to
	To      *predicates.Expression // gives the members; nil: Names, Holders or Group
	Names   []string               // members by name
	Holders bool                   // to those that the rule's own detector has found
	ToAll   bool                   // To is all
	Group   string                 // another one; empty: the synchronizer's own
	Data    []datum                // evaluated on the global state of the decision
	Expires time.Duration          // how long it is tried, more than 0
}

// datum is a value that a signal carries.
type datum struct {
	Name  string
	Value *predicates.Expression
	// Redact is set if the value depends on a redacted field.
	Redact bool
}

// Sent is a signal that the rules of a level send, by its form.
type Sent struct {
	Predicate string       // that sends it
	Name      string       // selects the handler
	Kind      control.Kind // Activate or Cancel
	Region    string       // that it goes to
	Data      scgs.Schema  // names and types of its values
}

// Sends lists the signals of the level's predicates, in the order in which these are judged,
// and the signal of the section balance.
func (p *Level) Sends() []Sent {
	var list []Sent
	for _, r := range p.Rules {
		for i := range r.Signals {
			o := &r.Signals[i]
			s := Sent{Predicate: r.Name, Name: o.Name, Kind: o.Kind, Region: o.Region}
			for _, d := range o.Data {
				field := d.Value.Result()
				field.Name, field.Redact = d.Name, d.Redact
				s.Data = append(s.Data, field)
			}
			list = append(list, s)
		}
	}
	if p.Balance != nil {
		list = append(list, p.Balance.sentSignal())
	}
	return list
}

// Aims are what the signals to the level's own members name in these, each once, in the order of
// [Level.Sends]. The regions of the section work are not among them.
func (p *Level) Aims() []wire.Aim {
	var list []wire.Aim
	add := func(a wire.Aim) {
		if !slices.Contains(list, a) && (p.Work == nil || a.Region != config.WorkName && a.Region != config.ObjectsRegion) {
			list = append(list, a)
		}
	}
	for _, r := range p.Rules {
		for i := range r.Signals {
			if o := &r.Signals[i]; o.Group == "" {
				add(wire.Aim{Signal: o.Name, Kind: o.Kind, Region: o.Region})
			}
		}
	}
	if p.Balance != nil {
		s := p.Balance.sentSignal()
		add(wire.Aim{Signal: s.Name, Kind: s.Kind, Region: s.Region})
	}
	return list
}

// Source is the text that levels were compiled from: with it they can be compiled
// again. It is a part of journals.
type Source struct {
	Name      string     `json:"name"`                // stands for the file
	Text      string     `json:"text"`                // of the file
	Overrides []Override `json:"overrides,omitempty"` // that it was compiled with
	Program   bool       `json:"program,omitempty"`   // it is a file with a program
}

// Override replaces the number of members that a section of the file awaits, or the value
// of a parameter.
type Override struct {
	Synchronizer string `json:"synchronizer,omitempty"` // the section's name
	Count        int    `json:"count,omitempty"`        // at least 1; Min and Max follow it
	Param        string `json:"param,omitempty"`        // a parameter; then the two above are not set
	Value        string `json:"value,omitempty"`        // of Param, as the file would write it
	Live         bool   `json:"live,omitempty"`         // Param was set while a synchronizer ran, and stays so over reloads and restarts
}

// ParamStatus is the parameter of a place, for people.
func (p *Level) ParamStatus(i int) monitor.ParamStatus {
	param := &p.Params[i]
	s := monitor.ParamStatus{
		Name: param.Field.Name, Value: config.ParamText(param.Value), Default: config.ParamText(param.Default), Range: param.Range(),
		Type: strings.TrimPrefix(param.Field.String(), param.Field.Name+": "),
	}
	if p.Source != nil {
		s.Set = slices.ContainsFunc(p.Source.Overrides, func(o Override) bool { return o.Live && o.Param == s.Name })
	}
	return s
}

// Live are the parameters that were set while a synchronizer ran.
func (s *Source) Live() []Override {
	return slices.DeleteFunc(slices.Clone(s.Overrides), func(o Override) bool { return !o.Live })
}

// Hash is the SHA-256 of the text, in hexadecimal.
func (s *Source) Hash() string {
	sum := sha256.Sum256([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// Use is what the expression at a place of the section depends on.
type Use struct {
	At   string          // such as predicates.NAME.when
	Text string          // as it stands there
	Uses predicates.Uses // fields, variables, signals of the parent
}

// Reserves reports whether a region is the region of the section work, which only a member that waits for the
// end of a phase is in.
func (p *Level) Reserves(region string) bool { return p.Work != nil && region == config.WorkName }
