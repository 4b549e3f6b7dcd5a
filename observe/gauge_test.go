package observe

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopegasus/pegasus/clocksync"
)

// second is one on a machine of two cores: ticks of each in use and stolen, of 100,
// and seconds of CPU time.
type second struct {
	busy, stolen [2]uint64
	own, used    float64
	ran, waited  time.Duration // of a burst at its end
}

func TestShare(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		quota   float64
		seconds []second
		share   float64
		usage   float64
		wants   bool // a burst
	}{
		{"nothing runs", math.Inf(1), []second{{}}, 1, math.NaN(), false},
		{"all of it is ours", math.Inf(1), []second{{busy: [2]uint64{100, 100}, own: 2}}, 1, math.NaN(), false},
		{"half is ours, half another's", math.Inf(1), []second{{busy: [2]uint64{100, 100}, own: 1}}, 0.5, math.NaN(), true},
		{"another uses one core", math.Inf(1), []second{{busy: [2]uint64{0, 100}}}, 0.5, math.NaN(), true},
		{"and threads get two thirds", math.Inf(1), []second{{busy: [2]uint64{0, 100}, ran: 20 * ms, waited: 10 * ms}}, 2. / 3, math.NaN(), true},
		{"what is left is more", math.Inf(1), []second{{busy: [2]uint64{0, 40}, ran: 10 * ms, waited: 10 * ms}}, 0.8, math.NaN(), true},
		{"others use all", math.Inf(1), []second{{busy: [2]uint64{100, 100}, ran: 20 * ms, waited: 20 * ms}}, 0.5, math.NaN(), true},
		{"older bursts count less", math.Inf(1), []second{{busy: [2]uint64{100, 100}, ran: 20 * ms}, {busy: [2]uint64{100, 100}, ran: 20 * ms, waited: 10 * ms}}, 0.75, math.NaN(), true},
		{"and not at all once others were gone", math.Inf(1), []second{{busy: [2]uint64{100, 100}, ran: 10 * ms}, {}, {busy: [2]uint64{100, 100}, ran: 10 * ms, waited: 30 * ms}}, 0.25, math.NaN(), true},
		{"till then they are the best guess", math.Inf(1), []second{{busy: [2]uint64{100, 100}, ran: 10 * ms, waited: 10 * ms}, {}, {busy: [2]uint64{100, 100}}}, 0.5, math.NaN(), true},
		{"the host takes a half", math.Inf(1), []second{{busy: [2]uint64{50, 50}, stolen: [2]uint64{50, 50}, own: 1, ran: 20 * ms}}, 0.5, math.NaN(), true},
		{"the host and others", math.Inf(1), []second{{busy: [2]uint64{50, 50}, stolen: [2]uint64{50, 50}, ran: 20 * ms, waited: 20 * ms}}, 0.25, math.NaN(), true},
		{"half a core of quota", 0.5, []second{{}}, 0.25, 0, false},
		{"all of it used by us", 0.5, []second{{busy: [2]uint64{0, 50}, own: 0.5, used: 0.5}}, 0.25, 1, false},
		{"others in the group", 1, []second{{busy: [2]uint64{25, 25}, used: 0.5}}, 0.25, 0.5, true},
		{"a quota, and others outside", 1, []second{{busy: [2]uint64{100, 100}, ran: 20 * ms, waited: 20 * ms}}, 0.5, 0, true},
		{"a quota above the cores", 4, []second{{busy: [2]uint64{100, 0}, own: 1, used: 1}}, 1, 0.25, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGauge(7, 2)
			s := sample{cores: []core{{id: 0}, {id: 3}}, quota: c.quota, pressure: 0.3, stalled: math.NaN()}
			g.take(&s)
			if r := g.reading(); !math.IsNaN(r.Share) {
				t.Errorf("after one sample the share is %v, and not unknown", r.Share)
			}
			wants := false
			for _, one := range c.seconds {
				s.at += clocksync.Instant(time.Second)
				s.own += time.Duration(one.own * 1e9)
				s.used += time.Duration(one.used * 1e9)
				for i := range s.cores {
					s.cores[i].total += 100
					s.cores[i].idle += 100 - one.busy[i] - one.stolen[i]
					s.cores[i].steal += one.stolen[i]
				}
				wants = g.take(&s)
				if one.ran > 0 {
					g.burst(one.ran, one.waited)
				}
			}
			r := g.reading()
			if math.Abs(r.Share-c.share) > 1e-9 || wants != c.wants || math.Abs(r.Usage-c.usage) > 1e-9 || math.IsNaN(r.Usage) != math.IsNaN(c.usage) {
				t.Errorf("share %v, want %v; usage %v, want %v; a burst %t, want %t", r.Share, c.share, r.Usage, c.usage, wants, c.wants)
			}
			if r.Power != 7 || r.Cores != 2 || r.Quota != min(c.quota, 2) || r.Pressure != 0.3 {
				t.Errorf("reading %+v", r)
			}
		})
	}
}

