// Package otelclock shows a measured clock to OpenTelemetry: how good its bound is, what it
// rests on, and the refusals.
//
// # Instruments
//
// These names, units and attributes are stable. None has an attribute of a member,
// a host or a server, so that the number of series stays below a hundred a clock.
//
//   - pegasus.clock.bound, s: half the width of the bound. Not there while there is
//     no bound, so alert on its absence or on the status too.
//   - pegasus.clock.age, s: the time since the newest sample of any server. Not
//     there before the first one.
//   - pegasus.clock.status: 1 for the current status, otherwise 0. Attribute status:
//     unknown, synchronized, degraded, untrusted.
//   - pegasus.clock.source: always 1. Attributes source (as "ntp" or "chrony+ntp"),
//     timeline, assumed and unverified, as in [clocksync.Quality].
//   - pegasus.clock.servers, {server}: how many servers stand so. Attribute standing:
//     silent, agreeing, outvoted, waiting.
//   - pegasus.clock.contradictions, {contradiction}: how often trust was lost.
//   - pegasus.clock.steps, {step}, and pegasus.clock.suspends, {suspend}: how often
//     the wall clock was set and the machine slept.
//   - pegasus.clock.samples, {sample}: samples of the sources. Attribute source.
//   - pegasus.clock.refusals, {refusal}: what gave no sample, and samples that were
//     refused. Attributes source ("estimator" for the latter) and reason.
//
// The first five are gauges, the others counters since the clock was made. All values in a
// collection come from the same report. The clock is asked when metrics are collected, and
// never when it makes a stamp.
//
//	clock, err := source.Measured(options, sources...)
//	registration, err := otelclock.Register(provider.Meter("app"), clock)
//	defer registration.Unregister()
package otelclock
