package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/monitor"
)

// maxPairs is how many pairs of a witness are shown: those with the smallest margins.
const maxPairs = 20

// pairView is the test of a pair: one member's state began before the other member's state ended (docs/model.md).
type pairView struct {
	Began  string `json:"began"` // whose state began
	Ended  string `json:"ended"` // whose state ended
	Start  string `json:"start"` // when, at the latest
	End    string `json:"end"`   // when, at the earliest
	Margin string `json:"margin"`

	margin time.Duration
}

// newPairs are the tests that prove a decision, the closest first. States of one clock are ordered by its readings, which a
// witness of several clocks does not tell: such a pair may look closer than it is.
func newPairs(d *monitor.LastDecision) (pairs []pairView, more int) {
	pairs = []pairView{}
	possibly := d.Modality == "possibly"
	for i := range d.Witness {
		for j := range d.Witness {
			a, b := &d.Witness[i], &d.Witness[j]
			if i == j || a.Unknown || b.Unknown {
				continue
			}
			start, end := a.Start.To, b.End.From
			if possibly {
				start, end = a.Start.From, b.End.To
			}
			p := pairView{Began: a.Member, Ended: b.Member, Start: instantText(start), End: instantText(end), margin: end.Sub(start)}
			switch {
			case !start.Finite() || !end.Finite():
				p.Margin = "without end"
			case p.margin < 0:
				p.Margin = "by readings of the same clock"
			default:
				p.Margin = monitor.Seconds(p.margin.Seconds())
			}
			if b.Open {
				p.End += ", not over then"
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(a, b pairView) int { return cmp.Compare(a.margin, b.margin) })
	return first(pairs, maxPairs)
}

// instantText is an instant after the one from which on all states of the witness held.
func instantText(t clocksync.Instant) string {
	switch {
	case t == clocksync.MinInstant:
		return "not known from when on"
	case t == clocksync.MaxInstant:
		return "not known until when"
	case t < 0:
		return "-" + monitor.Seconds((-time.Duration(t)).Seconds())
	}
	return monitor.Seconds(time.Duration(t).Seconds())
}

// rangeText is when something happened.
func rangeText(r monitor.Range) string {
	if r.From == r.To {
		return instantText(r.From)
	}
	return fmt.Sprintf("%s to %s", instantText(r.From), instantText(r.To))
}
