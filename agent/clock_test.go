package agent_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// toldClock is a clock whose quality and intervals are told to it.
type toldClock struct {
	mu      sync.Mutex
	mono    clocksync.Instant
	quality clocksync.Quality
	off     clocksync.Instant // reference time minus reading
}

func (c *toldClock) Domain() clocksync.Domain { return "d" }

func (c *toldClock) Quality() clocksync.Quality {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quality
}

func (c *toldClock) Now() clocksync.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono++
	s := clocksync.Stamp{Domain: "d", Mono: c.mono, Within: clocksync.Around(c.mono+c.off, 5)}
	if c.quality.Status == clocksync.Unknown || c.quality.Status == clocksync.Untrusted {
		s.Within.Latest = clocksync.MaxInstant
	}
	return s
}

func (c *toldClock) tell(status clocksync.Status, off clocksync.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quality.Status, c.off = status, off
}

// TestAClockThatLosesItsBound: the member goes on, says so in its log, and tells
// the synchronizer; after a contradiction it is a new incarnation.
func TestAClockThatLosesItsBound(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bus.NewLocal()
		f := newFake(t, local.Connect)
		f.answer = func(h *wire.Hello) *wire.Welcome {
			return &wire.Welcome{
				Synchronizer: "s", Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation,
				Accepted: true, Schema: declared, Timeline: h.Quality.Timeline,
			}
		}
		clock := &toldClock{quality: clocksync.Quality{Source: "ntp", Timeline: clocksync.UTC, Status: clocksync.Synchronized}, off: 1000}
		var log bytes.Buffer
		m := join(t, local, agent.Config{Group: "g", Name: "w1", Clock: clock, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := m.Set(state{Phase: "idle"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			status clocksync.Status
			off    clocksync.Instant
			log    string
			hellos int
		}{
			{clocksync.Degraded, 1000, "the bound of the clock is not renewed or too wide", 1},
			{clocksync.Unknown, 1000, "the clock has lost its bound; members of this host are compared as before", 1},
			{clocksync.Untrusted, 1000, "the clock contradicts what was measured before", 2},
			{clocksync.Synchronized, -1000, "the clock has a bound", 2},
		} {
			log.Reset()
			clock.tell(c.status, c.off)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if !strings.Contains(log.String(), c.log) || strings.Count(log.String(), "clock") != 1 {
				t.Errorf("%v: the log says %q, want %q once", c.status, log.String(), c.log)
			}
			if q := m.Clock(); q.Status != c.status {
				t.Errorf("%v: Clock says %v", c.status, q.Status)
			}
			f.mu.Lock()
			last := f.batches[len(f.batches)-1]
			if len(f.hellos) != c.hellos || last.Incarnation != f.hellos[c.hellos-1].Incarnation {
				t.Errorf("%v: %d hellos, batch of %d; want %d, the last one's", c.status, len(f.hellos), last.Incarnation, c.hellos)
			}
			if told := f.hellos[c.hellos-1].Quality.Status; !last.Tagged && told != c.status || last.Tagged && last.Quality.Status != c.status {
				t.Errorf("%v: told in the hello %v, in the batch %+v", c.status, told, last.Quality)
			}
			f.mu.Unlock()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if e := f.batches[len(f.batches)-1].Evidence; !e.At.Within.Bounded() || e.At.Within.Latest > e.At.Mono {
			t.Errorf("evidence %+v; want it by the new bound, which lies before the old one", e)
		}
	})
}
