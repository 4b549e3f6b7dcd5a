package testnats

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
)

// Options are the options for the server at a URL, without the environment: those of the key that an embedded
// server of this process has noted, if it needs one.
func Options(tb testing.TB, url string) []nats.Option {
	tb.Helper()
	server, err := connect.Settings{URL: url}.Resolve(connect.Settings{})
	check(tb, err)
	options, err := server.Options()
	check(tb, err)
	return options
}
