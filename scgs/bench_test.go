package scgs_test

import (
	"fmt"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// workload makes an endless run of reports, one every 1000 ns, with bounds that
// vary from 100 to 900 ns from report to report.
type workload struct {
	domains []clocksync.Domain // of each member
	order   string
	now     clocksync.Instant
	count   int
	rng     uint64
	seq     []uint64
}

func newWorkload(order string, members, domains int) *workload {
	w := &workload{order: order, rng: 88172645463325252, seq: make([]uint64, members)}
	for m := range members {
		w.domains = append(w.domains, clocksync.Domain(fmt.Sprintf("host-%06d", m%domains)))
	}
	return w
}

func (w *workload) specs() []scgs.Spec {
	var specs []scgs.Spec
	for _, d := range w.domains {
		specs = append(specs, scgs.Spec{Domain: d})
	}
	return specs
}

func (w *workload) random() uint64 {
	w.rng ^= w.rng << 13
	w.rng ^= w.rng >> 7
	w.rng ^= w.rng << 17
	return w.rng
}

// next is the next report: whose, its number and stamp.
func (w *workload) next() (int, uint64, clocksync.Stamp) {
	n := len(w.domains)
	m := w.count % n
	switch w.order {
	case "random":
		if w.count >= n { // each has reported once
			m = int(w.random() % uint64(n))
		}
	case "silent": // member 0 reports every 20th time only
		if m == 0 && w.count/n%20 != 0 {
			m = 1
		}
	}
	w.count++
	w.now += 1000
	w.seq[m]++
	bound := clocksync.Instant(100 + w.random()%800)
	return m, w.seq[m], clocksync.Stamp{
		Domain: w.domains[m], Mono: w.now,
		Within: clocksync.Interval{Earliest: w.now - bound, Latest: w.now + bound},
	}
}

// engine is a detector fed by a workload.
type engine struct {
	w     *workload
	d     *scgs.Detector
	event scgs.Event
	refs  []scgs.Ref
	found int
}

func newEngine(order string, members, domains int) *engine {
	e := &engine{w: newWorkload(order, members, domains), d: scgs.NewDetector(scgs.Options{})}
	e.d.Epoch(1, nil, e.w.specs())
	for range 30 * members { // queues reach their working size
		e.step()
	}
	return e
}

func (e *engine) step() {
	m, seq, at := e.w.next()
	e.d.Start(scgs.Member(m), seq, at, 1)
	for e.d.Next(&e.event) {
		if e.event.Kind == scgs.Opened {
			e.found++
		}
	}
	e.refs = e.d.Released(e.refs[:0])
}

func BenchmarkDetector(b *testing.B) {
	for _, order := range []string{"random", "round-robin", "silent"} {
		for _, members := range []int{10, 1000, 100_000} {
			for _, domains := range []int{1, 16, members} {
				if domains > members {
					continue
				}
				b.Run(fmt.Sprintf("order=%s/members=%d/domains=%d", order, members, domains), func(b *testing.B) {
					e := newEngine(order, members, domains)
					e.found = 0
					b.ReportAllocs()
					for b.Loop() {
						e.step()
					}
					b.ReportMetric(float64(e.found)/float64(b.N), "states/op")
				})
			}
		}
	}
}

func BenchmarkRescan(b *testing.B) {
	for _, order := range []string{"random", "round-robin", "silent"} {
		for _, members := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprintf("order=%s/members=%d/domains=%d", order, members, members), func(b *testing.B) {
				w := newWorkload(order, members, members)
				found := 0
				r := newRescan(w.specs(), func([][]state) { found++ })
				for range members {
					m, _, at := w.next()
					r.queues[m] = append(r.queues[m], state{start: at, end: at}) // not timed, and not scanned
				}
				for b.Loop() {
					m, _, at := w.next()
					r.start(m, 1, at)
				}
				b.ReportMetric(float64(found)/float64(b.N), "states/op")
			})
		}
	}
}
