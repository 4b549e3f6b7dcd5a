package agentcore

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Reception is what a welcome came to.
type Reception uint8

// The receptions.
const (
	Ignored  Reception = iota // of another incarnation or an older term, or known already
	Accepted                  // taken in; Schema may have changed
	Refused                   // the member will try again
	Recalled                  // the synchronizer wants a new hello, and gets it
	Dropped                   // it had dropped the member, which comes back as a new incarnation
)

func (c *Core) answered(now clocksync.Instant, w *wire.Welcome) Reception {
	mine := w.Member == c.hello.Member && w.Incarnation == c.hello.Incarnation
	switch {
	case w.Member != "" && w.Member != c.hello.Member,
		w.Synchronizer == c.synchronizer && w.Term < c.term,
		(w.Accepted || w.Refused) && !mine,
		w.Accepted && (w.Timeline != c.quality.Timeline || c.unsaid), // It answers an earlier hello.
		w.Accepted && c.welcome && w.Synchronizer == c.synchronizer && w.Term == c.term:
		c.stats.Strange++
		return Ignored
	case w.Accepted:
		return c.accepted(now, w)
	case w.Refused && !c.once:
		return Refused
	case w.Refused, mine && w.Reason != "":
		c.rejoin(now) // It was taken in once, so it was dropped or replaced since.
		return Dropped
	}
	c.synchronizer, c.term = w.Synchronizer, w.Term
	c.recall(now)
	return Recalled
}

func (c *Core) recall(now clocksync.Instant) {
	c.welcome, c.helloAt, c.helloPause = false, now, firstHelloPause
}

// rejoin begins a new incarnation with the open state.
func (c *Core) rejoin(now clocksync.Instant) {
	c.stats.Rejoins++
	c.hello.Incarnation++
	c.once = false
	if c.open {
		c.row = c.ring.newest(c.row)
	}
	c.ring.clear()
	c.sent, c.seq = c.ring.next, 0
	c.reopen = c.open || c.reopen
	c.open = false
	for i := range c.regions {
		c.regions[i].Since = 0
	}
	c.resends, c.answers, c.answerAt = c.resends[:0], c.answers[:0], clocksync.MaxInstant
	c.recall(now)
}

func (c *Core) accepted(now clocksync.Instant, w *wire.Welcome) Reception {
	if w.NextSeq > c.seq+1 {
		c.rejoin(now) // It knows more of this incarnation than there ever was.
		return Dropped
	}
	c.synchronizer, c.term, c.welcome, c.once = w.Synchronizer, w.Term, true, true
	c.heartbeat = defaultHeartbeat
	if w.Heartbeat > 0 {
		c.heartbeat = min(max(time.Duration(w.Heartbeat), minHeartbeat), maxHeartbeat)
	}
	c.schedule()
	if c.codec == nil || w.Schema.Hash() != c.codec.Hash() {
		c.codec = wire.NewBatchCodec(slices.Clone(w.Schema))
		c.ring.fit(c.codec.Schema()) // The rows do not fit any more.
		c.open, c.reopen = false, false
	}
	c.catchUp(max(w.NextSeq, 1))
	c.probes, c.probeAt = c.probes[:0], clocksync.MaxInstant
	c.owed = true
	return Accepted
}

// catchUp tells a synchronizer that expects the transition next: the newest one
// first, so that it is up to date at once, then what it lacks before that.
func (c *Core) catchUp(next uint64) {
	c.resends = c.resends[:0]
	c.sent = c.ring.find(max(next, c.seq), c.seq)
	if told := max(c.seq, c.ring.oldest(c.seq)); next < told {
		c.resends = append(c.resends, wire.Resend{From: next, To: told - 1})
	}
}

// probe takes a request for evidence, which a batch answers at once if the state asked
// about is over.
func (c *Core) probe(now clocksync.Instant, p *wire.Probe) {
	switch {
	case p.Incarnation != c.hello.Incarnation:
		c.stats.Strange++
	case !c.open || p.Seq != c.seq:
		c.owed = true
	default:
		if len(c.probes) == maxProbes {
			c.probes = slices.Delete(c.probes, 0, 1)
		}
		c.probes = append(c.probes, *p)
		c.probeAt = now
		c.owed = c.owed || c.virtual && c.satisfied(now, c.evidence(c.alive))
	}
}

// missing takes a request for reports. What is asked for twice, and what is next to it,
// is one request; of too many the last two are one, with what is between them.
func (c *Core) missing(r *wire.Resend) {
	from, to := max(r.From, 1), min(r.To, c.seq)
	if r.Incarnation != c.hello.Incarnation || from > to {
		c.stats.Strange++
		return
	}
	i, _ := slices.BinarySearchFunc(c.resends, from, func(r wire.Resend, from uint64) int { return cmp.Compare(r.To+1, from) })
	next := i
	for ; next < len(c.resends) && c.resends[next].From <= to+1; next++ {
		from, to = min(from, c.resends[next].From), max(to, c.resends[next].To)
	}
	c.resends = slices.Replace(c.resends, i, next, wire.Resend{From: from, To: to})
	if last := len(c.resends) - 1; last == maxResends {
		c.resends[last-1].To = c.resends[last].To
		c.resends = c.resends[:last]
	}
}

func (c *Core) signals(now clocksync.Instant, m *wire.Signals, out *Output) {
	if m.Incarnation != c.hello.Incarnation || c.gate.Fence(m.Synchronizer, m.Term, m.Epoch) != nil {
		c.stats.Strange += uint64(max(len(m.Signals), 1))
		return
	}
	for i := range m.Signals {
		s := &m.Signals[i]
		if s.Target != c.hello.Member || s.Decision.Synchronizer != m.Synchronizer {
			c.stats.Strange++
			continue
		}
		o := c.gate.Offer(now, s)
		c.answer(now, o)
		if o.Again {
			c.stats.Copies++
			continue
		}
		c.stats.Signals++
		c.count(o)
		out.Fresh = append(out.Fresh, o)
	}
	c.settle(now)
}

func (c *Core) leave() {
	c.leaving, c.owed = true, true
	c.left = c.left || !c.welcome
}
