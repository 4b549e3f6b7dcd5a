package scgs_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// chance is when a member may have been in a state, ref 0 for UNKNOWN: at the
// instants t with from <= t < to.
type chance struct {
	from, to clocksync.Instant
	ref      scgs.Ref
	since    int // which message it begins at, -1 before the first
	until    int // which message shows that it has ended, or -1
}

func (c chance) at(t clocksync.Instant) bool { return c.from <= t && t < c.to }

// chances reads a member's stream, of which some may be missing but none is
// doubled, by the definitions. A state may last from its start to the first
// report that shows it has ended; before the first report, after an end, and from
// the last stamp before a loss, the member is UNKNOWN until the next report.
func chances(stream []message) []chance {
	stamps, latest := tidy(stream)
	all := []chance{{from: clocksync.MinInstant, since: -1, until: -1}}
	last := -1 // the newest message with a stamp
	add := func(i int, ref scgs.Ref) {
		all = append(all, chance{from: stamps[i].Within.Earliest, ref: ref, since: i, until: -1})
	}
	stop := func(i int, all []chance) {
		for k := range all {
			if all[k].until < 0 {
				all[k].until = i
			}
		}
	}
	lose := func() {
		if all[len(all)-1].ref != 0 {
			add(last, 0)
		}
	}
	var seq uint64
	for i, msg := range stream {
		switch {
		case msg.action == restart:
			lose()
			seq = 0
			continue
		case msg.action == evidence && msg.seq > seq:
			lose()
			stop(i, all[:len(all)-1])
		case msg.action != evidence:
			if seq > 0 && msg.seq > seq+1 {
				lose()
			}
			for k := len(all) - 1; sameReading(stamps, all[k].since, i); k-- {
				all = all[:k]
			}
			stop(i, all)
			if msg.action == end {
				msg.ref = 0
			}
			add(i, msg.ref)
		}
		seq, last = msg.seq, i
	}
	for k := range all {
		all[k].to = clocksync.MaxInstant
		if all[k].until >= 0 {
			all[k].to = latest[all[k].until]
		}
	}
	return all
}

// sameReading reports whether what began with one stamp was never held, since the
// event that ended it has the same reading.
func sameReading(stamps []clocksync.Stamp, since, end int) bool {
	return since >= 0 && stamps[since].Domain == stamps[end].Domain && stamps[since].Mono == stamps[end].Mono
}

// tidy gives the messages' stamps, none before what the member has shown in
// another incarnation, and the latest time at which each can have happened, given
// that those after it happened later. Evidence with the reading before it shows
// no later time. The domains tell a clock from the same clock after another one.
func tidy(stream []message) (stamps []clocksync.Stamp, latest []clocksync.Instant) {
	lo, hi := clocksync.MinInstant, clocksync.MinInstant
	var last clocksync.Stamp
	var clock clocksync.Domain
	moves := 0
	for _, msg := range stream {
		at := msg.at
		if msg.action == restart {
			if msg.domain != clock {
				clock = msg.domain
				moves++
			}
			stamps = append(stamps, at)
			continue
		}
		clock = at.Domain
		at.Domain = clocksync.Domain(fmt.Sprintf("%s after %d moves", at.Domain, moves))
		at.Within.Earliest = max(at.Within.Earliest, lo)
		at.Within.Latest = max(at.Within.Latest, hi)
		if msg.action == evidence && at.Domain == last.Domain && at.Mono == last.Mono {
			at.Within.Earliest = lo
		}
		lo = at.Within.Earliest
		if l := at.Within.Latest; l != clocksync.MaxInstant {
			hi = l
		}
		last = at
		stamps = append(stamps, at)
	}
	latest = make([]clocksync.Instant, len(stream))
	least := clocksync.MaxInstant
	for i, at := range slices.Backward(stamps) {
		if stream[i].action != restart {
			least = min(least, at.Within.Latest)
		}
		latest[i] = least
	}
	return stamps, latest
}

// watermark is the instant before which nothing more can change.
func watermark(members int, arrived []message) clocksync.Instant {
	least := clocksync.MaxInstant
	for _, stream := range streamsOf(members, arrived) {
		newest := clocksync.MinInstant
		stamps, _ := tidy(stream)
		for i, msg := range stream {
			if msg.action != restart {
				newest = stamps[i].Within.Earliest
			}
		}
		least = min(least, newest)
	}
	return least
}

// realm is all members' chances.
type realm [][]chance

func newRealm(members int, arrived []message) realm {
	var r realm
	for _, stream := range streamsOf(members, arrived) {
		r = append(r, chances(stream))
	}
	return r
}

// streamsOf gives each member's messages, without those that arrived again.
func streamsOf(members int, arrived []message) [][]message {
	streams := make([][]message, members)
	seen := map[scgs.Ref]bool{}
	for _, msg := range arrived {
		if msg.action == restart || !seen[msg.ref] {
			streams[msg.member] = append(streams[msg.member], msg)
			seen[msg.ref] = true
		}
	}
	return streams
}

// instants are those at which something changes, in order.
func (r realm) instants() []clocksync.Instant {
	all := []clocksync.Instant{clocksync.MinInstant}
	for _, member := range r {
		for _, c := range member {
			all = append(all, c.from)
			if c.to != clocksync.MaxInstant {
				all = append(all, c.to)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// tuples gives every combination of states that is possible at the instant, by
// places in the lists of chances.
func (r realm) tuples(at clocksync.Instant) []tuple {
	found := []tuple{{}}
	for _, member := range r {
		var longer []tuple
		for _, t := range found {
			for k, c := range member {
				if c.at(at) {
					longer = append(longer, append(slices.Clone(t), k))
				}
			}
		}
		found = longer
	}
	return found
}

func (r realm) refs(t tuple) []scgs.Ref {
	var refs []scgs.Ref
	for m, k := range t {
		refs = append(refs, r[m][k].ref)
	}
	return refs
}

func (r realm) String() string {
	var b strings.Builder
	for m, member := range r {
		for _, c := range member {
			fmt.Fprintf(&b, "member %d may be in %d from %v to %v\n", m, c.ref, c.from, c.to)
		}
	}
	return b.String()
}
