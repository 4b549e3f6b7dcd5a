package show

import (
	"fmt"
	"strconv"

	"github.com/gopegasus/pegasus/internal/peers"
)

// Peers is the table of a comparison with other controllers.
func Peers(r *peers.Result) string {
	rows := [][]string{{
		"controller", "delay", "false firings", "p50 over nats", "missed over 5 ms", "missed over 20 ms", "late firings", "known over", "p50 ms", "p99 ms", "cpu µs a change",
		"messages a change",
	}}
	share := func(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }
	known := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	whole := func(x float64) string {
		if x == 0 {
			return "-"
		}
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	for i := range r.Legs {
		l := &r.Legs[i]
		delay := "none"
		if l.Delayed {
			delay = "0-20 ms"
		}
		rows = append(rows, []string{
			l.Controller, delay, share(l.False, l.Firings), known(l.OverBare), share(l.Missed, l.Long), share(l.MissedLonger, l.Longer),
			share(l.Late, l.Firings), share(l.Over, l.Firings), known(l.P50), known(l.P99), whole(l.CPU), known(l.Messages),
		})
	}
	return Table(rows)
}
