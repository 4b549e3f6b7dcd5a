package balance

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// Node is a computing node as its observation agent reports it.
type Node struct {
	Name string // unique in the state
	// Power is the computing power of all cores together, by the calibration at
	// join: work units per second, finite, 0 or more. It must be comparable
	// between nodes.
	Power float64
	// Share is the part of that power which is left to the application, from 0
	// to 1: 1 where nothing else computes, 0 where the node is to be left. It is
	// the mean over the cores. The paper sums the shares of the cores and the
	// powers of the cores, which would count the cores twice.
	Share float64
	// Note says why the node is to be left alone, whatever else stands here: its
	// loads count nowhere, and it is given none. Empty: it is not.
	Note string
}

// Fault says what about the numbers of a node no strategy believes, so that it is
// left alone; empty if there is nothing.
func (n *Node) Fault() string {
	switch {
	case !(n.Power >= 0 && n.Power <= huge):
		return fmt.Sprintf("its power %v is not from 0 to %g", n.Power, huge)
	case !(n.Share >= 0 && n.Share <= 1):
		return fmt.Sprintf("its share %v is not from 0 to 1", n.Share)
	}
	return ""
}

// Load is a piece of work that can be given to another node: a thread, a task
// or a subtask.
type Load struct {
	Name string // unique in the state
	// Node is where it is.
	Node string
	// To is where it is under way to, by a move that was decided before and is
	// not seen to have ended; empty if it is not. It counts at To, and stays out
	// of new plans.
	To string
	// Weight is WP(t): the work left in it, finite, 0 or more, in the units of
	// Power.
	Weight float64
	// Size is what a move transfers, in bytes; only State.Transfer looks at it.
	Size float64
	// Running says that it has begun and cannot be moved. The others wait.
	Running bool
}

// Fault says why no strategy believes the weight of a load, so that its node is left
// alone; empty if there is nothing.
func (l *Load) Fault() string {
	if l.Weight >= 0 && l.Weight <= huge {
		return ""
	}
	return fmt.Sprintf("the weight %v of %s is not from 0 to %g", l.Weight, l.Name, huge)
}

// Traffic is COM(ts, td): how much one load sends to another, finite, 0 or more,
// in any unit that is the same for all.
type Traffic struct {
	From, To string  // names of loads
	Volume   float64 // from From to To
}

// State is the input of a strategy: the nodes and loads of a global state, or the part of it
// that is visible where the strategy runs. Order matters only to break ties. A strategy does
// not keep or change it.
type State struct {
	Nodes   []Node    // all that can take or give loads
	Loads   []Load    // all that is on these nodes or on its way to them
	Traffic []Traffic // pairs that are not listed have none
	// Transfer gives the seconds that a load of some bytes takes from one node to
	// another, by their places in Nodes; +Inf where there is no way. Nil: no time
	// at all.
	Transfer func(from, to int, size float64) float64
}

// A Strategy decides which loads move. It holds the memory of its own former
// decisions, so one strategy serves one group of nodes, and its calls must not
// overlap.
type Strategy interface {
	// Name is the word for it in a configuration.
	Name() string
	// Plan decides on a state that held at an instant. Instants of a strategy do not go back.
	// Whatever the state holds, there is a plan. The plan lists each fault of the state.
	Plan(now clocksync.Instant, s *State) Plan
}
