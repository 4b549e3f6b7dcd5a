package scgs_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// thresholdEngine is a Threshold fed by an endless run of reports, one every
// 1000 ns, with bounds from 100 to 900 ns: every fifth begins a state, in which
// the condition holds in so many of a hundred cases, the others are evidence.
type thresholdEngine struct {
	w       *workload
	percent uint64
	begun   []bool
	d       *scgs.Threshold
	set     scgs.Set
	refs    []scgs.Ref
	found   int
}

func newThresholdEngine(k, members, domains int, percent uint64) *thresholdEngine {
	e := &thresholdEngine{
		w: newWorkload("random", members, domains), percent: percent,
		begun: make([]bool, members), d: scgs.NewThreshold(k, scgs.Options{}),
	}
	e.d.Epoch(1, nil, e.w.specs())
	for range 10 * members {
		e.step()
	}
	return e
}

func (e *thresholdEngine) step() {
	m, seq, at := e.w.next()
	e.report(scgs.Member(m), seq, at)
	for e.d.Next(&e.set) {
		e.found++
	}
	e.refs = e.d.Released(e.refs[:0])
}

func (e *thresholdEngine) report(m scgs.Member, seq uint64, at clocksync.Stamp) {
	switch r := e.w.random(); {
	case e.begun[m] && r%5 != 0:
		e.w.seq[m]-- // it is no new state
		e.d.Evidence(m, seq-1, at)
	case r/5%100 < e.percent:
		e.begun[m] = true
		e.d.Start(m, seq, at, 1)
	default:
		e.begun[m] = true
		e.d.End(m, seq, at)
	}
}

func BenchmarkThreshold(b *testing.B) {
	for _, percent := range []uint64{1, 50} {
		for _, members := range []int{10, 1000, 100_000} {
			for _, each := range []int{1, 16} {
				for _, k := range []int{2, members*4/5 + 1} {
					b.Run(fmt.Sprintf("true=%d%%/k=%d/members=%d/domains=%d", percent, k, members, (members+each-1)/each), func(b *testing.B) {
						e := newThresholdEngine(k, members, (members+each-1)/each, percent)
						e.found = 0
						b.ReportAllocs()
						for b.Loop() {
							e.step()
						}
						b.ReportMetric(float64(e.found)/float64(b.N), "sets/op")
						b.ReportMetric(float64(e.d.Stats().Truncated), "truncated")
					})
				}
			}
		}
	}
}

// holders is a Threshold fed at 20,000 reports a second, with bounds of 100 us, by
// members in turn of which so many hold the condition. Every so many
// reports the run of one of these ends, and another member takes its place.
type holders struct {
	w           *workload
	d           *scgs.Threshold
	holding     []int
	idle        []int
	place       []int // among those that hold, or -1
	now         clocksync.Instant
	turn        int
	changeEvery int
	set         scgs.Set
	refs        []scgs.Ref
	needs       []scgs.Need
	found       int
}

func newHolders(k, members, hold, domains int, o scgs.Options) *holders {
	h := &holders{w: newWorkload("random", members, domains), d: scgs.NewThreshold(k, o), place: make([]int, members), changeEvery: 100}
	h.d.Epoch(1, nil, h.w.specs())
	for m := range members {
		h.place[m] = -1
		if m%(members/hold) == 0 && len(h.holding) < hold {
			h.hold(m)
			h.d.Start(scgs.Member(m), h.next(m), h.at(m), 1)
		} else {
			h.idle = append(h.idle, m)
			h.d.End(scgs.Member(m), h.next(m), h.at(m))
		}
	}
	for range 4 * members {
		h.step()
	}
	h.found = 0
	return h
}

func (h *holders) hold(m int) {
	h.place[m] = len(h.holding)
	h.holding = append(h.holding, m)
}

func (h *holders) next(m int) uint64 { h.w.seq[m]++; return h.w.seq[m] }

func (h *holders) at(m int) clocksync.Stamp {
	h.now += 50_000
	return clocksync.Stamp{
		Domain: h.w.domains[m], Mono: h.now,
		Within: clocksync.Interval{Earliest: h.now - 100_000, Latest: h.now + 100_000},
	}
}

func (h *holders) step() {
	h.turn++
	if m := h.turn % len(h.place); h.turn%h.changeEvery != 0 {
		h.d.Evidence(scgs.Member(m), h.w.seq[m], h.at(m))
	} else {
		h.change()
	}
	for h.d.Next(&h.set) {
		h.found++
	}
	h.refs = h.d.Released(h.refs[:0])
}

func (h *holders) change() {
	i := int(h.w.random() % uint64(len(h.holding))) //nolint:gosec // It is small.
	j := int(h.w.random() % uint64(len(h.idle)))    //nolint:gosec // It is small.
	ends, begins := h.holding[i], h.idle[j]
	h.holding[i], h.idle[j] = begins, ends
	h.place[begins], h.place[ends] = i, -1
	h.d.End(scgs.Member(ends), h.next(ends), h.at(ends))
	h.d.Start(scgs.Member(begins), h.next(begins), h.at(begins), 1)
}

// BenchmarkHolders is a report, of which every hundredth changes who holds.
// "needs" asks after each report for the evidence that is lacking.
func BenchmarkHolders(b *testing.B) {
	for _, each := range []int{0, 16, 1} { // members of a domain, 0 is all
		for _, hold := range []int{100, 1000} {
			members := max(1000, 2*hold)
			domains := 1
			if each > 0 {
				domains = members / each
			}
			for _, k := range []int{2, 10, hold / 2} {
				for _, needs := range []bool{false, true} {
					b.Run(fmt.Sprintf("domains=%d/members=%d/holders=%d/k=%d/needs=%t", domains, members, hold, k, needs), func(b *testing.B) {
						h := newHolders(k, members, hold, domains, scgs.Options{Alarms: true})
						b.ReportAllocs()
						for b.Loop() {
							h.step()
							if needs {
								h.needs = h.d.Needs(h.needs[:0])
							}
						}
						b.ReportMetric(float64(h.found)/float64(b.N), "sets/op")
					})
				}
			}
		}
	}
}
