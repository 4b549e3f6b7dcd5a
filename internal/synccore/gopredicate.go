package synccore

import (
	"github.com/gopegasus/pegasus/predicates"
	"github.com/gopegasus/pegasus/scgs"
)

// Judge is a predicate written in Go: it says whether a global state satisfies it
// and, if that is unknown, why. It is a function of the global state alone.
type Judge func(GlobalState) (predicates.Truth, string)

// GlobalState is what a [Judge] is shown: the members' states that certainly held
// together. It is good until the Judge returns.
type GlobalState struct {
	core *Core
	// Epoch and Index name the global state; Partial is set if some member's state
	// is unknown.
	Epoch, Index uint64
	Partial      bool
	Span         scgs.Span
}

func (c *Core) globalState(span scgs.Span) GlobalState {
	return GlobalState{core: c, Epoch: c.ev.Epoch, Index: c.ev.Index, Partial: c.ev.Partial, Span: span}
}
