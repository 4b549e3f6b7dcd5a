package predicates

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/scgs"
)

// Expression is a compiled predicate or expression. It is immutable and may be
// used by many goroutines, each with a [Scope] of its own.
type Expression struct {
	env    *Env
	src    string
	own    string // of a condition on one member: its text, of which src makes one on all
	shift  int    // of places in the parsed text against src, in runes
	tree   node
	result scgs.Field
	root   value
	cost   int
	setup  int
	vars   int
	folds  []anyFold
	uses   Uses
	named  bool // names in it stand for more
}

// Verdict is the judgement of a condition on one global state.
type Verdict struct {
	Truth  Truth  // Unknown if it depends on unknown values
	Reason string // why it is unknown; empty if it is not
}

// Uses says what the result of an Expression depends on.
type Uses struct {
	Members bool     // the set of members, and whose state is known
	Fields  uint64   // bit i: field i of Env.State
	Memory  uint64   // bit i: variable i of Env.Memory
	Process uint64   // bit i: field i of Env.Process
	Parent  []string // signals of the parent, in ascending order
	Params  uint64   // bit i: parameter i of Env.Params, which never changes
	Prev    bool     // the global state before, in its fields among Fields: the result may change with each new one
}

// joinUses is what two pieces of a text use together.
func (u Uses) joinUses(v Uses) Uses {
	return Uses{
		Members: u.Members || v.Members, Fields: u.Fields | v.Fields, Prev: u.Prev || v.Prev, Memory: u.Memory | v.Memory,
		Process: u.Process | v.Process, Params: u.Params | v.Params, Parent: append(u.Parent, v.Parent...),
	}
}

// membersOnly is whether nothing but the present state of members is used.
func (u Uses) membersOnly() bool {
	return !u.Prev && u.Memory == 0 && u.Process == 0 && len(u.Parent) == 0
}

// overlapsUses is whether there is something that both use.
func (u *Uses) overlapsUses(v *Uses) bool {
	return u.Fields&v.Fields != 0 || u.Memory&v.Memory != 0 || u.Members && v.Members || u.Prev && v.Prev || u.Process&v.Process != 0 ||
		len(v.Parent) > 0 && slices.ContainsFunc(u.Parent, func(name string) bool { return slices.Contains(v.Parent, name) })
}

// sortSignals returns the same Uses with the signals in order, each once.
func (u Uses) sortSignals() Uses {
	slices.Sort(u.Parent)
	u.Parent = slices.Compact(u.Parent)
	return u
}

// Source is the text that was compiled.
func (p *Expression) Source() string {
	if p.own != "" {
		return p.own
	}
	return p.src
}

// Expanded is the text with the expressions that its names stand for; more is false if it has
// no names.
func (p *Expression) Expanded() (text string, more bool) {
	if !p.named {
		return p.src, false
	}
	return textOf(p.tree), true
}

// Result is the type of the value, and the words of an enum; the field has no
// name. An expression of [Env.Members] has no type.
func (p *Expression) Result() scgs.Field { return p.result }

// Cost is the greatest number of steps that a change of a single member and one evaluation
// after it take at the member limit; it is at most [MaxSteps].
func (p *Expression) Cost() int { return p.cost }

// Setup is the greatest number of steps that the first evaluation of an epoch
// takes besides, to build the incremental aggregates; it is at most [MaxSetup].
func (p *Expression) Setup() int { return p.setup }

// Uses says what the result depends on. It is not to be changed.
func (p *Expression) Uses() Uses { return p.uses }

// Eval judges an expression of [Env.Bool]. It allocates only to write the reason of
// an unknown verdict.
func (p *Expression) Eval(s *Scope) Verdict {
	if p.root.bool == nil {
		panic(fmt.Sprintf("predicates: %q is no condition but %s", p.src, p.root.typeName()))
	}
	t := p.root.bool(s.beginExpression(p))
	if t.is == Unknown {
		return Verdict{Reason: p.describeCause(t.why, s)}
	}
	return Verdict{Truth: t.is}
}

// EvalValue computes an expression of [Env.Value] or [Env.Bool]. If the value is not
// known it is Invalid, and the reason says why.
func (p *Expression) EvalValue(s *Scope) (scgs.Value, string) {
	v, why := p.root.evalValue(s.beginExpression(p))
	if why.isSet() {
		return scgs.Value{}, p.describeCause(why, s)
	}
	return v, ""
}

// EvalMembers appends to dst the indexes of the members that certainly belong to
// an expression of [Env.Members], in ascending order. If it is not known of some
// member whether it belongs, the reason says so of the first one.
func (p *Expression) EvalMembers(dst []int, s *Scope) ([]int, string) {
	fr, g := s.beginExpression(p), p.root.group
	if g == nil {
		panic(fmt.Sprintf("predicates: %q is no group of members but %s", p.src, p.root.typeName()))
	}
	g.beginLoop(fr)
	var why cause
	for i := range s.members {
		switch in := g.moveTo(fr, i); in.is {
		case True:
			dst = append(dst, i)
		case Unknown:
			why = eitherCause(why, in.why)
		case False:
		}
	}
	if why.isSet() {
		return dst, p.describeCause(why, s)
	}
	return dst, ""
}
