// Package outbox follows signals to their fates: it sends one until its target has
// answered, its time is over, or the target is no longer what it was. What becomes
// of a signal is returned with the owner it was posted for; the outbox calls nobody.
//
// It is pure and belongs to one machine.
package outbox

import (
	"cmp"
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

// askAfter is for how long a target that has a signal is asked after its time: the answer
// that it was applied may be lost.
const askAfter = time.Second

// receiptAfter is how long a receipt waits for others to the same target. At most manyReceipts wait: the target keeps a
// fate until it has the receipt, and at most [control.MaxKept] of them.
const (
	receiptAfter = 250 * time.Millisecond
	manyReceipts = control.MaxKept / 2
)

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
	Recalls     bool            // the target says what became of a signal also after its time, and applies it no more
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
	letters []*pending             // in the order in which they were posted
	posted  uint64                 // letters that were ever here
	to      map[addressee]*pending // of one target and name, the last one first
	frames  map[target]int         // place of the frame that a target had last in a step; it may be of an earlier step
	due     clocksync.Instant      // of the next of them, or of the receipts; MinInstant: something has changed
	owed    []owed
	owedAt  clocksync.Instant // when they go out; MaxInstant if there are none
	owedTo  map[target]int    // how many of them
}

type target struct{ group, to string }

// addressee is a target and the name of a signal.
type addressee struct{ group, to, name string }

func (l *Letter) addressee() addressee {
	return addressee{l.Group, l.Signal.Target, l.Signal.Name}
}

// owed is a receipt that a target is to have: it keeps the fate until then.
type owed struct {
	group, to   string
	incarnation uint64
	wire.Receipt
}

type pending struct {
	Letter
	deadline clocksync.Instant
	next     clocksync.Instant
	attempts int
	waiting  bool // the target has it and will tell its fate
	late     bool // it is asked after the deadline
	number   uint64
	before   *pending // the one of the same addressee that was posted before

	// of are its decisions before its term was renewed: the target may tell its fate under those.
	of []control.Decision
}

// is reports whether a member tells of this signal.
func (p *pending) is(group, from string, a *wire.Answer) bool {
	return (p.Signal.Decision == a.Decision || slices.Contains(p.of, a.Decision)) && p.Signal.Name == a.Name && p.Signal.Target == from && p.Group == group
}

// limit is when the signal is given up. A target that has it is asked after the deadline
// first, however long the machine stood still.
func (p *pending) limit() clocksync.Instant {
	switch {
	case !p.waiting || !p.Recalls:
		return p.deadline
	case !p.late:
		return clocksync.MaxInstant
	}
	return p.deadline.Add(askAfter)
}

// again sets the time of the next attempt. The first one after the deadline is at the deadline.
func (p *pending) again(now clocksync.Instant, pause time.Duration) {
	if p.next = now.Add(pause); now < p.limit() {
		p.next = min(p.limit(), p.next)
	}
	if now < p.deadline {
		p.next = min(p.deadline, p.next)
	}
}

// New returns an empty outbox.
func New() *Outbox {
	return &Outbox{due: clocksync.MinInstant, owedAt: clocksync.MaxInstant, owedTo: map[target]int{}, to: map[addressee]*pending{}, frames: map[target]int{}}
}

// Len is how many signals have no final fate.
func (o *Outbox) Len() int { return len(o.letters) }

// Untold is how many signals of predicates to others than that member may not have reached their targets
// yet, of decisions up to a number; 0: of none.
func (o *Outbox) Untold(decision uint64, member string) int {
	if decision == 0 { // As in nearly every hello.
		return 0
	}
	n := 0
	for _, p := range o.letters {
		if p.Owner == Rule && !p.waiting && p.Signal.Decision.Number <= decision && (p.Group != "" || p.Signal.Target != member) {
			n++
		}
	}
	return n
}

// Letters yields what has no final fate, in the order in which it was posted.
func (o *Outbox) Letters(yield func(Letter) bool) {
	for _, p := range o.letters {
		if !yield(p.Letter) {
			return
		}
	}
}

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
	p := o.add(&pending{Letter: l, deadline: now.Add(l.Signal.TTL)})
	o.transmit(p, now, head, frames)
	o.due = min(o.due, p.next)
	return Settled{}, true
}

func (o *Outbox) add(p *pending) *pending {
	o.posted++
	at := p.addressee()
	p.number, p.before = o.posted, o.to[at]
	o.letters, o.to[at] = append(o.letters, p), p
	return p
}

// find returns the letter that a member tells of; nil: there is none.
func (o *Outbox) find(group, from string, a *wire.Answer) *pending {
	p := o.to[addressee{group, from, a.Name}]
	for p != nil && !p.is(group, from, a) {
		p = p.before
	}
	return p
}

