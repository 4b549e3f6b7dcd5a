package agentcore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Reception is what a welcome came to.
type Reception uint8

// The receptions.
const (
	Ignored  Reception = iota // of another incarnation or an older term, or known already: Why
	Accepted                  // taken in; Schema may have changed
	Refused                   // the member will try again
	Recalled                  // a hello is wanted, and follows, of a higher incarnation after a refusal; until it is answered nothing changes
	Dropped                   // it had dropped the member, which comes back as a new incarnation
)

// Why a welcome is ignored that is no more than a copy, or late.
const (
	WhyKnown   = "the welcome is known already"
	WhyEarlier = "the welcome answers an earlier hello"
)

func (c *Core) takeWelcome(now clocksync.Instant, w *wire.Welcome, out *Output) Reception {
	mine := w.Member == c.hello.Member && w.Incarnation == c.hello.Incarnation
	known := c.once && w.Synchronizer == c.synchronizer
	c.hear(now, w.Synchronizer)
	switch {
	case w.Member != "" && w.Member != c.hello.Member:
		return c.ignored(out, "the welcome is for another member")
	case w.Synchronizer != c.synchronizer && c.controlled(now):
		return c.ignored(out, fmt.Sprintf("the group is controlled by %q, and %q claims it too: stop one of the two, or give one another group", c.synchronizer, w.Synchronizer))
	case (w.Accepted || w.Refused) && !mine:
		return c.ignored(out, WhyEarlier) // Or it is for another process of that name.
	case (w.Accepted || w.Refused) && w.Synchronizer == c.synchronizer && w.Term < c.term:
		c.helloAgain(now) // Who leads in it learns that there was a later one.
		return c.ignored(out, "its term is over")
	case w.Accepted && (w.Timeline != c.quality.Timeline || c.unsaid):
		return c.ignored(out, WhyEarlier)
	case w.Accepted && c.welcome && !c.asks && known && w.Term == c.term:
		return c.ignored(out, WhyKnown)
	case w.Accepted && (!c.welcome || c.asks):
		return c.accepted(now, w, out)
	case w.Refused && w.NextSeq >= c.hello.Incarnation && w.NextSeq < wire.MaxIncarnation-c.step:
		return c.above(now, w.NextSeq)
	case w.Refused && !c.once:
		return Refused
	case w.Refused && w.Timeline != "" && c.quality.Timeline != "" && w.Timeline != c.quality.Timeline:
		c.rejoinWithSame(now) // The clock is to be measured against another one.
		return Dropped
	case w.Refused, !w.Accepted && mine && w.Reason != "":
		c.beginIncarnation(now) // It was taken in once, so it was dropped or replaced since.
		return Dropped
	}
	c.helloAgain(now)
	return Recalled
}

// hear notes the sender of a message.
func (c *Core) hear(now clocksync.Instant, synchronizer string) {
	if synchronizer == c.synchronizer {
		c.led, c.claimed = now, clocksync.MaxInstant
	}
}

// controlled reports whether the synchronizer that has taken the member in keeps it, now that
// another one claims it: for a while after it was heard, and then for as long again in which it
// may answer a hello.
func (c *Core) controlled(now clocksync.Instant) bool {
	switch {
	case c.synchronizer == "" || c.local:
		return false
	case now < c.led.Add(DefaultSilence):
	case c.claimed == clocksync.MaxInstant:
		c.claimed = now
		c.helloAgain(now)
	default:
		return now < c.claimed.Add(DefaultSilence)
	}
	return true
}

func (c *Core) ignored(out *Output, why string) Reception {
	c.stats.Strange++
	out.Why = why
	return Ignored
}

func (c *Core) recallBatch(now clocksync.Instant) {
	c.welcome, c.greets, c.asks, c.helloAt, c.helloPause = false, false, false, now, firstHelloPause
}

// helloAgain has the member say hello again, though not sooner than a pause after the last time.
// A welcome member continues meanwhile: the caller may be no synchronizer.
func (c *Core) helloAgain(now clocksync.Instant) {
	at := max(now, c.helloSent.Add(firstHelloPause))
	if !c.welcome || c.greets {
		at = min(at, c.helloAt)
	}
	c.greets, c.helloAt, c.helloPause = c.welcome, at, firstHelloPause
}

// beginIncarnation begins a new incarnation with the open state. The numbers continue, so that what the
// synchronizer lacks of the incarnations before is missing between them: reports lost on the way as
// well as reports never sent.
func (c *Core) beginIncarnation(now clocksync.Instant) {
	c.stats.Rejoins++
	c.hello.Incarnation++
	c.stats.Dropped += c.countUntold()
	c.once = false
	if c.open {
		c.row, c.begun = c.ring.newest(c.row), true
		c.seq--
	}
	c.ring.clear()
	c.same = wire.Same{}
	c.sent, c.base = c.ring.next, c.seq
	c.reopen = c.open || c.reopen
	c.open = false
	for i := range c.regions {
		c.regions[i].Since = 0
	}
	c.resends, c.answers, c.answerAt = c.resends[:0], c.answers[:0], clocksync.MaxInstant
	c.recallBatch(now)
}

