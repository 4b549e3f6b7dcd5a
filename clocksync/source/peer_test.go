package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

func peerOf(tb testing.TB, ping Ping, o PeerOptions) *peer {
	tb.Helper()
	o.Server = "gsync"
	s, err := Peer(ping, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s.(*peer)
}

// TestExchangeHoldsTheTruth draws a drifting clock, both ways of an exchange, and
// a server that knows the reference time to within an error.
func TestExchangeHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const drift = 200
		rate := rapid.Float64Range(-drift, drift).Draw(t, "drift") * 1e-6
		start := clocksync.Instant(rapid.Int64Range(0, 1e17).Draw(t, "uptime"))
		truth := away
		domain := func() clocksync.Instant {
			passed := float64(truth - away)
			return start + clocksync.Instant(passed*(1+rate))
		}
		pass := func(what string) {
			truth += clocksync.Instant(rapid.Int64Range(0, 1e9).Draw(t, what))
		}
		know := func(what string) clocksync.Interval {
			return clocksync.Interval{
				Earliest: truth.Add(-time.Duration(rapid.Int64Range(0, 1e6).Draw(t, what+" early"))),
				Latest:   truth.Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, what+" late"))),
			}
		}
		var e exchange
		e.sent = domain()
		pass("there")
		e.arrived = know("arrived")
		pass("in the server")
		e.departed = know("departed")
		pass("back")
		e.received = domain()
		offset, err := e.offsetInterval(drift)
		if err != nil {
			t.Fatal(err)
		}
		// The reading was rounded down.
		if got := truth - e.received; !offset.Widen(1).Contains(got) {
			t.Fatalf("%+v: %v does not hold %v: %v, %v", e, offset, got, offset.Earliest-got, offset.Latest-got)
		}
		if e.roundTrip() < 0 || e.roundTrip() > e.received.Sub(e.sent) {
			t.Fatalf("round trip %v", e.roundTrip())
		}
	})
}

// TestExchangeIsAsTheOneOfExactServers compares with clocksync.
func TestExchangeIsAsTheOneOfExactServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) clocksync.Instant {
			return clocksync.Instant(rapid.Int64Range(0, 1e6).Draw(t, name))
		}
		c := clocksync.Exchange{Sent: draw("sent"), Arrived: draw("arrived"), Departed: draw("departed"), Received: draw("received")}
		drift := rapid.Float64Range(0, clocksync.MaxDrift).Draw(t, "drift")
		want, ok := c.Offset(drift)
		got, err := exchange{c.Sent, c.Received, clocksync.Exactly(c.Arrived), clocksync.Exactly(c.Departed)}.offsetInterval(drift)
		if (err == nil) != ok || err == nil && got != want {
			t.Fatalf("%v, %v, want %v, %v", got, err, want, ok)
		}
	})
}

// root answers at once, as the root whose clock is the readings and away.
func root(context.Context) (Pong, error) {
	now := clocksync.Exactly(readRaw() + away)
	return Pong{Reference: "root", Arrived: now, Departed: now}, nil
}

func TestPeerTakesTheBestPing(t *testing.T) {
	ways := []time.Duration{9, 4, 7, 1, 8, 5, 6, 3}
	now := clocksync.Instant(1e12)
	n := 0
	ping := func(context.Context) (Pong, error) {
		way := ways[n%len(ways)] * time.Millisecond
		n++
		now = now.Add(3 * way) // three quarters there
		at := clocksync.Exactly(now + away)
		now = now.Add(way)
		return Pong{Reference: "root", Arrived: at, Departed: at, Drift: 70}, nil
	}
	s := peerOf(t, ping, PeerOptions{Drift: 50})
	host := newHost(func() clocksync.Instant { return now })
	s.clocks = host.readings()
	samples, err := s.Sample(t.Context())
	if err != nil || len(samples) != 1 || n != len(ways) {
		t.Fatalf("%v, %v after %d pings", samples, err, n)
	}
	got := samples[0]
	if got.Parts.RoundTrip != 4*time.Millisecond || got.Timeline != "root" || got.Server != "gsync" || got.From != 1e12 || got.Drift != 120 {
		t.Errorf("%+v", got)
	}
	if w := got.Offset.Width(); !got.Offset.Contains(away) || w < 4*time.Millisecond || w > 4*time.Millisecond+time.Microsecond {
		t.Errorf("%v, %v wide", got.Offset, w)
	}
}

