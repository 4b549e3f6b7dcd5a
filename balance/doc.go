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
// The main strategy is that of the PEGASUS paper (Borkowski, Kopanski, Laskowski,
// Olejnik, Tudruj: A Distributed Program Global Execution Control Environment
// Applied to Load Balancing, 2012), sections 3.3 and 3.4. docs/balance.md has each
// formula, what is corrected in it, and measurements.
//
// # What is promised
//
// No plan makes the longest queue longer: a load moves only where the target's
// queue, with that load on it, stays shorter than the source's queue was, by the
// margin. So as long as weights and availability stay, moves come to an end. A
// load rests after a move, and does not go back where it came from unless the
// node it is on has lost most of what it had, or the one it came from was withdrawn
// or gone in between. Loads under way count where they
// are going. Whatever is reported, also infinities and numbers that are none, a
// plan is made from the rest and says what was refused.
//
// All this is about the state as reported. A node that lies by more than
// [Config].Outlier times is left alone where two others show it; a smaller lie is
// believed. Weights are estimates, and what a load costs its partners on other
// nodes is not counted, only preferred.
//
// # Other strategies
//
// The interface holds what else is known of load balancing, without change:
//
// A State is what is visible where a strategy runs. A central strategy is given
// all nodes, a neighbourhood one a node with those next to it; Transfer says what a
// way costs, and +Inf that there is none. So diffusion among neighbours (as in
// TDC) is one instance for each node on its own small State, and a move of the
// Plan is carried out by the node that has the load, whoever decided it.
//
// Who begins is not part of the interface either. A sender-initiated strategy
// plans moves away from its own node, a receiver-initiated one moves towards it
// (in both, Move.From and Move.To name the two), and a plan without moves is
// "wait". Waiting times and thresholds that hold for a while, as those of ALDY,
// are memory of the strategy; Plan.Again is when it wants to be asked again.
//
// A cluster tree (CORD, chapter 6) is a strategy whose memory is the tree, made
// from powers it is given: a node that runs dry takes a share of what its fixed
// partner has left, which is one Move for each load of that share.
package balance
