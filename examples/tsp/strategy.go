package main

import (
	"math"

	"github.com/gopegasus/pegasus/balance/local"
	"github.com/gopegasus/pegasus/clocksync"
)

// bySignals is the strategy that leaves it to the predicates which worker gets subtasks from which.
const bySignals = "signals"

// strategies are those that -strategy chooses by name, beside the kinds of package local.
var strategies = map[string]func() local.Local{bySignals: func() local.Local { return delivery{} }}

// newStrategy makes the strategy of a name for one member.
func newStrategy(name string) (local.Local, error) {
	if own := strategies[name]; own != nil {
		return own(), nil
	}
	return local.New(local.Config{Kind: name})
}

// delivery asks for nothing by itself: the signals NewSubtask and Migrate do. It decides how large a delivery is.
type delivery struct{}

// Look takes the offers that a Migrate has led to, with as many subtasks as threads have nothing to do.
func (delivery) Look(_ clocksync.Instant, v *local.View, to []local.Demand) ([]local.Demand, clocksync.Instant) {
	for i := range v.Neighbours {
		if n := &v.Neighbours[i]; n.Offers > 0 {
			to = append(to, local.Demand{Member: n.Name, Tasks: max(1, min(n.Offers, v.Activity.Free()))})
		}
	}
	return to, clocksync.MaxInstant
}

// Answer gives at most what the other member has room for, which it tells. The coordinator gives a half of an equal
// share of the pool at most, so deliveries shrink towards the end. A worker gives subtasks that wait, or else a half of what is
// left of its largest one: less would soon be asked for again.
func (delivery) Answer(_ clocksync.Instant, v *local.View, d local.Demand) local.Share {
	most := v.Waiting
	if v.Activity.Slots() == 0 {
		most = max(1, v.Waiting/(2*max(1, v.Members-1)))
	}
	room := d.Tasks
	if room <= 0 {
		room = math.MaxInt
	}
	if v.Waiting > 0 {
		return local.Share{Tasks: min(v.Waiting, most, room)}
	}
	return local.Share{Part: 0.5}
}
