// Package callsplit is an analyzer for programs that call functions of other members. It finds calls that are waited for at
// once, and suggests fixes that start a call as early and wait for it as late as the data flow of the program allows (CORD,
// chapter 5). The command pegasus-vet runs it; docs/vet.md says what it finds and what it never moves.
//
// The analyzer works on one list of statements at a time. A call becomes two units: its start, which only reads, and its wait,
// which only writes. Each unit has effects (effects.go). Neighbouring units change places while their effects allow it
// (schedule.go). A chain of calls becomes one call (chain.go), and a loop of independent calls becomes a stream (stream.go).
package callsplit
