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
	"github.com/gopegasus/pegasus/clocksync/source"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/bus/bustest"
	"github.com/gopegasus/pegasus/internal/wire"
)

// toldClock is a clock whose quality and intervals the test sets.
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

// TestAClockThatLosesItsBound: the member continues, says so in its log, and tells
// the synchronizer; after a contradiction it is a new incarnation.
func TestAClockThatLosesItsBound(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
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
			{clocksync.Untrusted, 1000, "the clock contradicts earlier measurements", 2},
			{clocksync.Synchronized, -1000, "the clock has a bound", 3}, // Its state begins again.
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

// elsewhere is a fake synchronizer on another host, whose clock is the one here and
// a constant ahead. It may move to a third host.
type elsewhere struct {
	*fake

	mu       sync.Mutex
	name     string
	timeline clocksync.Timeline
	drift    float64
	silent   bool
}

// ahead is how far the clocks of the hosts are.
var ahead = map[clocksync.Timeline]time.Duration{"near": time.Hour, "far": -5 * time.Hour}

func newElsewhere(t *testing.T, connect func(bus.Options) *bus.Bus) *elsewhere {
	t.Helper()
	e := &elsewhere{fake: newFake(t, connect), name: "s", timeline: "near"}
	e.answer = func(h *wire.Hello) *wire.Welcome {
		e.mu.Lock()
		defer e.mu.Unlock()
		w := &wire.Welcome{Synchronizer: e.name, Term: 1, Epoch: 1, Member: h.Member, Incarnation: h.Incarnation, Schema: declared, Timeline: h.Quality.Timeline, Domain: clocksync.Domain(e.timeline)}
		w.Accepted = w.Timeline == "" || w.Timeline == e.timeline
		if w.Refused = !w.Accepted; w.Refused {
			w.Reason, w.Timeline = "another timeline", e.timeline
		}
		return w
	}
	if err := e.bus.Subscribe(e.subjects.PingAll(), bus.Limits{}, e.pong); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *elsewhere) pong(m bus.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.silent {
		return
	}
	at := clocksync.Exactly(source.System().Now().Mono.Add(ahead[e.timeline]))
	frame, err := wire.AppendPong(nil, &wire.Pong{Timeline: e.timeline, Arrived: at, Departed: at, Drift: e.drift})
	if err == nil {
		err = e.bus.Reply(m, frame)
	}
	if err != nil {
		panic(err)
	}
}

// move makes another synchronizer on another host take over.
func (e *elsewhere) move(name string, timeline clocksync.Timeline) {
	e.mu.Lock()
	e.name, e.timeline = name, timeline
	e.mu.Unlock()
	e.welcome(&wire.Welcome{Synchronizer: name, Term: 1})
}

// truth checks that all reported bounds hold the time of the timeline that
// their incarnation has named, and counts them by timeline.
func (e *elsewhere) truth(t *testing.T) map[clocksync.Timeline]int {
	t.Helper()
	e.fake.mu.Lock()
	defer e.fake.mu.Unlock()
	named := map[uint64]clocksync.Timeline{}
	for _, h := range e.hellos {
		if before := named[h.Incarnation]; before != "" && before != h.Quality.Timeline {
			t.Errorf("incarnation %d names %q after %q", h.Incarnation, h.Quality.Timeline, before)
		}
		named[h.Incarnation] = h.Quality.Timeline
	}
	told := map[clocksync.Timeline]int{}
	for _, b := range e.batches {
		stamps := []clocksync.Stamp{b.Evidence.At}
		for _, r := range b.Reports {
			stamps = append(stamps, r.At)
		}
		for _, s := range stamps {
			if s.Within == clocksync.Unbounded || s.Mono == 0 {
				continue
			}
			timeline := named[b.Incarnation]
			told[timeline]++
			if d, ok := ahead[timeline]; !ok || !s.Within.Contains(s.Mono.Add(d)) {
				t.Errorf("incarnation %d on timeline %q tells %v", b.Incarnation, timeline, s)
			}
		}
	}
	return told
}

// TestTheSynchronizerMoves to a host with another clock: a state stamped on the
// timeline of the first host is never reported on the timeline of the second, though
// the program continues. The log reports the move, but nothing at the first join.
func TestTheSynchronizerMoves(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		e := newElsewhere(t, local.Connect)
		var log bytes.Buffer
		m := join(t, local, agent.Config{Group: "g", Name: "w", Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: plain}))})
		goOn := func() {
			for i := range 50 {
				if err := m.Set(state{Load: float64(i), Phase: "search"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			synctest.Wait()
		}
		for _, c := range []struct {
			name     string
			timeline clocksync.Timeline
			log      string
		}{
			{"", "near", "msg=\"the clock has a bound\" member=w source=peer status=synchronized\n"},
			{"s", "far", "msg=\"the synchronizer has another clock now; the member comes back as soon as its own is measured against that\" member=w synchronizer=s\n" +
				"msg=\"back in the group\" member=w synchronizer=s\n"},
			{"again", "far", "msg=\"the synchronizer leads in a new term\" member=w synchronizer=again term=1\n"},
		} {
			if c.name != "" {
				log.Reset()
				e.move(c.name, c.timeline)
			}
			before := e.truth(t)[c.timeline]
			goOn()
			if told := e.truth(t)[c.timeline] - before; told < 30 {
				t.Errorf("%q: %d stamps told with a bound on %q", c.name, told, c.timeline)
			}
			var told strings.Builder
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "claims it too") { // For some seconds, as the one before may be there.
					told.WriteString(line)
				}
			}
			if text := told.String(); text != c.log {
				t.Errorf("%q: the log says\n%swant\n%s", c.name, text, c.log)
			}
			if q := m.Clock(); q.Timeline != c.timeline || q.Source != "peer" || q.Status != clocksync.Synchronized {
				t.Errorf("%q: the clock is %+v", c.name, q)
			}
		}
	})
}

