package testnats

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/connect"
	"github.com/gopegasus/pegasus/internal/loopkey"
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

// ShareKey notes the key of the embedded server at a URL for another URL too, which is that of a proxy in front
// of it, until the test ends. A server that starts again has another key.
func ShareKey(tb testing.TB, server, proxy string) {
	tb.Helper()
	file, err := loopkey.File(port(tb, server))
	check(tb, err)
	seed, err := loopkey.Read(file)
	check(tb, err)
	if seed == nil {
		tb.Fatalf("the server at %s has noted no key", server)
	}
	note, err := loopkey.Write(port(tb, proxy), seed)
	check(tb, err)
	tb.Cleanup(note.Remove)
}

func port(tb testing.TB, address string) int {
	tb.Helper()
	u, err := url.Parse(address)
	check(tb, err)
	n, err := strconv.Atoi(u.Port())
	check(tb, err)
	return n
}
