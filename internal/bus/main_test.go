package bus_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end early unless something is broken.
const patience = 10 * time.Second

// backend is what the shared suite runs against.
type backend struct {
	connect func(t *testing.T, opts bus.Options) *bus.Bus
	stop    func()
	start   func(t *testing.T)
	limit   int    // Largest message.
	url     string // Of the server, where it has one.
}

// startServer runs a server until the test ends.
func startServer(tb testing.TB, opts embedded.Options) *embedded.Server {
	tb.Helper()
	opts.Open = opts.Token == "" && opts.Username == "" // The options of bus.Dial have no key.
	s, err := embedded.Start(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func dial(tb testing.TB, url string, opts bus.Options) *bus.Bus {
	tb.Helper()
	b, err := bus.Dial(tb.Context(), url, opts)
	if err != nil {
		tb.Fatal(err)
	}
	closeAfter(tb, b)
	return b
}

func closeAfter(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
}

func overInProcess(t *testing.T) backend {
	t.Helper()
	s := bustest.NewServer(t)
	return backend{
		connect: func(t *testing.T, opts bus.Options) *bus.Bus {
			t.Helper()
			b := s.Connect(opts)
			closeAfter(t, b)
			return b
		},
		stop:  s.Stop,
		start: func(*testing.T) { s.Start() },
		limit: embedded.DefaultMaxPayload,
	}
}

func overNATS(t *testing.T) backend {
	t.Helper()
	s := startServer(t, embedded.Options{})
	url, port := s.URL(), s.Port()
	return backend{
		connect: func(t *testing.T, opts bus.Options) *bus.Bus {
			t.Helper()
			return dial(t, url, opts)
		},
		stop: s.Close,
		start: func(t *testing.T) {
			t.Helper()
			startServer(t, embedded.Options{Port: port})
		},
		limit: embedded.DefaultMaxPayload,
		url:   url,
	}
}

// await receives, or fails the test.
func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}
