package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
)

// Text is the view for people.
func (v *Clock) Text() string {
	var b strings.Builder
	q := v.Bound.Quality
	b.WriteString(v.headline() + "\n")
	if v.offset.Bounded() {
		fmt.Fprintf(&b, "offset    %s, which is %s minus the wall clock of this host\n", offsetText(v.offset), v.Bound.Quality.Timeline)
	}
	fmt.Fprintf(&b, "votes     %s counted, %d may be wrong, %d must agree\n", Count(v.Counted, "server"), v.Faults, v.Needed)
	if age, ok := v.Age(); ok {
		drift := max(v.drift, v.Bound.Drift)
		fmt.Fprintf(&b, "age       %s, and each second widens the bound by %s (%v ppm)\n", brief(age), brief(time.Duration(drift*1000)), drift)
	}
	if q.Expires.Finite() {
		fmt.Fprintf(&b, "good for  %s if nothing new is learned\n", brief(q.Expires.Sub(v.Now)))
	}
	if slices.ContainsFunc(v.servers, func(s serverView) bool { return s.offset != clocksync.Unbounded }) {
		b.WriteString("\n" + v.table() + v.drawing())
	}
	for _, s := range v.servers {
		if s.why != "" {
			fmt.Fprintf(&b, "%s is %v: %s\n", s.name, s.Standing, s.why)
		}
	}
	for _, n := range v.notes {
		b.WriteString(n + "\n")
	}
	return PrintableLines(b.String())
}

func (v *Clock) headline() string {
	q := v.Bound.Quality
	switch {
	case v.offset.Bounded():
		return fmt.Sprintf("%v: bound %s, by %s", q.Status, plusMinus(v.offset), q.Source)
	case q.Status == clocksync.Untrusted:
		return "untrusted: no bound, since the measurements contradict each other"
	case q.Status == clocksync.Unknown:
		return "unknown: no bound can be claimed"
	}
	return fmt.Sprintf("%v: no bound on both sides, by %s", q.Status, q.Source)
}

// half of the width, rounded up.
func half(i clocksync.Interval) time.Duration { return (i.Width() + 1) / 2 }

// offsetText is "+1ms ±2ms".
func offsetText(i clocksync.Interval) string {
	if !i.Bounded() {
		return "-"
	}
	return signed(time.Duration(i.Earliest)+i.Width()/2) + " " + plusMinus(i)
}

// plusMinus is half the width, never rounded down.
func plusMinus(i clocksync.Interval) string {
	d := half(i)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if step := unit / 100; d >= unit {
			d = (d + step - 1).Truncate(step)
			break
		}
	}
	return "±" + d.String()
}

// table has a line for each server, with what its best sample is made of.
func (v *Clock) table() string {
	rows := [][]string{{
		"SERVER", "STANDING", "OFFSET", "ROUND TRIP/2", "ROOT DELAY/2", "DISPERSION", "READINGS", "CORRECTION", "AGE", "AGE x DRIFT",
	}}
	for i := range v.servers {
		s := &v.servers[i]
		p := s.Best.Parts
		correction, age := "-", "-"
		if c := p.Correction; c != 0 && s.Source != "ntp" {
			correction = signed(c)
		}
		if s.Standing != clocksync.Silent {
			age = brief(s.age)
		}
		rows = append(rows, []string{
			s.name, s.Standing.String(), offsetText(s.offset), orDash(p.RoundTrip / 2), orDash(p.RootDelay / 2),
			orDash(p.RootDispersion), orDash(p.Precision + p.Granularity), correction, age, orDash(s.growth),
		})
	}
	return Table(rows)
}

func orDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return brief(d)
}
