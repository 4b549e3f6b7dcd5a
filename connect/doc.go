// Package connect finds the NATS server to use and the credentials for it.
//
// # Model
//
// [Settings] are what a program or a command line gives. [Settings.Resolve] adds what the
// environment and a context of the nats CLI give, and returns a [Server]: its URL, and the
// options for nats.Connect. A value of Settings overrides the environment, and the
// environment overrides the context. The package agent and the package synchronizer call it
// where a program passes no options, so such a program enters a secured server without a change.
//
// # Rules
//
//   - Of user and password, token, nkey and credentials file one is used: the one of the
//     first of the three places that has any. A user or token in the URL counts too, and
//     comes last in its place.
//   - The context has to be named. The context that the nats CLI has selected is not used.
//   - Files are read by [Server.Options], and again whenever nats.go connects. The public key of
//     an nkey file is read once.
//   - Errors name the flag, the variable or the key, and the file. They have no secret.
package connect
