package predicates

import (
	"fmt"
	"slices"

	"github.com/gopegasus/pegasus/scgs"
)

// Scope is the global state under judgement: what is known of the members, of
// memory and of the parent's signals. Its one owner updates it in place and
// evaluates on it; it is not safe for concurrent use.
type Scope struct {
	env     *Env
	members []Member
	online  []bool
	rows    []scgs.Value // len(env.State) values a member
	memory  []scgs.Value
	process []scgs.Value
	parent  [][]scgs.Value // nil before the first signal of that name
	prev    prev
	frame   frame
}

// Member is who a member is, apart from its state.
type Member struct {
	Name, Host string
}

// NewScope makes a Scope without members, in which nothing is known.
func NewScope(e *Env) *Scope {
	return &Scope{
		env:     e,
		memory:  make([]scgs.Value, len(e.Memory)),
		process: make([]scgs.Value, len(e.Process)),
		parent:  make([][]scgs.Value, len(e.Parent)),
	}
}

// Reset begins an epoch with these members, which are in the order of their
// names. Their states are unknown until Set; memory and the parent's signals
// stay.
func (s *Scope) Reset(members []Member) {
	s.members = append(s.members[:0], members...)
	n := len(members)
	s.online = slices.Grow(s.online[:0], n)[:n]
	s.rows = slices.Grow(s.rows[:0], n*len(s.env.State))[:n*len(s.env.State)]
	clear(s.online)
	clear(s.rows)
	s.prev.reset(n, len(s.rows))
}

// Len is the number of members.
func (s *Scope) Len() int { return len(s.members) }

// Set gives member i, by its index at Reset, a known state. The row has a value
// for each field of [Env.State]; an Invalid value, or one of another type than
// declared, counts as missing. The row is copied.
func (s *Scope) Set(i int, row []scgs.Value) {
	n := len(s.env.State)
	if len(row) != n {
		panic(fmt.Sprintf("predicates: member %s: %d values for %d fields", s.members[i].Name, len(row), n))
	}
	copy(s.rows[i*n:], row)
	s.online[i] = true
	s.prev.note(i)
}

// SetUnknown makes the state of member i unknown: it is not .online, and all
// its fields but .name and .host are unknown.
func (s *Scope) SetUnknown(i int) {
	s.online[i] = false
	s.prev.note(i)
}

// SetMemory gives variable i of [Env.Memory] a value; an Invalid one makes it
// unknown.
func (s *Scope) SetMemory(i int, v scgs.Value) { s.memory[i] = v }

// SetProcess gives the process that hosts the members a state, with a value for
// each field of [Env.Process]. The row is copied.
func (s *Scope) SetProcess(row []scgs.Value) {
	if len(row) != len(s.process) {
		panic(fmt.Sprintf("predicates: process: %d values for %d fields", len(row), len(s.process)))
	}
	copy(s.process, row)
}

// SetProcessUnknown makes the state of the process unknown, as it is at first.
func (s *Scope) SetProcessUnknown() { clear(s.process) }

// SetParent records the parent's last signal of a name, with a value for each of
// its declared fields; a nil row takes it back. The row is copied. A name that
// [Env.Parent] does not declare is ignored: no predicate can read it.
func (s *Scope) SetParent(signal string, row []scgs.Value) {
	i := slices.IndexFunc(s.env.Parent, func(p ParentSignal) bool { return p.Name == signal })
	if i < 0 {
		return
	}
	if n := len(s.env.Parent[i].Fields); row != nil && len(row) != n {
		panic(fmt.Sprintf("predicates: signal %s: %d values for %d fields", signal, len(row), n))
	}
	if row == nil {
		s.parent[i] = nil
		return
	}
	s.parent[i] = append(make([]scgs.Value, 0, len(row)), row...)
}

// frame is the working memory of one evaluation.
type frame struct {
	s    *Scope
	loop [MaxLoops + 1]int // the member or element that each loop is at
	vars []stored          // values named with let

	// Of loops over lists, and of an index inside of the innermost loop.
	lists    [MaxLoops + 1]listed
	elements [MaxLoops + 1]scgs.Value
}

// stored is the value of one variable; its type says which part is in use.
type stored struct {
	bool  truth
	int   span[int64]
	float span[float64]
	text  text
	item  item
}

// begin prepares the frame for a program.
func (s *Scope) begin(p *Program) *frame {
	if p.env != s.env {
		panic(fmt.Sprintf("predicates: %q was compiled for another Env than the Scope's", p.src))
	}
	s.frame.s = s
	if len(s.frame.vars) < p.vars {
		s.frame.vars = make([]stored, p.vars)
	}
	return &s.frame
}

// The readers below return a value and why it is missing.

func (s *Scope) stateValue(member, field int) (*scgs.Value, cause) {
	if !s.online[member] {
		return nil, cause{code: memberUnknown, member: int32(member)}
	}
	v := &s.rows[member*len(s.env.State)+field]
	if v.Type() != s.env.State[field].Type {
		return nil, cause{code: fieldMissing, member: int32(member), field: int32(field)}
	}
	return v, cause{}
}

func (s *Scope) memoryValue(i int) (*scgs.Value, cause) {
	v := &s.memory[i]
	if v.Type() != s.env.Memory[i].Type {
		return nil, cause{code: memoryMissing, field: int32(i)}
	}
	return v, cause{}
}

func (s *Scope) processValue(i int) (*scgs.Value, cause) {
	v := &s.process[i]
	if v.Type() != s.env.Process[i].Type {
		return nil, cause{code: processMissing, field: int32(i)}
	}
	return v, cause{}
}

func (s *Scope) parentValue(signal, field int) (*scgs.Value, cause) {
	if s.parent[signal] == nil {
		return nil, cause{code: signalMissing, member: int32(signal)}
	}
	v := &s.parent[signal][field]
	if v.Type() != s.env.Parent[signal].Fields[field].Type {
		return nil, cause{code: signalFieldMissing, member: int32(signal), field: int32(field)}
	}
	return v, cause{}
}