// findDue finds out when the outbox is due, after a letter that was due at an instant is not any more. Letters that were posted
// together are due together, so that one of the first mostly has the same instant.
func (o *Outbox) findDue(was clocksync.Instant) {
	if was > o.due {
		return
	}
	due := o.owedAt
	for _, p := range o.letters {
		if due = min(due, p.next); due <= o.due {
			return
		}
	}
	o.due = due
}

// remove takes a letter out.
func (o *Outbox) remove(p *pending) {
	i, _ := slices.BinarySearchFunc(o.letters, p.number, func(q *pending, number uint64) int { return cmp.Compare(q.number, number) })
	if i == 0 { // Targets often answer in the order in which they are asked.
		o.letters[0] = nil
		o.letters = o.letters[1:]
	} else {
		o.letters = slices.Delete(o.letters, i, i+1)
	}
	at := p.addressee()
	switch q := o.to[at]; {
	case q != p:
		for q.before != p {
			q = q.before
		}
		q.before = p.before
	case p.before == nil:
		delete(o.to, at)
	default:
		o.to[at] = p.before
	}
}

// transmit sends a signal, in one frame with everything else to the same member in this step,
// and sets the time of the next attempt. A signal of an older epoch goes out like any other:
// only its target knows whether it came in time, and the frame tells it the current epoch.
func (o *Outbox) transmit(p *pending, now clocksync.Instant, head *wire.Signals, frames *Frames) {
	if !p.late && now >= p.deadline {
		p.late, p.attempts, p.deadline = true, 0, now
	}
	p.again(now, backoff[min(p.attempts, len(backoff)-1)])
	p.attempts++
	o.AddTo(frames, head, p.Group, p.Incarnation, p.Signal)
}

// AddTo adds a copy of a signal to an incarnation of its target, which is a member of that group, to
// the last frame of the same target if that is not full. The outbox does not follow the signal.
func (o *Outbox) AddTo(frames *Frames, head *wire.Signals, group string, incarnation uint64, s *control.Signal) {
	to := target{group, s.Target}
	if i, ok := o.frames[to]; ok && i < len(*frames) {
		if a := &(*frames)[i]; a.To == s.Target && a.Group == group && a.Msg.Incarnation == incarnation && len(a.Msg.Signals) < wire.MaxSignals && len(a.Msg.Recorded) == 0 {
			a.Msg.Signals = append(a.Msg.Signals, *s)
			return
		}
	}
	if len(o.frames) >= Limit { // Of targets that were here at any time.
		clear(o.frames)
	}
	o.frames[to] = len(*frames)
	msg := *head
	msg.Incarnation, msg.Signals = incarnation, []control.Signal{*s}
	*frames = append(*frames, wire.Addressed[wire.Signals]{To: s.Target, Group: group, Msg: msg})
}

// UnderWay reports whether a member tells of a signal that has no final fate.
func (o *Outbox) UnderWay(group, from string, a *wire.Answer) bool {
	return o.find(group, from, a) != nil
}

// Answer takes what a member tells of a signal; ok if that settles it. The fate of an unknown
// signal is a late copy.
func (o *Outbox) Answer(now clocksync.Instant, group, from string, a *wire.Answer) (s Settled, ok bool) {
	p := o.find(group, from, a)
	if p == nil {
		return s, false
	}
	switch {
	case a.Fate == control.Waiting:
		p.waiting = true
		if was := p.next; now < p.deadline {
			p.again(now, waitingAgain)
			o.due = min(o.due, p.next)
			o.findDue(was)
		}
		return s, false
	case a.Fate == control.Duplicate:
		return o.settle(p, control.Applied, a.Detail), true
	case a.Fate != control.Applied && p.Signal.Decision != a.Decision:
		return s, false // The copy of the later term may be applied yet.
	case a.Fate.Final():
		return o.settle(p, a.Fate, a.Detail), true
	}
	return s, false
}

func (o *Outbox) settle(p *pending, f control.Fate, detail string) Settled {
	o.remove(p)
	o.findDue(p.next)
	return Settled{p.Letter, f, detail}
}

