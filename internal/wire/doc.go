// Package wire has the messages between agents and synchronizers, their binary form
// and the subjects they travel on. It is versioned by the first byte of each
// frame and by a token of each subject.
//
// Upwards, from an agent to its synchronizer: [Hello], [Batch], [Gone] and
// [Ack]. Downwards: [Welcome], [Probe], [Resend], [Signals] and [Peers]. A [Ping] is a
// request that a [Pong] answers. A [Bundle] has frames of several members that share
// a connection. A synchronizer uses the same messages with its parent: to the parent
// it is a member.
//
// Frames are positional: a version byte, a kind byte, then the fields in order
// as MessagePack primitives, but for the columns of a batch ([BatchCodec]). Decoding refuses whatever exceeds the limits below
// before it allocates for it, and never panics on bytes from outside.
package wire
