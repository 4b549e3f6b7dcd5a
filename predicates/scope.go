package predicates

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/gopegasus/pegasus/scgs"
)

// Scope is the global state to judge: the known values of the members, of memory and of the
// parent's signals. Its one owner updates it in place and evaluates on it; it is not safe for
// concurrent use. It remembers every expression that was evaluated on it, and keeps their
// functions over members up to date.
type Scope struct {
	env     *Env
	members []Member
	online  []bool
	rows    []scgs.Value // len(env.State) values a member
	memory  []scgs.Value
	process []scgs.Value
	parent  [][]scgs.Value // nil before the first signal of that name
	prev    prev

	read    uint64 // bit i: field i of env.State is kept
	changed Uses   // since Settle

	states map[*Expression][]aggregator
	last   *Expression // that was evaluated
	shared []shared
	frame  frame // of the expression that is evaluated
	// sharedFrame is what shared aggregates are updated in, whichever expression
	// they came with.
	sharedFrame frame
}

// Member is who a member is, apart from its state.
type Member struct {
	Name, Host string // who it is, and where it runs
}

// NewScope makes a Scope without members, in which nothing is known.
func NewScope(e *Env) *Scope {
	s := &Scope{
		env:     e,
		memory:  make([]scgs.Value, len(e.Memory)),
		process: make([]scgs.Value, len(e.Process)),
		parent:  make([][]scgs.Value, len(e.Parent)),
		read:    math.MaxUint64,
		changed: Uses{Members: true, Memory: math.MaxUint64, Process: math.MaxUint64},
		states:  map[*Expression][]aggregator{},
	}
	for _, p := range e.Parent {
		s.changed.Parent = append(s.changed.Parent, p.Name)
	}
	s.frame.s, s.sharedFrame.s = s, s
	return s
}

// Only makes the Scope keep only the fields of members in a set, bit i being field i of
// [Env.State]. The other fields have no value for it, and change without any effect. Call it
// before the first Reset, where the fields to read are known.
func (s *Scope) Only(fields uint64) { s.read = fields }

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
	s.prev.beginEpoch(n, len(s.rows))
	for i := range s.shared {
		s.shared[i].forgetState()
	}
	s.changed.Members, s.changed.Prev = true, true
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
	old := s.rows[i*n : (i+1)*n]
	came, changed := !s.online[i], renew(old, row, s.read)
	if !came && changed == 0 {
		return
	}
	s.online[i] = true
	s.follow(i, came, changed)
}

// SetUnknown makes the state of member i unknown: it is not .online, and all
// its fields but .name and .host are unknown.
func (s *Scope) SetUnknown(i int) {
	if !s.online[i] {
		return
	}
	s.online[i] = false
	s.follow(i, true, 0)
}

// follow takes note that a member is another one as a whole, or in some fields.
func (s *Scope) follow(i int, whole bool, fields uint64) {
	s.prev.noteChange(i)
	for k := range s.shared {
		if state := &s.shared[k]; whole || state.fields&fields != 0 {
			state.followMember(s, i)
		}
	}
	s.changed.Members = s.changed.Members || whole
	s.changed.Fields |= fields
}

// renew copies the fields of a set from another row. It returns the fields that differed.
func renew(row, as []scgs.Value, of uint64) (changed uint64) {
	for of &= 1<<len(row) - 1; of != 0; of &= of - 1 {
		i := bits.TrailingZeros64(of)
		if row[i] != as[i] {
			row[i] = as[i]
			changed |= 1 << i
		}
	}
	return changed
}

// SetMemory gives variable i of [Env.Memory] a value; an Invalid one makes it
// unknown.
func (s *Scope) SetMemory(i int, v scgs.Value) {
	if s.memory[i] != v {
		s.changed.Memory |= 1 << i
	}
	s.memory[i] = v
}

// SetProcess gives the process that hosts the members a state, with a value for
// each field of [Env.Process]. The row is copied.
func (s *Scope) SetProcess(row []scgs.Value) {
	if len(row) != len(s.process) {
		panic(fmt.Sprintf("predicates: process: %d values for %d fields", len(row), len(s.process)))
	}
	s.changed.Process |= renew(s.process, row, math.MaxUint64)
}

// SetProcessUnknown makes the state of the process unknown, as it is at first.
func (s *Scope) SetProcessUnknown() { s.SetProcess(make([]scgs.Value, len(s.process))) }

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
	if !slices.Contains(s.changed.Parent, signal) {
		s.changed.Parent = append(s.changed.Parent, signal)
	}
	if row == nil {
		s.parent[i] = nil
		return
	}
	s.parent[i] = append(make([]scgs.Value, 0, len(row)), row...)
}

// Member is who member i is, and whether its state is known.
func (s *Scope) Member(i int) (m Member, online bool) { return s.members[i], s.online[i] }

