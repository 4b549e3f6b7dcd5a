// Package source reads clocks: it turns what the operating system, time servers
// and daemons offer into the stamps of package clocksync.
//
// # Clocks
//
//   - [System]: the kernel's monotonic clock and no bound. Members of a clock domain, which
//     share a boot, a kernel and a time namespace, are compared exactly; between domains
//     nothing is certain.
//   - [Fixed]: the same readings, and an interval around the wall clock whose
//     bound is given by the operator. It is not checked, so [clocksync.Quality] says
//     that it is assumed.
//   - [Measured]: the same readings, and an interval made of the samples of sources.
//
// [Reference] is the clock of this machine as others measure theirs against it.
//
// [OwnDomain] makes the process a clock domain of its own, so that several
// domains can be tried on one host.
//
// # Sources
//
// From the tightest bound to the widest, as a rule:
//
//   - [Peer]: round trips to the synchronizer. Half the best of them is a bound
//     against its clock that trusts no server, and says nothing about UTC.
//   - [ClockBound]: the shared memory of the ClockBound daemon, which adds the errors that
//     chronyd's bound leaves out.
//   - [Chrony]: the tracking report of a chronyd on this machine.
//   - [NTP]: servers asked by ourselves. Three of them outvote a wrong one.
//   - [Kernel]: the maximum error that some daemon reported to the kernel.
//   - [Operator]: a bound given by the operator, as one source among others.
//
// All but [Peer] and [NTP] rest on the wall clock of this host. They cover a slew of the wall
// clock; setting it invalidates them. A source refuses data that give no bound, with a [Reason]
// that is counted; it never guesses.
//
// # Rules
//
//   - Only this package reads the time. [Monotonic] is for the timeouts
//     of this process, [WallNano] for numbers that must grow across restarts.
//   - Readings never go back, and every [clocksync.Clock] here may be used by
//     several goroutines at once.
//   - A sample is a claim about the raw readings that stamps have, so setting the
//     wall clock does not move it.
//   - The readings of Linux are slewed together with the wall clock. A daemon that
//     corrects it faster than the drift that is assumed breaks the assumption:
//     give chronyd a "maxslewrate" below [MeasuredOptions].Drift, or raise that.
//     On Linux a slew of more than twice the drift shows within a second.
//
// # Systems
//
// On Linux the readings are CLOCK_MONOTONIC, on macOS mach_absolute_time; both
// are one clock for all processes of a boot, and neither counts while the
// machine is suspended. Elsewhere, and where the identity of the boot cannot be read,
// each process is a domain of its own. Windows advances its clock in steps of up
// to 15 ms: readings within one step are equal, and a fixed bound must include it.
// [Kernel] is there on Linux only, and [Chrony] and [ClockBound] where those
// daemons run; elsewhere they say so when asked.
//
//	servers, err := source.NTP(ntp.Query, source.NTPOptions{Servers: []string{"a", "b", "c"}})
//	clock, err := source.Measured(source.MeasuredOptions{Timeline: clocksync.UTC}, servers)
//	defer clock.Close()
//	err = clock.Wait(ctx)
//	stamp := clock.Now()
package source
