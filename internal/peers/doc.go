// Package peers compares Pegasus with controllers that people write by hand, on one job: worker processes alternate
// between busy and idle, and when all of them are idle at one instant, each of them is to be informed. The server, the
// controller and the judge run in this process. Each worker is a process of its own, the program started again as a
// [Worker].
// A program can compare more controllers, each a [Controller] over a server of its own: examples/compare does.
//
// All processes run on one machine and read one monotonic clock. A worker reads it directly before and after each
// change of its state, around the call that reports the change: the change was made at some instant of this bracket.
// Each worker also records when it receives each firing. A controller records when it fires, and for each worker the
// number of the state that the firing rests on. The judge sees nothing else, and applies these definitions:
//
//   - All workers are possibly idle at an instant if each of them is between the begin of the bracket of a change to
//     idle and the end of the bracket of its next change. They are certainly idle if each of them is between the end of
//     the former bracket and the begin of the latter. A true interval is a longest interval in which all are possibly
//     idle. Its certain length is the length of the part in which they are certainly idle.
//   - The newest known change of a firing is the newest of the changes to the states that it rests on.
//   - A firing is made when its controller records it, or when its first worker receives it if that is earlier.
//   - A firing is false if at no instant all were possibly idle after the newest known change and before the firing. A
//     doubt that the brackets leave is decided in favour of the controller.
//   - A firing belongs to the first true interval that lies partly between its newest known change and the firing.
//   - A true interval whose certain length is over 5 (20) ms is missed if no worker received a firing that belongs to
//     it.
//   - A firing is late if it is not false, and its last worker received it after the true interval had ended.
//   - The latency is the time from the begin of a true interval to each worker's receipt of the first firing that
//     belongs to it.
package peers
