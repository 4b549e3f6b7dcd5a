// Package worksim runs the machines of work distribution on simulated nodes: each node has a
// [workcore.Member] with a strategy of balance/local, as a process that opens a space has. Nodes differ in
// speed, and their speeds change. Frames take a time for their bytes, and may be lost or doubled.
//
// What is simulated is the program: the functions of tasks. A plain task of a weight runs for weight/speed.
// A bag is a list of items that have weights; its function yields between two items, and gives a part away
// there, as functions of the package work do. The time that a process takes to handle a frame is not
// simulated, nor is the end of a phase: a run ends when every item is recorded, by the count of the
// simulator. No account is asked for that.
//
// [RunLoops] runs the machines of elastic loops instead, on nodes whose owners come and go. The simulator counts the rows
// of each iteration, and compares them with those that all nodes could do.
//
// A run is a function of its scenario and seed: no clock, no goroutine, no map order.
package worksim
