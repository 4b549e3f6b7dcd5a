package agentcore

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// readAgain is the wait after a reading that gave no evidence.
const readAgain = time.Millisecond

// Output is what a flush wants to be sent, in the order of its fields. It shares
// no memory with the Core; the next flush into it reuses its slices.
type Output struct {
	Hellos  []wire.Hello // at most one
	Batches []wire.Batch
	Gones   []wire.Gone // at most one
	Acks    []Ack

	reports []wire.Report
	rows    []scgs.Value
	regions []wire.Region
	answers []wire.Answer
}

// Ack is an acknowledgement and the synchronizer whose signals it answers: that of
// the member's group, or another one.
type Ack struct {
	To string
	wire.Ack
}

func (o *Output) reset() {
	o.Hellos, o.Batches, o.Gones, o.Acks = o.Hellos[:0], o.Batches[:0], o.Gones[:0], o.Acks[:0]
	o.reports, o.rows, o.regions, o.answers = o.reports[:0], o.rows[:0], o.regions[:0], o.answers[:0]
}

// Wake is when Flush next has something to send, MinInstant if it has now.
func (c *Core) Wake() clocksync.Instant {
	switch {
	case c.left:
		return clocksync.MaxInstant
	case !c.welcome:
		return c.helloAt
	case c.owed || c.resend.To > 0 || c.ring.next-c.sent >= c.batchSize:
		return clocksync.MinInstant
	}
	wake := min(c.since.Add(c.batchAge), c.lastBatch.Add(c.heartbeat), c.answerAt)
	if !c.virtual {
		wake = min(wake, c.probeAt)
	}
	return wake
}

// ProbeAt is when a reading of the clock may answer a probe that waits;
// MaxInstant if none does. Whoever feeds a virtual member takes one then.
func (c *Core) ProbeAt() clocksync.Instant { return c.probeAt }

// Flush fills out with what is due. The stamp was read for this flush, while no
// state could change; it is the evidence that the open state holds. It counts
// only if it is above the start of that state (a clock may give the same reading
// twice), so the caller reads again until it is.
func (c *Core) Flush(now clocksync.Instant, at clocksync.Stamp, out *Output) {
	out.reset()
	if c.left {
		return
	}
	if !c.welcome {
		c.introduce(now, out)
		return
	}
	evidence := c.evidence(c.revive(now, at))
	if c.satisfied(now, evidence) {
		c.owed = true
	}
	if c.batchDue(now) {
		c.report(now, evidence, out)
	}
	ride := c.local || c.hello.Carrier != "" && len(out.Batches) > 0 // In the same message as the batch.
	if now >= c.answerAt || c.leaving || ride && c.settled() {
		c.takeAnswers(out)
	}
	c.left = c.leaving
}

func (c *Core) introduce(now clocksync.Instant, out *Output) {
	if now < c.helloAt {
		return
	}
	c.hello.Quality = c.quality
	c.tagged, c.taggedAt, c.retag = c.quality, now, false
	out.Hellos = append(out.Hellos, c.hello)
	c.helloAt = now.Add(c.helloPause)
	c.helloPause = min(2*c.helloPause, maxHelloPause)
}

// revive takes the stamp of the flush, and begins a state that waits for one: what
// held before the member was dropped still holds now. What is no longer known to
// be true in between is not claimed.
func (c *Core) revive(now clocksync.Instant, at clocksync.Stamp) clocksync.Stamp {
	if c.virtual {
		at = c.alive
	} else if err := c.stamp(&at); err != nil {
		return c.start // No evidence.
	}
	if c.reopen && at.Domain != "" {
		c.begin(&at, c.row)
	}
	if !c.virtual {
		c.again(now, &at)
	}
	return at
}

func (c *Core) evidence(at clocksync.Stamp) wire.Evidence {
	if !c.open || at.Mono <= c.start.Mono {
		return wire.Evidence{}
	}
	return wire.Evidence{Seq: c.seq, At: at}
}

// satisfied takes out the probes that this evidence answers, says whether there
// were any, and notes when the next reading is worth taking.
func (c *Core) satisfied(now clocksync.Instant, e wire.Evidence) bool {
	if len(c.probes) == 0 {
		return false
	}
	c.probeAt = clocksync.MaxInstant
	waiting := c.probes[:0]
	for _, p := range c.probes {
		wait := Lacks(&p, e)
		if wait < 0 {
			continue
		}
		waiting = append(waiting, p)
		c.probeAt = min(c.probeAt, now.Add(wait).Add(1))
	}
	answered := len(waiting) < len(c.probes)
	c.probes = waiting
	return answered
}

// Lacks is how long it is until evidence may answer a probe, below 0 if this does.
func Lacks(p *wire.Probe, e wire.Evidence) time.Duration {
	if e.Seq == 0 {
		return readAgain
	}
	wait := p.AfterMono.Sub(e.At.Mono)
	if p.AfterTime != clocksync.MinInstant {
		wait = max(wait, p.AfterTime.Sub(e.At.Within.Earliest))
	}
	return wait
}

