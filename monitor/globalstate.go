package monitor

import (
	"fmt"

	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Judge is a predicate written in Go: it says whether a global state satisfies it
// and, if that is unknown, why. It must be a function of the global state alone.
type Judge func(GlobalState) (truth predicates.Truth, reason string)

// GlobalState is what a [Judge] is shown: states of all members that certainly
// held at the same time. It may be read until the Judge returns.
type GlobalState struct {
	// Epoch and Index name the global state.
	Epoch, Index uint64
	// Partial is set if the state of some member is unknown. Then this is no strongly
	// consistent global state, but the known states held together.
	Partial bool
	// Span is when it held.
	Span scgs.Span

	state  scgs.Schema // of a member
	memory scgs.Schema
	scope  *predicates.Scope
}

// NewGlobalState returns the view of a global state that is in a scope, whose rows have the
// fields of state and whose memory has the fields of memory.
func NewGlobalState(epoch, index uint64, partial bool, span scgs.Span, state, memory scgs.Schema, scope *predicates.Scope) GlobalState {
	return GlobalState{Epoch: epoch, Index: index, Partial: partial, Span: span, state: state, memory: memory, scope: scope}
}

// Len is the number of members.
func (g GlobalState) Len() int { return g.scope.Len() }

// Member tells who member i is, in the order of names from 0, and whether its
// state is known.
func (g GlobalState) Member(i int) (name, host string, online bool) {
	m, online := g.scope.Member(i)
	return m.Name, m.Host, online
}

// Value is a field of member i's state. It is Invalid if the state is unknown or
// has no value for the field. A field that is not declared is a mistake of the
// program, and a panic.
func (g GlobalState) Value(i int, field string) scgs.Value {
	f := g.state.Index(field)
	if f < 0 {
		panic(fmt.Sprintf("the state has no field %q: declared are %s", field, g.state.Names()))
	}
	return g.scope.Value(i, f)
}

// Memory is a variable of the synchronizer, Invalid if it has no value yet. A
// variable that is not declared is a mistake of the program, and a panic.
func (g GlobalState) Memory(name string) scgs.Value {
	i := g.memory.Index(name)
	if i < 0 {
		panic(fmt.Sprintf("memory has no variable %q: declared are %s", name, g.memory.Names()))
	}
	return g.scope.Memory(i)
}
