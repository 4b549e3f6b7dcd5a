package scgs_test

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// rescan finds the same global states by looking at all heads after every step.
// It is the reference for many members, where enumeration cannot go, and what
// the detector's speed is compared with. It knows no loss and no epochs.
type rescan struct {
	queues  [][]state // of each member, oldest first
	domains map[clocksync.Domain]*extremes
	order   []*extremes
	of      []*extremes // of each member
	open    bool
	opened  func(heads [][]state)
}

// extremes are those of one domain's heads.
type extremes struct {
	startMono, startLatest clocksync.Instant // latest
	endMono, endEarliest   clocksync.Instant // least
	first                  int               // the head that ends first
}

func newRescan(specs []scgs.Spec, opened func(heads [][]state)) *rescan {
	r := &rescan{queues: make([][]state, len(specs)), domains: map[clocksync.Domain]*extremes{}, opened: opened}
	for _, s := range specs {
		e := r.domains[s.Domain]
		if e == nil {
			e = &extremes{}
			r.domains[s.Domain] = e
			r.order = append(r.order, e)
		}
		r.of = append(r.of, e)
	}
	return r
}

func (r *rescan) start(m int, ref scgs.Ref, at clocksync.Stamp) {
	if q := r.queues[m]; len(q) > 0 {
		q[len(q)-1].end, q[len(q)-1].closed = at, true
	}
	r.queues[m] = append(r.queues[m], state{ref: ref, start: at, end: at})
	r.run()
}

func (r *rescan) evidence(m int, at clocksync.Stamp) {
	if q := r.queues[m]; len(q) > 0 {
		q[len(q)-1].end = at
		r.run()
	}
}

func (r *rescan) run() {
	for r.scan() {
		if j := r.refuted(); j >= 0 {
			r.queues[j] = r.queues[j][1:]
			continue
		}
		if !r.certain() {
			return
		}
		if !r.open {
			r.open = true
			r.opened(r.queues)
		}
		j := r.ending()
		if !r.queues[j][0].closed {
			return
		}
		r.open = false
		r.queues[j] = r.queues[j][1:]
	}
}

// scan looks at all heads; it returns false if a member has none.
func (r *rescan) scan() bool {
	for _, e := range r.order {
		*e = extremes{clocksync.MinInstant, clocksync.MinInstant, clocksync.MaxInstant, clocksync.MaxInstant, -1}
	}
	for m, q := range r.queues {
		if len(q) == 0 {
			return false
		}
		h, e := &q[0], r.of[m]
		e.startMono = max(e.startMono, h.start.Mono)
		e.startLatest = max(e.startLatest, h.start.Within.Latest)
		e.endMono = min(e.endMono, h.end.Mono)
		e.endEarliest = min(e.endEarliest, h.end.Within.Earliest)
		if e.first < 0 || earlier(h, &r.queues[e.first][0]) {
			e.first = m
		}
	}
	return true
}

// earlier is the order of advancing inside a domain.
func earlier(a, b *state) bool {
	switch {
	case a.end.Mono != b.end.Mono:
		return a.end.Mono < b.end.Mono
	case a.end.Within.Earliest != b.end.Within.Earliest:
		return a.end.Within.Earliest < b.end.Within.Earliest
	}
	return a.closed && !b.closed
}

// two gives the domain with the latest start, that start, and the latest of the
// other domains.
func (r *rescan) two() (first *extremes, t, u clocksync.Instant) {
	t, u = clocksync.MinInstant, clocksync.MinInstant
	for _, e := range r.order {
		switch {
		case e.startLatest > t || first == nil:
			first, t, u = e, e.startLatest, t
		case e.startLatest > u:
			u = e.startLatest
		}
	}
	return first, t, u
}

func (r *rescan) certain() bool {
	first, t, u := r.two()
	for _, e := range r.order {
		other := t
		if e == first {
			other = u
		}
		if e.startMono >= e.endMono || len(r.order) > 1 && other >= e.endEarliest {
			return false
		}
	}
	return true
}

func (r *rescan) refuted() int {
	first, t, u := r.two()
	for m, q := range r.queues {
		h, e := &q[0], r.of[m]
		other := t
		if e == first {
			other = u
		}
		if h.closed && (e.startMono >= h.end.Mono || len(r.order) > 1 && other >= h.end.Within.Earliest) {
			return m
		}
	}
	return -1
}

func (r *rescan) ending() int {
	var first *state
	j := -1
	for _, e := range r.order {
		h := &r.queues[e.first][0]
		if first == nil || h.end.Within.Earliest < first.end.Within.Earliest ||
			h.end.Within.Earliest == first.end.Within.Earliest && h.closed && !first.closed {
			first, j = h, e.first
		}
	}
	return j
}
