// Package balancesim runs the strategies of package balance on nodes and links
// that are simulated by discrete events: nodes of unequal and changing speed, work
// that is drawn or replayed from a trace, messages that take a startup and a time
// for their size on each link of a topology. The code that decides is the code
// that a synchronizer runs.
//
// Each node does one task at a time, in the order of their arrival there. At
// regular instants every node reports what is on it and the power it has left;
// the reports reach the node that plans, the strategy plans on them, and each move
// travels to the node that has the load, which sends all that go to one target in
// one message, without those that have begun meanwhile. One thing is not
// simulated: messages do not wait for each other on a link.
//
// A run is a function of its instance and settings: no clock, no goroutine, and
// randomness from one seed.
package balancesim
