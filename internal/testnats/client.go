package testnats

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
)

// Connect is a client of the server at url, which is no member of any group, until the test ends.
func Connect(tb testing.TB, url string) *nats.Conn {
	tb.Helper()
	server, options, err := connect.To(url, nil)
	check(tb, err)
	nc, err := nats.Connect(server.URL, options...)
	check(tb, err)
	tb.Cleanup(nc.Close)
	return nc
}
