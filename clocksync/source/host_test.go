package source

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// host is a machine whose clocks a test disturbs. The wall clock and the one that
// counts sleep go with the readings until then.
type host struct {
	mu         sync.Mutex
	mono       func() clocksync.Instant
	passed     time.Duration
	wall, boot time.Duration     // ahead of the readings
	raw        time.Duration     // likewise
	slewed     clocksync.Instant // the reading since which the clock nobody slews runs twice as fast; 0: it does not
}

func newHost(mono func() clocksync.Instant) *host {
	return &host{mono: mono, wall: time.Duration(away)}
}

// pass lets time pass.
func (h *host) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.passed += d
}

// slew makes the readings fall behind the clock that nobody slews, or go with it
// again.
func (h *host) slew(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.raw = h.unslewed()
	if h.slewed = 0; on {
		h.slewed = h.mono()
	}
}

func (h *host) unslewed() time.Duration {
	if h.slewed == 0 {
		return h.raw
	}
	return h.raw + h.mono().Sub(h.slewed)
}

// step sets the wall clock, and the clock that counts sleep.
func (h *host) step(wall, boot time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall += wall
	h.boot += boot
}

func (h *host) read() clocksync.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mono().Add(h.passed)
}

// serve is what a server shows that has these readings, too: where they stand still, no
// answer takes any time.
func (h *host) serve() clocksync.Instant { return h.read() + away }

func (h *host) both() (wall, mono clocksync.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	mono = h.mono().Add(h.passed)
	return mono.Add(h.wall), mono
}

func (h *host) readings() readings {
	return readings{
		mono: h.read,
		wall: func() int64 { wall, _ := h.both(); return int64(wall) },
		boot: func() clocksync.Instant {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.mono().Add(h.passed + h.boot)
		},
		raw: func() clocksync.Instant {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.mono().Add(h.passed + h.unslewed())
		},
		both: h.both,
	}
}

// hasty is a connection on which so many messages are waited for, and no time for
// what comes after them: so no test depends on how quick they are.
type hasty struct {
	net.Conn

	left int
}

func (h *hasty) Read(b []byte) (int, error) {
	if h.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	h.left--
	return h.Conn.Read(b)
}

// newCancelled is a context that ends soon.
func newCancelled(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	return ctx, cancel
}
