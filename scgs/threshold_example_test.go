package scgs_test

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Two leaders at once are found although nothing is heard of the third node.
func ExampleThreshold() {
	at := func(host clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: host, Mono: t, Within: clocksync.Around(t, 2)}
	}

	d := scgs.NewThreshold(2, scgs.Options{})
	members := d.Epoch(1, nil, []scgs.Spec{{Domain: "east"}, {Domain: "west"}, {Domain: "north"}})
	east, west := members[0], members[1]

	d.Start(east, 1, at("east", 10), 1) // the condition: it is leader
	d.Start(west, 1, at("west", 20), 2)
	d.Evidence(west, 1, at("west", 27))
	for _, n := range d.Needs(nil) {
		fmt.Printf("member %d: evidence after reading %v and time %v is missing\n", n.Member, n.AfterMono, n.AfterTime)
	}
	d.End(east, 2, at("east", 30))

	var set scgs.Set
	for d.Next(&set) {
		fmt.Printf("at least 2 hold in [%v,%v):", set.CoreFrom, set.CoreTo)
		for _, p := range set.Runs {
			fmt.Printf(" member %d since state %d", p.Member, p.Seq)
		}
		fmt.Println()
	}
	// Output:
	// member 0: evidence after reading 10 and time 22 is missing
	// at least 2 hold in [22,25): member 0 since state 1 member 1 since state 1
}
