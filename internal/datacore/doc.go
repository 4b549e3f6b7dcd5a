// Package datacore moves the data of tasks between the members of a space ahead of need.
//
// Data have a name, are written once in a phase, and do not change. Each member keeps a directory of all data: size,
// digest, and which members have them. A member that gets tasks fetches the data that these read, in pieces, from a
// member that has them, and checks their digest. [Member.Ready] says whether a task may start.
//
//   - Each member sends the others a list of what it has: what it wrote, what it holds, what it dropped. The list has one
//     entry for each name, and each entry a sequence. The receiver confirms the sequence up to which it has the list, and
//     the sender repeats what is not confirmed.
//   - What is not answered is asked again, after a time that grows where answers come twice: the network is slow then.
//   - Data that were fetched lie in a cache of bounded size. The member drops those that were used least recently and
//     that no task here reads. What the member wrote itself lies beside the cache until the phase ends.
//   - If a writer is lost, the first member that holds the data takes its place.
//   - Tasks whose data no member has any more count as ready, and fail with [Member.Fault].
//
// The package is pure: it has no goroutine, clock or connection. Each message may be lost, doubled, late and out of order.
package datacore
