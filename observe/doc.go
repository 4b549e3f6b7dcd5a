// Package observe is the observation agent of a node: it measures the node's computing
// power once, and from then on what part of it is there for this program, beside
// control groups and pressure (PEGASUS paper, sections 3.2 and 3.3).
//
//	o, err := observe.Start(ctx, observe.Options{})
//	defer o.Close()
//	m, err := agent.Join(ctx, url, agent.Config{Group: "workers", Name: "w3", Observe: o})
//
// fills the fields power, share, pressure, stalled, quota and usage of the member's
// state, those of them that the configuration declares as floats and the program's
// struct lacks. [Observer.Watch] is for everything else.
//
// # Share
//
// Once in Options.Every, what is idle or used by this program is counted: that much is
// there for certain. The program may get more, since the system divides cores among
// those who want them, which no counter shows. So where others use more than 5 % of the
// cores, probe threads take part in it: a thread on each of up to four cores at once
// runs until it has waited for its core or has lost the favour that a thread has which
// wakes up, and then for 10 ms of CPU time. The share is the larger one of what is left
// and of the time that the probe threads ran, by the time that they ran or waited. The
// host's part of the time of a virtual machine is taken off, and a quota of the control
// group bounds it.
//
// # Rules
//
//   - What is not known is NaN, and [Observer.Missing] says why. A share is known on
//     Linux only; elsewhere only power is, there by time as it passes, so that a
//     calibration beside others comes out too low.
//   - This program is this process, and with Options.Children also those that it has
//     started. Other processes of the same application are others: they do compete.
//   - Observation costs at most 0.4 % of a core for the probe threads and 0.1 % for
//     the rest, on average since Start; where samples are dearer they come less often.
//     The calibration comes on top, once.
//
// All methods may be called from any goroutine.
package observe
