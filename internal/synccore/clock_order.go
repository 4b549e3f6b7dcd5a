package synccore

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
)

// How many stamps of a clock domain are kept: of the only process in it, for the
// day another one comes, and of several.
const (
	seedLimit  = 256
	weaveLimit = 4096
)

// domain is a clock domain whose processes measure their bounds, each for itself.
// The stamps of one are in order; those of several are put in order as they come
// in. A domain with one process only notes its last stamps.
type domain struct {
	members int
	seeds   []clocksync.Stamp
	seen    int // stamps of the only process
	weave   *clocksync.MonotoneMerger
	below   clocksync.Instant // no reading below it is to come
}

// next puts a stamp in the order of its domain. It is false for one so old that
// its neighbours are forgotten.
func (d *domain) next(at clocksync.Stamp) (clocksync.Stamp, bool) {
	if d.weave != nil {
		return d.weave.Next(at)
	}
	if len(d.seeds) < seedLimit {
		d.seeds = append(d.seeds, at)
	} else {
		d.seeds[d.seen%seedLimit] = at
	}
	d.seen++
	return at, true
}

// begin weaves from now on, beginning with what is known of the first process.
func (d *domain) begin() {
	d.weave = clocksync.NewMonotoneMerger(weaveLimit)
	oldest := clocksync.MaxInstant
	for _, s := range d.seeds {
		oldest = min(oldest, s.Mono)
		d.weave.Next(s)
	}
	if d.seen > seedLimit {
		d.weave.Forget(oldest)
	}
	d.seeds = nil
}

// enterDomain counts a member whose stamps have a bound that it measures itself.
func (c *Core) enterDomain(m *member) {
	if m.shared != nil || m.quality.Timeline == "" || c.opt.Local || c.exact(m) {
		return
	}
	d := c.domains[m.domain]
	if d == nil {
		d = &domain{}
		c.domains[m.domain] = d
	}
	m.shared = d
	if d.members++; d.members > 1 && d.weave == nil {
		d.begin()
	}
}

func (c *Core) leaveDomain(m *member) {
	if m.shared == nil {
		return
	}
	if m.shared.members--; m.shared.members == 0 && c.domains[m.domain] == m.shared {
		delete(c.domains, m.domain)
	}
	m.shared = nil
}

// distrust takes out the other processes of a domain whose clock has contradicted
// itself in one of them: their stamps were put in order with wrong ones. They come
// back as new incarnations.
func (c *Core) distrust(name string, of clocksync.Domain) {
	d := c.domains[of]
	if d == nil {
		return
	}
	delete(c.domains, of)
	for _, m := range c.sorted {
		if m.shared == d && m.name != name {
			c.leave(m, fmt.Sprintf("the clock of its host contradicts itself, as %q has measured", name))
		}
	}
}

// forgetStamps forgets what no stamp to come can be a neighbour of.
func (c *Core) forgetStamps() {
	if len(c.domains) == 0 {
		return
	}
	for _, d := range c.domains {
		d.below = clocksync.MaxInstant
	}
	for _, m := range c.sorted {
		switch {
		case m.shared == nil:
		case len(m.stash) > 0 || m.gapSince != clocksync.MaxInstant:
			m.shared.below = clocksync.MinInstant
		default:
			m.shared.below = min(m.shared.below, m.read)
		}
	}
	for _, d := range c.domains {
		if d.weave != nil && d.below != clocksync.MaxInstant {
			d.weave.Forget(d.below)
		}
	}
}
