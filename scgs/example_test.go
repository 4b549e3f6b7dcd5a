package scgs_test

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Two hosts whose clocks are known within 2 ns: "leader" and "busy" certainly
// held together, although neither has ended. That is known as soon as both have
// shown evidence later than the latest start can have been.
func ExampleDetector() {
	at := func(host clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: host, Mono: t, Within: clocksync.Around(t, 2)}
	}
	values := []string{"", "leader", "busy", "idle"} // by Ref

	d := scgs.NewDetector(scgs.Options{})
	members := d.Epoch(1, nil, []scgs.Spec{{Domain: "east"}, {Domain: "west"}})
	east, west := members[0], members[1]

	d.Start(east, 1, at("east", 10), 1)
	d.Start(west, 1, at("west", 20), 2)
	for _, n := range d.Needs(nil) {
		fmt.Printf("member %d: evidence after reading %v and time %v is missing\n", n.Member, n.AfterMono, n.AfterTime)
	}
	d.Evidence(east, 1, at("east", 25))
	d.Evidence(west, 1, at("west", 25))
	d.Start(west, 2, at("west", 40), 3)

	var ev scgs.Event
	for d.Next(&ev) {
		fmt.Printf("global state %d %v, core [%v,%v):", ev.Index, ev.Kind, ev.CoreFrom, ev.CoreTo)
		for _, p := range d.Witness(nil) {
			fmt.Printf(" %s", values[p.Ref])
		}
		fmt.Println()
	}
	// Output:
	// member 0: evidence after reading 10 and time 22 is missing
	// member 1: evidence after reading 20 and time 12 is missing
	// global state 1 opened, core [22,23): leader busy
}

// Two members raise an alarm, and one of them goes from one alarm to a worse one
// meanwhile. No single local state of A certainly overlaps with B's, but A was in
// alarm throughout. A third member's alarm may have overlapped or not.
func ExampleDetector_modalities() {
	at := func(domain clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: domain, Mono: t, Within: clocksync.Interval{Earliest: t - 2, Latest: t + 2}}
	}
	for _, modality := range []scgs.Modality{scgs.Definitely, scgs.Possibly} {
		for _, other := range []struct {
			domain   clocksync.Domain
			from, to clocksync.Instant
		}{{"B", 9, 14}, {"C", 18, 22}, {"D", 30, 40}} {
			d := scgs.NewDetector(scgs.Options{Modality: modality})
			m := d.Epoch(1, nil, []scgs.Spec{{Domain: "A"}, {Domain: other.domain}})
			d.Start(m[0], 1, at("A", 0), 0)  // alarm
			d.Start(m[0], 2, at("A", 10), 0) // worse: the run continues
			d.End(m[0], 3, at("A", 20))      // no alarm any more
			d.Start(m[1], 1, at(other.domain, other.from), 0)
			d.End(m[1], 2, at(other.domain, other.to))
			var ev scgs.Event
			fmt.Printf("%v A and %s: %v\n", modality, other.domain, d.Next(&ev))
		}
	}
	// Output:
	// definitely A and B: true
	// definitely A and C: false
	// definitely A and D: false
	// possibly A and B: true
	// possibly A and C: true
	// possibly A and D: false
}
