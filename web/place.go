package web

import (
	"strconv"

	"github.com/gopegasus/pegasus/monitor"
)

// placeEvent says in which lane of the timeline an event stands: whether a state begins
// with it there, whether it is a mark, and whether it ends what was known of all predicates
// of its synchronizer.
func placeEvent(l *monitor.Line) (lane, state string, mark, ends bool) {
	switch b := l.Body.(type) {
	case *monitor.VerdictLine:
		return "predicate " + b.Predicate, b.Truth, b.Firing != nil, false
	case *monitor.Epoch: // The predicates are judged again.
		state = "none"
		if b.Epoch > 0 {
			state = strconv.FormatUint(b.Epoch, 10)
		}
		return "epoch", state, false, true
	case *monitor.SignalLine:
		target := b.Target
		if b.Group != "" {
			target = b.Group + "/" + target
		}
		return "member " + target, "", true, false
	case *monitor.Dropped:
		return "member " + b.Name, "", true, false
	case *monitor.ClockLine:
		return "member " + b.Member, "", true, false
	case *monitor.PlanLine:
		return balanceName, "", true, false
	case *monitor.ProgramLine:
		return "program", "", true, false
	case *monitor.Skipped: // A verdict may be among them.
		return "messages", "", true, true
	}
	return "messages", "", true, false
}
