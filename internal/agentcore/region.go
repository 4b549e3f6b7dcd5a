package agentcore

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
)

func (c *Core) enter(now clocksync.Instant, region string, handlers []control.Handler) (uint64, error) {
	entry, err := c.gate.Enter(region, handlers)
	if err != nil {
		return 0, err
	}
	r := wire.Region{Name: region, Entry: entry}
	if c.open {
		r.Since = c.seq
	}
	c.regions = append(c.regions, r)
	c.news(now)
	return entry, nil
}

func (c *Core) exit(now clocksync.Instant, entry uint64) *control.Signal {
	c.regions = slices.DeleteFunc(c.regions, func(r wire.Region) bool { return r.Entry == entry })
	c.news(now)
	s := c.gate.Leave(entry)
	c.settle(now)
	return s
}

// Canceled returns the cancellation that an open entry has accepted, or nil.
func (c *Core) Canceled(entry uint64) *control.Signal { return c.gate.Canceled(entry) }

// settle counts and answers what found its final fate.
func (c *Core) settle(now clocksync.Instant) {
	for _, o := range c.gate.Settled() {
		c.count(o)
		c.answer(now, o)
		if o.Copy.Number > 0 {
			c.reply(now, o.Copy, o)
		}
	}
}

func (c *Core) count(o control.Outcome) {
	if o.Fate.Final() {
		c.stats.Fates[o.Fate]++
	}
}

// answerAge is how long a fate may wait for others, and above all for the final
// one of its own signal. The synchronizer repeats a signal after 20 ms.
const answerAge = 2 * time.Millisecond

// answer queues a fate. A later one of the same signal takes the place of the
// earlier.
func (c *Core) answer(now clocksync.Instant, o control.Outcome) {
	if !c.local {
		c.reply(now, o.Signal.Decision, o)
	}
}

// reply is answer for a signal of that decision.
func (c *Core) reply(now clocksync.Instant, d control.Decision, o control.Outcome) {
	a := wire.Answer{Decision: d, Name: o.Signal.Name, Target: o.Signal.Target, Fate: o.Fate, Detail: o.Detail}
	for i, b := range c.answers {
		if b.Decision == a.Decision && b.Name == a.Name && b.Target == a.Target {
			c.answers[i] = a
			return
		}
	}
	if len(c.answers) == maxAnswers {
		c.answers = slices.Delete(c.answers, 0, 1)
		c.stats.LostAnswer++
	}
	c.answers = append(c.answers, a)
	c.answerAt = min(c.answerAt, now.Add(answerAge))
	if len(c.answers) >= wire.MaxSignals {
		c.answerAt = now
	}
}