func TestPeerFollowsTheRoot(t *testing.T) {
	n := 0
	ping := func(ctx context.Context) (Pong, error) {
		pong, err := root(ctx)
		if n++; n > 5 {
			pong.Reference = "next"
		}
		return pong, err
	}
	samples, err := peerOf(t, ping, PeerOptions{}).Sample(t.Context())
	if err != nil || len(samples) != 1 || samples[0].Timeline != "next" {
		t.Errorf("%v, %v", samples, err)
	}
}

func TestPeerIsContentWithSomeAnswers(t *testing.T) {
	n := 0
	ping := func(ctx context.Context) (Pong, error) {
		if n++; n != 4 {
			return Pong{}, errors.New("lost")
		}
		return root(ctx)
	}
	if samples, err := peerOf(t, ping, PeerOptions{}).Sample(t.Context()); err != nil || len(samples) != 1 {
		t.Errorf("%v, %v", samples, err)
	}
}

func TestPeerRefuses(t *testing.T) {
	at := func(arrived, departed time.Duration) Ping {
		return func(context.Context) (Pong, error) {
			now := readRaw() + away
			return Pong{Reference: "root", Arrived: clocksync.Exactly(now.Add(arrived)), Departed: clocksync.Exactly(now.Add(departed))}, nil
		}
	}
	for name, c := range map[string]struct {
		ping   Ping
		reason Reason
		text   string
	}{
		"lost":   {func(context.Context) (Pong, error) { return Pong{}, errors.New("no responders") }, Unavailable, "cannot ping: no responders"},
		"silent": {func(ctx context.Context) (Pong, error) { <-ctx.Done(); return Pong{}, ctx.Err() }, Unanswered, "no answer within 10ms"},
		"late":   {func(ctx context.Context) (Pong, error) { <-ctx.Done(); return root(context.WithoutCancel(ctx)) }, Unanswered, "no answer within 10ms"},
		"nameless": {func(context.Context) (Pong, error) {
			return Pong{Arrived: clocksync.Exactly(1), Departed: clocksync.Exactly(1)}, nil
		}, Unsynchronized, "does not know the reference time"},
		"unbounded": {func(context.Context) (Pong, error) {
			return Pong{Reference: "root", Arrived: clocksync.Unbounded, Departed: clocksync.Unbounded}, nil
		}, Unsynchronized, "does not know the reference time"},
		"impossible": {at(-time.Hour, time.Hour), Implausible, "the server says it held the request for 2h0m0s"},
		"backwards":  {at(time.Hour, -time.Hour), Implausible, "the server says it held the request for -2h0m0s"},
		"inverted": {func(context.Context) (Pong, error) {
			wrong := clocksync.Interval{Earliest: 5, Latest: 3}
			return Pong{Reference: "root", Arrived: wrong, Departed: wrong}, nil
		}, Implausible, "held the request"},
		"far": {func(context.Context) (Pong, error) {
			far := clocksync.Interval{Earliest: clocksync.MinInstant + 1, Latest: clocksync.MaxInstant - 1}
			return Pong{Reference: "root", Arrived: far, Departed: clocksync.Exactly(clocksync.MinInstant + 1)}, nil
		}, Implausible, "held the request"},
		"wild": {func(ctx context.Context) (Pong, error) {
			pong, err := root(ctx)
			pong.Drift = clocksync.MaxDrift
			return pong, err
		}, Implausible, fmt.Sprintf("the synchronizer's clock may drift by 100000 ppm and this one by %v: at most 100000 together make a bound", DefaultDrift())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := patient
			if c.reason == Unanswered {
				timeout = shortest
			}
			samples, err := peerOf(t, c.ping, PeerOptions{Timeout: timeout}).Sample(t.Context())
			got := refusals("peer", err)
			if len(samples) != 0 || len(got) != 1 || got[0].Reason != c.reason || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "source: peer gsync: ") {
				t.Errorf("%v, %v", samples, err)
			}
		})
	}
}

