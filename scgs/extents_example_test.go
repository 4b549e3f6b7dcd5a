package scgs_test

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Two machines share a power budget of 100. They hand a load over, and by the
// bounds of their clocks the one may not have dropped it yet when the other took
// it.
func ExampleExtents() {
	at := func(host clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: host, Mono: t, Within: clocksync.Around(t, 2)}
	}
	x, err := scgs.NewExtents(scgs.ExtentOptions{Declared: scgs.Range{Low: 0, High: 80}})
	if err != nil {
		fmt.Println(err)
		return
	}
	members := x.Epoch(1, nil, []scgs.Spec{{Domain: "east"}, {Domain: "west"}})
	east, west := members[0], members[1]

	x.Start(east, 1, at("east", 10), 20)
	x.Start(west, 1, at("west", 10), 60)
	x.Start(east, 2, at("east", 30), 70) // takes over
	x.Start(west, 2, at("west", 31), 10) // drops
	x.Evidence(east, 2, at("east", 50))
	x.Evidence(west, 2, at("west", 50))

	var e scgs.Extent
	for x.Next(&e) {
		switch {
		case e.Sum.High <= 100:
			fmt.Printf("from %v: at most %v\n", e.From, e.Sum.High)
		case e.Sum.Low > 100:
			fmt.Printf("from %v: certainly exceeded\n", e.From)
		default:
			fmt.Printf("from %v: may have been %v\n", e.From, e.Sum.High)
		}
	}
	fmt.Printf("known until %v\n", x.Until())
	// Output:
	// from -inf: may have been 160
	// from 12: at most 80
	// from 28: may have been 130
	// from 29: may have been 130
	// from 32: may have been 130
	// from 33: at most 80
	// known until 48
}
