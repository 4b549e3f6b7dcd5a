// Package source reads clocks: it turns what the operating system offers into
// the stamps of package clocksync.
//
// # Sources
//
//   - [System]: the kernel's monotonic clock and no bound. Members of one clock
//     domain, that is of one boot of one kernel and one time namespace, are
//     compared exactly; between domains nothing is certain.
//   - [Fixed]: the same readings, and an interval around the wall clock whose
//     bound is the operator's word. Nobody checks that word, so [clocksync.Quality]
//     says that it is assumed.
//
// [OwnDomain] makes the process a clock domain of its own, so that several
// domains can be tried on one host.
//
// # Rules
//
//   - This package and no other reads the time. [Monotonic] is for the timeouts
//     of this process, [WallNano] for numbers that must grow over restarts.
//   - Readings never go back, and every [clocksync.Clock] here may be used by
//     several goroutines at once.
//
// # Systems
//
// On Linux the readings are CLOCK_MONOTONIC, on macOS mach_absolute_time; both
// are one clock for all processes of a boot, and neither counts while the
// machine sleeps. Elsewhere, and where the identity of the boot cannot be read,
// each process is a domain of its own. Windows advances its clock in steps of up
// to 15 ms: readings within one step are equal, and a fixed bound must include it.
//
//	clock, err := source.Fixed(5 * time.Millisecond)
//	stamp := clock.Now()
package source
