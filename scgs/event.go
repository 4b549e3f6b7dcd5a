package scgs

import (
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Kind is the kind of an [Event].
type Kind uint8

// The kinds of events.
const (
	Opened Kind = iota + 1 // a tuple of local states has become certain
	Closed                 // it has ended
)

// String gives the word for the kind.
func (k Kind) String() string {
	switch k {
	case Opened:
		return "opened"
	case Closed:
		return "closed"
	}
	return "none"
}

// Event tells that a tuple of local states, one of each member, became certain
// or ended. Opened and Closed alternate.
type Event struct {
	Kind  Kind   // Opened or Closed
	Epoch uint64 // of the tuple
	// Index numbers the tuples of an epoch from 1, partial ones too.
	Index uint64
	// Partial is true if a member is UNKNOWN in the tuple. Such a tuple is no
	// strongly consistent global state; the members that are known in it
	// certainly overlap all the same.
	Partial bool
	// Step is true on Opened if exactly one member changed since the last
	// Opened of this epoch, and its new state began with the very event that
	// ended its old one: then nothing lies between the two tuples.
	Step bool
	// Changed holds, on Opened, the members that have another state than in the
	// last tuple opened in this epoch, in order; all of them in the first. The
	// next event put into the same Event overwrites it.
	Changed []Change
	Span
}

// Change is a member's state in a tuple, or its run: that has the number of its
// first state and the ref of its newest.
type Change struct {
	Member  Member // whose state it is
	Seq     uint64 // of the report that began the state
	Ref     Ref    // the value that was given to Start
	Unknown bool   // then Seq and Ref are 0
}

// Span is when a tuple of local states held. While a state of it is open its
// newest evidence stands for its end.
type Span struct {
	// SameClock is true if all members are in one clock domain. Then the tuple
	// held exactly on [MonoFrom, MonoTo) of that domain's clock.
	SameClock        bool
	Domain           clocksync.Domain  // of that clock; empty unless SameClock
	MonoFrom, MonoTo clocksync.Instant // readings; 0 unless SameClock
	// HasCore is true if there are instants, [CoreFrom, CoreTo), at which all
	// states certainly held. A tuple may be certain and have none, when a state
	// was shorter than its own uncertainty.
	HasCore          bool
	CoreFrom, CoreTo clocksync.Instant // reference time; 0 unless HasCore
	// EnvelopeFrom and EnvelopeTo bound the instants at which the tuple can have
	// held. They are infinite if unbounded, the latter also if no state of it
	// has ended yet.
	EnvelopeFrom, EnvelopeTo clocksync.Instant
}

// Certain is how long the tuple certainly held: by readings on one clock, else
// the length of its core, which may be 0.
func (s Span) Certain() time.Duration {
	switch {
	case s.SameClock:
		return s.MonoTo.Sub(s.MonoFrom)
	case s.HasCore:
		return s.CoreTo.Sub(s.CoreFrom)
	}
	return 0
}

// SpanOf is when runs of different members, of which there is at least one, held
// together, where any two of them certainly overlap.
func SpanOf(runs []Part) Span {
	s := Span{
		SameClock: true, Domain: runs[0].Start.Domain,
		MonoFrom: clocksync.MinInstant, MonoTo: clocksync.MaxInstant,
		CoreFrom: clocksync.MinInstant, CoreTo: clocksync.MaxInstant,
		EnvelopeFrom: clocksync.MinInstant, EnvelopeTo: clocksync.MaxInstant,
	}
	for i := range runs {
		start, end := &runs[i].Start, &runs[i].End
		s.SameClock = s.SameClock && start.Domain == s.Domain
		s.MonoFrom, s.MonoTo = max(s.MonoFrom, start.Mono), min(s.MonoTo, end.Mono)
		s.CoreFrom, s.CoreTo = max(s.CoreFrom, start.Within.Latest), min(s.CoreTo, end.Within.Earliest)
		s.EnvelopeFrom = max(s.EnvelopeFrom, start.Within.Earliest)
		if !runs[i].Open {
			s.EnvelopeTo = min(s.EnvelopeTo, end.Within.Latest)
		}
	}
	if !s.SameClock {
		s.Domain, s.MonoFrom, s.MonoTo = "", 0, 0
	}
	s.HasCore = s.CoreFrom < s.CoreTo && s.CoreFrom.Finite() && s.CoreTo.Finite()
	if !s.HasCore {
		s.CoreFrom, s.CoreTo = 0, 0
	}
	return s
}

// makeBegin makes the event that the current tuple has become certain, but for its span.
func (d *Detector) makeBegin(ev *Event) {
	d.index++
	d.step = !d.delta.all && d.delta.pops == 1 && d.delta.joined
	ev.Kind, ev.Epoch, ev.Index, ev.Partial, ev.Step = Opened, d.epoch, d.index, d.unknown > 0, d.step
	ev.Changed = d.changes(ev.Changed[:0])
	if ev.Partial {
		d.stats.Partial++
	} else {
		d.stats.Global++
	}
}

// makeEnd makes the event that the current tuple has ended.
func (d *Detector) makeEnd(ev *Event) {
	ev.Kind, ev.Epoch, ev.Index, ev.Partial, ev.Step = Closed, d.epoch, d.index, d.unknown > 0, false
	ev.Changed = ev.Changed[:0]
	d.sumUpHeads(&ev.Span)
}

// changes puts what changed since the last call into dst, which is empty.
func (d *Detector) changes(dst []Change) []Change {
	c := &d.delta
	if c.all {
		c.members = c.members[:0]
		for m := range d.members {
			if d.members[m].alive {
				c.members = append(c.members, Member(m))
			}
		}
	}
	if len(c.members) > 1 {
		slices.Sort(c.members)
	}
	dst = slices.Grow(dst, len(c.members))[:len(c.members)]
	for i, m := range c.members {
		mb := &d.members[m]
		mb.dirty = false
		s := mb.queue.front()
		dst[i].Member, dst[i].Seq, dst[i].Ref, dst[i].Unknown = m, s.seq, s.ref, s.sort != known
	}
	c.members, c.all, c.pops = c.members[:0], false, 0
	return dst
}

// sumUpHeads sums up the heads, of which there is one for each member. It sets every
// field: to make a Span and copy it takes longer than the rest.
func (d *Detector) sumUpHeads(s *Span) {
	if d.one.on {
		d.spanOneClock(s)
		return
	}
	r := d.top.root()
	s.CoreFrom, s.CoreTo, s.EnvelopeFrom, s.EnvelopeTo = d.first.hi, r.lo, d.maxLo, r.chi
	if d.modality == Possibly {
		s.CoreFrom, s.CoreTo, s.EnvelopeFrom, s.EnvelopeTo = d.maxLo, r.chi, d.first.hi, r.clo
	}
	s.HasCore = d.infinite == 0 && s.CoreFrom < s.CoreTo && s.CoreFrom.Finite() && s.CoreTo.Finite()
	if !s.HasCore {
		s.CoreFrom, s.CoreTo = 0, 0
	}
	if dom := &d.domains[0]; !d.isMulti() && dom.name != "" {
		s.SameClock, s.Domain = true, dom.name
		s.MonoFrom, s.MonoTo = dom.maxM, dom.heads.root().m
		return
	}
	s.SameClock, s.Domain, s.MonoFrom, s.MonoTo = false, "", 0, 0
}

// Current returns when the open tuple holds, with the newest evidence. It
// returns false if no tuple is open.
func (d *Detector) Current() (Span, bool) {
	var s Span
	if d.open {
		d.sumUpHeads(&s)
	}
	return s, d.open
}

// Open reports whether a tuple is open.
func (d *Detector) Open() bool { return d.open }

// Part is a member's share in a tuple: its local state, or a run of them, which
// has the number of its first and the ref of its newest, or a group's tuple, which
// has that one's index.
type Part struct {
	Member Member // whose part it is
	Seq    uint64 // of the report that began it
	Ref    Ref    // the value that was given to Start
	// Start and End are the events the state lies between. End is the newest evidence while the
	// state is open. Of a group's tuple they are the latest start and the least end of its
	// parts, each side of the intervals separately; they have a Domain only if all of the
	// group's members share it.
	Start, End clocksync.Stamp
	Open       bool // its end is not known
	// Unknown is true where nothing is known of the member; Seq and Ref are 0.
	Unknown bool
}

// Witness appends the current tuple to dst, a part for each member in order.
// Between a Closed and the next Opened it is the tuple that the detector waits
// to decide, and lacks the members that have no state. It costs O(members).
func (d *Detector) Witness(dst []Part) []Part {
	for m := range d.members {
		mb := &d.members[m]
		if mb.queue.n == 0 {
			continue
		}
		if mb.group != nil {
			dst = append(dst, mb.group.partOf(Member(m), mb))
			continue
		}
		d.heardOf(mb)
		dst = append(dst, d.part(Member(m), mb, mb.queue.front()))
	}
	return dst
}

// States appends to dst the local states of a member that the detector keeps, oldest
// first: the one it looks at and those behind it. Groups have none.
func (d *Detector) States(dst []Part, m Member) []Part {
	if mb := d.findMember(m); mb != nil && mb.group == nil {
		d.heardOf(mb)
		for i := range mb.queue.n {
			dst = append(dst, d.part(m, mb, mb.queue.at(i)))
		}
	}
	return dst
}

func (d *Detector) part(m Member, mb *member, s *state) Part {
	home := d.places[m].home
	return Part{
		Member: m, Seq: s.seq, Ref: s.ref, Start: d.framePoint(s.start).stampIn(home), End: d.endOf(mb, s).stampIn(home),
		Open: !s.closed, Unknown: s.sort != known,
	}
}

// endOf is the end of a state of the member, or its newest evidence as it came.
func (d *Detector) endOf(mb *member, s *state) point {
	p := d.framePoint(s.endBound())
	if d.modality == Possibly && !s.closed && mb.vague {
		p.hi = clocksync.MaxInstant
	}
	return p
}

// Ended appends to dst the states, or runs, whose ends became known since the last
// call, if Options.Ends asked for that. A state ends at the next report, or where
// the rule for losses puts it.
func (d *Detector) Ended(dst []Part) []Part {
	dst = append(dst, d.ended...)
	d.ended = d.ended[:0]
	return dst
}

// Bound is the widest half width of the stamps that the current tuple rests on:
// 0 if all members are in one clock domain, the longest duration if one is
// unbounded. Groups are left out: ask their detectors. It costs O(members).
func (d *Detector) Bound() time.Duration {
	var widest time.Duration
	if !d.isMulti() {
		return 0
	}
	for m := range d.members {
		mb := &d.members[m]
		if mb.group != nil || mb.queue.n == 0 || mb.queue.front().sort != known {
			continue
		}
		s := mb.queue.front()
		widest = max(widest, half(d.framePoint(s.start)), half(d.endOf(mb, s)))
	}
	return widest
}

func half(p point) time.Duration {
	i := clocksync.Interval{Earliest: p.lo, Latest: p.hi}
	if !i.Bounded() {
		return i.Width()
	}
	return i.Width() / 2
}
