// Package embedded runs a NATS server inside the process, so that a program,
// an example or a test needs nothing installed.
//
// # Model
//
// [Start] returns once clients can connect; [Server.Close] returns once the
// port is free and every goroutine of the server has ended. A server holds
// nothing on disk: it is core NATS without JetStream, which delivers at most
// once and remembers nothing across a restart. With [Options.JetStream] it has
// JetStream too, whose streams and consumers are in a directory and are there
// again after a restart. An acknowledged message outlives the process; it is on
// disk two minutes later at most, so a machine that loses power may lose it.
//
// # Rules
//
//   - Without options the server listens on 127.0.0.1 at a random free port and
//     admits the programs of this user only. An address that other machines can
//     reach is refused until a token, or a user and a password, is set.
//   - Each start makes a key, and writes it to key-PORT.nk in the directory pegasus
//     of $XDG_RUNTIME_DIR, or else in pegasus/runs of the user's cache directory. The
//     file can be read by this user only. [Server.Close] removes it. The packages agent,
//     synchronizer and connect, and the command pegasus, read the file whenever they
//     connect. For a connection of your own use the options of connect.To. Two servers
//     that use the same port of two loopback addresses share one file: the last one
//     started has it.
//   - The key does not prove to a client which server it has reached. A program of
//     another user that listens at the same port of another loopback address can
//     pass the signature of a client on to the server.
//   - [Options.Open] lets any user of the machine connect without a key. A server with
//     [Options.InProcess], and connections of [Server.InProcessConn], need none.
//   - [Options.Keys] admits the users of a directory that "pegasus keys" has made, and no others.
//     Other machines may reach such a server.
//   - One message is at most 64 KiB, one slow client may hold back 16 MiB or two
//     seconds of writing before it is cut off; see [Options] for the rest.
//   - Nothing is logged unless [Options.Logger] is set, no signal handler is
//     installed and no monitoring port is opened.
//   - To come back at the same address, for example to see how clients
//     reconnect, close the server and start another with [Options.Port] set to
//     the [Server.Port] of the first.
//
// The library itself never imports this package, so a program that connects to
// a server elsewhere does not link one.
package embedded