// TestBlind has no probe threads: beside others the share is unknown.
func TestBlind(t *testing.T) {
	g := newGauge(1, 1)
	g.blind = true
	for i, want := range []float64{math.NaN(), 1, math.NaN(), 0.96} {
		idle := []uint64{0, 100, 120, 216}[i]
		g.take(&sample{at: clocksync.Instant(i) * clocksync.Instant(time.Second), cores: []core{{0, uint64(i) * 100, idle, 0}}, quota: math.Inf(1)}) //nolint:gosec // It is small.
		if got := g.reading().Share; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("at %d: share %v, want %v", i, got, want)
		}
	}
}

// TestCoresComeAndGo has a core that is off line for a while, and counters that stand
// still.
func TestCoresComeAndGo(t *testing.T) {
	g := newGauge(1, 2)
	step := func(at int, want float64, cores ...core) {
		t.Helper()
		g.take(&sample{at: clocksync.Instant(at) * clocksync.Instant(time.Second), cores: cores, quota: math.Inf(1)})
		if got := g.reading().Share; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("at %d: share %v, want %v", at, got, want)
		}
	}
	nan := math.NaN()
	step(1, nan, core{0, 100, 100, 0}, core{1, 100, 100, 0})
	step(2, 0.5, core{0, 200, 150, 0})
	step(3, 0.5, core{0, 300, 200, 0}, core{1, 900, 0, 0})
	step(4, 0.75, core{0, 400, 250, 0}, core{1, 1000, 100, 0})
	step(5, nan, core{0, 400, 250, 0}, core{1, 1000, 100, 0})
	step(6, nan)
	step(7, nan, core{0, 500, 350, 0})
	step(8, 1, core{0, 600, 450, 0})
}

// TestAnySample takes whatever counters may say: a share is from 0 to 1, or unknown.
func TestAnySample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGauge(1, rapid.IntRange(1, 4).Draw(t, "cores"))
		for range 5 {
			s := sample{
				at:    clocksync.Instant(rapid.Int64Range(0, 1e10).Draw(t, "at")),
				own:   time.Duration(rapid.Int64().Draw(t, "own")),
				used:  time.Duration(rapid.Int64().Draw(t, "used")),
				quota: rapid.SampledFrom([]float64{0.01, 1, 100, math.Inf(1)}).Draw(t, "quota"),
			}
			for i := range rapid.IntRange(0, 4).Draw(t, "n") {
				tick := rapid.Uint64Range(0, 1<<62)
				s.cores = append(s.cores, core{i, tick.Draw(t, "total"), tick.Draw(t, "idle"), tick.Draw(t, "steal")})
			}
			g.take(&s)
			wait := rapid.Int64Range(0, 1e12)
			g.burst(time.Duration(wait.Draw(t, "ran")), time.Duration(wait.Draw(t, "waited")))
			if r := g.reading(); r.Share < 0 || r.Share > 1 || r.Usage < 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}

func TestBand(t *testing.T) {
	told := Reading{Power: 100, Share: 0.5, Pressure: 0.1, Stalled: math.NaN(), Quota: 2, Usage: math.NaN()}
	for _, c := range []struct {
		name   string
		change func(*Reading)
		want   bool
	}{
		{"nothing", func(*Reading) {}, false},
		{"a little of all", func(r *Reading) { r.Power, r.Share, r.Pressure, r.Quota = 104, 0.54, 0.06, 2.09 }, false},
		{"share", func(r *Reading) { r.Share = 0.56 }, true},
		{"pressure", func(r *Reading) { r.Pressure = 0.04 }, true},
		{"quota", func(r *Reading) { r.Quota = 2.11 }, true},
		{"known now", func(r *Reading) { r.Usage = 0 }, true},
		{"unknown now", func(r *Reading) { r.Share = math.NaN() }, true},
	} {
		r := told
		if c.change(&r); differs(r, told, 0.05) != c.want {
			t.Errorf("%s: told %t, want %t", c.name, !c.want, c.want)
		}
	}
}

// TestBudget has bursts of any cost wherever they are due: over all the time they cost
// no more than their part, and the last one.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b budget
		var now clocksync.Instant
		var sum, last time.Duration
		for range 50 {
			now += clocksync.Instant(rapid.Int64Range(1, 2e10).Draw(t, "pause"))
			if !b.due(now) {
				continue
			}
			if allowed := time.Duration(probePart * float64(now)); sum > allowed+50 { // Rounding of each step.
				t.Fatalf("%v at %v is more than %v", sum, now, allowed)
			}
			last = time.Duration(rapid.Int64Range(0, 1e8).Draw(t, "cost"))
			sum += last
			b.spend(last)
		}
	})
	if got := pause(time.Second, 100*time.Microsecond); got != time.Second {
		t.Errorf("a cheap sample stretches the pause to %v", got)
	}
	if got := pause(time.Second, 5*time.Millisecond); got != 5*time.Second {
		t.Errorf("the pause after a sample of 5 ms is %v, want 5s: 0.1 %%", got)
	}
}

// TestWork pins the result of a unit, so that nobody changes the work by chance.
func TestWork(t *testing.T) {
	next := newPlaces()
	if sum := unit(next); sum != workSum {
		t.Errorf("a unit comes to %#x, want %#x", sum, workSum)
	}
	at, n := next[0], 1
	for ; at != 0; at = next[at] {
		n++
	}
	if n != places {
		t.Errorf("the walk comes back after %d of %d places", n, places)
	}
	if m := median([]float64{5, 1, 2, 9}); m != 3.5 {
		t.Errorf("median %v", m)
	}
}
