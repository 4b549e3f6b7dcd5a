package lookahead

import (
	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Begins is when the newest states of members began, by clock domain.
type Begins struct {
	domains []domain
	members []begun // by place
	last    int     // the domain whose newest state began last, in time; below 0: none
	before  int     // the domain with the next one
}

// begun is the need of a member, and its domain.
type begun struct {
	domain int
	asked  bool // the detector lacks its evidence, past at least:
	need   scgs.Need
}

// domain is when the newest states of its members began.
type domain struct {
	mono   clocksync.Instant // the last reading
	place  int               // of the member with it
	second clocksync.Instant // the last reading of the others
	time   clocksync.Instant // the latest time of the last one
}

var never = domain{mono: clocksync.MinInstant, second: clocksync.MinInstant, time: clocksync.MinInstant, place: -1}

// Reset gives it the clock domains of the members of an epoch, in the order of their places.
func (b *Begins) Reset(domains []clocksync.Domain) {
	numbers := make(map[clocksync.Domain]int, len(domains))
	b.members = b.members[:0]
	for _, d := range domains {
		n, known := numbers[d]
		if !known {
			n = len(numbers)
			numbers[d] = n
		}
		b.members = append(b.members, begun{domain: n})
	}
	b.domains = make([]domain, len(numbers))
	b.Clear()
}

// Len is how many members there are.
func (b *Begins) Len() int { return len(b.members) }

// Clear forgets all that was noted.
func (b *Begins) Clear() {
	for i := range b.domains {
		b.domains[i] = never
	}
	for i := range b.members {
		b.members[i].asked = false
	}
	b.last, b.before = -1, -1
}

// Note adds when a member's newest state began: at a reading of its clock, and at the latest time.
func (b *Begins) Note(place int, mono, latest clocksync.Instant) {
	d := &b.domains[b.members[place].domain]
	if mono > d.mono {
		d.mono, d.second, d.place = mono, d.mono, place
	} else {
		d.second = max(d.second, mono)
	}
	if latest.Finite() {
		d.time = max(d.time, latest)
	}
}

// Rank finds the domains whose states began last. It comes after all notes and before [Begins.Need].
func (b *Begins) Rank() {
	for i := range b.domains {
		switch {
		case b.last < 0 || b.domains[i].time > b.domains[b.last].time:
			b.last, b.before = i, b.last
		case b.before < 0 || b.domains[i].time > b.domains[b.before].time:
			b.before = i
		}
	}
}

// Ask adds what the detector lacks of a member.
func (b *Begins) Ask(place int, need scgs.Need) {
	b.members[place].asked, b.members[place].need = true, need
}

// Need is the evidence that decides all that waits, as far as it has to come from a member whose newest
// reading and newest earliest time are known: past the newest states of the others, by readings in its
// own clock domain and by time in the others. It is false if the member has shown as much.
func (b *Begins) Need(place int, reading, earliest clocksync.Instant) (need scgs.Need, lacks bool) {
	m := &b.members[place]
	d := &b.domains[m.domain]
	need = scgs.Need{AfterMono: d.mono, AfterTime: clocksync.MinInstant}
	if d.place == place {
		need.AfterMono = d.second
	}
	switch {
	case m.domain != b.last:
		need.AfterTime = b.domains[b.last].time
	case b.before >= 0:
		need.AfterTime = b.domains[b.before].time
	}
	if m.asked {
		need.AfterMono, need.AfterTime = max(need.AfterMono, m.need.AfterMono), max(need.AfterTime, m.need.AfterTime)
		return need, true
	}
	return need, reading <= need.AfterMono || need.AfterTime != clocksync.MinInstant && earliest <= need.AfterTime
}

// Newest is the latest time at which one of the newest states began.
func (b *Begins) Newest() clocksync.Instant {
	if b.last < 0 {
		return clocksync.MinInstant
	}
	return b.domains[b.last].time
}
