// Package balance decides which loads move between nodes of unequal and changing
// speed, and explains each decision. It is pure: a [Strategy] takes an instant and
// a [State] and leaves a [Plan]. The same code runs in a synchronizer, in a
// process and in the simulator of "pegasus balance sim".
//
//	strategy, err := balance.New(balance.Default())
//	...
//	plan := strategy.Plan(now, &state)
//	for _, m := range plan.Moves {
//		// send m.Load from m.From to m.To
//	}
//	fmt.Print(&plan) // why
//
// The main strategy comes from the PEGASUS paper (Borkowski, Kopanski, Laskowski, Olejnik,
// Tudruj: A Distributed Program Global Execution Control Environment Applied to Load Balancing,
// 2012), sections 3.3 and 3.4. docs/balance.md has each formula, its corrections, and
// measurements.
//
// # Promises
//
// No plan makes the longest queue longer: a load moves only where the target's queue, with that
// load on it, stays shorter than the source's queue was, by the margin. So as long as weights
// and availability stay, moves come to an end. A load rests after a move, and does not go back
// where it came from unless the node it is on has lost most of its availability, or the node it came
// from was withdrawn or gone in between. Loads under way count on their target. Infinities and
// NaN in a report are refused: a plan is made from the rest and lists the refusals.
//
// All this is about the state as reported. A node whose report is wrong by more than
// [Config].Outlier times is left alone where two others show it; a smaller error is believed.
// Weights are estimates. The cost of a load for its partners on other nodes is not counted,
// only preferred.
//
// # Other strategies
//
// The interface also fits other known methods of load balancing, without change:
//
// A State is the visible part of the system where a strategy runs. A central strategy gets all
// nodes, a neighbourhood strategy gets a node and the nodes next to it; Transfer says what a
// way costs, and +Inf that there is none. So diffusion among neighbours (as in TDC) is one
// instance for each node on its own small State, and a move of the Plan is carried out by the
// node that has the load, whoever decided it.
//
// Who begins is not part of the interface either. A sender-initiated strategy plans moves away
// from its own node, a receiver-initiated one moves towards it (in both, Move.From and Move.To
// name the two), and a plan without moves is "wait". Waiting times and thresholds that hold for
// a while, as in ALDY, are memory of the strategy; Plan.Again is when to ask it again.
//
// A cluster tree (CORD, chapter 6) is a strategy whose memory is the tree, made from powers it
// is given: a node that runs dry takes a share of its fixed partner's remaining loads, with one
// Move for each load of that share.
package balance
