package synccore

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// lacked is what of a member's reports is missing, and what waits for that.
type lacked struct {
	stash []held // in order; the first has a gap before it
	// told is the number of the newest report that is known of by evidence or a roster,
	// and toldGap the gap up to it, beyond the stash.
	told      uint64
	toldGap   gap
	lost      uint64 // the ring has none below this one
	repairing bool   // it is among the members that are looked after
	// asks is when the first of the gaps is to be asked for, as they were when these numbers
	// were its last, lost and told.
	asks   clocksync.Instant
	asksOf [3]uint64
}

// held is a report behind a gap, and that gap: it lasts from the report before it.
type held struct {
	wire.Report
	gap
}

// gap is where the repair of missing reports stands.
type gap struct {
	since clocksync.Instant // they were noticed to be missing
	again clocksync.Instant // when to ask for them
	asked int               // times
}

// resendAfter is when a gap is asked for again, from when it was noticed. After the last
// one it is given up, if a report behind it is there.
var resendAfter = [...]time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, resendWait}

// resendRanges is how many requests a member is sent in one step. The last one spans the
// excess. To ask for all between two gaps rather than for each gap separately saves nothing:
// few are noticed at once.
const resendRanges = 8

// behind reports whether reports of the member are missing.
func (m *member) behind() bool {
	return len(m.stash) > 0 || m.told > max(m.last, m.lost)
}

// lacksSince is since when its next report is missing, if it is.
func (m *member) lacksSince() (since clocksync.Instant, lacks bool) {
	for _, g := range m.gaps {
		return g.since, true
	}
	return 0, false
}

// gaps yields the missing ranges.
func (m *member) gaps(yield func(wire.Resend, *gap) bool) {
	next := max(m.last+1, m.lost)
	for i := range m.stash {
		h := &m.stash[i]
		if h.Seq > next && !yield(wire.Resend{Incarnation: m.incarnation, From: next, To: h.Seq - 1}, &h.gap) {
			return
		}
		next = max(next, h.Seq+1)
	}
	if m.told >= next {
		yield(wire.Resend{Incarnation: m.incarnation, From: next, To: m.told}, &m.toldGap)
	}
}

// stashReport keeps a report that is ahead of its turn, and asks for the missing ones.
func (c *Core) stashReport(m *member, r *wire.Report, at *clocksync.Stamp, out *Output) {
	i, found := slices.BinarySearchFunc(m.stash, r.Seq, func(h held, seq uint64) int {
		return cmp.Compare(h.Seq, seq)
	})
	if found {
		return
	}
	if len(m.stash) >= stashLimit {
		c.giveUp(m, m.stash[0].Seq, out)
		c.takeReport(m, r, at, out)
		return
	}
	before := m.last
	if i > 0 {
		before = m.stash[i-1].Seq
	}
	kept := held{Report: *r}
	kept.At, kept.Row = *at, slices.Clone(r.Row)
	switch {
	case i < len(m.stash): // It is within that gap.
		kept.gap = m.stash[i].gap
		m.asks = c.now // It may have filled it.
	case m.told > before && m.told >= r.Seq-1:
		kept.gap = m.toldGap
	case r.Seq > before+1:
		kept.gap = gap{since: c.now, again: c.now}
		c.lack(m)
	}
	m.stash = slices.Insert(m.stash, i, kept)
}

// asksFor reports whether the newest state of a member is not known, and asked for a
// moment ago: what it has to say of an older one is nothing new.
func (c *Core) asksFor(m *member) bool {
	return m.told > max(m.last, m.lost) && c.now.Sub(m.toldGap.since) < resendWait
}

// askReports asks a member's ring for the reports up to a number, unless that is done already.
func (c *Core) askReports(m *member, to uint64) {
	if to <= m.told {
		return
	}
	if g := &m.toldGap; m.told > m.last {
		*g = gap{since: g.since, again: c.now}
	} else {
		*g = gap{since: c.now, again: c.now}
	}
	m.told = to
	c.lack(m)
}

// lack has a member looked after in this step, of which reports are missing.
func (c *Core) lack(m *member) {
	if !m.repairing {
		m.repairing = true
		c.lacking.list = append(c.lacking.list, m)
	}
	c.lacking.look, m.asks = c.now, c.now
}

// repairGaps asks for missing reports, and gives up on rings that do not answer.
func (c *Core) repairGaps(out *Output) {
	if c.now < c.lacking.look {
		return
	}
	c.lacking.look = clocksync.MaxInstant
	c.lacking.list = slices.DeleteFunc(c.lacking.list, func(m *member) bool {
		for !c.opt.Local && !m.gone && len(m.stash) > 0 && c.heardUpTo().Sub(m.stash[0].since) >= resendWait {
			c.giveUp(m, m.stash[0].Seq, out)
		}
		if m.repairing = !m.gone && m.behind(); m.repairing {
			c.lacking.look = min(c.lacking.look, c.resend(m, out))
		}
		return !m.repairing
	})
}

// resend asks a member for all gaps that are due, and says when to look at it again.
func (c *Core) resend(m *member, out *Output) clocksync.Instant {
	next := clocksync.MaxInstant
	if len(m.stash) > 0 && !c.opt.Local {
		next = max(m.stash[0].since.Add(resendWait), c.now.Add(resendAfter[0]))
	}
	if is := [3]uint64{m.last, m.lost, m.told}; m.asks <= c.now || m.asksOf != is {
		m.asks, m.asksOf = c.askDue(m, out), is
	}
	return min(next, m.asks)
}

// askDue asks a member for all gaps that are due, and says when the next one is.
func (c *Core) askDue(m *member, out *Output) clocksync.Instant {
	next, begin := clocksync.MaxInstant, len(out.Resends)
	for r, g := range m.gaps {
		if g.again <= c.now {
			request(m, r, begin, out)
			switch g.asked++; {
			case c.opt.Local: // Nothing is lost on the way.
				g.again = clocksync.MaxInstant
			case g.asked > len(resendAfter):
				g.again = c.now.Add(c.plan.Heartbeat())
			default:
				g.again = max(g.since.Add(resendAfter[g.asked-1]), c.now.Add(resendAfter[0]))
			}
		}
		next = min(next, g.again)
	}
	return next
}

// request adds a request to those that the member is sent in this step.
func request(m *member, r wire.Resend, begin int, out *Output) {
	if n := len(out.Resends); n-begin == resendRanges {
		out.Resends[n-1].Msg.To = r.To
		return
	}
	out.Resends = append(out.Resends, wire.Addressed[wire.Resend]{To: m.name, Msg: r})
}

// takeStashed takes in the reports whose turn it is now.
func (c *Core) takeStashed(m *member, out *Output) {
	n := 0
	for n < len(m.stash) && (m.stash[n].Seq <= m.last+1 || m.stash[n].Seq <= m.lost) {
		if h := &m.stash[n]; h.Seq > m.last {
			c.takeNext(m, &h.Report, &h.At, out)
		}
		n++
	}
	m.stash = slices.Delete(m.stash, 0, n)
	if m.late.Seq == m.last && m.index != noIndex {
		c.showEvidence(m, m.last, m.late.At)
	}
}

// giveUp counts the missing reports below first as lost.
func (c *Core) giveUp(m *member, first uint64, out *Output) {
	m.lost = max(m.lost, first)
	c.takeStashed(m, out)
}

// takeGone takes the answer that a ring no longer has the reports that were asked for.
func (c *Core) takeGone(from string, g *wire.Gone, out *Output) {
	if m := c.findSender(from, g.Member, g.Incarnation, out); m != nil {
		c.giveUp(m, g.First, out)
	}
}
