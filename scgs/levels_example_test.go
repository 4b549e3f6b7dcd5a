package scgs_test

import (
	"fmt"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/scgs"
)

// Two groups, each with a detector of its own. A third one finds the global states
// of both: which of one group's certainly held together with which of the other's.
func ExampleDetector_Summarize() {
	at := func(host clocksync.Domain, t clocksync.Instant) clocksync.Stamp {
		return clocksync.Stamp{Domain: host, Mono: t, Within: clocksync.Around(t, 2)}
	}
	above := scgs.NewDetector(scgs.Options{})
	groups := above.Epoch(1, nil, []scgs.Spec{{Group: true}, {Group: true}})

	var low [2]*scgs.Detector
	values := []string{""} // of the groups' global states, by Ref
	var event scgs.Event
	var summary scgs.Summary
	tell := func(g int) {
		for more := true; more; {
			if more = low[g].Next(&event); more && event.Kind == scgs.Opened {
				values = append(values, fmt.Sprintf("state %d of group %d", event.Index, g))
			}
			if low[g].Summarize(&summary) {
				above.Summary(groups[g], &summary, scgs.Ref(len(values)-1))
			}
		}
	}
	for g, hosts := range [][]clocksync.Domain{{"a", "b"}, {"b", "c"}} {
		low[g] = scgs.NewDetector(scgs.Options{})
		low[g].Share("b") // the clock that both have
		low[g].Epoch(1, nil, []scgs.Spec{{Domain: hosts[0]}, {Domain: hosts[1]}})
		for m, host := range hosts {
			low[g].Start(scgs.Member(m), 1, at(host, 10), 0)
			low[g].Evidence(scgs.Member(m), 1, at(host, 20))
		}
		tell(g)
	}

	for above.Next(&event) {
		fmt.Printf("%v, core [%v,%v):", event.Kind, event.CoreFrom, event.CoreTo)
		for _, p := range above.Witness(nil) {
			fmt.Printf(" %s;", values[p.Ref])
		}
		fmt.Println()
	}
	// Output:
	// opened, core [12,18): state 1 of group 0; state 1 of group 1;
}
