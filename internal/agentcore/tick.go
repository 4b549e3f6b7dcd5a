package agentcore

import (
	"cmp"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

// readAgain is the wait after a reading that gave no evidence.
const readAgain = time.Millisecond

// wakeAt is [Due.Wake].
func (c *Core) wakeAt() clocksync.Instant {
	switch {
	case c.left:
		return clocksync.MaxInstant
	case !c.welcome:
		return c.helloAt
	}
	wake := min(c.batchAt(), c.answerAt, c.tellAt)
	if !c.local {
		wake = min(wake, c.gate.Expires())
	}
	if c.greets {
		wake = min(wake, c.helloAt)
	}
	if !c.virtual {
		wake = min(wake, c.probeAt)
	}
	return wake
}

// fillDue fills out with everything that is due.
func (c *Core) fillDue(now clocksync.Instant, at clocksync.Stamp, all bool, out *Output) {
	if c.left {
		return
	}
	if !c.welcome || c.greets {
		c.introduce(now, out)
	}
	if !c.welcome {
		return
	}
	evidence := c.evidence(c.revive(now, at))
	if !c.welcome { // A state has begun again.
		c.introduce(now, out)
		return
	}
	if c.takeSatisfied(now, evidence) {
		c.owed = true
	}
	if now >= c.batchAt() || all && c.since != clocksync.MaxInstant {
		c.report(now, evidence, out)
	}
	if !c.local && now >= c.gate.Expires() {
		c.gate.Expire(now)
		c.settleFates(now)
	}
	c.tellKept(now)
	beside := c.hello.Multiplexer != "" && len(out.Batches) > 0 // In the same message as the batch.
	if now >= c.answerAt || c.leaving || beside && c.settled() {
		c.takeAnswers(out)
	}
	c.left = c.leaving
}

func (c *Core) introduce(now clocksync.Instant, out *Output) {
	if now < c.helloAt {
		return
	}
	c.hello.Quality, c.unsaid = c.quality, false
	if c.hello.Leader, c.hello.Term = c.synchronizer, c.term; c.term == 0 {
		c.hello.Leader = ""
	}
	c.tagged, c.taggedAt, c.retag = c.quality, now, false
	h := c.hello
	if c.works && c.life != 0 && c.life != h.Incarnation {
		h.Life = c.life
	}
	h.Fates, h.Same = c.gate.Fated(c.synchronizer, wire.MaxFates), c.isSame()
	if p := &c.parting; p.begins && h.Term > 0 {
		h.Had, p.said = p.had, true
	}
	out.Hellos = append(out.Hellos, h)
	c.asks, c.helloSent, c.helloAt = true, now, now.Add(c.helloPause)
	c.helloPause = min(2*c.helloPause, maxHelloPause)
}

// revive takes the stamp of the tick, and begins a state that waits for one: what held before
// the member was dropped still holds now. States that are no longer known to be true in between
// are not claimed.
func (c *Core) revive(now clocksync.Instant, at clocksync.Stamp) clocksync.Stamp {
	if c.virtual {
		at = c.alive
	} else if err := c.orderStamp(&at); err != nil {
		return c.start // No evidence.
	}
	if c.reopen && at.Domain != "" {
		c.resumeState(&at)
	}
	if !c.virtual {
		c.restartState(now, &at)
	}
	return at
}

func (c *Core) evidence(at clocksync.Stamp) wire.Evidence {
	if !c.open || at.Mono <= c.start.Mono {
		return wire.Evidence{}
	}
	return wire.Evidence{Seq: c.seq, At: at}
}

// takeSatisfied takes out the probes that this evidence answers, says whether there
// were any, and notes when the next reading is worth taking.
func (c *Core) takeSatisfied(now clocksync.Instant, e wire.Evidence) bool {
	if len(c.probes) == 0 {
		return false
	}
	c.probeAt = clocksync.MaxInstant
	waiting := c.probes[:0]
	for _, p := range c.probes {
		wait := lacksEvidence(&p, e)
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

// lacksEvidence is how long it is until evidence may answer a probe, below 0 if this does.
func lacksEvidence(p *wire.Probe, e wire.Evidence) time.Duration {
	if e.Seq == 0 {
		return readAgain
	}
	wait := p.AfterMono.Sub(e.At.Mono)
	if p.AfterTime != clocksync.MinInstant {
		wait = max(wait, p.AfterTime.Sub(e.At.Within.Earliest))
	}
	return wait
}

// batchAt is when the next batch is due: at once if something is owed or it is full.
func (c *Core) batchAt() clocksync.Instant {
	if c.owed || c.leaving || len(c.resends) > 0 || c.ring.next-c.sent >= c.batchSize {
		return clocksync.MinInstant
	}
	return c.batchBy
}

// report hands out the news, which ends with the evidence, and then the reports requested
// again. A batch that is too long for one frame is cut by its codec.
func (c *Core) report(now clocksync.Instant, evidence wire.Evidence, out *Output) {
	out.regions = append(out.regions, c.regions...)
	from := c.sent
	if from == c.ring.next && c.ring.ended() {
		from-- // No evidence would show the loss of an end that nothing follows.
	}
	begin := len(out.reports)
	c.reports(out, from, c.ring.next)
	news := c.batch(out, begin)
	news.Evidence, news.Leaving = evidence, c.leaving
	if c.tagDue(now) {
		news.Tagged, news.Quality = true, c.quality
		c.tagged, c.taggedAt = c.quality, now
	}
	c.sent = c.ring.next
	if len(c.resends) > 0 {
		c.repeat(out)
	}
	c.stats.Batches += uint64(len(out.Batches))
	c.since, c.lastBatch, c.owed = clocksync.MaxInstant, now, false
	c.scheduleBatch()
}

// repeat answers all resends with one batch, as far as the ring goes back.
func (c *Core) repeat(out *Output) {
	if first := c.ring.oldest(c.seq); c.resends[0].From < first {
		c.stats.Gone++
		out.Gones = append(out.Gones, wire.Gone{Member: c.hello.Member, Incarnation: c.hello.Incarnation, First: first})
	}
	begin := len(out.reports)
	for _, r := range c.resends {
		c.reports(out, c.ring.find(r.From, c.seq), c.ring.find(r.To+1, c.seq))
	}
	if told := len(out.reports) - begin; told > 0 {
		c.batch(out, begin).Again = true
		c.stats.Resent += uint64(told)
	}
	c.resends = c.resends[:0]
}

// reports adds the transitions at the positions [from, to).
func (c *Core) reports(out *Output, from, to uint64) {
	n, width, begin := int(to-from), len(c.codec.Schema()), len(out.reports) //nolint:gosec // At most RingTransitions.
	out.reports = slices.Grow(out.reports, n)[:begin+n]
	out.rows = slices.Grow(out.rows, n*width)
	rows := out.rows[len(out.rows):cap(out.rows)]
	seq := c.seq + 1 - (c.ring.next - from)
	for i := range uint64(n) { //nolint:gosec // It is not below 0.
		r := &out.reports[begin+int(i)] //nolint:gosec // Below n.
		r.Seq = seq + i
		rows = c.ring.report(from+i, r, rows)
	}
	out.rows = out.rows[:cap(out.rows)-len(rows)]
}

// batch adds a batch of the reports from one on.
func (c *Core) batch(out *Output, begin int) *wire.Batch {
	out.Batches = append(out.Batches, wire.Batch{
		Member:      c.hello.Member,
		Incarnation: c.hello.Incarnation,
		Schema:      c.codec.Hash(),
		Reports:     out.reports[begin:len(out.reports):len(out.reports)],
		Regions:     out.regions,
	})
	return &out.Batches[len(out.Batches)-1]
}

// settled reports whether none of the answers will be followed by another one of the
// same signal.
func (c *Core) settled() bool {
	return !slices.ContainsFunc(c.answers, func(a wire.Answer) bool { return !a.Fate.Final() })
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