// plain leaves out the parts that differ each time.
func plain(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}

// TestDriftsOfBothClocks: a bound is widened by both.
func TestDriftsOfBothClocks(t *testing.T) {
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		e := newElsewhere(t, local.Connect)
		e.drift = 90_000
		var log bytes.Buffer
		m := join(t, local, agent.Config{Group: "g", Name: "w", Drift: 20_000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if want := "the synchronizer's clock may drift by 90000 ppm and this one by 20000: at most 100000 together make a bound"; !strings.Contains(log.String(), want) {
			t.Errorf("the log says %q, want %q", log.String(), want)
		}
		e.mu.Lock()
		e.drift = 80_000
		e.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := m.Set(state{Phase: "idle"}); err != nil {
			t.Fatal(err)
		}
		if q := m.Clock(); q.Status != clocksync.Synchronized {
			t.Errorf("%+v", q)
		}
	})
}

// TestNobodyAnswersPings: the bound grows and is degraded, still holds, and comes
// back, whether the server was away or the synchronizer did not answer. States
// continue meanwhile, without a new incarnation.
func TestNobodyAnswersPings(t *testing.T) {
	t.Cleanup(agent.SetPeerStale(20 * time.Millisecond))
	bustest.Bubble(t, func(t *testing.T) {
		local := bustest.NewServer(t)
		e := newElsewhere(t, local.Connect)
		var log bytes.Buffer
		m := join(t, local, agent.Config{Group: "g", Name: "w", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		until := func(want clocksync.Status) {
			t.Helper()
			clock := source.System()
			for begun := clock.Now().Mono; m.Clock().Status != want; time.Sleep(100 * time.Millisecond) {
				if clock.Now().Mono.Sub(begun) > 20*time.Second {
					t.Fatalf("never %v: %+v", want, m.Clock())
				}
				if err := m.Set(state{Phase: "search"}); err != nil {
					t.Fatal(err)
				}
				if s := m.Stamp(); !s.Within.Contains(s.Mono.Add(ahead["near"])) || !s.Within.Bounded() {
					t.Fatalf("%v does not hold the truth", s)
				}
			}
			synctest.Wait()
			e.truth(t)
		}
		mute := func(silent bool) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.silent = silent
		}
		for _, c := range []struct {
			name      string
			off, back func()
		}{
			{"the server is away", local.Stop, local.Start},
			{"the synchronizer does not answer", func() { mute(true) }, func() { mute(false) }},
		} {
			log.Reset() // First, since the bound may age before the next line, too.
			until(clocksync.Synchronized)
			c.off()
			until(clocksync.Degraded)
			if want := "the bound of the clock is not renewed or too wide, and grows"; !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log says %q, want %q", c.name, log.String(), want)
			}
			c.back()
			until(clocksync.Synchronized)
		}
		e.fake.mu.Lock()
		defer e.fake.mu.Unlock()
		for _, h := range e.hellos {
			if h.Incarnation != e.hellos[0].Incarnation {
				t.Errorf("incarnation %d after %d", h.Incarnation, e.hellos[0].Incarnation)
			}
		}
	})
}
