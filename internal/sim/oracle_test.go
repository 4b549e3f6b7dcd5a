package sim

import (
	"math"
	"math/bits"

	"github.com/gopegasus/pegasus/clocksync"
)

// oracle knows the smallest bound that samples allow: where the offset can be if the servers
// outside one of the sets of so many liars are right in all they ever said. Each such set is
// followed separately, and a server is never forgiven. The estimator remembers 8 samples, so
// the smallest that these allow is known, too.
type oracle struct {
	n, faults int
	recent    [][]clocksync.Sample // of each server
	honest    []uint               // sets of servers
	lo, hi    []float64
	at        []clocksync.Instant
}

func newOracle(n, faults int) *oracle {
	o := &oracle{n: n, faults: faults}
	o.forget()
	return o
}

func (o *oracle) forget() {
	o.honest, o.lo, o.hi, o.at = nil, nil, nil, nil
	o.recent = make([][]clocksync.Sample, o.n)
	for set := range uint(1) << o.n {
		if bits.OnesCount(set) == o.n-o.faults {
			o.honest = append(o.honest, set)
			o.lo, o.hi, o.at = append(o.lo, math.Inf(-1)), append(o.hi, math.Inf(1)), append(o.at, 0)
		}
	}
}

func (o *oracle) add(s clocksync.Sample) {
	server := uint(s.Server[0] - 'a')
	o.recent[server] = append(o.recent[server], s)
	o.recent[server] = o.recent[server][max(0, len(o.recent[server])-8):]
	for i, set := range o.honest {
		if set>>server&1 == 0 || o.lo[i] > o.hi[i] { // An empty set of offsets stays empty.
			continue
		}
		lo, hi := o.grown(i, s.At)
		o.lo[i], o.hi[i], o.at[i] = max(lo, float64(s.Offset.Earliest)), min(hi, float64(s.Offset.Latest)), s.At
	}
}

func (o *oracle) grown(i int, m clocksync.Instant) (lo, hi float64) {
	g := drifted(o.at[i], m)
	return o.lo[i] - g, o.hi[i] + g
}

func (o *oracle) smallest(m clocksync.Instant) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range o.honest {
		if l, h := o.grown(i, m); o.lo[i] <= o.hi[i] {
			lo, hi = min(lo, l), max(hi, h)
		}
	}
	return lo, hi
}

func (o *oracle) smallestOfRecent(m clocksync.Instant) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, set := range o.honest {
		if l, h, ok := o.recentOf(set, m); ok {
			lo, hi = min(lo, l), max(hi, h)
		}
	}
	return lo, hi
}

// recentOf is where the offset can be if all of a set are right. The samples
// allow some course of the offset if each two of them do.
func (o *oracle) recentOf(set uint, m clocksync.Instant) (lo, hi float64, ok bool) {
	var all []clocksync.Sample
	for server, samples := range o.recent {
		if set>>server&1 != 0 {
			all = append(all, samples...)
		}
	}
	lo, hi = math.Inf(-1), math.Inf(1)
	for _, a := range all {
		for _, b := range all {
			if float64(a.Offset.Earliest-b.Offset.Latest) > drifted(a.At, b.At) {
				return 0, 0, false
			}
		}
		lo = max(lo, float64(a.Offset.Earliest)-drifted(a.At, m))
		hi = min(hi, float64(a.Offset.Latest)+drifted(a.At, m))
	}
	return lo, hi, true
}

// drifted is by how much an offset can change between two readings.
func drifted(a, b clocksync.Instant) float64 {
	return math.Abs(float64(a-b)) * coverageDrift / (1e6 - coverageDrift)
}
