package scgs_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// workload makes an endless run of reports, one every 1000 ns, with bounds that
// vary from 100 to 900 ns from report to report. The adversarial order goes to and
// fro over the members, and has bounds in every other pass that grow with their
// number: each report ends the head of another member, and of the heads about
// half are refuted.
type workload struct {
	domains []clocksync.Domain // of each member
	order   string
	now     clocksync.Instant
	reached clocksync.Interval
	count   int
	rng     uint64
	seq     []uint64
}

var orders = []string{"random", "round-robin", "silent", "adversarial"}

func newWorkload(order string, members, domains int) *workload {
	w := &workload{order: order, reached: clocksync.Exactly(clocksync.MinInstant), rng: 88172645463325252, seq: make([]uint64, members)}
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
	case "adversarial":
		if w.count/n%2 == 1 {
			m = n - 1 - m
		}
	}
	w.count++
	w.now += 1000
	w.seq[m]++
	bound := clocksync.Instant(100 + w.random()%800)
	if w.order == "adversarial" && w.count/n%2 == 0 {
		bound += clocksync.Instant(250 * n)
	}
	w.reached.Earliest = max(w.reached.Earliest, w.now-bound)
	w.reached.Latest = max(w.reached.Latest, w.now+bound)
	return m, w.seq[m], clocksync.Stamp{Domain: w.domains[m], Mono: w.now, Within: w.reached}
}

// holds reports whether the condition holds in the member's newest state: in all
// but every fourth.
func (w *workload) holds(m int) bool { return w.seq[m]%4 != 0 }

// engine is a detector fed by a workload.
type engine struct {
	w     *workload
	d     *scgs.Detector
	runs  bool
	brief bool // takes out what is found by Advance
	event scgs.Event
	refs  []scgs.Ref
	found int
}

func newEngine(modality scgs.Modality, order string, members, domains int) *engine {
	e := startEngine(modality, order, members, domains)
	e.warm()
	return e
}

func startEngine(modality scgs.Modality, order string, members, domains int) *engine {
	return &engine{
		w: newWorkload(order, members, domains), runs: modality != scgs.Inst,
		d: scgs.NewDetector(scgs.Options{Modality: modality}),
	}
}

func (e *engine) warm() {
	e.d.Epoch(1, nil, e.w.specs())
	for range 100 * len(e.w.domains) { // queues reach their working size
		e.step()
	}
	e.found = 0
}

func (e *engine) step() {
	m, seq, at := e.w.next()
	if e.runs && !e.w.holds(m) {
		e.d.End(scgs.Member(m), seq, at)
	} else {
		e.d.Start(scgs.Member(m), seq, at, 1)
	}
	e.take()
	e.refs = e.d.Released(e.refs[:0])
}

func (e *engine) take() {
	if e.brief {
		for e.d.Advance(&e.event) {
			e.found++
		}
		return
	}
	for e.d.Next(&e.event) {
		if e.event.Kind == scgs.Opened {
			e.found++
		}
	}
}

func BenchmarkDetector(b *testing.B)   { benchmarkModality(b, scgs.Inst) }
func BenchmarkDefinitely(b *testing.B) { benchmarkModality(b, scgs.Definitely) }
func BenchmarkPossibly(b *testing.B)   { benchmarkModality(b, scgs.Possibly) }

func benchmarkModality(b *testing.B, m scgs.Modality) {
	b.Helper()
	forSizes(b, func(b *testing.B, order string, members, domains int) {
		b.Helper()
		e := newEngine(m, order, members, domains)
		b.ReportAllocs()
		for b.Loop() {
			e.step()
		}
		b.ReportMetric(float64(e.found)/float64(b.N), "states/op")
	})
}

// BenchmarkAdvance takes out what is found by Advance.
func BenchmarkAdvance(b *testing.B) {
	forSizes(b, func(b *testing.B, order string, members, domains int) {
		b.Helper()
		e := startEngine(scgs.Inst, order, members, domains)
		e.brief = true
		e.warm()
		b.ReportAllocs()
		for b.Loop() {
			e.step()
		}
		b.ReportMetric(float64(e.found)/float64(b.N), "states/op")
	})
}

// BenchmarkHeld has multiplexers that speak for 50 members each, on one clock: one
// operation is one report, and each time that one of them has put in 50 of its
// members it shows that all states still hold.
func BenchmarkHeld(b *testing.B) {
	for _, members := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			e := startEngine(scgs.Inst, "round-robin", members, 1)
			e.brief = true
			specs := e.w.specs()
			for m := range specs {
				specs[m].Multiplexer = int32(1 + m/50)
			}
			e.d.Epoch(1, nil, specs)
			step := func() {
				m, seq, at := e.w.next()
				e.d.Start(scgs.Member(m), seq, at, 1)
				if m%50 == 49 {
					e.d.Held(int32(1+m/50), at)
				}
				e.take()
				e.refs = e.d.Released(e.refs[:0])
			}
			for range 100 * members {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// forSizes has one domain, 16 members a domain, and one.
func forSizes(b *testing.B, run func(b *testing.B, order string, members, domains int)) {
	b.Helper()
	for _, order := range orders {
		for _, members := range []int{10, 1000, 100_000} {
			for _, domains := range slices.Compact([]int{1, (members + 15) / 16, members}) {
				b.Run(fmt.Sprintf("order=%s/members=%d/domains=%d", order, members, domains), func(b *testing.B) {
					run(b, order, members, domains)
				})
			}
		}
	}
}

func BenchmarkRescan(b *testing.B) {
	for _, order := range orders {
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
