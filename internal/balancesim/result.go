package balancesim

import "github.com/gopegasus/pegasus/clocksync"

// Result is what came of a run. Times are in seconds.
type Result struct {
	Strategy     string
	Nodes        int
	Tasks        int
	Efficiency   float64 // bound / time
	Time         float64
	Bound        float64
	Migrations   int     // messages with tasks
	Units        int     // tasks moved
	Bytes        float64 // of tasks moved
	Messages     int
	MessageBytes float64
	Idle         float64 // of all nodes, up to the end
	Tail         float64 // from the last start of a task to the end
	Talk         float64 // that tasks waited for partners on other nodes
	Cut          float64 // of Volume, between nodes
	Volume       float64
	Returned     int // tasks sent back to the node they came from last
	Late         int // moves whose task had begun or gone when the order came
	WrongMoves   int // moves that were no gain by what was true when they were decided
	WrongStops   int // plans on a view without work while there was some
	Plans        int
	Settled      float64 // -1 without a move
	Unfinished   int

	lastStart clocksync.Instant
	busy      [][]span
}
