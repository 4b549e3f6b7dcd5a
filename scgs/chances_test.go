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
			for k := len(all) - 1; sameReading(stamps, all[k].since, last, i); k-- {
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
// event that ended it has the same reading and nothing showed it lasting.
func sameReading(stamps []clocksync.Stamp, since, last, end int) bool {
	return since >= 0 && stamps[since].Domain == stamps[end].Domain && stamps[since].Mono == stamps[end].Mono &&
		stamps[last].Within.Earliest <= stamps[since].Within.Earliest
}

// tidy gives the messages' stamps, none before what the member has shown in
// another incarnation, and the latest time at which each can have happened, given
// that those after it happened later.
func tidy(stream []message) (stamps []clocksync.Stamp, latest []clocksync.Instant) {
	lo, hi := clocksync.MinInstant, clocksync.MinInstant
	for _, msg := range stream {
		at := msg.at
		if msg.action != restart {
			at.Within.Earliest = max(at.Within.Earliest, lo)
			at.Within.Latest = max(at.Within.Latest, hi)
			lo = at.Within.Earliest
			if l := at.Within.Latest; l != clocksync.MaxInstant {
				hi = l
			}
		}
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

// realm is all members' chances.
type realm [][]chance

func newRealm(members int, arrived []message) realm {
	streams := make([][]message, members)
	seen := map[scgs.Ref]bool{}
	for _, msg := range arrived {
		if msg.action == restart || !seen[msg.ref] {
			streams[msg.member] = append(streams[msg.member], msg)
			seen[msg.ref] = true
		}
	}
	r := make(realm, members)
	for m := range streams {
		r[m] = chances(streams[m])
	}
	return r
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
