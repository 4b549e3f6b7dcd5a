// Package outbox follows signals to their fates: it sends one until its target has
// answered, its time is over, or the target is no longer what it was. What becomes
// of a signal is returned with the owner it was posted for; the outbox calls nobody.
//
// It is pure and belongs to one machine.
package outbox

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/wire"
)

// Limit is how many signals may be without a final fate.
const Limit = 65_536

// backoff is the wait before each further attempt to deliver a signal; the last
// one is repeated.
var backoff = []time.Duration{
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
}

// waitingAgain is how often a target that has a signal is asked for its fate.
const waitingAgain = time.Second

// Owner is who decided on a signal, and learns of its fate.
type Owner uint8

// The owners.
const (
	Rule    Owner = iota + 1 // a predicate
	Program                  // the program that runs on the members
	Balance                  // the section balance
)

// Letter is a signal and who it is for.
type Letter struct {
	Owner       Owner           // who learns of its fate
	Group       string          // of the target, if that is another one
	Incarnation uint64          // of the target
	Signal      *control.Signal // kept until it has its fate; not to be changed
}

// Settled is a letter whose fate is final.
type Settled struct {
	Letter
	Fate   control.Fate // final
	Detail string       // why, for people; may be empty
}

// Frames are the messages of a step: signals to one member share one.
type Frames []wire.Addressed[wire.Signals]

// Outbox holds the signals whose final fate is not known.
type Outbox struct {
	letters []*pending
	due     clocksync.Instant // of the next of them; MinInstant: something has changed
}

type pending struct {
	Letter
	deadline clocksync.Instant
	next     clocksync.Instant
	attempts int
	waiting  bool // the target has it and will tell its fate
}

// New returns an empty outbox.
func New() *Outbox { return &Outbox{due: clocksync.MinInstant} }

// Len is how many signals have no final fate.
func (o *Outbox) Len() int { return len(o.letters) }

// Due is when [Outbox.Retry] next has something to do.
func (o *Outbox) Due() clocksync.Instant { return o.due }

// Look has the next Retry look at every signal: targets may be gone.
func (o *Outbox) Look() { o.due = clocksync.MinInstant }

// Pending reports whether a decision has sent a signal to a member of the own group
// whose fate is not known.
func (o *Outbox) Pending(d control.Decision, target string) bool {
	return slices.ContainsFunc(o.letters, func(p *pending) bool {
		return p.Group == "" && p.Signal.Target == target && p.Signal.Decision == d
	})
}

// Post sends a signal and waits for its fate. It is false if the signal has its fate
// at once, which is then in the result.
func (o *Outbox) Post(now clocksync.Instant, head *wire.Signals, l Letter, frames *Frames) (Settled, bool) {
	switch {
	case l.Signal.Entry == 0:
		return Settled{l, control.NoSuchEntry, "the target was in no such region"}, false
	case len(o.letters) >= Limit:
		return Settled{l, control.Refused, "too many signals wait for their fate"}, false
	}
	p := &pending{Letter: l, deadline: now.Add(l.Signal.TTL)}
	o.letters, o.due = append(o.letters, p), clocksync.MinInstant
	p.transmit(now, head, frames)
	return Settled{}, true
}

// transmit sends a signal, in one frame with what else goes to the same member
// in this step, and sets the time of the next attempt. A signal of an older epoch
// goes out like any other: only its target knows whether it came in time, and the
// frame tells it the epoch in force.
func (p *pending) transmit(now clocksync.Instant, head *wire.Signals, frames *Frames) {
	p.next = min(p.deadline, now.Add(backoff[min(p.attempts, len(backoff)-1)]))
	p.attempts++
	frames.Add(head, p.Group, p.Incarnation, p.Signal)
}

// Add adds a copy of a signal to an incarnation of its target, which is a member of that group, to
// the frame of the same target if there is one that is not full.
func (f *Frames) Add(head *wire.Signals, group string, incarnation uint64, s *control.Signal) {
	for i := range *f {
		if a := &(*f)[i]; a.To == s.Target && a.Group == group && a.Msg.Incarnation == incarnation && len(a.Msg.Signals) < wire.MaxSignals {
			a.Msg.Signals = append(a.Msg.Signals, *s)
			return
		}
	}
	msg := *head
	msg.Incarnation, msg.Signals = incarnation, []control.Signal{*s}
	*f = append(*f, wire.Addressed[wire.Signals]{To: s.Target, Group: group, Msg: msg})
}

// Answer takes what a member tells of a signal; ok if that settles it. The fate of
// one that is not known is a late copy.
func (o *Outbox) Answer(now clocksync.Instant, group, from string, a *wire.Answer) (s Settled, ok bool) {
	i := slices.IndexFunc(o.letters, func(p *pending) bool {
		return p.Signal.Decision == a.Decision && p.Signal.Name == a.Name && p.Signal.Target == from && p.Group == group
	})
	if i < 0 {
		return s, false
	}
	switch p := o.letters[i]; {
	case a.Fate == control.Waiting:
		p.waiting = true
		p.next = min(p.deadline, now.Add(waitingAgain))
		o.due = clocksync.MinInstant
		return s, false
	case a.Fate == control.Duplicate:
		return o.settle(i, control.Applied, a.Detail), true
	case a.Fate.Final():
		return o.settle(i, a.Fate, a.Detail), true
	}
	return s, false
}

func (o *Outbox) settle(i int, f control.Fate, detail string) Settled {
	s := Settled{o.letters[i].Letter, f, detail}
	o.letters, o.due = slices.Delete(o.letters, i, i+1), clocksync.MinInstant
	return s
}

// Retry repeats what was not answered and appends what is past its time, or whose
// target is gone, to settled.
func (o *Outbox) Retry(now clocksync.Instant, head *wire.Signals, gone func(*Letter) bool, frames *Frames, settled []Settled) []Settled {
	if now < o.due {
		return settled
	}
	next := clocksync.MaxInstant
	for i := 0; i < len(o.letters); {
		p := o.letters[i]
		switch {
		case gone(&p.Letter):
			settled = append(settled, o.settle(i, control.Unconfirmed, "the target is gone"))
		case now >= p.deadline && p.waiting:
			settled = append(settled, o.settle(i, control.Expired, "the target did not get to it in time"))
		case now >= p.deadline:
			settled = append(settled, o.settle(i, control.Unconfirmed, "no answer"))
		default:
			if now >= p.next {
				p.transmit(now, head, frames)
				if p.waiting {
					p.next = min(p.deadline, now.Add(waitingAgain))
				}
			}
			next = min(next, p.next)
			i++
		}
	}
	o.due = next
	return settled
}