func TestPeerFeelsSleepButNotTheWallClock(t *testing.T) {
	for _, asleep := range []time.Duration{0, time.Second} {
		host := newHost(readRaw)
		ping := func(ctx context.Context) (Pong, error) { host.step(time.Second, asleep); return root(ctx) }
		s := peerOf(t, ping, PeerOptions{})
		s.clocks = host.readings()
		_, err := s.Sample(t.Context())
		if slept := err != nil && strings.Contains(err.Error(), "the machine slept meanwhile"); slept != (asleep > 0) {
			t.Errorf("asleep for %v: %v", asleep, err)
		}
	}
}

func TestPeerEndsWithTheContext(t *testing.T) {
	ctx, cancel := newCancelled(t)
	defer cancel()
	ping := func(ctx context.Context) (Pong, error) { <-ctx.Done(); return Pong{}, ctx.Err() }
	if _, err := peerOf(t, ping, PeerOptions{Timeout: time.Hour}).Sample(ctx); err == nil {
		t.Error("a sample without a server")
	}
}

func TestPeerRefusesOptions(t *testing.T) {
	for want, o := range map[string]PeerOptions{
		"source: peer: it takes a ping and the name of the server that answers": {},
		"source: peer: 7 pings: at least 8, to find a quick one":                {Server: "s", Pings: 7},
		"source: peer: drift 100001 ppm: it must be above 0 and at most 100000": {Server: "s", Drift: 100_001},
		"source: peer: polling every 1ms: it must be at least 10ms":             {Server: "s", Every: time.Millisecond},
	} {
		if _, err := Peer(root, o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestPeerOnLoopback pings an echo over UDP: the bound is at most 1.2 times half
// the smallest raw round trip of the same pings.
func TestPeerOnLoopback(t *testing.T) {
	echo, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1)
		for {
			if _, from, err := echo.ReadFromUDPAddrPort(b); err != nil {
				return
			} else if _, err := echo.WriteToUDPAddrPort(b, from); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { echo.Close(); <-done })
	conn, err := net.Dial("udp", echo.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var raw []time.Duration
	ping := func(context.Context) (Pong, error) {
		b := []byte{1}
		before := readRaw()
		if _, err := conn.Write(b); err != nil {
			return Pong{}, err
		}
		if _, err := conn.Read(b); err != nil {
			return Pong{}, err
		}
		after := readRaw()
		raw = append(raw, after.Sub(before))
		// The echo has no clock of its own: it answers in the middle.
		at := clocksync.Exactly(before.Add(after.Sub(before)/2) + away)
		return Pong{Reference: "root", Arrived: at, Departed: at}, nil
	}
	samples, err := peerOf(t, ping, PeerOptions{}).Sample(t.Context())
	if err != nil || len(samples) != 1 || !samples[0].Offset.Contains(away) {
		t.Fatalf("%v, %v", samples, err)
	}
	smallest := slices.Min(raw)
	ratio := float64(samples[0].Offset.Width()) / float64(smallest)
	t.Logf("smallest raw round trip %v, bound %v: %.4f", smallest, samples[0].Offset.Width()/2, ratio)
	if ratio > 1.2 {
		t.Errorf("bound %v of a round trip of %v", samples[0].Offset.Width()/2, smallest)
	}
}