func (c *Core) batchDue(now clocksync.Instant) bool {
	return c.owed || c.leaving || c.resend.To > 0 || c.ring.next-c.sent >= c.batchSize ||
		now >= c.since.Add(c.batchAge) || now >= c.lastBatch.Add(c.heartbeat)
}

// report hands out the news, which ends with the evidence, and then what was
// asked for again. A batch that is too long for one frame is cut by its codec.
func (c *Core) report(now clocksync.Instant, evidence wire.Evidence, out *Output) {
	out.regions = append(out.regions, c.regions...)
	from := c.sent
	if n := c.ring.next; from == n && n > c.ring.first && c.ring.at(n-1).end {
		from-- // No evidence would show the loss of an end that nothing follows.
	}
	news := c.batch(out, from, c.ring.next)
	news.Evidence, news.Leaving = evidence, c.leaving
	if c.tagDue(now) {
		news.Tagged, news.Quality = true, c.quality
		c.tagged, c.taggedAt = c.quality, now
	}
	c.sent = c.ring.next
	if c.resend.To > 0 {
		c.repeat(out)
	}
	c.stats.Batches += uint64(len(out.Batches))
	c.since, c.lastBatch, c.owed = clocksync.MaxInstant, now, false
}

// repeat answers a resend, as far as the ring goes back.
func (c *Core) repeat(out *Output) {
	if first := c.ring.oldest(c.seq); c.resend.From < first {
		c.stats.Gone++
		out.Gones = append(out.Gones, wire.Gone{Member: c.hello.Member, Incarnation: c.hello.Incarnation, First: first})
	}
	from, to := c.ring.find(c.resend.From, c.seq), c.ring.find(c.resend.To+1, c.seq)
	if from < to {
		c.batch(out, from, to).Again = true
		c.stats.Resent += to - from
	}
	c.resend = wire.Resend{}
}

// batch adds a batch with the transitions at the positions [from, to).
func (c *Core) batch(out *Output, from, to uint64) *wire.Batch {
	begin := len(out.reports)
	for p := from; p < to; p++ {
		t := c.ring.at(p)
		row := len(out.rows)
		out.rows = append(out.rows, t.row...)
		out.reports = append(out.reports, wire.Report{
			Seq: t.seq, End: t.end, At: clocksync.Stamp{Domain: c.ring.domain, Mono: t.mono, Within: t.within},
			Row: out.rows[row:len(out.rows):len(out.rows)],
		})
	}
	out.Batches = append(out.Batches, wire.Batch{
		Member:      c.hello.Member,
		Incarnation: c.hello.Incarnation,
		Schema:      c.codec.Hash(),
		Reports:     out.reports[begin:len(out.reports):len(out.reports)],
		Regions:     out.regions,
	})
	return &out.Batches[len(out.Batches)-1]
}

// Answers reports whether a flush would hand out answers, of a member whose
// synchronizer is in the same process.
func (c *Core) Answers() bool { return c.local && len(c.answers) > 0 && c.settled() }

// settled reports whether none of the answers will be followed by another one of the
// same signal.
func (c *Core) settled() bool {
	return !slices.ContainsFunc(c.answers, func(a wire.Answer) bool { return !a.Fate.Final() })
}

// Evidence takes a stamp that was read for it, as [Core.Flush] does, and returns the
// evidence that the open state still holds: for a carrier, which tells it in a
// [wire.Bundle]. It is none where more than evidence is to be told first.
func (c *Core) Evidence(now clocksync.Instant, at clocksync.Stamp) wire.Evidence {
	if !c.told() {
		return wire.Evidence{}
	}
	at = c.revive(now, at)
	if !c.told() { // The state has begun anew with the stamp.
		return wire.Evidence{}
	}
	e := c.evidence(at)
	c.satisfied(now, e)
	return e
}

// told reports whether the synchronizer has been sent all there is of an open
// state.
func (c *Core) told() bool {
	return c.welcome && !c.leaving && c.open && !c.owed && c.resend.To == 0 && c.sent == c.ring.next && c.since == clocksync.MaxInstant
}

// takeAnswers hands out the answers that wait, those to one synchronizer together.
func (c *Core) takeAnswers(out *Output) {
	out.answers = append(out.answers, c.answers...)
	c.answers, c.answerAt = c.answers[:0], clocksync.MaxInstant
	slices.SortStableFunc(out.answers, func(a, b wire.Answer) int {
		return cmp.Compare(a.Decision.Synchronizer, b.Decision.Synchronizer)
	})
	for i, j := 0, 0; i < len(out.answers); i = j {
		to := out.answers[i].Decision.Synchronizer
		for j < len(out.answers) && j < i+wire.MaxSignals && out.answers[j].Decision.Synchronizer == to {
			j++
		}
		out.Acks = append(out.Acks, Ack{to, wire.Ack{Member: c.hello.Member, Incarnation: c.hello.Incarnation, Answers: out.answers[i:j:j]}})
	}
}
