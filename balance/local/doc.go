// Package local decides which tasks a member asks its neighbours for, and what the
// neighbours give. It is pure: each member runs a strategy, a [Local], on its own
// [View], and nothing in the package reads a clock, sends a message or moves a task.
// The machine of a member does that, and so does a simulator.
//
//	strategy, err := local.New(local.Config{Kind: local.Receiver, Below: "idle(1.5)", From: "avg(0.6, 5)", Again: 500 * time.Millisecond})
//	...
//	demands, again := strategy.Look(now, &view, demands[:0]) // when the view changes, and at again
//	for _, d := range demands {
//		// mark the neighbour d.Member as Pending and send it the demand
//	}
//	...
//	share := strategy.Answer(now, &view, d) // a neighbour's demand, d.Member is the neighbour
//
// A strategy sees views only: no task, no name of a function, no load of a computer.
// A member is short of work because its tasks end early, whatever the reason is.
//
// # Strategies
//
// [Receiver] is the receiver-initiated strategy of ALDY (Schnekenburger 1995, section 4.2). A
// member below its threshold asks one neighbour after the other. A neighbour above its own
// threshold gives a share of the tasks it cannot start.
//
// [Sender] is the sender-initiated strategy that goes with it (sections 4.2 and 7). A member
// above its threshold offers a share of the tasks it cannot start to one neighbour after the
// other. A neighbour below its threshold takes it.
//
// [Diffusion] is the receiver-initiated diffusion of TDC (section 4.2, equations 1 to 8).
// A member that has less than the mean of itself and its neighbours asks those above the
// mean for the difference. It looks seldom while it has much (phase 1), and at every
// change when it has little (phase 2).
//
// [Links] moves tasks along paths between two members, in CORD's own words (Huang
// 1996, section 4.1.2, table 4.1).
//
// [Tree] is CORD's tree of clusters (section 6.2): the slowest member is paired with the
// fastest, level by level. A member short of work asks its partners, the lowest
// level first.
//
// [Chunk] is self-scheduling. The member that put the tasks cuts them: SS one by one,
// CSS by a fixed number, GSS by ceil(remaining / processors), TSS by falling numbers,
// FAC2 by halves.
//
// # Load values
//
// A threshold is one of these words. The member is active while a task runs.
//
//	idle(x)     below after x without a running task; from: active within the last x
//	free(x)     below after x with a free slot; from: all slots busy within the last x
//	activity    below while not active; from: while active
//	avg(a, x)   below or above the part a, from 0 to 1, of the last x
//
// An x is a number of seconds, or a duration such as 500ms. The time before the first
// task counts as not active. free is not a word of ALDY, which has no slots: a member
// with two slots and one running task is not idle, yet it can start another one.
//
// # Promises
//
// A demand goes to a neighbour of the view, and never to the member itself. A member asks again
// once all its demands are answered. A neighbour that refused is left alone for [Config].Again,
// and longer after each refusal, up to [Config].Longest, unless it reports new work. An answer
// never gives more than the view shows, nor a task that a free slot of its own member could
// start. So moves end soon after the last task ended. Numbers that cannot be, such as NaN or
// -1, count as not known or as 0.
//
// # A strategy of your own
//
// Implement [Local]: two methods that decide on numbers. The example shows a complete
// one, and [Neighbour.MayAsk] has the waiting time after a refusal.
package local
