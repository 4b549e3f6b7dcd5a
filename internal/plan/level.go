package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/config"
	"github.com/gopegasus/pegasus/internal/yamlconf"
	"github.com/gopegasus/pegasus/monitor"
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Plan is a compiled section: all that a [Core] needs. It does not change and
// may be shared.
type Level struct {
	Name    string
	Parent  string
	Members config.Members
	Silence config.Silence
	State   scgs.Schema
	Process scgs.Schema
	// Warnings are what is likely a mistake, though it can be run, and Notes what is
	// better written in another way.
	Warnings, Notes []yamlconf.Fault

	Env            *predicates.Env
	Prev           bool // some program reads the global state before
	Variables      []config.Variable
	Rules          []*Rule                   // in order of priority, then name
	SummaryFields_ []SummaryField            // a value for each field of the parent's state
	SignalsBelow   []predicates.ParentSignal // what the level below can read of our signals
	AboveState     scgs.Schema               // what the summary makes up
	Uses           []Use                     // of every program
	Below          []byte                    // the section of the level below, for our members
	OtherGroups    []targetGroup             // other groups that signals go to
	Source         *Source
	Program        Program  // that runs on its members, nil if there is none
	Balance        *Balance // that moves loads between them, nil if there is none
}

// Summary reports whether the level has a summary for its parent.
func (p *Level) Summary() bool { return len(p.SummaryFields_) > 0 }

// Summarizes reports whether the summary has an expression for the i-th field of
// the parent's state.
func (p *Level) Summarizes(i int) bool { return p.SummaryFields_[i].Expr != nil }

// Groups names the other groups that signals of the plan go to. Whoever hosts the
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

// heartbeat is how often a member that has nothing to say shows itself, at most.
const Heartbeat = time.Second

// heartbeat is how often a member that has nothing to say shows that it is there:
// several times before it would count as silent.
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

// FromParent lists the signals of the level above that the plan can read.
func (p *Level) FromParent() []predicates.ParentSignal { return p.Env.Parent }

// Memory is the declared memory, in the order of [Core.Memory].
func (p *Level) Memory() scgs.Schema { return p.Env.Memory }

// SummaryFields is the state that the summary makes up at the parent, in the
// order of a [SummaryEvent]; empty if there is no summary.
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

// told is what the parent is told of a field: the value of a program, or the
// field's default.
type SummaryField struct {
	Expr    *predicates.Expression // nil: the default
	Default scgs.Value
}

// rule is a compiled predicate.
type Rule struct {
	Name     string
	Text     string // of its section: equal texts are equal rules
	When     *predicates.Expression
	Judge    monitor.Judge // in place of when
	Detector Detector
	Hold     time.Duration
	Every    bool
	Until    *predicates.Expression // nil: it may fire again once it is false
	Cooldown time.Duration
	priority int
	Set      []assignment
	Signals  []Send
	Read     bool // the program switches on it, or has blocks under it
	Attached bool // the program has blocks under it, and it acts on those alone
}

// again is what makes a predicate that has fired ready to fire again.
func (r *Rule) Again() string {
	if r.Until != nil {
		return "its until is true"
	}
	return "it was false"
}

// source is the text of the condition.
func (r *Rule) Source() string {
	if r.Judge != nil {
		return "a function of the program"
	}
	return r.When.Source()
}

// own is what a rule's own detector looks for; a rule without one is judged on
// global states.
type Detector struct {
	Local    *predicates.Expression // nil: there is none
	Modality scgs.Modality          // of all members
	AtLeast  int                    // of so many members, if it is not 0
}

// AtLeast is the word of the modality of so many members.
const AtLeast = "atleast"

// exists reports whether the rule has a detector of its own.
func (o Detector) Exists() bool { return o.AtLeast > 0 || o.Modality != scgs.Inst }

// what is the modality by its word.
func (o Detector) Word() string {
	if o.AtLeast > 0 {
		return AtLeast
	}
	return o.Modality.String()
}

type assignment struct {
	Variable int
	Value    *predicates.Expression
}

type Send struct {
	Name    string
	Kind    control.Kind
	Region  string
	To      *predicates.Expression // nil: names, holders or another group
	Names   []string
	Holders bool
	ToAll   bool   // to is all
	Group   string // another one; empty: the synchronizer's own
	Data    []datum
	Expires time.Duration
}

type datum struct {
	Name  string
	Value *predicates.Expression
}

// Sent is a signal that a predicate of a plan sends.
type Sent struct {
	Predicate string
	Name      string
	Kind      control.Kind
	Region    string
	Data      scgs.Schema
}

// Sends lists the signals of the plan's predicates, in the order in which these
// are judged, and that of the section balance.
func (p *Level) Sends() []Sent {
	var list []Sent
	for _, r := range p.Rules {
		for i := range r.Signals {
			o := &r.Signals[i]
			s := Sent{Predicate: r.Name, Name: o.Name, Kind: o.Kind, Region: o.Region}
			for _, d := range o.Data {
				field := d.Value.Result()
				field.Name = d.Name
				s.Data = append(s.Data, field)
			}
			list = append(list, s)
		}
	}
	if p.Balance != nil {
		list = append(list, p.Balance.sent())
	}
	return list
}

// Source is the text that plans were compiled from: with it they can be compiled
// again.
type Source struct {
	Name      string     `json:"name"` // stands for the file
	Text      string     `json:"text"`
	Overrides []Override `json:"overrides,omitempty"`
	Program   bool       `json:"program,omitempty"` // it is a file with a program
}

// Override replaces the number of members that a section of the file awaits.
type Override struct {
	Synchronizer string `json:"synchronizer"`
	Count        int    `json:"count"`
}

// Hash is the SHA-256 of the text, in hexadecimal.
func (s *Source) Hash() string {
	sum := sha256.Sum256([]byte(s.Text))
	return hex.EncodeToString(sum[:])
}

// use is what the program at a place of the section depends on.
type Use struct {
	At   string
	Uses predicates.Uses
}
