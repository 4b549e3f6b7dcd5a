package observe

import (
	"math"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// sample is what the counters of the kernel say at an instant.
type sample struct {
	at    clocksync.Instant
	cores []core        // those that this process may use; none: unknown
	own   time.Duration // CPU time of this program
	quota float64       // cores that its control group may use; infinite: no limit
	used  time.Duration // CPU time of the group with that limit

	usedUnknown bool

	pressure, stalled float64 // NaN: unknown
}

// gauge makes readings of samples and of the bursts of probe threads.
type gauge struct {
	power float64
	cores float64 // how many this process may use

	before sample
	begun  bool
	free   float64 // part of the cores that is idle or used by this program; NaN: unknown
	within float64 // likewise by the quota
	usage  float64
	stolen float64 // part of the time in use that the host of a virtual machine took

	ran, waited time.Duration // of the probe threads, older bursts counting less
	past        bool          // these are of another time, in which others used more
	blind       bool          // there are no probe threads
}

// Where less than this is left to others, a burst of the probe threads cannot show
// more contention than the counters do.
const nearlyFree = 0.95

func newGauge(power float64, cores int) *gauge {
	return &gauge{power: power, cores: float64(cores), free: math.NaN(), within: math.Inf(1), usage: math.NaN()}
}

// take takes a sample. contended says that others use a part of the cores that is
// worth a burst.
func (g *gauge) take(s *sample) (contended bool) {
	a := &g.before
	if g.begun && s.at > a.at {
		wall := s.at.Sub(a.at).Seconds()
		own := max(0, (s.own - a.own).Seconds())
		g.free = g.between(a.cores, s.cores, own/wall)
		g.within, g.usage = math.Inf(1), math.NaN()
		if !math.IsInf(s.quota, 1) {
			used := max(0, (s.used - a.used).Seconds())
			if s.usedUnknown || a.usedUnknown {
				used = own
			} else {
				g.usage = used / wall / s.quota
			}
			g.within = (s.quota - max(0, used-own)/wall) / g.cores
		}
	}
	g.before, g.begun = *s, true
	g.before.cores = slices.Clone(s.cores)
	g.past = g.past || g.free >= nearlyFree
	return g.free < nearlyFree
}

// between is the part of the cores that was idle or used by this program, whose use
// is counted in cores.
func (g *gauge) between(a, b []core, own float64) float64 {
	var total, idle, stolen uint64
	for _, now := range b {
		i := slices.IndexFunc(a, func(c core) bool { return c.id == now.id })
		if i < 0 || now.total < a[i].total {
			continue // It has just come on line.
		}
		total += now.total - a[i].total
		if now.idle > a[i].idle { // The kernel says that it may count back.
			idle += now.idle - a[i].idle
		}
		if now.steal > a[i].steal {
			stolen += now.steal - a[i].steal
		}
	}
	if total == 0 {
		return math.NaN()
	}
	idle = min(idle, total)
	g.stolen = 0
	if busy := total - idle; busy > 0 {
		g.stolen = min(1, float64(stolen)/float64(busy))
	}
	return min(1, float64(idle)/float64(total)+own/g.cores)
}

// burst takes how long the probe threads of a burst ran, and waited while they were
// ready.
func (g *gauge) burst(ran, waited time.Duration) {
	if g.past {
		g.ran, g.waited, g.past = 0, 0, false
	}
	g.ran, g.waited = g.ran/2+ran, g.waited/2+waited
}

// reading is what is known now.
func (g *gauge) reading() Reading {
	quota := min(g.before.quota, g.cores)
	r := Reading{
		Cores: int(g.cores), Power: g.power, Quota: quota, Usage: g.usage, Share: math.NaN(),
		Pressure: g.before.pressure, Stalled: g.before.stalled,
	}
	if math.IsNaN(g.free) || g.blind && g.free < nearlyFree {
		return r // What is left may be far less than what the program would get.
	}
	r.Share = max(0, min(g.free, g.within))
	if all := g.ran + g.waited; all > 0 {
		fair := g.ran.Seconds() / all.Seconds() * (1 - g.stolen)
		r.Share = max(r.Share, min(fair, quota/g.cores))
	}
	return r
}

// How much of a core observation may use: the threads of the probe, and everything
// else.
const (
	probePart  = 0.004
	samplePart = 0.001
)

// budget spreads the bursts of the probe threads over time.
type budget struct {
	at   clocksync.Instant
	debt time.Duration
}

// due reports whether the bursts so far are paid for. Time without any earns nothing.
func (b *budget) due(now clocksync.Instant) bool {
	b.debt = max(0, b.debt-time.Duration(probePart*float64(now.Sub(b.at))))
	b.at = now
	return b.debt == 0
}

func (b *budget) spend(cpu time.Duration) { b.debt += cpu }

// pause is how long until the next sample, after one that took so much CPU time.
func pause(every, cost time.Duration) time.Duration {
	return max(every, time.Duration(float64(cost)/samplePart))
}
