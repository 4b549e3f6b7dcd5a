package synccore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// How many stamps of a clock domain are kept: of its only process, in case another one
// comes, and of several.
const (
	firstLimit = 256
	orderLimit = 4096
)

// clockOrder puts the stamps of a clock domain in order, where processes measure their bounds
// each for itself. The stamps of one process are in order; so a domain with one process only
// keeps its last stamps.
type clockOrder struct {
	members int
	first   []clocksync.Stamp
	seen    int // stamps of the only process
	merger  *clocksync.MonotoneMerger
	below   clocksync.Instant // no later reading is below it
}

// orderStamp puts a stamp in the order of its domain. It is false for one so old that its
// neighbours were forgotten.
func (d *clockOrder) orderStamp(at clocksync.Stamp) (clocksync.Stamp, bool) {
	if d.merger != nil {
		return d.merger.Next(at)
	}
	if len(d.first) < firstLimit {
		d.first = append(d.first, at)
	} else {
		d.first[d.seen%firstLimit] = at
	}
	d.seen++
	return at, true
}

// begin merges from now on, first the stamps that are kept of the only process.
func (d *clockOrder) begin() {
	d.merger = clocksync.NewMonotoneMerger(orderLimit)
	oldest := clocksync.MaxInstant
	for _, s := range d.first {
		oldest = min(oldest, s.Mono)
		d.merger.Next(s)
	}
	if d.seen > firstLimit {
		d.merger.Forget(oldest)
	}
	d.first = nil
}

// enterDomain counts a member whose stamps have a bound that it measures itself.
func (c *Core) enterDomain(m *member) {
	if m.shared != nil || m.quality.Timeline == "" || c.opt.Local || c.readsReference(m) {
		return
	}
	d := c.domains[m.domain]
	if d == nil {
		d = &clockOrder{}
		c.domains[m.domain] = d
	}
	m.shared = d
	if d.members++; d.members > 1 && d.merger == nil {
		d.begin()
	}
}

func (r *membership) leaveDomain(m *member) {
	if m.shared == nil {
		return
	}
	if m.shared.members--; m.shared.members == 0 && r.domains[m.domain] == m.shared {
		delete(r.domains, m.domain)
	}
	m.shared = nil
}

// distrustDomain takes out the other processes of a domain whose clock has contradicted
// itself in one of them: their stamps were put in order with wrong ones. They come
// back as new incarnations.
func (c *Core) distrustDomain(name string, of clocksync.Domain) {
	d := c.domains[of]
	if d == nil {
		return
	}
	delete(c.domains, of)
	for _, m := range c.sorted {
		if m.shared == d && m.name != name {
			c.removeMember(m, fmt.Sprintf("the clock of its host contradicts itself, as %q has measured", name))
		}
	}
}

// forgetStamps forgets the stamps that no later one can be a neighbour of.
func (r *membership) forgetStamps() {
	if len(r.domains) == 0 {
		return
	}
	for _, d := range r.domains {
		d.below = clocksync.MaxInstant
	}
	for _, m := range r.sorted {
		switch {
		case m.shared == nil:
		case m.behind():
			m.shared.below = clocksync.MinInstant
		default:
			m.shared.below = min(m.shared.below, m.lastRead())
		}
	}
	for _, d := range r.domains {
		if d.merger != nil && d.below != clocksync.MaxInstant {
			d.merger.Forget(d.below)
		}
	}
}
