package agentcore

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

func (c *Core) enterRegion(now clocksync.Instant, region string, handlers []control.Handler) (uint64, error) {
	entry, err := c.gate.Enter(region, handlers)
	if err != nil {
		return 0, err
	}
	r := wire.Region{Name: region, Entry: entry}
	if c.open {
		r.Since = c.seq
	}
	c.regions = append(c.regions, r)
	c.noteNews(now)
	return entry, nil
}

func (c *Core) exitRegion(now clocksync.Instant, entry uint64) *control.Signal {
	c.regions = slices.DeleteFunc(c.regions, func(r wire.Region) bool { return r.Entry == entry })
	c.noteNews(now)
	s := c.gate.Leave(entry)
	c.settleFates(now)
	return s
}

// Canceled returns the cancellation that an open entry has accepted, or nil.
func (c *Core) Canceled(entry uint64) *control.Signal { return c.gate.Canceled(entry) }

// settleFates counts and answers what found its final fate.
func (c *Core) settleFates(now clocksync.Instant) {
	for _, o := range c.gate.Settled() {
		if o.Signal.Decision.Synchronizer == "" {
			c.lapsed(now, o)
			continue
		}
		c.countOutcome(o)
		c.queueFate(now, o)
		if o.Copy.Number > 0 {
			c.reply(now, o.Copy, o)
		}
	}
}

// lapseEntry cancels an entry for want of control.
func (c *Core) lapseEntry(entry uint64, after time.Duration, out *Output) {
	i := slices.IndexFunc(c.regions, func(r wire.Region) bool { return r.Entry == entry })
	if i < 0 {
		return
	}
	s := &control.Signal{
		Decision: control.Decision{Number: entry}, Kind: control.Cancel, Target: c.hello.Member, Region: c.regions[i].Name, Entry: entry,
		Data: []control.Datum{{Name: wire.DatumAfter, Value: scgs.DurationValue(after)}},
	}
	if !c.gate.Cancel(s) {
		return // A signal was first.
	}
	c.adrift = true
	out.Fresh = append(out.Fresh, control.Outcome{Signal: s, Fate: control.Waiting})
}

// lapsed queues what a cancellation for want of control has come to.
func (c *Core) lapsed(now clocksync.Instant, o control.Outcome) {
	if c.local {
		return
	}
	if len(c.lapses) == maxLapses {
		c.lapses = slices.Delete(c.lapses, 0, 1)
		c.stats.LostAnswer++
	}
	detail := fmt.Sprintf("the region was without control for %v", time.Duration(o.Signal.Lookup(wire.DatumAfter).Int()))
	if o.Detail != "" {
		detail += "; " + o.Detail
	}
	c.lapses = append(c.lapses, wire.Lapse(o.Signal.Region, o.Signal.Entry, c.hello.Member, c.hello.Incarnation, o.Fate, detail))
	c.tellLapses(now)
}

// tellLapses tells them, as do later ticks.
func (c *Core) tellLapses(now clocksync.Instant) {
	if c.queueLapses(now) {
		c.tellAgain(now)
	}
}

// queueLapses queues the lapses of which the synchronizer has not said that they are recorded,
// if there is a synchronizer to hear it, and reports whether there are any.
func (c *Core) queueLapses(now clocksync.Instant) bool {
	if c.adrift || !c.welcome {
		return false
	}
	for i := range c.lapses {
		c.lapses[i].Decision.Synchronizer = c.synchronizer
		c.queue(now, &c.lapses[i])
	}
	return len(c.lapses) > 0
}

// tellAgain has fates be told again from a while on, if none are as yet.
func (c *Core) tellAgain(now clocksync.Instant) {
	if c.tellAt == clocksync.MaxInstant {
		c.tellAt, c.tellPause = now.Add(2*firstTellPause), firstTellPause
	}
}

// tellKept tells fates again of which the synchronizer has not said that they are recorded: it
// may be another one than the receiver before, or have said so in vain.
func (c *Core) tellKept(now clocksync.Instant) {
	if now < c.tellAt {
		return
	}
	told := c.queueLapses(now)
	for i := range c.gate.Kept() {
		k := &c.gate.Kept()[i]
		if d := &k.Decision; c.tells(d) {
			a := wire.Answer{Decision: *d, Name: k.Name, Target: k.Target, Fate: k.Fate, Detail: k.Detail}
			if c.earlier(d) {
				a.Kind, a.Predicate, a.Region, a.Entry = k.Kind, k.Predicate, k.Region, k.Entry
			}
			c.queue(now, &a)
			told = true
		}
	}
	if c.tellAt = now.Add(c.tellPause); !told {
		c.tellAt = clocksync.MaxInstant
	}
	c.tellPause = min(2*c.tellPause, maxTellPause)
}

func (c *Core) countOutcome(o control.Outcome) {
	if o.Fate.Final() {
		c.stats.Fates[o.Fate]++
	}
}

// answerAge is how long a fate may wait for others, and above all for the final
// one of its own signal. The synchronizer repeats a signal after 20 ms.
const answerAge = 2 * time.Millisecond

// queueFate queues a fate. A later one of the same signal takes the place of the
// earlier.
func (c *Core) queueFate(now clocksync.Instant, o control.Outcome) {
	if !c.local {
		c.reply(now, o.Signal.Decision, o)
	}
}

// reply is answer for a signal of that decision.
func (c *Core) reply(now clocksync.Instant, d control.Decision, o control.Outcome) {
	s := o.Signal
	a := wire.Answer{Decision: d, Name: s.Name, Target: s.Target, Fate: o.Fate, Detail: o.Detail}
	if c.earlier(&d) {
		a.Kind, a.Predicate, a.Region, a.Entry = s.Kind, s.Predicate, s.Region, s.Entry
	}
	c.queue(now, &a)
	if o.Fate.Final() && c.tells(&d) {
		c.tellAgain(now)
	}
}

// earlier reports whether a decision is of an earlier term of the synchronizer that has taken
// the member in: that one does not know of it, and asks for nothing.
func (c *Core) earlier(d *control.Decision) bool {
	return d.Synchronizer == c.synchronizer && d.Term < c.term
}

// tells reports whether a fate is repeated until it is recorded.
func (c *Core) tells(d *control.Decision) bool { return c.earlier(d) || c.gate.Records(d.Synchronizer) }

func (c *Core) queue(now clocksync.Instant, a *wire.Answer) {
	for i, b := range c.answers {
		if b.Decision == a.Decision && b.Name == a.Name && b.Target == a.Target {
			c.answers[i] = *a
			return
		}
	}
	if len(c.answers) == maxAnswers {
		c.answers = slices.Delete(c.answers, 0, 1) // It is repeated, if it is final.
	}
	c.answers = append(c.answers, *a)
	c.answerAt = min(c.answerAt, now.Add(answerAge))
	if len(c.answers) >= wire.MaxSignals {
		c.answerAt = now
	}
}
