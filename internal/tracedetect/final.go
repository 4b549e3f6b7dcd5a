package tracedetect

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// tuple is a global state that waits until its states have ended: what is other
// in it than in the one before.
type tuple []change

type change struct {
	member scgs.Member
	ref    scgs.Ref
}

// keep notes what is other in the tuple that has become certain.
func (c *Core) keep() {
	for _, ch := range c.event.Changed {
		c.now[ch.Member] = ch.Ref
		c.changed = append(c.changed, ch.Member)
	}
}

// queue lets the newest tuple wait.
func (c *Core) queue() {
	slices.Sort(c.changed)
	c.changed = slices.Compact(c.changed)
	t := make(tuple, len(c.changed))
	for i, m := range c.changed {
		t[i] = change{m, c.now[m]}
		c.records[c.now[m]].holds++
	}
	c.changed = c.changed[:0]
	c.waiting = append(c.waiting, t)
}

// ended takes in the end of a state.
func (c *Core) ended(p *scgs.Part) {
	r := &c.records[p.Ref]
	r.ended, r.end = true, p.End.Within
	if c.loaded && c.shown[p.Member] == p.Ref {
		c.unended--
	}
}

// advance delivers the tuples that have ended, in order, or all of them.
func (c *Core) advance(all bool) {
	for c.done < len(c.waiting) {
		if !c.loaded {
			c.load(c.waiting[c.done])
		}
		if c.unended > 0 && !all {
			break
		}
		c.show(c.shown)
		c.loaded, c.waiting[c.done] = false, nil
		c.done++
	}
	if 2*c.done > len(c.waiting) { // So a tuple moves once at most, on average.
		c.waiting = slices.Delete(c.waiting, 0, c.done)
		c.done = 0
	}
}

// load makes a tuple the one that is shown. Only what is other in it can be
// open, for the one before has ended.
func (c *Core) load(t tuple) {
	c.loaded, c.unended = true, 0
	for _, ch := range t {
		if old := c.shown[ch.member]; old != 0 {
			c.release(old)
		}
		c.shown[ch.member] = ch.ref
		if r := &c.records[ch.ref]; !r.ended && !r.gone {
			c.unended++
		}
	}
}

// show delivers a tuple or a set, with all that is known of it.
func (c *Core) show(refs []scgs.Ref) {
	c.reset()
	c.parts = c.parts[:0]
	for _, ref := range refs {
		r := &c.records[ref]
		c.parts = append(c.parts, scgs.Part{Start: clocksync.Stamp{Within: r.start}, End: clocksync.Stamp{Within: r.end}, Open: !r.ended})
		c.add(ref, !r.ended)
	}
	s := scgs.SpanOf(c.parts)
	c.fill(&s)
	c.deliver()
}