// above goes above an incarnation of the member that is known to the synchronizer. The own one is
// older and not: the clock that it was taken from was set back, or the incarnation that has replaced
// it is gone.
func (c *Core) above(now clocksync.Instant, known uint64) Reception {
	reception := Recalled
	if c.once {
		c.beginIncarnation(now)
		reception = Dropped
	}
	c.hello.Incarnation = known + c.step
	c.life = 0 // Another process has had the name since: that life is over.
	c.recallBatch(now)
	c.helloAt = max(now, c.helloSent.Add(firstHelloPause))
	return reception
}

func (c *Core) accepted(now clocksync.Instant, w *wire.Welcome, out *Output) Reception {
	if w.NextSeq > c.seq+1 {
		c.beginIncarnation(now) // It knows more of this incarnation than there ever was.
		return Dropped
	}
	if err := c.gate.Lead(w.Synchronizer, w.Term, w.Epoch); err != nil {
		return c.ignored(out, err.Error())
	}
	c.synchronizer, c.term, c.welcome, c.once, c.greets, c.asks = w.Synchronizer, w.Term, true, true, false, false
	c.parting.takeAnswer(w)
	c.hear(now, w.Synchronizer)
	c.life, c.works = cmp.Or(c.life, c.hello.Incarnation), w.Work != 0
	c.heartbeat = defaultHeartbeat
	if w.Heartbeat > 0 {
		c.heartbeat = min(max(time.Duration(w.Heartbeat), minHeartbeat), maxHeartbeat)
	}
	c.scheduleBatch()
	if c.codec == nil || w.Schema.Hash() != c.codec.Hash() {
		if c.open {
			c.row = c.ring.newest(c.row)
		}
		if !c.virtual && (c.open || c.reopen) {
			c.was = c.codec.Schema()
		}
		c.codec = wire.NewBatchCodec(slices.Clone(w.Schema))
		c.ring.fit(c.codec.Schema()) // The rows do not fit any more.
		c.skipState()
		c.open = false
	}
	c.catchUp(max(w.NextSeq, c.base+1))
	c.probes, c.probeAt = c.probes[:0], clocksync.MaxInstant
	if len(c.gate.Kept()) > 0 { // The synchronizer may have lost its memory.
		c.tellAt, c.tellPause = now, firstTellPause
	}
	c.owed = true
	c.tellLapses(now)
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

// takeProbe takes a request for evidence, which a batch answers at once if the state asked
// about is over.
func (c *Core) takeProbe(now clocksync.Instant, p *wire.Probe) {
	if p.Domain != "" {
		if p.Domain != c.hello.Domain || c.hello.Multiplexer != "" || !c.open {
			return
		}
		p = &wire.Probe{Incarnation: c.hello.Incarnation, Seq: c.seq, AfterMono: p.AfterMono, AfterTime: p.AfterTime}
	}
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
		c.owed = c.owed || c.virtual && c.takeSatisfied(now, c.evidence(c.alive))
	}
}

// takeResend takes a request for reports. Overlapping and adjacent ranges are one request; of
// too many ranges the last two become one, with all between them.
func (c *Core) takeResend(r *wire.Resend) {
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

// takeSignals offers the signals of a frame. Its sender may be in another term than the
// synchronizer that has taken the member in, and the member then says hello and so learns of
// it, or tells of its own: what a newer term has decided is not answered until then, and comes
// again.
func (c *Core) takeSignals(now clocksync.Instant, m *wire.Signals, out *Output) {
	if c.term != m.Term && c.synchronizer == m.Synchronizer && c.synchronizer != "" && m.Incarnation == c.hello.Incarnation {
		c.helloAgain(now)
	}
	if m.Incarnation != c.hello.Incarnation || c.gate.Fence(m.Synchronizer, m.Term, m.Epoch) != nil {
		c.stats.Strange += uint64(max(len(m.Signals), 1))
		return
	}
	c.hear(now, m.Synchronizer)
	for i := range m.Recorded {
		r := &m.Recorded[i]
		if entry := r.Lapse(); entry > 0 {
			c.lapses = slices.DeleteFunc(c.lapses, func(a wire.Answer) bool { return a.Decision.Epoch == entry })
			continue
		}
		c.gate.Recorded(m.Synchronizer, r.Term, r.Number, r.Name)
	}
	for i := range m.Signals {
		s := &m.Signals[i]
		d := &s.Decision
		if s.Target != c.hello.Member || d.Synchronizer != m.Synchronizer || d.Term > m.Term || d.Term == m.Term && d.Epoch > m.Epoch {
			c.stats.Strange++
			continue
		}
		if d.Synchronizer == c.synchronizer {
			c.parting.had = max(c.parting.had, d.Number)
		}
		o := c.gate.Offer(now, s)
		c.queueFate(now, o)
		if o.Again {
			c.stats.Copies++
			continue
		}
		c.stats.Signals++
		c.countOutcome(o)
		out.Fresh = append(out.Fresh, o)
	}
	c.settleFates(now)
}

func (c *Core) beginLeave() {
	c.leaving, c.owed = true, true
	c.left = c.left || !c.welcome
}
