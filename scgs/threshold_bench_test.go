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
