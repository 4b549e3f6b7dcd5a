// Package observe is the observation agent of a node: it measures the node's computing power
// once, and from then on the part available to this program, beside control groups and pressure
// (PEGASUS paper, sections 3.2 and 3.3).
//
//	o, err := observe.Start(ctx, observe.Options{})
//	defer o.Close()
//	m, err := agent.Join(ctx, url, agent.Config{Group: "workers", Name: "w3", Observe: o})
//
// fills the fields power, share, pressure, stalled, quota and usage of the member's state, if
// the configuration declares them as floats and the program's struct lacks them.
// [Observer.Watch] is for everything else.
//
// # Share
//
// Once in Options.Every, the time that is idle or used by this program is counted: that part is
// certainly available. The program may get more, since the system divides cores among the
// threads that want them, which no counter shows. So where others use more than 5 % of the
// cores, probe threads compete: a thread on each of up to four cores at once runs until it has
// waited for its core or has lost the favour of a thread that wakes up, and then for 10 ms of
// CPU time. The share is the larger of two parts: the time counted above, and the time that the
// probe threads ran, by the time that they ran or waited. The host's part of the time of a
// virtual machine is taken off, and a quota of the control group bounds it.
//
// # Rules
//
//   - An unknown value is NaN, and [Observer.Missing] says why. A share is known on Linux only;
//     elsewhere only power is, there by time as it passes, so that a calibration beside others
//     comes out too low.
//   - This program is this process, and with Options.Children also the processes that it has
//     started. Other processes of the same application are others: they do compete.
//   - Observation costs at most 0.4 % of a core for the probe threads and 0.1 % for
//     the rest, on average since Start; where samples are dearer they come less often.
//     The calibration comes on top, once.
//
// All methods may be called from any goroutine.
package observe
