package synccore

import (
	"slices"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/wire"
)

const (
	leastJoined = 3 // requests that become one
	mostDomains = 2 // clock domains that are asked as a whole in one step
)

// joinProbes replaces the probes from an index on to members with the same clock domain by one message, if at least
// half of the epoch's members are among them. All members of the group receive that message.
func joinProbes(members map[string]*member, inEpoch int, out *Output, from int) {
	domain := func(p *wire.Addressed[wire.Probe]) clocksync.Domain {
		if m := members[p.To]; m != nil && m.common && m.multiplexer == nil && p.Via == "" {
			return m.domain
		}
		return ""
	}
	for range mostDomains {
		rest := out.Probes[from:]
		if len(rest) < max(leastJoined, (inEpoch+1)/2) {
			return
		}
		all, joined := wire.Probe{AfterMono: clocksync.MinInstant, AfterTime: clocksync.MinInstant}, 0
		for i := range rest {
			switch d := domain(&rest[i]); {
			case d == "" || all.Domain != "" && d != all.Domain:
				continue
			case all.Domain == "":
				all.Domain, from = d, from+i
			}
			all.AfterMono, all.AfterTime = max(all.AfterMono, rest[i].Msg.AfterMono), max(all.AfterTime, rest[i].Msg.AfterTime)
			joined++
		}
		rest = out.Probes[from:]
		switch {
		case joined == 0:
			return
		case joined < leastJoined || 2*joined < inEpoch:
			from++
		default:
			rest = slices.DeleteFunc(rest, func(p wire.Addressed[wire.Probe]) bool { return domain(&p) == all.Domain })
			out.Probes = append(out.Probes[:from+len(rest)], wire.Addressed[wire.Probe]{Msg: all})
		}
	}
}
