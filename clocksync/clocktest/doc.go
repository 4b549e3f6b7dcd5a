// Package clocktest has clocks for tests and simulations: they are wrong in the
// ways real clocks are, over a true time that the test owns and real clocks do
// not know.
//
// [New] makes a clock that is skewed, drifts and is stepped as its [Spec] says; [Manual] shows
// the time that the test sets. Whether a clock is honest, so that its intervals contain the
// true time, is up to the test:
//
//	var world clocktest.Timeline
//	clock := clocktest.New(world.Now, clocktest.Spec{
//		Domain: "host-1", Skew: 3 * time.Millisecond, Drift: 50,
//		Bound: 5 * time.Millisecond, Growth: 100,
//	})
//	world.Advance(time.Second)
//	honest := clock.Now().Within.Contains(world.Now())
package clocktest
