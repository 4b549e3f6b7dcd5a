// Package sim is a world in which time passes as told: hosts whose clocks drift, are stepped
// and stop while suspended, and links that delay and lose. The code under test runs in it
// unchanged, and an observer outside, who knows the true time, judges it.
//
// The machines of members and synchronizers run in it, too: a [Group] over links,
// and a [Level] inside a process, as agents and synchronizers host them.
//
// In the tests there are trials: a whole group over a faulty network, judged from
// outside (docs/testing.md).
//
// A world is made from a seed, and everything that happens in it follows from
// the seed: [World.Trace] is the same for the same seed. Nothing here reads a
// clock or starts a goroutine.
//
//	w := sim.New(seed)
//	host := w.NewHost("host-1", sim.HostSpec{Rate: 200_000})
//	group := sim.NewGroup(host, plan, "")
//	...
//	w.Run(clocksync.Instant(time.Hour))
//	held := group.Core().Counts().Global
package sim