// Retry repeats unanswered signals and appends signals past their time, or whose target is
// gone, to settled. Up to heard, which is at most now, all that targets have said has come: a
// signal past its time since may have been answered.
func (o *Outbox) Retry(now, heard clocksync.Instant, head *wire.Signals, gone func(*Letter) bool, frames *Frames, settled []Settled) []Settled {
	if now < o.due {
		return settled
	}
	if now >= o.owedAt {
		o.acknowledge(head, frames)
	}
	next := clocksync.MaxInstant
	for i := 0; i < len(o.letters); {
		p := o.letters[i]
		switch {
		case gone(&p.Letter):
			settled = append(settled, o.settle(p, control.Unconfirmed, "the target is gone"))
		case heard >= p.limit() && p.late:
			o.Record(now, p.Group, p.Signal.Target, p.Incarnation, p.Signal.Decision, p.Signal.Name)
			settled = append(settled, o.settle(p, control.Unconfirmed, "the target had it, and does not say what became of it"))
		case heard >= p.limit() && p.waiting:
			settled = append(settled, o.settle(p, control.Expired, "the target did not get to it in time"))
		case heard >= p.limit():
			if p.Recalls { // It may get to it all the same.
				o.Record(now, p.Group, p.Signal.Target, p.Incarnation, p.Signal.Decision, p.Signal.Name)
			}
			settled = append(settled, o.settle(p, control.Unconfirmed, "no answer"))
		default:
			if now >= p.next {
				o.transmit(p, now, head, frames)
				if p.waiting && now < p.deadline {
					p.again(now, waitingAgain)
				}
			}
			next = min(next, p.next)
			i++
		}
	}
	o.due = min(next, o.owedAt)
	return settled
}

// Kept is a letter as one machine hands it to another, with how far its delivery is.
type Kept struct {
	Letter

	Deadline clocksync.Instant  // when its time is over
	Waiting  bool               // the target has it
	Of       []control.Decision `json:",omitempty"` // under which it was sent before
}

// Kept are the letters without a final fate of decisions of later numbers than that.
func (o *Outbox) Kept(after uint64) []Kept {
	var all []Kept
	for _, p := range o.letters {
		if p.Signal.Decision.Number > after {
			all = append(all, Kept{p.Letter, p.deadline, p.waiting, p.of})
		}
	}
	return all
}

// Restore puts the letters of another outbox in place of the own ones of later numbers.
func (o *Outbox) Restore(after uint64, all []Kept) {
	for _, p := range slices.Clone(o.letters) {
		if p.Signal.Decision.Number > after {
			o.remove(p)
		}
	}
	o.due = clocksync.MinInstant
	for _, k := range all[:min(len(all), Limit-len(o.letters))] {
		o.add(&pending{Letter: k.Letter, deadline: k.Deadline, next: clocksync.MinInstant, waiting: k.Waiting, of: k.Of})
	}
}

// Renew has the signals that are under way be of a later term, in the epoch and under the
// number that they have: they are sent again at once. A target that has had one knows
// it by its cause; those without one stay as they are, for the target to refuse, and so do those that
// a target is known to have.
func (o *Outbox) Renew(term uint64) {
	for _, p := range o.letters {
		if p.Signal.Cause.Source == 0 || p.waiting {
			continue
		}
		s := *p.Signal
		p.of = append(slices.Clip(p.of), s.Decision)
		s.Decision.Term, s.Cause.Firing = term, s.Cause.Firing|control.Renewed
		p.Signal, p.next, p.attempts = &s, clocksync.MinInstant, 0
	}
	o.due = clocksync.MinInstant
}

// Record has a target learn, with others a moment later, that the fate of a signal to it is
// recorded. Of too many the receipts are left out: it tells the fates again.
func (o *Outbox) Record(now clocksync.Instant, group, to string, incarnation uint64, d control.Decision, name string) {
	if len(o.owed) >= Limit {
		return
	}
	o.owed = append(o.owed, owed{group, to, incarnation, wire.Receipt{Term: d.Term, Number: d.Number, Name: name}})
	o.owedAt = min(o.owedAt, now.Add(receiptAfter))
	if o.owedTo[target{group, to}]++; o.owedTo[target{group, to}] >= manyReceipts {
		o.owedAt = min(o.owedAt, now)
	}
	o.due = min(o.due, o.owedAt)
}

// acknowledge sends the receipts.
func (o *Outbox) acknowledge(head *wire.Signals, frames *Frames) {
	slices.SortStableFunc(o.owed, func(a, b owed) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.to, b.to), cmp.Compare(a.incarnation, b.incarnation))
	})
	for i, j := 0, 0; i < len(o.owed); i = j {
		first, msg := &o.owed[i], *head
		msg.Incarnation = first.incarnation
		for j < len(o.owed) && j < i+wire.MaxSignals && o.owed[j].to == first.to && o.owed[j].group == first.group && o.owed[j].incarnation == first.incarnation {
			msg.Recorded = append(msg.Recorded, o.owed[j].Receipt)
			j++
		}
		*frames = append(*frames, wire.Addressed[wire.Signals]{To: first.to, Group: first.group, Msg: msg})
	}
	o.owed, o.owedAt = o.owed[:0], clocksync.MaxInstant
	clear(o.owedTo)
}
