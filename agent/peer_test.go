package agent_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/embedded"
	"github.com/gopegasus/pegasus/internal/testnats"
	"github.com/gopegasus/pegasus/synchronizer"
)

// TestPeerBoundOverNATS compares the least bound of a member that is measured
// against a synchronizer with half the smallest round trip of a bare request on
// the same server meanwhile: there the answer may have been given at any moment.
func TestPeerBoundOverNATS(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	cfg, err := synchronizer.ParseConfig("test.yaml", []byte(allIdle))
	if err != nil {
		t.Fatal(err)
	}
	s, err := synchronizer.Start(t.Context(), server.URL(), cfg, synchronizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, s.Close()) })
	m, err := agent.Join(t.Context(), server.URL(), agent.Config{Group: "g", Name: "w", SeparateClock: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, m.Close()) })
	raw := newEcho(t, server.URL())
	least, smallest, polls := time.Hour, time.Hour, 0
	for pings := s.Stats().Pings; polls < 4; {
		smallest = min(smallest, raw())
		stamp := m.Stamp()
		if !stamp.Within.Contains(stamp.Mono) { // Both clocks are one.
			t.Fatalf("%v does not hold the truth", stamp)
		}
		if stamp.Within.Bounded() {
			least = min(least, stamp.Within.Width()/2)
		}
		if now := s.Stats().Pings; now >= pings+8 {
			pings = now
			polls++
		}
	}
	ratio := float64(least) / (float64(smallest) / 2)
	t.Logf("least bound %v, smallest bare round trip %v: the bound is %.3f times half of it", least, smallest, ratio)
	if ratio > 2.5 {
		t.Errorf("the bound is %.3f times half the smallest round trip", ratio)
	}
}

// newEcho returns how long a bare request on a server takes.
func newEcho(tb testing.TB, url string) func() time.Duration {
	tb.Helper()
	var conns [2]*nats.Conn
	for i := range conns {
		nc, err := nats.Connect(url, testnats.Options(tb, url)...)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(nc.Close)
		conns[i] = nc
	}
	if _, err := conns[0].Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		tb.Fatal(err)
	}
	if err := conns[0].Flush(); err != nil {
		tb.Fatal(err)
	}
	clock, data := source.System(), make([]byte, 16)
	read := func() clocksync.Instant { return clock.Now().Mono }
	return func() time.Duration {
		before := read()
		if _, err := conns[1].Request("echo", data, 10*time.Second); err != nil {
			tb.Fatal(err)
		}
		return read().Sub(before)
	}
}
