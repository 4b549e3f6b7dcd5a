// Package broken has tests alone, with the tag broken: real processes (members, a
// synchronizer that leads, a standby, a NATS server, a node with a program) are
// killed, stopped and cut off on purpose, and judged by what they wrote down
// (docs/testing.md, "make broken").
//
// A member writes each state between two readings of the one clock of the machine, before
// it sets it and after; each state has a number that no other state of any life has. A
// synchronizer writes each firing with its witness, each fate, and what it shows. So the
// judges need to believe nobody: they know between which instants a state truly began and
// ended, and which handlers truly ran.
package broken
