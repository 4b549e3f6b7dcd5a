// Package sim is a world in which time passes as told: hosts whose clocks
// drift, are stepped and stop while suspended, links that delay and lose, and
// servers that know the time or lie about it. What is under test runs in it
// unchanged, and an observer outside, who knows the true time, judges it.
//
// The machines of members and synchronizers run in it, too: a [Group] over links,
// and a [Level] inside a process, as agents and synchronizers host them.
//
// A world is made from a seed, and everything that happens in it follows from
// the seed: [World.Trace] is the same for the same seed. Nothing here reads a
// clock or starts a goroutine.
//
//	w := sim.New(seed)
//	host := w.NewHost("host-1", sim.HostSpec{Rate: 200_000})
//	keeper, err := sim.NewKeeper(host, clocksync.Config{Timeline: clocksync.UTC, Faults: 1}, 8*time.Second)
//	keeper.Ask("a", w.NewTimeServer(time.Millisecond), w.NewLink(out), w.NewLink(back))
//	...
//	w.Run(clocksync.Instant(time.Hour))
//	honest := keeper.Now().Within.Contains(w.Now())
package sim