// Value is the field of that number in member i's state, Invalid where it is not
// known.
func (s *Scope) Value(i, field int) scgs.Value {
	if v, why := s.stateValue(i, field); !why.isSet() {
		return *v
	}
	return scgs.Value{}
}

// Memory is the variable of that number, Invalid where it is not known.
func (s *Scope) Memory(i int) scgs.Value {
	if v, why := s.memoryValue(i); !why.isSet() {
		return *v
	}
	return scgs.Value{}
}

// Affects reports whether something that the result of an expression depends on may
// have changed since Settle was called last, or since NewScope. If not, neither
// has the result.
func (s *Scope) Affects(p *Expression) bool { return p.uses.overlapsUses(&s.changed) }

// Changed are the fields of members that may have changed since Settle was called last, a bit
// for each; more is set if anything else may have changed as well, such as the set of members
// or a variable.
func (s *Scope) Changed() (fields uint64, more bool) {
	c := &s.changed
	return c.Fields, c.Members || c.Prev || c.Memory|c.Process != 0 || len(c.Parent) > 0
}

// Settle starts a new collection of changes.
func (s *Scope) Settle() {
	c := &s.changed
	c.Fields, c.Memory, c.Process, c.Members, c.Prev, c.Parent = 0, 0, 0, false, false, c.Parent[:0]
}

// frame is the working memory of an evaluation.
type frame struct {
	s          *Scope
	loop       [MaxLoops + 1]int // the member or element that each loop is at
	vars       []stored          // values named with let
	aggregates []aggregator      // of the expression's folds

	// Of loops over lists, and of an index inside of the innermost loop.
	lists    [MaxLoops + 1]listed
	elements [MaxLoops + 1]scgs.Value
}

// stored is the value of a variable; its type says which part is in use.
type stored struct {
	bool  truth
	int   span[int64]
	float span[float64]
	text  text
	item  item
}

// beginExpression prepares the frame for an expression.
func (s *Scope) beginExpression(p *Expression) *frame {
	if p.env != s.env {
		panic(fmt.Sprintf("predicates: %q was compiled for another Env than the Scope's", p.src))
	}
	if p != s.last { // Most often one is evaluated again.
		states, known := s.states[p]
		if !known {
			states = s.track(p)
		}
		s.last, s.frame.aggregates = p, states
	}
	return &s.frame
}

// shared is an aggregate of incremental folds.
type shared struct {
	aggregator
	key    string
	fields uint64
}

// track gives an expression the aggregates of its folds: incremental ones are
// shared by all folds of the same key.
func (s *Scope) track(p *Expression) []aggregator {
	if p.uses.Fields&^s.read != 0 {
		panic(fmt.Sprintf("predicates: %q reads fields that the Scope does not keep", p.src))
	}
	if len(s.frame.vars) < p.vars {
		s.frame.vars, s.sharedFrame.vars = make([]stored, p.vars), make([]stored, p.vars)
	}
	states := make([]aggregator, len(p.folds))
	for i, f := range p.folds {
		key, fields := f.id()
		if k := slices.IndexFunc(s.shared, func(x shared) bool { return x.key == key }); k >= 0 {
			states[i] = s.shared[k].aggregator
			continue
		}
		states[i] = f.aggregate()
		if key != "" {
			s.shared = append(s.shared, shared{states[i], key, fields})
		}
	}
	for _, state := range states {
		state.addOwn(states)
	}
	s.states[p] = states
	return states
}

// The readers below return a value and why it is missing.

// expectType is a value, which is missing for that cause if it is of another type.
func expectType(v *scgs.Value, t scgs.Type, missing cause) (*scgs.Value, cause) {
	if v.Type() != t {
		return nil, missing
	}
	return v, cause{}
}

func (s *Scope) stateValue(member, field int) (*scgs.Value, cause) {
	if !s.online[member] {
		return nil, cause{code: memberUnknown, member: int32(member)}
	}
	missing := cause{code: fieldMissing, member: int32(member), field: int32(field)}
	return expectType(&s.rows[member*len(s.env.State)+field], s.env.State[field].Type, missing)
}

func (s *Scope) memoryValue(i int) (*scgs.Value, cause) {
	return expectType(&s.memory[i], s.env.Memory[i].Type, cause{code: memoryMissing, field: int32(i)})
}

func (s *Scope) processValue(i int) (*scgs.Value, cause) {
	return expectType(&s.process[i], s.env.Process[i].Type, cause{code: processMissing, field: int32(i)})
}

func (s *Scope) parentValue(signal, field int) (*scgs.Value, cause) {
	if s.parent[signal] == nil {
		return nil, cause{code: signalMissing, member: int32(signal)}
	}
	missing := cause{code: signalFieldMissing, member: int32(signal), field: int32(field)}
	return expectType(&s.parent[signal][field], s.env.Parent[signal].Fields[field].Type, missing)
}
